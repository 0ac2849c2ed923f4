//! The journal's share of the disk, and the behaviour when it is used up.

use super::{Mood, Rows, Running, TIME_LIMIT, journals, open, quick, sample};
use std::sync::Arc;
use tollgate::domain::clock::SystemClock;
use tollgate::ledger::{AppendRefused, Ledger, LedgerError, LedgerSettings};

const SMALL: LedgerSettings = LedgerSettings {
    segment_bytes: 16 << 10,
    max_bytes: 64 << 10,
    batch_rows: 10,
    flush_interval_ms: 5,
    sync_interval_ms: 10,
    drain_ms: 20_000,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_full_journal_says_so_early_holds_what_still_comes_and_loses_nothing() {
    let root = tempfile::tempdir().unwrap();
    let sink = Rows::new(Mood::Down);
    let running = Running::start(open(root.path(), SMALL), &sink);
    let mut appended = 0;
    let error = loop {
        let had_room = running.ledger.has_room();
        appended += 1;
        if let Err(error) = running.ledger.append(&sample(appended)) {
            assert!(!had_room, "new requests are refused before records are");
            break error;
        }
        assert!(appended < 1_000, "the bound was passed");
    };
    assert!(matches!(error, LedgerError::Held(AppendRefused::Full { max: 65_536, .. })), "{error}");
    appended += 1;
    running.ledger.append(&sample(appended)).unwrap_err();
    let stats = running.ledger.stats();
    assert!(stats.disk_bytes <= SMALL.max_bytes, "{stats:?}");
    assert_eq!((stats.held_records, stats.append_errors, stats.lost_records), (2, 2, 0));
    assert!(!running.ledger.has_room());

    sink.set(Mood::Well);
    sink.seen(|(_, rows)| *rows as u64 == appended).await;
    assert!(running.ledger.flush(TIME_LIMIT).await);
    assert!(running.ledger.has_room());
    running.ledger.append(&sample(appended + 1)).unwrap();
    let stats = running.stop().await;
    assert_eq!((stats.held_records, stats.pending_records), (0, 0));
    assert_eq!(sink.numbers(), (1..=appended + 1).collect::<Vec<_>>());
}

/// As on a completely full disk: deleting delivered segments must not wait for the checkpoint.
#[tokio::test(flavor = "multi_thread")]
async fn delivery_goes_on_and_frees_space_when_the_checkpoint_cannot_be_written() {
    let root = tempfile::tempdir().unwrap();
    let sink = Rows::new(Mood::Down);
    let running = Running::start(open(root.path(), SMALL), &sink);
    std::fs::create_dir(journals(root.path())[0].join("checkpoint.new")).unwrap();
    let mut appended = 0;
    while running.ledger.has_room() {
        appended += 1;
        running.ledger.append(&sample(appended)).unwrap();
    }
    sink.set(Mood::Well);
    assert!(running.ledger.flush(TIME_LIMIT).await);
    assert!(running.ledger.has_room());
    let stats = running.stop().await;
    assert_eq!((stats.writer_rows, stats.pending_bytes), (appended, 0));
    assert!(stats.disk_bytes <= SMALL.segment_bytes, "{stats:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_for_held_records_is_bounded_too() {
    let root = tempfile::tempdir().unwrap();
    let ledger = open(root.path(), SMALL);
    let mut big = sample(1);
    big.error_message = Some("x".repeat(1 << 20));
    let mut held = 0;
    let error = loop {
        match ledger.append(&big) {
            Err(LedgerError::Held(_)) => held += 1,
            Err(error) => break error,
            Ok(()) => unreachable!("larger than the journal"),
        }
    };
    assert!(matches!(error, LedgerError::Lost(_)), "{error}");
    assert_eq!((held, ledger.stats().lost_records), (7, 1));
}

#[test]
fn settings_that_contradict_each_other_and_unusable_places_are_refused() {
    let root = tempfile::tempdir().unwrap();
    for (settings, expected) in [
        (LedgerSettings { max_bytes: 1 << 20, ..quick() }, "two segments"),
        (LedgerSettings { segment_bytes: 100, ..quick() }, "1 KiB"),
        (LedgerSettings { batch_rows: 0, ..quick() }, "batch_rows"),
        (LedgerSettings { sync_interval_ms: 0, ..quick() }, "sync_interval_ms"),
    ] {
        let error =
            Ledger::open(root.path(), settings, Arc::new(SystemClock)).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let file = root.path().join("a-file");
    std::fs::write(&file, "").unwrap();
    let error = Ledger::open(&file, quick(), Arc::new(SystemClock)).err().unwrap().to_string();
    assert!(error.contains("a-file"), "{error}");
}
