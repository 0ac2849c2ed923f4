//! Journals damaged by a power failure, a bad disk or a human error.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::{Mood, Rows, journals, open, quick, recover, sample, set_aside};
use tollgate::domain::record::Record;

const RECORDS: u64 = 5;
const HEADER: usize = 16;
const SEGMENT: &str = "0000000001.seg";

/// The bytes of a segment with five records, and where their frames begin.
fn journal() -> (Vec<u8>, Vec<usize>) {
    let root = tempfile::tempdir().unwrap();
    let ledger = open(root.path(), quick());
    for number in 1..=RECORDS {
        ledger.append(&sample(number)).unwrap();
    }
    let bytes = fs::read(journals(root.path())[0].join(SEGMENT)).unwrap();
    let starts = bytes
        .windows(4)
        .enumerate()
        .filter(|(_, w)| *w == b"\xFF\xFETJ")
        .map(|(at, _)| at)
        .collect();
    (bytes, starts)
}

/// A root with one abandoned journal.
fn abandoned(root: &Path, segment: &[u8]) {
    let dir = root.join(uuid::Uuid::now_v7().to_string());
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join(SEGMENT), segment).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tail_torn_at_any_byte_costs_the_torn_record_alone() {
    let (bytes, starts) = journal();
    let last = *starts.last().unwrap();
    for cut in last..bytes.len() {
        let root = tempfile::tempdir().unwrap();
        abandoned(root.path(), &bytes[..cut]);
        let sink = Rows::new(Mood::Well);
        let stats = recover(root.path(), &sink).await;
        assert_eq!(sink.numbers(), (1..RECORDS).collect::<Vec<_>>(), "cut at {cut}");
        assert_eq!(stats.damaged_ranges, u64::from(cut > last), "cut at {cut}");
        let kept: Vec<Vec<u8>> =
            set_aside(root.path()).iter().map(|path| fs::read(path).unwrap()).collect();
        let expected = if cut > last { vec![bytes[last..cut].to_vec()] } else { Vec::new() };
        assert_eq!(kept, expected, "cut at {cut}");
        assert!(journals(root.path()).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_in_the_middle_is_set_aside_and_the_rest_is_read() {
    let (bytes, starts) = journal();
    let zeroed = |from: usize, to: usize| {
        let mut bytes = bytes.clone();
        bytes[from..to].fill(0);
        bytes
    };
    let flipped = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x40;
        bytes
    };
    let inserted = [&bytes[..starts[2]], b"rubbish", &bytes[starts[2]..]].concat();
    let cases: [(&str, Vec<u8>, Vec<u64>); 8] = [
        ("mark", flipped(starts[1]), vec![1, 3, 4, 5]),
        ("length beyond the end", flipped(starts[1] + 6), vec![1, 3, 4, 5]),
        ("length beyond reason", flipped(starts[1] + 7), vec![1, 3, 4, 5]),
        ("checksum", flipped(starts[1] + 9), vec![1, 3, 4, 5]),
        ("payload", flipped(starts[1] + 100), vec![1, 3, 4, 5]),
        ("a page of zeros", zeroed(starts[1] + 50, starts[3] + 50), vec![1, 5]),
        ("something that was never written", inserted, vec![1, 2, 3, 4, 5]),
        ("header", flipped(3), vec![1, 2, 3, 4, 5]),
    ];
    for (what, bytes, expected) in cases {
        let root = tempfile::tempdir().unwrap();
        abandoned(root.path(), &bytes);
        let sink = Rows::new(Mood::Well);
        let stats = recover(root.path(), &sink).await;
        assert_eq!(sink.numbers(), expected, "{what}");
        assert_eq!(stats.damaged_ranges, 1, "{what}");
        assert_eq!(set_aside(root.path()).len(), 1, "{what}");
        assert!(journals(root.path()).is_empty(), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_this_program_cannot_read_is_kept_whole() {
    let (bytes, starts) = journal();
    let mut newer = bytes.clone();
    newer[8] = 4;
    let sum = crc32fast::hash(&newer[..12]).to_le_bytes();
    newer[12..HEADER].copy_from_slice(&sum);
    let payload = b"{\"request_id\":\"from another version\"}";
    let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
    let sum = crc32fast::hash(&[&length[..], payload].concat()).to_le_bytes();
    let foreign = [b"\xFF\xFETJ", &length[..], &sum, payload].concat();
    let foreign_record = [&bytes[..starts[4]], &foreign, &bytes[starts[4]..]].concat();
    for (segment, delivered, kept) in
        [(newer.clone(), 0, newer), (foreign_record, RECORDS, payload.to_vec())]
    {
        let root = tempfile::tempdir().unwrap();
        abandoned(root.path(), &segment);
        let sink = Rows::new(Mood::Well);
        recover(root.path(), &sink).await;
        assert_eq!(sink.numbers(), (1..=delivered).collect::<Vec<_>>());
        assert_eq!(fs::read(&set_aside(root.path())[0]).unwrap(), kept);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_read_twice_sets_its_damage_aside_once() {
    let (mut bytes, starts) = journal();
    bytes[starts[1] + 30] ^= 1;
    let root = tempfile::tempdir().unwrap();
    abandoned(root.path(), &bytes);
    let sink = Rows::new(Mood::Down);
    let running = super::Running::start(open(root.path(), quick()), &sink);
    sink.seen(|(calls, _)| *calls >= 3).await;
    sink.set(Mood::Well);
    let stats = running.stop().await;
    assert_eq!((stats.damaged_ranges, stats.writer_rows), (1, 4));
    assert_eq!(set_aside(root.path()).len(), 1);
}

/// One way to damage bytes.
#[derive(Debug, Clone)]
enum Harm {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Zero(prop::sample::Index, usize),
    Drop(prop::sample::Index, usize),
}

fn harm() -> impl Strategy<Value = Harm> {
    let place = any::<prop::sample::Index>;
    prop_oneof![
        6 => (place(), 0..8_u8).prop_map(|(at, bit)| Harm::Flip(at, bit)),
        1 => place().prop_map(Harm::Cut),
        2 => (place(), 1..2_000_usize).prop_map(|(at, count)| Harm::Zero(at, count)),
        2 => (place(), 1..2_000_usize).prop_map(|(at, count)| Harm::Drop(at, count)),
    ]
}

fn inflict(bytes: &mut Vec<u8>, harm: &Harm) {
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    let span = |at: usize, count: usize| at..length.min(at + count);
    match harm {
        Harm::Flip(at, bit) => bytes[at.index(length)] ^= 1 << bit,
        Harm::Cut(at) => bytes.truncate(at.index(length)),
        Harm::Zero(at, count) => bytes[span(at.index(length), *count)].fill(0),
        Harm::Drop(at, count) => drop(bytes.drain(span(at.index(length), *count))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_damage_panics_or_yields_a_record_that_was_not_written(harms in prop::collection::vec(harm(), 1..4), in_checkpoint in any::<bool>()) {
        let (mut bytes, _) = journal();
        harms.iter().for_each(|harm| inflict(&mut bytes, harm));
        let root = tempfile::tempdir().unwrap();
        abandoned(root.path(), &bytes);
        if in_checkpoint {
            let mut text = format!("1 {HEADER} {:08x}\n", crc32fast::hash(b"1 16")).into_bytes();
            harms.iter().for_each(|harm| inflict(&mut text, harm));
            fs::write(journals(root.path())[0].join("checkpoint"), text).unwrap();
        }
        let sink = Rows::new(Mood::Well);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(recover(root.path(), &sink));
        let written: Vec<Record> = (1..=RECORDS).map(sample).collect();
        prop_assert!(sink.all().iter().all(|record| written.contains(record)));
        prop_assert!(journals(root.path()).is_empty());
    }
}
