//! `kill -9`, a stop, an upgrade, and the state of the next process: reservations of live streams
//! are free, sessions stay live, requests were counted, open circuits are open.

use futures_util::StreamExt;
use serde_json::json;

use crate::proxy::fixture::Fixture;
use crate::support::wait;

#[tokio::test(flavor = "multi_thread")]
async fn what_running_streams_held_is_free_after_a_kill() {
    let mut fixture = Fixture::native().await;
    // Enough for one request's reservation, and for one session.
    let limits = json!({"keyId": fixture.key_id, "name": "default", "limitConcurrentSessions": 1});
    fixture.gateway.admin("keys/editKey", limits).await;
    fixture
        .upstream
        .default(json!({"events": 6, "stall_after": 3, "usage": {"input": 1000, "output": 500}}))
        .await;
    let mut body =
        fixture.ask_stream().header("x-session-id", "first").send().await.unwrap().bytes_stream();
    body.next().await.unwrap().unwrap();
    let other = |fixture: &Fixture| fixture.ask().header("x-session-id", "other").send();
    assert_eq!(other(&fixture).await.unwrap().status(), 429, "the only place is taken");
    fixture.gateway.kill();
    while let Some(piece) = body.next().await {
        if piece.is_err() {
            break;
        }
    }
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    fixture.upstream.default(json!({"usage": {"input": 1000, "output": 500}})).await;
    assert_eq!(other(&fixture).await.unwrap().status(), 200, "the place is free");
    // The refusal, and the reply after the restart: the cut stream has no record.
    let rows = fixture.gateway.logs(2).await;
    assert_eq!(
        (&rows[0]["statusCode"], &rows[1]["statusCode"]),
        (&json!(200), &json!(429)),
        "{rows:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_and_requests_per_minute_go_on_after_a_kill() {
    let mut fixture = Fixture::native().await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    let (user, key, text) = fixture.gateway.user(json!({"name": "bob", "rpm": 3})).await;
    fixture
        .gateway
        .admin(
            "keys/editKey",
            json!({"keyId": key, "name": "default", "limitConcurrentSessions": 1}),
        )
        .await;
    (fixture.key, fixture.user_id, fixture.key_id) = (text, user, key);
    let ask = async |fixture: &Fixture, session: &str| {
        let answer = fixture.ask().header("x-session-id", session).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    assert_eq!(ask(&fixture, "first").await.0, 200);
    assert_eq!(ask(&fixture, "first").await.0, 200);
    fixture.gateway.kill();
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    let (status, text) = ask(&fixture, "other").await;
    assert!(
        status == 429 && text.contains("key_concurrent_sessions"),
        "the first session lives: {status} {text}"
    );
    assert_eq!(ask(&fixture, "first").await.0, 200, "and does not count against itself");
    let (status, text) = ask(&fixture, "first").await;
    assert!(
        status == 429 && text.contains("user_rpm"),
        "two of the three were before the restart: {status} {text}"
    );
    let served = fixture.gateway.logs(5).await;
    let by: Vec<&str> = served
        .iter()
        .filter(|row| row["statusCode"] == 200)
        .map(|row| row["providerName"].as_str().unwrap())
        .collect();
    assert!(
        by.len() == 3 && by.iter().all(|name| *name == by[0]),
        "a session stays with its provider: {by:?}"
    );
}

/// The health record of the only provider.
async fn health(fixture: &Fixture) -> serde_json::Value {
    fixture.gateway.admin("providers/getProvidersHealthStatus", json!({})).await[0].clone()
}

/// With a provider whose first failure opens its circuit.
async fn delicate() -> Fixture {
    let fixture = Fixture::bare(&[]).await;
    let fields = json!({"circuit_breaker_failure_threshold": 1, "max_retry_attempts": 1});
    fixture.gateway.provider("native", &fixture.upstream.url, fields).await;
    fixture
}

/// Waits until the stored circuits meet a condition.
async fn on_record(fixture: &Fixture, wanted: &str) {
    let path = fixture.gateway.dir.path().join("data/circuits");
    let stored = || std::fs::read_to_string(&path).unwrap_or_default();
    wait::until(stored, async || stored().contains(wanted)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_circuit_a_cooldown_and_a_reset_outlive_a_kill_and_a_stop() {
    let mut fixture = delicate().await;
    fixture.upstream.script(json!([{"status": 500}])).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 502);
    let open = health(&fixture).await;
    assert_eq!(open["state"], "OPEN", "{open}");
    for how in ["KILL", "TERM"] {
        if how == "KILL" {
            on_record(&fixture, " open ").await;
            fixture.gateway.kill();
        } else {
            fixture.gateway.signal(how);
            fixture.gateway.ended().await;
        }
        fixture.gateway.spawn();
        fixture.gateway.ready().await;
        let found = health(&fixture).await;
        assert_eq!(
            (&found["state"], &found["openUntil"]),
            (&json!("OPEN"), &open["openUntil"]),
            "{how}: {found}"
        );
        let sent = fixture.upstream.requests().await.len();
        assert_eq!(fixture.ask().send().await.unwrap().status(), 503, "{how}");
        assert_eq!(fixture.upstream.requests().await.len(), sent, "{how}: no provider is called");
    }
    let id = open["providerId"].clone();
    fixture.gateway.admin("providers/resetProviderCircuit", json!({"providerId": id})).await;
    on_record(&fixture, " closed").await;
    fixture.gateway.kill();
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    assert_eq!(health(&fixture).await["state"], "CLOSED", "a reset stays done");
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    // A provider that asked for a pause gets it from the next process too; and a damaged file loses
    // only its own content.
    fixture.upstream.script(json!([{"status": 429, "headers": {"retry-after": "50"}}])).await;
    assert_ne!(fixture.ask().send().await.unwrap().status(), 200);
    fixture.gateway.signal("TERM");
    fixture.gateway.ended().await;
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 503, "it is in its cooldown");
    fixture.gateway.kill();
    std::fs::write(fixture.gateway.dir.path().join("data/circuits"), [0xff, 0, b'\n', b'1', b' '])
        .unwrap();
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    fixture.gateway.log_shows("which circuits were open cannot be read").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_circuit_that_opens_during_an_upgrade_is_open_in_the_new_process() {
    let mut fixture = delicate().await;
    // The new process has read the stored state while the old one still serves.
    let mut old = fixture.gateway.upgrade().await;
    fixture.upstream.script(json!([{"status": 500}])).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 502);
    wait::ended(&mut old).await;
    wait::until(|| fixture.gateway.log(), async || health(&fixture).await["state"] == "OPEN").await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 503);
}
