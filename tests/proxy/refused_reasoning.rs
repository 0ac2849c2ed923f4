//! A provider that refuses the reasoning of earlier turns gets the request again without it, once.

use serde_json::{Value, json};

use super::fixture::{Fixture, path};

/// What each vendor answers.
fn refusal(provider: &str) -> Value {
    match provider {
        "native" => json!({"status": 400, "error": {"type": "invalid_request_error", "message":
            "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to \
             a different conversation."}}),
        "responses" => json!({"status": 400, "error": {"type": "invalid_request_error",
            "code": "invalid_encrypted_content",
            "message": "The encrypted content gAAA...Q== could not be verified."}}),
        _ => json!({"status": 400, "error": {"type": "INVALID_ARGUMENT",
            "message": "Corrupted thought signature."}}),
    }
}

/// A second turn with a call, whose reasoning has this proof.
fn second_turn(client: &str, proof: &str) -> Value {
    match client {
        "native" => json!({"model": "m", "max_tokens": 100, "messages": [
            {"role": "user", "content": "list"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": proof},
                {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a"}]}],
            "tools": [{"name": "ls", "input_schema": {"type": "object"}}]}),
        "responses" => json!({"model": "m", "input": [
            {"role": "user", "content": "list"},
            {"type": "reasoning", "encrypted_content": proof,
                "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "a"}],
            "tools": [{"type": "function", "name": "ls", "parameters": {"type": "object"}}]}),
        _ => json!({"contents": [
            {"role": "user", "parts": [{"text": "list"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}}, "thoughtSignature": proof}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"output": "a"}}}]}],
            "tools": [{"functionDeclarations": [{"name": "ls", "parameters": {"type": "object"}}]}]}),
    }
}

/// The proof in a request that a provider received.
fn proof(body: &Value) -> Option<&str> {
    let text = |value: &Value, name: &str| value[name].as_str().map(str::len).is_some();
    let lists = [&body["messages"], &body["contents"], &body["input"]];
    let mut parts = lists.into_iter().filter_map(Value::as_array).flatten().flat_map(|item| {
        let inner = [&item["content"], &item["parts"]].into_iter().filter_map(Value::as_array);
        inner.flatten().chain([item])
    });
    let names = ["signature", "encrypted_content", "thoughtSignature"];
    parts.find_map(|part| {
        names.into_iter().find(|name| text(part, name)).map(|name| part[name].as_str().unwrap())
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_request_is_sent_again_without_reasoning_and_billed_once() {
    // The client, the provider, and the proof that the client has.
    let cases = [
        ("native", "native", "abc="),
        ("responses", "responses", "gAAA"),
        ("alt-cli", "alt-cli", "QUJD"),
        // The proof of a native provider, kept by a client of another format.
        ("responses", "native", "tg1.n.abc="),
    ];
    for (client, provider, given) in cases {
        let fixture = Fixture::bare(&[]).await;
        fixture.gateway.provider(provider, &fixture.upstream.url, json!({})).await;
        fixture.upstream.script(json!([refusal(provider)])).await;
        let answer =
            fixture.post(path(client, false), &second_turn(client, given)).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{client} {provider}: {}", answer.text().await.unwrap());
        let received = fixture.upstream.requests().await;
        let [first, second] = received.as_slice() else { panic!("{client}: {received:?}") };
        assert_eq!(proof(&first["body"]), Some(given.trim_start_matches("tg1.n.")), "{first}");
        let left = proof(&second["body"]);
        let skips = (provider == "alt-cli").then_some("skip_thought_signature_validator");
        assert_eq!(left, skips, "{client}: {second}");
        assert!(second["body"].to_string().contains("ls"), "the call stays: {second}");

        let rows = fixture.gateway.logs(1).await;
        let chain = rows[0]["decisionChain"].as_array().unwrap();
        let again: Vec<&Value> = chain.iter().filter(|step| step["step"] == "retried").collect();
        assert_eq!(again.len(), 1, "{chain:?}");
        assert!(again[0]["detail"].as_str().unwrap().contains("sent again without it"));
        assert_eq!(rows[0]["outcome"], "completed");
        // One reply's tokens, at the prices of the fixture.
        let tokens = |name: &str| rows[0][name].as_u64().unwrap();
        let cost: f64 = rows[0]["costUsd"].to_string().parse().unwrap();
        let micros = (cost * 1e6).round() as u64;
        assert_eq!(micros, tokens("inputTokens") + 2 * tokens("outputTokens"), "{}", rows[0]);
        assert_eq!(rows[0]["attempts"], 2);
        let text = fixture.gateway.scrape().await;
        assert!(text.contains("class=\"reasoning_refused\""), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_refusal_is_the_clients() {
    let fixture = Fixture::native().await;
    fixture.upstream.default(refusal("native")).await;
    let answer = fixture.post("/v1/messages", &second_turn("native", "abc=")).send().await.unwrap();
    assert_eq!(answer.status(), 400);
    let body: Value = answer.json().await.unwrap();
    assert_eq!(body["error"]["message"], refusal("native")["error"]["message"]);
    assert_eq!(fixture.upstream.requests().await.len(), 2);
    assert_eq!(fixture.gateway.logs(1).await[0]["outcome"], "client_error");
    // Other errors of this kind are not about reasoning.
    let other = json!({"status": 400, "error": {"type": "invalid_request_error",
        "message": "`max_tokens` must be greater than `thinking.budget_tokens`."}});
    fixture.upstream.default(other).await;
    let answer = fixture.post("/v1/messages", &second_turn("native", "abc=")).send().await;
    assert_eq!(answer.unwrap().status(), 400);
    assert_eq!(fixture.upstream.requests().await.len(), 3);
}
