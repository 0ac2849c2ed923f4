//! `kill -9` with live streams: what they had reserved is free after the restart, and nothing of them is billed.

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
