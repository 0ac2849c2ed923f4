//! Stored messages, through the gateway's listeners: only if enabled, as the client sent and
//! received them, and bounded.

use serde_json::{Value, json};

use super::fixture::{Fixture, saying};
use crate::support::wait;

/// The session's messages, once there are this many.
pub async fn messages(fixture: &Fixture, session: &str, count: usize) -> Vec<Value> {
    let look = async || {
        let body = json!({ "sessionId": session });
        let (status, reply) =
            fixture.gateway.call("active-sessions/getSessionMessages", body).await;
        let found = reply["data"]["messages"].as_array().cloned().unwrap_or_default();
        (status == 200 && found.len() >= count).then_some(found)
    };
    wait::found(|| format!("the messages did not come: {}", fixture.gateway.log()), look).await
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_stored_as_sent_and_received_without_credentials() {
    let env = [("STORE_SESSION_MESSAGES", "true"), ("TOLLGATE_SESSION_MESSAGE_BYTES", "4KiB")];
    let fixture = Fixture::bare(&env).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    let send =
        |body: &Value| fixture.post("/v1/messages", body).header("x-session-id", "talk").send();
    let whole = send(&saying("native", false, "first")).await.unwrap().text().await.unwrap();
    let stream = send(&saying("native", true, "second")).await.unwrap().text().await.unwrap();
    let refused =
        send(&json!({ "model": "m", "max_tokens": "many", "messages": "none" })).await.unwrap();
    let long = saying("native", false, &"long ".repeat(2_000));
    send(&long).await.unwrap().text().await.unwrap();
    let kept = messages(&fixture, "talk", 3).await;
    assert_eq!(kept[0]["request"], saying("native", false, "first"));
    assert_eq!(kept[0]["response"], serde_json::from_str::<Value>(&whole).unwrap());
    assert_eq!(kept[1]["request"]["stream"], true);
    assert_eq!(kept[1]["response"], json!(stream), "the events as they came");
    let last = kept.last().unwrap();
    assert_eq!(
        (&last["requestTruncated"], &last["responseTruncated"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(last["request"].as_str().map(str::len), Some(4_096));
    assert!(
        !Value::from(kept).to_string().contains(&fixture.key),
        "a credential is kept ({})",
        refused.status()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_not_stored_by_default() {
    let fixture = Fixture::native().await;
    let asked = fixture.ask().header("x-session-id", "talk").send().await.unwrap();
    assert_eq!(asked.status(), 200);
    let look = async || {
        let body = json!({ "sessionId": "talk" });
        let answer = fixture.gateway.call("active-sessions/getSessionMessages", body).await;
        (answer.1["errorCode"] != "NOT_FOUND").then_some(answer)
    };
    let (status, reply) = wait::found(|| "no session".to_owned(), look).await;
    assert_eq!((status, &reply["errorCode"]), (400, &json!("OPERATION_FAILED")), "{reply}");
    assert!(reply["error"].as_str().unwrap().contains("STORE_SESSION_MESSAGES"), "{reply}");
}
