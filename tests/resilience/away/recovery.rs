//! Requests, limits and records from a start without the database until it is back.

use std::time::Duration;

use rust_decimal::Decimal;
use serde_json::json;

use super::{Bed, ask, readyz};
use crate::support::gateway::process::quit;
use crate::support::wait::ended;

fn cents(count: u32) -> Vec<Decimal> {
    vec![Decimal::from(count); 5]
}

/// The service with the snapshot has ended.
async fn is_back(bed: &Bed) {
    bed.node.readiness_shows(|ready, parts| ready && parts["database_snapshot"] == "ok").await;
    assert_eq!(readyz(&bed.node).await["degraded"], json!([]));
    assert_eq!(bed.node.metric("tollgate_database_snapshot_in_use").await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_starts_without_its_database_and_goes_on_with_it_when_it_is_back() {
    let mut bed = Bed::start(&[]).await;
    for _ in 0..3 {
        assert_eq!(bed.ask().await, 200);
    }
    bed.stop().await;
    // What happens after the snapshot: another node's change, and its requests.
    let mut other = bed.other().await;
    let (_, _, later) = other.user(json!({"name": "later"})).await;
    for _ in 0..2 {
        assert_eq!(ask(&other, &bed.key).await, 200);
    }
    other.logs(5).await;
    other.signal("TERM");
    other.ended().await;
    bed.server.kill();

    bed.start_away().await;
    let shown = readyz(&bed.node).await;
    assert_eq!(
        (&shown["ready"], &shown["degraded"]),
        (&json!(false), &json!(["database_snapshot"]))
    );
    let text = shown["parts"]["database_snapshot"].as_str().unwrap();
    assert!(text.contains("serves with the snapshot of 20"), "{text}");
    bed.node.readiness_shows(|_, parts| parts["database"] != "ok").await;
    assert_eq!(bed.node.metric("tollgate_database_snapshot_in_use").await, 1.0);
    for _ in 0..4 {
        assert_eq!(bed.ask().await, 200);
    }
    assert_eq!(ask(&bed.node, "sk-nobody-has-this-key").await, 401);
    assert_eq!(ask(&bed.node, &later).await, 401, "it is not in the snapshot");
    let (status, answer) = bed.node.call("users/addUser", json!({"name": "x"})).await;
    assert_eq!((status, &answer["errorParams"]["reason"]), (503, &json!("database_unreachable")));

    // Once more, after a crash: three are in the snapshot, four in the journal.
    bed.node.kill();
    bed.start_away().await;
    assert_eq!(bed.ask_until_refused().await, 3);

    bed.server.start_again();
    is_back(&bed).await;
    bed.replies(12).await;
    assert_eq!(bed.spent().await, cents(12), "with the other node's requests, each once");
    assert_eq!(ask(&bed.node, &later).await, 200);
    bed.node.user(json!({"name": "x"})).await;
    let log = bed.node.log();
    let lines = |text: &str| log.matches(text).count();
    assert_eq!(lines("starting with the snapshot of its configuration"), 2, "{log}");
    assert_eq!(lines("the service with the snapshot has ended"), 1);
    assert_eq!(lines("opening balances cannot be read"), 2, "once for each start");

    bed.stop().await;
    bed.node.spawn();
    bed.node.ready().await;
    assert_eq!(bed.spent().await, cents(12), "a usual start counts the same");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_its_dead_process_had_delivered_is_counted_once() {
    let mut bed = Bed::start(&[]).await;
    for _ in 0..3 {
        assert_eq!(bed.ask().await, 200);
    }
    // The journal as it was before the database had its records.
    let journal = bed.file("journal");
    let copy = bed.file("copy-of-the-journal");
    bed.server.freeze();
    for _ in 0..2 {
        assert_eq!(bed.ask().await, 200);
    }
    let copied = std::process::Command::new("cp").arg("-r").args([&journal, &copy]).status();
    assert!(copied.unwrap().success());
    bed.server.thaw();
    bed.node.readiness_shows(|ready, _| ready).await;
    bed.replies(5).await;
    bed.stop().await;
    std::fs::remove_dir_all(&journal).unwrap();
    std::fs::rename(&copy, &journal).unwrap();
    bed.server.kill();
    bed.start_away().await;
    // At least the two are counted twice until the ledger tells: no limit is exceeded by that.
    assert!(bed.ask_until_refused().await <= 3);
    let served = bed.upstream.requests().await.len();
    bed.server.start_again();
    is_back(&bed).await;
    bed.replies(served as u64).await;
    assert_eq!(bed.spent().await, cents(u32::try_from(served).unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_without_the_database_counts_what_the_old_process_spent() {
    let mut bed = Bed::start(&[]).await;
    bed.lose_the_database_after_a_snapshot().await;
    for _ in 0..4 {
        assert_eq!(bed.ask().await, 200);
    }
    let mut old = bed.node.upgrade().await;
    ended(&mut old).await;
    bed.node.readiness_shows(|_, parts| parts["proxy"] == "ok").await;
    assert_eq!(bed.ask_until_refused().await, 6, "four of ten cents are in the journal");
    bed.server.start_again();
    is_back(&bed).await;
    bed.replies(10).await;
    assert_eq!(bed.spent().await, cents(10), "each once");
    assert_eq!(bed.ask().await, 429);
    bed.stop().await;
    bed.node.spawn();
    bed.node.ready().await;
    assert_eq!(bed.spent().await, cents(10), "a usual start counts the same");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_running_process_delivers_after_an_upgrade_read_it_is_counted_once() {
    let mut bed = Bed::start(&[]).await;
    bed.lose_the_database_after_a_snapshot().await;
    for _ in 0..4 {
        assert_eq!(bed.ask().await, 200);
    }
    // The new process has read the old one's journal, and has no listener yet.
    let mut old = bed.node.begin_upgrade().await;
    bed.server.start_again();
    bed.node.log_shows("the service with the snapshot has ended").await;
    quit(&old);
    ended(&mut old).await;
    bed.node.readiness_shows(|ready, _| ready).await;
    bed.replies(4).await;
    assert_eq!(bed.ask_until_refused().await, 6);
    assert_eq!(bed.spent().await, cents(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_at_the_start_is_away_too() {
    let mut bed = Bed::start(&[]).await;
    bed.stop().await;
    bed.server.freeze();
    let began = std::time::Instant::now();
    bed.start_away().await;
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(bed.ask().await, 200);
    bed.server.thaw();
    is_back(&bed).await;
    bed.replies(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_database_in_its_place_does_not_take_the_keys_away() {
    let mut bed = Bed::start(&[]).await;
    bed.stop().await;
    bed.meddle("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await;
    bed.server.kill();
    bed.start_away().await;
    bed.server.start_again();
    bed.node
        .readiness_shows(|_, parts| {
            parts["database_snapshot"].as_str().unwrap().contains("it is empty")
        })
        .await;
    assert_eq!(bed.ask().await, 200);
    bed.meddle("CREATE TABLE _sqlx_migrations (version BIGINT)").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_cannot_be_used_does_not_end_the_service_and_nothing_is_written_to_it() {
    let mut bed = Bed::start(&[]).await;
    bed.stop().await;
    bed.meddle(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (9999, 'of a newer version', TRUE, '', 0)",
    )
    .await;
    let refused = bed.start_fails();
    assert!(refused.contains("newer version"), "it answers: no start with the snapshot: {refused}");
    bed.server.kill();
    bed.start_away().await;
    assert_eq!(bed.ask().await, 200);
    bed.server.start_again();
    bed.node
        .readiness_shows(|_, parts| {
            parts["database_snapshot"].as_str().unwrap().contains("newer version")
        })
        .await;
    assert_eq!(bed.ask().await, 200);
    // Sleeps: longer than the journal waits for a full batch, and nothing shows that it did not
    // write one.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(bed.node.metric("tollgate_journal_pending_records").await, 2.0);
    let log = bed.node.log();
    assert_eq!(log.matches("answers and cannot be used").count(), 1, "{log}");
    bed.meddle("DELETE FROM _sqlx_migrations WHERE version = 9999").await;
    is_back(&bed).await;
    bed.replies(2).await;
}
