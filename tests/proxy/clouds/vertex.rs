//! Google's Vertex AI: Claude and Gemini.

use serde_json::json;

use super::super::fixture::{Fixture, request};
use super::tokens::account;
use super::{ask, newest};

#[tokio::test(flavor = "multi_thread")]
async fn claude_at_vertex_gets_its_paths_and_bodies() {
    let fixture = Fixture::bare(&[]).await;
    let place = "/v1/projects/p/locations/global/publishers/anthropic";
    let fields = json!({"auth": "gcp-service-account", "key": account(&fixture.upstream),
        "model_redirects": {"m": "claude-x-20250929"}});
    let url = format!("{}{place}/", fixture.upstream.url);
    let id = fixture.gateway.provider("native", &url, fields).await;
    let body = |stream: bool| {
        let mut body = request("native", stream);
        body["system"] = json!([{"type": "text", "text": "s", "cache_control": {"type": "ephemeral", "scope": "global"}}]);
        body
    };
    for (stream, verb) in [(false, "rawPredict"), (true, "streamRawPredict")] {
        let asked = fixture.post("/v1/messages?beta=true", &body(stream));
        let answer = asked.header("anthropic-beta", "one-2025-01-01").send().await.unwrap();
        assert_eq!(answer.status(), 200, "{verb}");
        let seen = newest(&fixture.upstream).await;
        assert_eq!(seen["path"], format!("{place}/models/claude-x@20250929:{verb}"));
        assert_eq!(
            (&seen["query"], &seen["headers"]["anthropic-beta"]),
            (&json!(""), &json!("one-2025-01-01"))
        );
        assert!(seen["headers"]["anthropic-version"].is_null());
        let mut wanted = body(stream);
        wanted.as_object_mut().unwrap().remove("model");
        wanted["anthropic_version"] = json!("vertex-2023-10-16");
        wanted["system"][0]["cache_control"] = json!({"type": "ephemeral"});
        assert_eq!(seen["body"], wanted);
        assert!(
            seen["headers"]["authorization"].as_str().unwrap().starts_with("Bearer mock-token-")
        );
    }
    // Converted requests too.
    assert_eq!(ask(&fixture, "chat-compatible", true).await.0, 200);
    assert_eq!(newest(&fixture.upstream).await["body"]["anthropic_version"], "vertex-2023-10-16");
    let count = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let asked =
        fixture.post("/v1/messages/count_tokens", &count).header("anthropic-beta", "b-2025-01-01");
    assert_eq!(asked.send().await.unwrap().status(), 200);
    let seen = newest(&fixture.upstream).await;
    assert_eq!(seen["path"], format!("{place}/models/count-tokens:rawPredict"));
    assert_eq!(seen["body"]["model"], "claude-x@20250929");
    assert!(seen["headers"]["anthropic-beta"].is_null());
    let tested = json!({"providerId": id, "model": "m"});
    let tested = fixture.gateway.admin("providers/testProvider", tested).await;
    assert_eq!(tested["ok"], true, "{tested}");
}

#[tokio::test(flavor = "multi_thread")]
async fn gemini_at_vertex_gets_its_paths() {
    let fixture = Fixture::bare(&[]).await;
    let place = "/v1/projects/p/locations/l/publishers/google";
    let fields = json!({"auth": "gcp-service-account", "key": account(&fixture.upstream)});
    fixture.gateway.provider("alt-cli", &format!("{}{place}", fixture.upstream.url), fields).await;
    for (format, stream, verb, query) in [
        ("alt-cli", false, "generateContent", ""),
        ("alt-cli", true, "streamGenerateContent", "alt=sse"),
        ("native", true, "streamGenerateContent", "alt=sse"),
    ] {
        assert_eq!(ask(&fixture, format, stream).await.0, 200, "{format} {stream}");
        let seen = newest(&fixture.upstream).await;
        assert_eq!(
            (&seen["path"], &seen["query"]),
            (&json!(format!("{place}/models/m:{verb}")), &json!(query))
        );
        assert!(
            seen["headers"]["authorization"].as_str().unwrap().starts_with("Bearer mock-token-")
        );
        assert!(seen["headers"]["x-goog-api-key"].is_null());
    }
}
