//! `kill -9`, a stop, an upgrade, and what the next process knows: what running streams held is
//! free, sessions live on, requests were counted, open circuits are open.

use futures_util::StreamExt;
use serde_json::json;

use crate::proxy::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn what_running_streams_held_is_free_after_a_kill() {
    let mut stage = Stage::native().await;
    // Room for one running request's reservation, and for one session.
    let limits = json!({"keyId": stage.key_id, "name": "default", "limitConcurrentSessions": 1});
    stage.gateway.admin("keys/editKey", limits).await;
    stage.upstream.default(json!({"events": 6, "stall_after": 3, "usage": {"input": 1000, "output": 500}})).await;
    let mut body = stage.ask_stream().header("x-session-id", "first").send().await.unwrap().bytes_stream();
    body.next().await.unwrap().unwrap();
    let other = |stage: &Stage| stage.ask().header("x-session-id", "other").send();
    assert_eq!(other(&stage).await.unwrap().status(), 429, "the only place is taken");
    stage.gateway.kill();
    while let Some(piece) = body.next().await {
        if piece.is_err() {
            break;
        }
    }
    stage.gateway.spawn();
    stage.gateway.ready().await;
    stage.upstream.default(json!({"usage": {"input": 1000, "output": 500}})).await;
    assert_eq!(other(&stage).await.unwrap().status(), 200, "the place is free");
    // The refusal, and the reply after the restart: of the cut stream there is no record.
    let rows = stage.gateway.logs(2).await;
    assert_eq!((&rows[0]["statusCode"], &rows[1]["statusCode"]), (&json!(200), &json!(429)), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_and_requests_per_minute_go_on_after_a_kill() {
    let mut stage = Stage::native().await;
    stage.gateway.provider("native", &stage.upstream.url, json!({})).await;
    let (user, key, text) = stage.gateway.user(json!({"name": "bob", "rpm": 3})).await;
    stage.gateway.admin("keys/editKey", json!({"keyId": key, "name": "default", "limitConcurrentSessions": 1})).await;
    (stage.key, stage.user_id, stage.key_id) = (text, user, key);
    let ask = async |stage: &Stage, session: &str| {
        let answer = stage.ask().header("x-session-id", session).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    assert_eq!(ask(&stage, "first").await.0, 200);
    assert_eq!(ask(&stage, "first").await.0, 200);
    stage.gateway.kill();
    stage.gateway.spawn();
    stage.gateway.ready().await;
    let (status, text) = ask(&stage, "other").await;
    assert!(status == 429 && text.contains("key_concurrent_sessions"), "the first session lives: {status} {text}");
    assert_eq!(ask(&stage, "first").await.0, 200, "and does not count against itself");
    let (status, text) = ask(&stage, "first").await;
    assert!(status == 429 && text.contains("user_rpm"), "two of the three were before the restart: {status} {text}");
    let served = stage.gateway.logs(5).await;
    let by: Vec<&str> =
        served.iter().filter(|row| row["statusCode"] == 200).map(|row| row["providerName"].as_str().unwrap()).collect();
    assert!(by.len() == 3 && by.iter().all(|name| *name == by[0]), "a session stays with its provider: {by:?}");
}

/// The health record of the only provider.
async fn health(stage: &Stage) -> serde_json::Value {
    stage.gateway.admin("providers/getProvidersHealthStatus", json!({})).await[0].clone()
}

/// With a provider whose first failure opens its circuit.
async fn delicate() -> Stage {
    let stage = Stage::bare(&[]).await;
    let fields = json!({"circuit_breaker_failure_threshold": 1, "max_retry_attempts": 1});
    stage.gateway.provider("native", &stage.upstream.url, fields).await;
    stage
}

/// Waits until what is on record of circuits is what is wanted.
async fn on_record(stage: &Stage, wanted: &str) {
    let began = std::time::Instant::now();
    let path = stage.gateway.dir.path().join("data/circuits");
    while !std::fs::read_to_string(&path).unwrap_or_default().contains(wanted) {
        assert!(began.elapsed() < std::time::Duration::from_secs(30), "{:?}", std::fs::read_to_string(&path));
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_circuit_a_rest_and_a_reset_outlive_a_kill_and_a_stop() {
    let mut stage = delicate().await;
    stage.upstream.script(json!([{"status": 500}])).await;
    assert_eq!(stage.ask().send().await.unwrap().status(), 502);
    let open = health(&stage).await;
    assert_eq!(open["state"], "OPEN", "{open}");
    for how in ["KILL", "TERM"] {
        if how == "KILL" {
            on_record(&stage, " open ").await;
            stage.gateway.kill();
        } else {
            stage.gateway.signal(how);
            stage.gateway.ended().await;
        }
        stage.gateway.spawn();
        stage.gateway.ready().await;
        let found = health(&stage).await;
        assert_eq!((&found["state"], &found["openUntil"]), (&json!("OPEN"), &open["openUntil"]), "{how}: {found}");
        let asked = stage.upstream.requests().await.len();
        assert_eq!(stage.ask().send().await.unwrap().status(), 503, "{how}");
        assert_eq!(stage.upstream.requests().await.len(), asked, "{how}: nobody is asked");
    }
    let id = open["providerId"].clone();
    stage.gateway.admin("providers/resetProviderCircuit", json!({"providerId": id})).await;
    on_record(&stage, " closed").await;
    stage.gateway.kill();
    stage.gateway.spawn();
    stage.gateway.ready().await;
    assert_eq!(health(&stage).await["state"], "CLOSED", "a reset stays done");
    assert_eq!(stage.ask().send().await.unwrap().status(), 200);
    // A provider that asked to be left alone is, also by the next process; and a damaged file costs
    // nothing but what it held.
    stage.upstream.script(json!([{"status": 429, "headers": {"retry-after": "50"}}])).await;
    assert_ne!(stage.ask().send().await.unwrap().status(), 200);
    stage.gateway.signal("TERM");
    stage.gateway.ended().await;
    stage.gateway.spawn();
    stage.gateway.ready().await;
    assert_eq!(stage.ask().send().await.unwrap().status(), 503, "it rests");
    stage.gateway.kill();
    std::fs::write(stage.gateway.dir.path().join("data/circuits"), [0xff, 0, b'\n', b'1', b' ']).unwrap();
    stage.gateway.spawn();
    stage.gateway.ready().await;
    assert_eq!(stage.ask().send().await.unwrap().status(), 200);
    stage.gateway.log_shows("which circuits were open cannot be read").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_circuit_that_opens_during_an_upgrade_is_open_in_the_new_process() {
    let mut stage = delicate().await;
    // The new process has read what was on record when the old one still serves.
    let mut old = stage.gateway.upgrade().await;
    stage.upstream.script(json!([{"status": 500}])).await;
    assert_eq!(stage.ask().send().await.unwrap().status(), 502);
    let began = std::time::Instant::now();
    while old.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < std::time::Duration::from_secs(30), "the old process left");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let began = std::time::Instant::now();
    while health(&stage).await["state"] != "OPEN" {
        assert!(began.elapsed() < std::time::Duration::from_secs(30), "{}", health(&stage).await);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(stage.ask().send().await.unwrap().status(), 503);
}
