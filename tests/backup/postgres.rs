//! The procedure of docs/backup.md for PostgreSQL: the journals first, then `pg_dump`; and back.

use std::process::Command;

use super::{Bed, Load, data, sums, system};
use crate::support::postgres::fresh_database;

/// `tar` ends with 1 when a file changed or went while it read: the database has what was in it.
fn copy_journals(from: &str, to: &str) {
    let done = Command::new("tar").args(["-C", from, "-cf", to, "journal"]).output().unwrap();
    assert!(matches!(done.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&done.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn journals_and_then_pg_dump_hold_what_was_recorded_before() {
    let (source, target) = (fresh_database(), fresh_database());
    // A long wait for a full batch: there is something in the journal at any time.
    let env = [("DATABASE_URL", source.as_str()), ("TOLLGATE_LEDGER_FLUSH_INTERVAL", "2s")];
    let mut bed = Bed::start(&env, 0).await;
    let (journals, dump) = (bed.file("journal.tar"), bed.file("dump"));
    let (journals, dump) = (journals.to_str().unwrap(), dump.to_str().unwrap());
    let from = data(&bed.fixture.gateway).display().to_string();
    let load = Load::default();
    let (least, most) = load
        .during(&bed, async {
            load.goes_on(60).await;
            let least = load.answered();
            copy_journals(&from, journals);
            load.goes_on(30).await;
            system("pg_dump", &["-Fc", "-f", dump, &source]);
            (least, load.begun())
        })
        .await;
    bed.fixture.gateway.kill();

    system("pg_restore", &["--exit-on-error", "-d", &target, dump]);
    let mut other = bed.other(&[("DATABASE_URL", target.as_str())]);
    let to = data(&other).display().to_string();
    std::fs::create_dir(&to).unwrap();
    system("tar", &["-C", &to, "-xf", journals]);
    std::fs::copy(format!("{from}/secret.key"), format!("{to}/secret.key")).unwrap();
    other.spawn();
    other.ready().await;
    bed.ask_of(&other).await;
    other.signal("TERM");
    other.ended().await;
    let (requests, _) = sums(&target).await;
    assert!(
        (least + 1..=most + 1).contains(&requests),
        "{requests}, not in {least}..={most} and one"
    );
}
