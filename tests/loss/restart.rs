//! `kill -9`, and what the next start knows: what running streams held is free, sessions live on, requests were counted.

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
