//! Replies that end while the disk is full, and the end of the process before it has space again:
//! their records are in the log, completely, and `tollgate import-log` reads them back. After a
//! hand-over the new process gets them.

use std::collections::BTreeSet;

use serde_json::json;
use tokio::task::JoinSet;

use crate::proxy::fixture::{Fixture, prices, request};
use crate::support::gateway::Gateway;
use crate::support::gateway::process::fill_disk_of;
use crate::support::upstream::Upstream;

const REPLIES: usize = 5;

/// A gateway whose disk can be filled, on another one than its log.
async fn fixture(format: &str) -> Fixture {
    let mut gateway =
        Gateway::prepare(&[("LOG_FORMAT", format), ("TOLLGATE_SHUTDOWN_GRACE", "10m")]);
    gateway.outlive_full_disks_with_a_log();
    gateway.spawn();
    gateway.ready().await;
    let upstream = Upstream::start().await;
    gateway.prices(prices()).await;
    let (user_id, key_id, key) = gateway.user(json!({"name": "ada"})).await;
    gateway.provider("native", &upstream.url, json!({})).await;
    Fixture { gateway, upstream, key, user_id, key_id }
}

/// Streams in flight, which wait for [`Upstream::go_on`]. Each gives the request's id once its
/// client has all of it.
async fn begin(fixture: &Fixture, streams: usize) -> JoinSet<String> {
    fixture.upstream.default(json!({"events": 6, "hold_after": 4})).await;
    let mut asking = JoinSet::new();
    for _ in 0..streams {
        let ask = fixture.post("/v1/messages", &request("native", true)).send();
        asking.spawn(async move {
            let answer = ask.await.unwrap();
            let id = answer.headers()["x-tollgate-request-id"].to_str().unwrap().to_owned();
            assert!(answer.text().await.unwrap().contains("message_stop"));
            id
        });
    }
    fixture.upstream.stats(&format!("started={streams}")).await;
    asking
}

/// Lets some of them end: their ids.
async fn end(fixture: &Fixture, asking: &mut JoinSet<String>) -> BTreeSet<String> {
    fixture.upstream.go_on(REPLIES).await;
    let mut ids = BTreeSet::new();
    for _ in 0..REPLIES {
        ids.insert(asking.join_next().await.unwrap().unwrap());
    }
    assert_eq!(ids.len(), REPLIES);
    ids
}

/// The usage log has each of these requests once.
async fn has_all(gateway: &Gateway, ids: &BTreeSet<String>) {
    let rows = gateway.logs(ids.len()).await;
    let found: BTreeSet<String> =
        rows.iter().map(|row| row["requestId"].as_str().unwrap().to_owned()).collect();
    assert_eq!(&found, ids);
    let cost: f64 = rows.iter().map(|row| row["costUsd"].as_f64().unwrap_or_default()).sum();
    assert!(cost > 0.0, "{rows:?}");
}

/// Ends the process with a full disk, starts it again, and reads its log.
async fn ends(format: &str, signals: &[&str]) {
    let mut fixture = fixture(format).await;
    // A second SIGINT finds a request in flight.
    let mut asking = begin(&fixture, REPLIES + signals.len() - 1).await;
    fixture.gateway.fill_disk(1);
    let ids = end(&fixture, &mut asking).await;
    fixture.gateway.metric_shows("tollgate_journal_held_records", |n| n == REPLIES as f64).await;
    for id in &ids {
        fixture.gateway.log_shows(id).await;
    }
    for (n, signal) in signals.iter().enumerate() {
        if n > 0 {
            fixture.gateway.readiness_shows(|_, parts| parts["process"] == "is stopping").await;
        }
        fixture.gateway.signal(signal);
    }
    fixture.gateway.ended().await;
    asking.abort_all();
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    let log = fixture.gateway.log_path().display().to_string();
    for _ in 0..2 {
        let (done, said) = fixture.gateway.run(&["import-log", &log]);
        assert!(done && said.contains(&format!("{REPLIES} records")), "{said}");
        has_all(&fixture.gateway, &ids).await;
    }
    let usage = fixture
        .gateway
        .admin("keys/getKeysWithStatistics", json!({"userId": fixture.user_id}))
        .await;
    assert_eq!(usage[0]["todayCallCount"], REPLIES, "once each: {usage}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_with_a_full_disk_loses_no_record() {
    ends("json", &["TERM"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_with_a_full_disk_loses_no_record_that_was_logged() {
    ends("text", &["KILL"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forced_stop_with_a_full_disk_loses_no_record() {
    ends("text", &["INT", "INT"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_hand_over_the_new_process_gets_what_the_old_one_holds() {
    let mut fixture = fixture("json").await;
    let mut asking = begin(&fixture, REPLIES).await;
    let mut old = fixture.gateway.upgrade().await;
    fixture.gateway.ready().await;
    // The disk of the old process alone is full.
    fill_disk_of(old.id(), 1);
    let ids = end(&fixture, &mut asking).await;
    let ended = tokio::task::spawn_blocking(move || old.wait().unwrap()).await.unwrap();
    assert!(ended.success(), "{ended}");
    has_all(&fixture.gateway, &ids).await;
    fixture.gateway.log_shows("another process took the records").await;
    assert!(!fixture.gateway.log().contains("exist in the log only"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_without_records_is_read_and_what_clients_say_is_none() {
    let fixture = fixture("text").await;
    let stated = json!({"target": "tollgate::record", "record": "{}"}).to_string();
    let told = fixture.ask().header("user-agent", stated).send().await.unwrap();
    assert_eq!(told.status(), 200);
    fixture.gateway.log_shows("tollgate::record").await;
    let log = fixture.gateway.log_path().display().to_string();
    let (done, said) = fixture.gateway.run(&["import-log", &log]);
    assert!(done && said.contains("no records"), "{said}");
    let (done, said) = fixture.gateway.run(&["import-log", "nowhere"]);
    assert!(!done && said.contains("nowhere"), "{said}");
}
