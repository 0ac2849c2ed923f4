//! The journal's reader on any bytes: built from its own sources, without the writer and the
//! database.
//!
//! The input is `h` and the frames of a segment, or any other byte and a complete segment file.
//! What must hold: no panic. After a valid header, exactly the complete frames with a correct
//! checksum are read as records, so damage costs only the damaged frames. Everything else is set
//! aside, once. Every batch makes progress. The fuzzer's `-rss_limit_mb` bounds the memory.

#![expect(dead_code, reason = "the writer's half of the shared files")]

#[path = "../../../crates/storage/src/ledger/encoding/mod.rs"]
mod encoding;
#[path = "../../../crates/storage/src/ledger/error.rs"]
mod error;
#[path = "../../../crates/storage/src/ledger/frame.rs"]
mod frame;
#[path = "../../../crates/storage/src/ledger/reader.rs"]
mod reader;
#[path = "../../../crates/storage/src/ledger/segment.rs"]
mod segment;
#[path = "../../../crates/storage/src/ledger/set_aside.rs"]
mod set_aside;
#[path = "../../../crates/storage/src/ledger/stats.rs"]
mod stats;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use reader::JournalReader;
use segment::{HEADER, Position};

/// Small, so that batches end within segments.
const ROWS: usize = 7;

/// Reads a segment with these bytes, like a start after a crash.
///
/// # Panics
/// When a property from this file's header does not hold.
pub fn read(data: &[u8]) {
    let whole = match data.split_first() {
        // With a valid header before them, so that the frames are reached.
        Some((b'h', frames)) => [&segment::header()[..], frames].concat(),
        Some((_, all)) => all.to_vec(),
        None => return,
    };
    let root = place();
    let _ = std::fs::remove_dir_all(&root);
    let (records, damaged) = deliver(&root, &whole);
    let aside = sizes(&root.join("set-aside"));
    let kept = aside.iter().sum::<u64>() as usize;
    assert_eq!(damaged as usize, aside.len(), "each damaged stretch is set aside once");
    assert!(kept <= whole.len(), "more set aside than there was");
    if whole.starts_with(&segment::header()) {
        let expected = expected(&whole);
        assert_eq!(records, expected.records, "every whole frame outside of damage, and nothing else");
        let unread = whole.len() - HEADER - expected.read;
        assert!(
            kept <= unread && unread - kept <= frame::HEAD * aside.len(),
            "{kept} of {unread} bytes set aside"
        );
    }
}

/// Reads a journal of one segment from its beginning to its end: the records, and the damaged
/// stretches.
fn deliver(root: &Path, whole: &[u8]) -> (usize, u64) {
    let dir = root.join("journal");
    let written = std::fs::create_dir_all(&dir).and_then(|()| std::fs::write(segment::path(&dir, 1), whole));
    assert!(written.is_ok(), "{written:?}");
    let tally = Arc::new(stats::JournalTally::default());
    let set_aside = set_aside::SetAside::beside(root, Arc::clone(&tally));
    let reader = JournalReader { dir: &dir, end: None, set_aside: Some(&set_aside) };
    let (mut at, mut records) = (Position::default(), 0);
    for _round in 0..whole.len() + 2 {
        let batch = match reader.read(at, ROWS) {
            Ok(batch) => batch,
            Err(error) => panic!("{error}"),
        };
        assert!(batch.records.len() <= ROWS);
        records += batch.records.len();
        if batch.at_end {
            return (records, tally.damaged_ranges.load(Ordering::Relaxed));
        }
        assert!(batch.next > at, "no progress at {at:?}");
        at = batch.next;
    }
    panic!("more rounds than bytes");
}

/// The expected result for a file with a valid header, computed independently of the reader.
struct Expected {
    records: usize,
    /// Bytes of frames that hold a record.
    read: usize,
}

fn expected(whole: &[u8]) -> Expected {
    let mut expected = Expected { records: 0, read: 0 };
    let mut at = HEADER;
    while at < whole.len() {
        let Some(payload) = frame_at(whole, at) else {
            // Damage ends where the next complete frame begins.
            at += 1;
            continue;
        };
        if encoding::Decoder::default().read(payload).is_some() {
            expected.records += 1;
            expected.read += frame::HEAD + payload.len();
        }
        at += frame::HEAD + payload.len();
    }
    expected
}

/// The payload of a complete frame that begins here: mark, length, and the checksum of length and
/// payload.
fn frame_at(whole: &[u8], at: usize) -> Option<&[u8]> {
    let (head, rest) = whole.get(at..)?.split_first_chunk::<12>()?;
    let number = |from: usize| u32::from_le_bytes([head[from], head[from + 1], head[from + 2], head[from + 3]]);
    let length = number(4) as usize;
    if head[..4] != *b"\xFF\xFETJ" || length > frame::MAX_PAYLOAD {
        return None;
    }
    let payload = rest.get(..length)?;
    let sum = crc32fast::hash(&[&head[4..8], payload].concat());
    (sum == number(8)).then_some(payload)
}

/// The sizes of the files in a directory that may be missing.
fn sizes(dir: &Path) -> Vec<u64> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.metadata().map_or(0, |about| about.len())).collect()
}

/// A directory for this process, in memory if possible.
fn place() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    base.join(format!("tollgate-fuzz-{}", std::process::id()))
}
