//! The mock upstream's errors, refusals and broken replies, and its record of clients that close.

use serde_json::{Value, json};

use super::{FORMATS, Mock, request};

#[tokio::test]
async fn errors_have_each_formats_shape() {
    let mock = Mock::start().await;
    for (format, kind) in [
        ("native", "/error/type"),
        ("chat", "/error/type"),
        ("responses", "/error/type"),
        ("alt", "/error/status"),
    ] {
        let directive = json!({"status": 429, "error": {"type": "my_kind", "message": "slow down"}, "headers": {"retry-after": "7"}});
        let got = mock.say(format, "x", true, &directive).await;
        assert_eq!(
            (got.status().as_u16(), got.headers()["retry-after"].to_str().unwrap()),
            (429, "7")
        );
        let body: Value = got.json().await.unwrap();
        assert_eq!(body.pointer(kind).unwrap(), "my_kind");
        assert_eq!(body["error"]["message"], "slow down");
        let inside = mock
            .say(format, "x", true, &json!({"error_after": 2, "error": {"message": "late"}}))
            .await;
        assert_eq!(inside.status(), 200);
        let body = inside.text().await.unwrap();
        assert!(
            body.lines().rfind(|line| !line.is_empty()).unwrap().contains("late"),
            "{format}: {body}"
        );
        let early = mock
            .say(format, "x", false, &json!({"error_in_200": true, "error": {"message": "odd"}}))
            .await;
        assert_eq!(early.status(), 200);
        assert_eq!(early.json::<Value>().await.unwrap()["error"]["message"], "odd");
        let empty = mock.say(format, "x", false, &json!({"empty": true})).await;
        assert_eq!((empty.status().as_u16(), empty.text().await.unwrap().len()), (200, 0));
        let page = mock.say(format, "x", false, &json!({"html": true, "status": 502})).await;
        assert_eq!(page.status(), 502);
        assert!(page.text().await.unwrap().starts_with("<!DOCTYPE"));
    }
}

#[tokio::test]
async fn strict_services_refuse_and_lenient_ones_do_not() {
    let mock = Mock::start().await;
    let bare = |path: &str| mock.client.post(format!("http://{}{path}", mock.addr));
    for (format, _) in FORMATS {
        let (path, body) = request(format, "x", false);
        let missing =
            bare(&path).json(&body).header("anthropic-version", "1").send().await.unwrap();
        assert_eq!(missing.status(), 401, "{format}");
        assert!(missing.json::<Value>().await.unwrap()["error"]["message"].is_string());
        let bad = bare(&path).header("authorization", "Bearer k").body("{").send().await.unwrap();
        assert_eq!(bad.status(), 400, "{format}");
        let mut extra = body.clone();
        extra["contents_of"] = json!(1);
        let status = mock.post(&path, &extra, &json!({})).await.unwrap().status();
        assert_eq!(status, if format == "chat" { 200 } else { 400 }, "{format}");
        assert_eq!(
            mock.post(&path, &extra, &json!({"strict": false})).await.unwrap().status(),
            200,
            "{format}"
        );
    }
    let unknown = mock.post("/v1/nothing", &json!({}), &json!({})).await.unwrap();
    assert_eq!(unknown.status(), 404);
    let socket = mock
        .client
        .get(format!("http://{}/v1/responses", mock.addr))
        .header("upgrade", "websocket");
    assert_eq!(socket.send().await.unwrap().status(), 426);
}

#[tokio::test]
async fn broken_streams_break() {
    let mock = Mock::start().await;
    for (format, _) in FORMATS {
        let cut = mock.say(format, "x", true, &json!({"words": 50, "cut_after": 3})).await;
        assert_eq!(cut.status(), 200);
        assert!(cut.text().await.is_err(), "{format}: a cut stream has no end");
        let half = mock.say(format, "x", false, &json!({"cut_after": 0})).await;
        assert!(half.bytes().await.is_err(), "{format}: half a body");
        let (path, body) = request(format, "x", true);
        assert!(
            mock.post(&path, &body, &json!({"hang_up": true})).await.is_err(),
            "{format}: no response at all"
        );
    }
    let stats = mock.see("/mock/stats").await;
    assert_eq!(stats["dropped"], 0, "what the mock broke itself is not a leaving peer: {stats}");
}

#[tokio::test]
async fn a_leaving_peer_is_noticed_and_remembered() {
    let mock = Mock::start().await;
    let mut stalled = mock.say("native", "x", true, &json!({"stall_after": 2})).await;
    let first = stalled.chunk().await.unwrap().unwrap();
    assert!(first.starts_with(b"event: message_start"));
    drop(stalled);
    let waiting = mock.client.post(format!("http://{}/v1/messages", mock.addr));
    let (_, body) = request("native", "late", false);
    let waiting = waiting.json(&body).header("x-mock", "{\"delay_ms\": 600000, \"strict\": false}");
    let asking = tokio::task::JoinSet::from_iter([waiting.send()]);
    mock.see("/mock/stats?started=2&timeout_ms=20000").await;
    drop(asking);
    let stats = mock.see("/mock/stats?dropped=2&timeout_ms=20000").await;
    assert_eq!((&stats["started"], &stats["dropped"]), (&json!(2), &json!(2)));
    let seen = mock.see("/mock/requests?last=1").await;
    assert_eq!(seen[0]["state"], "dropped");
    assert_eq!(seen[0]["body"]["messages"][0]["content"], "late");
    assert_eq!(seen[0]["path"], "/v1/messages");
}
