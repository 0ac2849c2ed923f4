//! From append to the database: order, batches, outages, refusals, restarts.

use std::sync::Arc;
use std::time::Duration;

use super::{
    Mood, Rows, Running, TIME_LIMIT, journals, open, quick, recover, recover_once_free, sample,
    set_aside,
};
use tollgate::domain::record::Record;
use tollgate::ledger::{LedgerSettings, SinkError};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_appended_arrives_unchanged_and_an_empty_journal_leaves_no_trace() {
    let root = tempfile::tempdir().unwrap();
    let sink = Rows::new(Mood::Well);
    let settings = LedgerSettings { segment_bytes: 4_096, ..quick() };
    let running = Running::start(open(root.path(), settings), &sink);
    let records: Vec<Record> = (1..=1_000).map(sample).collect();
    for record in &records {
        running.ledger.append(record).unwrap();
    }
    assert!(running.ledger.flush(TIME_LIMIT).await);
    assert!(sink.all() == records, "a record was changed on its way");
    let stats = running.stop().await;
    assert_eq!((stats.pending_records, stats.pending_bytes, stats.writer_rows), (0, 0, 1_000));
    assert!(
        stats.disk_bytes <= 8_192,
        "delivered segments are deleted: {} bytes",
        stats.disk_bytes
    );
    assert_eq!((stats.damaged_ranges, stats.append_errors, stats.writer_errors), (0, 0, 0));
    assert!(journals(root.path()).is_empty(), "removed with its owner");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_from_eight_threads_are_all_delivered() {
    const EACH: u64 = 2_000;
    let root = tempfile::tempdir().unwrap();
    let sink = Rows::new(Mood::Well);
    let settings = LedgerSettings { segment_bytes: 64 << 10, ..quick() };
    let running = Running::start(open(root.path(), settings), &sink);
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let ledger = Arc::clone(&running.ledger);
            std::thread::spawn(move || {
                for number in 0..EACH {
                    ledger.append(&sample(thread * EACH + number)).unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        tokio::task::block_in_place(|| thread.join().unwrap());
    }
    let stats = running.stop().await;
    assert_eq!(stats.writer_rows, 8 * EACH);
    assert_eq!(sink.numbers(), (0..8 * EACH).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn records_share_a_transaction_while_the_database_is_busy() {
    let root = tempfile::tempdir().unwrap();
    let sink = Rows::new(Mood::Stalled);
    let running = Running::start(open(root.path(), quick()), &sink);
    running.ledger.append(&sample(1)).unwrap();
    sink.seen(|(calls, _)| *calls == 1).await;
    for number in 2..=400 {
        running.ledger.append(&sample(number)).unwrap();
    }
    sink.set(Mood::Well);
    assert!(running.ledger.flush(TIME_LIMIT).await);
    let stats = running.stop().await;
    assert_eq!((stats.writer_rows, stats.writer_batches), (400, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_waited_out() {
    let root = tempfile::tempdir().unwrap();
    let sink = Rows::new(Mood::Down);
    let running = Running::start(open(root.path(), quick()), &sink);
    for number in 1..=10 {
        running.ledger.append(&sample(number)).unwrap();
    }
    sink.seen(|(calls, _)| *calls >= 2).await;
    assert!(!running.ledger.flush(Duration::ZERO).await);
    let stats = running.ledger.stats();
    assert!(
        stats.writer_failing && stats.writer_errors >= 1 && stats.oldest_age_ms > 0,
        "{stats:?}"
    );
    assert_eq!(stats.pending_records, 10);
    sink.set(Mood::Well);
    assert!(running.ledger.flush(TIME_LIMIT).await);
    let stats = running.stop().await;
    assert_eq!((stats.writer_failing, stats.pending_records, stats.oldest_age_ms), (false, 0, 0));
    assert_eq!(sink.all().len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_refused_record_does_not_keep_back_the_others() {
    let root = tempfile::tempdir().unwrap();
    let sink = Rows::new(Mood::Well);
    let poison = sample(13);
    sink.refuse(&poison, SinkError::Refused);
    let ledger = open(root.path(), quick());
    for number in 1..=100 {
        ledger.append(&sample(number)).unwrap();
    }
    let stats = Running::start(ledger, &sink).stop().await;
    assert_eq!(sink.numbers(), (1..=100).filter(|n| *n != 13).collect::<Vec<_>>());
    assert_eq!((stats.refused_records, stats.writer_errors, stats.pending_records), (1, 0, 0));
    let kept = set_aside(root.path());
    assert_eq!(kept.len(), 1);
    let kept: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&kept[0]).unwrap()).unwrap();
    assert_eq!(serde_json::from_value::<Record>(kept["record"].clone()).unwrap(), poison);
    assert!(kept["reason"].as_str().unwrap().contains("constraint"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lone_refused_record_is_set_aside_after_some_attempts() {
    let root = tempfile::tempdir().unwrap();
    let sink = Rows::new(Mood::Well);
    sink.refuse(&sample(1), SinkError::Refused);
    let running = Running::start(open(root.path(), quick()), &sink);
    running.ledger.append(&sample(1)).unwrap();
    assert!(running.ledger.flush(TIME_LIMIT).await);
    let stats = running.stop().await;
    assert_eq!((stats.refused_records, stats.writer_errors), (1, 2));
    assert_eq!(set_aside(root.path()).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doubtful_failure_is_a_records_fault_only_when_others_are_taken() {
    let root = tempfile::tempdir().unwrap();
    let sink = Rows::new(Mood::Well);
    sink.refuse(&sample(1), SinkError::Doubtful);
    let running = Running::start(open(root.path(), quick()), &sink);
    running.ledger.append(&sample(1)).unwrap();
    sink.seen(|(calls, _)| *calls > 4).await;
    assert_eq!(running.ledger.stats().refused_records, 0);
    running.ledger.append(&sample(2)).unwrap();
    assert!(running.ledger.flush(TIME_LIMIT).await);
    assert_eq!(running.stop().await.refused_records, 1);
    assert_eq!(sink.numbers(), [2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_refuses_everything_is_not_believed() {
    let root = tempfile::tempdir().unwrap();
    let sink = Rows::new(Mood::Well);
    let records: Vec<Record> = (1..=50).map(sample).collect();
    records.iter().for_each(|record| sink.refuse(record, SinkError::Refused));
    let ledger = open(root.path(), quick());
    for record in &records {
        ledger.append(record).unwrap();
    }
    let running = Running::start(ledger, &sink);
    // Each attempt except the thorough ones stops after 17 refusals; the fifth attempt is thorough.
    sink.seen(|(calls, _)| *calls > 200).await;
    assert_eq!(running.ledger.stats().refused_records, 0);
    sink.0.refused.lock().clear();
    assert!(running.ledger.flush(TIME_LIMIT).await);
    assert_eq!(sink.numbers(), (1..=50).collect::<Vec<_>>());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_reply_was_lost_gives_no_duplicate_after_the_restart() {
    let root = tempfile::tempdir().unwrap();
    let sink = Rows::new(Mood::LosesReplies);
    let settings = LedgerSettings { drain_ms: 0, ..quick() };
    let running = Running::start(open(root.path(), settings), &sink);
    for number in 1..=20 {
        running.ledger.append(&sample(number)).unwrap();
    }
    sink.seen(|(_, rows)| *rows == 20).await;
    assert_eq!(running.stop().await.writer_rows, 0, "nothing is known to be written");
    assert_eq!(journals(root.path()).len(), 1);
    sink.set(Mood::Well);
    let stats = recover_once_free(root.path(), &sink).await;
    assert_eq!((stats.adopted, stats.writer_repeated, stats.writer_rows), (1, 20, 0));
    assert_eq!(sink.all().len(), 20);
    assert!(journals(root.path()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn journals_of_dead_processes_are_delivered_and_those_of_living_ones_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let sink = Rows::new(Mood::Well);
    let (old, draining) = (open(root.path(), quick()), open(root.path(), quick()));
    for number in 1..=10 {
        old.append(&sample(number)).unwrap();
        draining.append(&sample(100 + number)).unwrap();
    }
    drop(old);
    let stats = recover(root.path(), &sink).await;
    assert_eq!((stats.adopted, stats.pending_bytes, stats.disk_bytes), (1, 0, 16));
    assert_eq!(sink.numbers(), (1..=10).collect::<Vec<_>>());
    let stats = Running::start(draining, &sink).stop().await;
    assert_eq!(stats.writer_rows, 10);
    assert_eq!(sink.all().len(), 20);
    assert!(journals(root.path()).is_empty());
}

/// A process first delivers what others left, then serves: two runs of one ledger.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_run_goes_on_where_the_first_one_stopped() {
    let root = tempfile::tempdir().unwrap();
    let sink = Rows::new(Mood::Down);
    let dead = open(root.path(), quick());
    dead.append(&sample(1)).unwrap();
    drop(dead);
    let ledger = open(root.path(), LedgerSettings { drain_ms: 0, ..quick() });
    let before = Running::start(Arc::clone(&ledger), &sink).stop().await;
    assert_eq!(
        (before.writer_rows, before.disk_bytes),
        (0, 16),
        "given up, and counted no more: {before:?}"
    );
    sink.set(Mood::Well);
    for number in 2..=3 {
        let running = Running::start(Arc::clone(&ledger), &sink);
        ledger.append(&sample(number)).unwrap();
        assert!(ledger.flush(TIME_LIMIT).await);
        sink.seen(|(_, rows)| *rows as u64 == number).await;
        running.stop().await;
    }
    let stats = ledger.stats();
    assert_eq!(
        (stats.writer_rows, stats.writer_repeated, stats.pending_bytes),
        (3, 0, 0),
        "{stats:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_delivered_journal_goes_on_from_its_checkpoint() {
    let root = tempfile::tempdir().unwrap();
    let sink = Rows::new(Mood::Well);
    let settings = LedgerSettings { drain_ms: 0, segment_bytes: 4_096, ..quick() };
    let running = Running::start(open(root.path(), settings), &sink);
    for number in 1..=30 {
        running.ledger.append(&sample(number)).unwrap();
    }
    assert!(running.ledger.flush(TIME_LIMIT).await);
    sink.set(Mood::Down);
    for number in 31..=40 {
        running.ledger.append(&sample(number)).unwrap();
    }
    running.stop().await;
    sink.set(Mood::Well);
    let stats = recover(root.path(), &sink).await;
    assert_eq!((stats.writer_rows, stats.writer_repeated), (10, 0));
    assert_eq!(sink.numbers(), (1..=40).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_is_bounded_when_the_database_does_not_answer() {
    let root = tempfile::tempdir().unwrap();
    let sink = Rows::new(Mood::Stalled);
    let ledger = open(root.path(), LedgerSettings { drain_ms: 20, ..quick() });
    ledger.append(&sample(1)).unwrap();
    let running = Running::start(ledger, &sink);
    sink.seen(|(calls, _)| *calls == 1).await;
    assert_eq!(running.stop().await.pending_records, 1);
    sink.set(Mood::Well);
    assert_eq!(recover(root.path(), &sink).await.writer_rows, 1);
}
