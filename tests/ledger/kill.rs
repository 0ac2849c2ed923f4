//! `kill -9`: every acknowledged record is there afterwards.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{Mood, Rows, open, quick, recover, sample};
use tollgate::ledger::LedgerSettings;

const ROOT: &str = "TOLLGATE_TEST_JOURNAL";
const NAME: &str = "ledger::kill::a_killed_process_loses_no_acknowledged_record";

/// The child's part: appends endlessly from four threads, and prints each record that is kept.
fn append_for_ever(root: &str) {
    let settings = LedgerSettings { segment_bytes: 256 << 10, ..quick() };
    let ledger = open(&PathBuf::from(root), settings);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let ledger = &ledger;
            scope.spawn(move || {
                for number in (thread..).step_by(4) {
                    ledger.append(&sample(number)).unwrap();
                    writeln!(std::io::stdout().lock(), "kept {number}.").unwrap();
                }
            });
        }
    });
}

/// Runs in two processes: the test starts its own binary again, with only this test and a journal
/// to write to.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_loses_no_acknowledged_record() {
    #[expect(clippy::disallowed_methods, reason = "the variable marks the child process")]
    if let Ok(root) = std::env::var(ROOT) {
        return append_for_ever(&root);
    }
    let root = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(ROOT, root.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut kept: Vec<u64> = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        // A line that the kill cut short has no full stop.
        // Before the first the test runner may have written the test's name.
        let number = line.rsplit_once("kept ").and_then(|(_, n)| n.strip_suffix('.'));
        kept.extend(number.and_then(|n| n.parse::<u64>().ok()));
        if kept.len() == 2_000 {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(kept.len() >= 2_000, "the child said only {} words", kept.len());

    let sink = Rows::new(Mood::Well);
    let stats = recover(root.path(), &sink).await;
    let found = sink.all();
    for number in &kept {
        let expected = sample(*number);
        assert!(
            found.binary_search_by_key(&expected.request_id, |r| r.request_id).is_ok(),
            "record {number} is lost"
        );
    }
    assert!(found.len() <= kept.len() + 4, "at most one unacknowledged record of each thread");
    assert_eq!((stats.adopted, stats.damaged_ranges), (1, 0), "a kill tears no record");
}
