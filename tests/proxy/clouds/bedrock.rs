//! Amazon Bedrock: Claude by `InvokeModel` and by the Messages endpoint, with signed requests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::fixture::{Fixture, path, request};
use super::{ask, newest};
use crate::support::upstream::Upstream;

pub(super) const SECRET: &str = "secret-access-key-of-the-test";
const MODEL: &str = "us.anthropic.claude-x-v1:0";
const WIRE_PATH: &str = "/model/us.anthropic.claude-x-v1%3A0";

/// The keys of AWS, for a host that does not say its region.
pub(super) fn keys() -> String {
    json!({"access_key_id": "AKIDEXAMPLE", "secret_access_key": SECRET, "session_token": "session-token-1",
        "region": "us-east-1"})
    .to_string()
}

pub(super) fn fields() -> Value {
    json!({"auth": "aws-sigv4", "key": keys(), "model_redirects": {"m": MODEL}, "max_retry_attempts": 1,
        "circuit_breaker_failure_threshold": 0})
}

/// A gateway with Bedrock, and a spare provider after it.
pub(super) async fn with_spare() -> (Fixture, Upstream) {
    let (fixture, spare) = (Fixture::bare(&[]).await, Upstream::start().await);
    fixture.gateway.provider("native", &format!("{}/model", fixture.upstream.url), fields()).await;
    fixture.gateway.provider("native", &spare.url, json!({"priority": 5})).await;
    (fixture, spare)
}

/// The decision chain of the newest of so many requests.
pub(super) async fn newest_chain(fixture: &Fixture, requests: usize) -> String {
    let row = fixture.gateway.logs(requests).await.remove(0);
    let detail = json!({"requestId": row["requestId"]});
    fixture.gateway.admin("usage-logs/getUsageLogDetail", detail).await.to_string()
}

pub(super) fn is_signed(seen: &Value, service: &str) {
    let header = |name: &str| seen["headers"][name].as_str().unwrap_or_default().to_owned();
    let signed = header("authorization");
    let date = header("x-amz-date");
    let scope = format!("Credential=AKIDEXAMPLE/{}/us-east-1/{service}/aws4_request", &date[..8]);
    let names =
        "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token";
    assert!(signed.starts_with("AWS4-HMAC-SHA256 ") && signed.contains(&scope), "{signed}");
    assert!(signed.contains(names), "{signed}");
    assert_eq!(header("x-amz-security-token"), "session-token-1");
    assert_eq!(header("x-amz-content-sha256").len(), 64);
    assert!(seen["headers"]["x-api-key"].is_null() && !seen.to_string().contains(SECRET));
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_by_invoke_model_gets_its_paths_and_bodies() {
    let fixture = Fixture::bare(&[]).await;
    let url = format!("{}/model", fixture.upstream.url);
    let id = fixture.gateway.provider("native", &url, fields()).await;
    let betas =
        "interleaved-thinking-2025-05-14, prompt-caching-2024-07-31,advanced-tool-use-2025-11-20";
    for (n, (stream, verb)) in
        [(false, "invoke"), (true, "invoke-with-response-stream")].into_iter().enumerate()
    {
        let asked = fixture.post("/v1/messages?beta=true", &request("native", stream));
        let answer = asked.header("anthropic-beta", betas).header("accept", "application/json");
        let answer = answer.send().await.unwrap();
        let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
        assert_eq!(answer.status(), 200, "{verb}");
        assert_eq!(kind.starts_with("text/event-stream"), stream, "{kind}");
        let text = answer.text().await.unwrap();
        let (first, last) = match stream {
            true => ("event: message_start\ndata: ", "event: message_stop\ndata: "),
            false => ("{", "\"usage\""),
        };
        assert!(text.starts_with(first) && text.contains(last), "{text}");
        let seen = newest(&fixture.upstream).await;
        assert_eq!(seen["path"], format!("{WIRE_PATH}/{verb}"));
        assert_eq!(seen["query"], "");
        for absent in ["anthropic-beta", "anthropic-version", "accept"] {
            assert!(seen["headers"][absent].is_null(), "{absent}");
        }
        let mut wanted = request("native", stream);
        wanted.as_object_mut().unwrap().remove("model");
        wanted.as_object_mut().unwrap().remove("stream");
        wanted["anthropic_version"] = json!("bedrock-2023-05-31");
        wanted["anthropic_beta"] =
            json!(["interleaved-thinking-2025-05-14", "tool-search-tool-2025-10-19"]);
        assert_eq!(seen["body"], wanted);
        is_signed(&seen, "bedrock");
        let row = fixture.gateway.logs(n + 1).await.remove(0);
        assert!(row["outputTokens"].as_u64().unwrap() > 0, "{row}");
    }
    let tested = json!({"providerId": id, "model": "m"});
    let tested = fixture.gateway.admin("providers/testProvider", tested).await;
    assert_eq!(tested["ok"], true, "{tested}");
    is_signed(&newest(&fixture.upstream).await, "bedrock");
    let log = fixture.gateway.log();
    assert!(!log.contains(SECRET) && !log.contains("session-token-1"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_other_formats_are_converted_to_invoke_model() {
    let fixture = Fixture::bare(&[]).await;
    let url = format!("{}/model", fixture.upstream.url);
    fixture.gateway.provider("native", &url, fields()).await;
    fixture.upstream.default(json!({"text": "all is well"})).await;
    for format in ["chat-compatible", "responses", "alt-cli"] {
        for stream in [false, true] {
            let (status, text) = ask(&fixture, format, stream).await;
            assert!(status == 200 && text.contains("all is"), "{format} {stream} {text}");
            let seen = newest(&fixture.upstream).await;
            assert_eq!(seen["body"]["anthropic_version"], "bedrock-2023-05-31");
            is_signed(&seen, "bedrock");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_counted_by_bedrock() {
    let fixture = Fixture::bare(&[]).await;
    let url = format!("{}/model", fixture.upstream.url);
    fixture.gateway.provider("native", &url, fields()).await;
    let count = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let answer = fixture.post("/v1/messages/count_tokens", &count).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let answer: Value = answer.json().await.unwrap();
    assert!(answer["input_tokens"].as_u64().unwrap() > 0, "{answer}");
    assert!(answer["inputTokens"].is_null(), "{answer}");
    let seen = newest(&fixture.upstream).await;
    // The name there lacks the mark of several regions.
    assert_eq!(seen["path"], "/model/anthropic.claude-x-v1%3A0/count-tokens");
    let inner = seen["body"]["input"]["invokeModel"]["body"].as_str().unwrap();
    let inner: Value = serde_json::from_slice(&STANDARD.decode(inner).unwrap()).unwrap();
    assert_eq!(
        inner,
        json!({"anthropic_version": "bedrock-2023-05-31", "messages": count["messages"], "max_tokens": 1})
    );
    is_signed(&seen, "bedrock");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exception_that_comes_first_fails_over() {
    let (fixture, spare) = with_spare().await;
    spare.default(json!({"text": "of the spare"})).await;
    let kinds = [
        ("rate_limit_error", 429, "429"),
        ("overloaded_error", 503, "503"),
        ("ModelStreamErrorException", 500, "502"),
    ];
    for (n, (kind, status, name)) in kinds.into_iter().enumerate() {
        let error = json!({"type": kind, "message": "not now"});
        let directive = json!({"error_in_200": true, "status": status, "error": error});
        fixture.upstream.script(json!([directive])).await;
        let asked = fixture.ask_stream().header("x-session-id", kind);
        let answer = asked.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{kind}");
        let text = answer.text().await.unwrap();
        assert!(text.contains("of the") && !text.contains("not now"), "{text}");
        let chain = newest_chain(&fixture, n + 1).await;
        assert!(chain.contains(&format!("{name} not now")), "{name}: {chain}");
    }
    assert_eq!(spare.requests().await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exception_of_the_request_ends_it() {
    let (fixture, spare) = with_spare().await;
    let error = json!({"type": "invalid_request_error", "message": "messages: must alternate"});
    for stream in [true, false] {
        let mut directive = json!({"status": 400, "error": error});
        directive["error_in_200"] = json!(stream);
        fixture.upstream.script(json!([directive])).await;
        let (status, text) = ask(&fixture, "native", stream).await;
        assert!(status == 400 && text.contains("messages: must alternate"), "{status} {text}");
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["error"]["type"], "invalid_request_error", "{text}");
    }
    // The model's name at this provider is the operator's matter.
    let error = json!({"type": "invalid_request_error", "message": "The provided model identifier is invalid."});
    fixture.upstream.script(json!([{"status": 400, "error": error}])).await;
    assert_eq!(ask(&fixture, "native", false).await.0, 200);
    assert_eq!(spare.requests().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exception_after_content_is_the_formats_error_event() {
    let (fixture, spare) = with_spare().await;
    let error = json!({"type": "rate_limit_error", "message": "too many tokens"});
    for (n, format) in ["native", "chat-compatible"].into_iter().enumerate() {
        // In pieces: an error in the same piece as the first content would come before it is sent.
        let directive =
            json!({"error_after": 5, "error": error, "words": 40, "between_events_ms": 30});
        fixture.upstream.script(json!([directive])).await;
        // A session of its own: one whose reply broke off goes to the other provider.
        let asked = fixture.post(path(format, true), &request(format, true));
        let answer = asked.header("x-session-id", format).send().await.unwrap();
        let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
        assert!(
            status == 200 && text.contains("too many tokens"),
            "{format} {text} {}",
            newest_chain(&fixture, n + 1).await
        );
        assert!(!text.contains("message_stop") && !text.contains("[DONE]"), "{format} {text}");
        if format == "native" {
            assert!(text.contains("event: error\ndata: {\"type\":\"error\""), "{text}");
        }
        let row = fixture.gateway.logs(n + 1).await.remove(0);
        assert_eq!(row["outcome"], "broken_off", "{row}");
    }
    assert_eq!(spare.requests().await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn throttling_is_a_rate_limit() {
    let fixture = Fixture::bare(&[]).await;
    let url = format!("{}/model", fixture.upstream.url);
    fixture.gateway.provider("native", &url, fields()).await;
    let error = json!({"type": "ThrottlingException", "message": "Too many requests, please wait"});
    let ways = [(false, false), (true, false), (true, true)];
    for (n, (stream, within)) in ways.into_iter().enumerate() {
        let directive = json!({"status": 429, "error": error, "error_in_200": within});
        fixture.upstream.script(json!([directive])).await;
        let (status, text) = ask(&fixture, "native", stream).await;
        assert_eq!(status, 429, "{stream} {within}: {text}");
        let chain = newest_chain(&fixture, n + 1).await;
        assert!(chain.contains("429 Too many requests, please wait"), "{chain}");
    }
}
