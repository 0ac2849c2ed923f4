//! Token counts of the alt-cli format, in the forms that its clients send; and answers that are
//! none.

use serde_json::{Value, json};

use super::fixture::Fixture;

/// Asks for a count. Returns whether the gateway estimated it, and the answer.
async fn count(fixture: &Fixture, path: &str, body: &Value) -> (bool, Value) {
    let answer = fixture.post(path, body).send().await.unwrap();
    let status = answer.status();
    let estimated = answer.headers().contains_key("x-tollgate-token-count");
    let answer = answer.json().await.unwrap();
    assert_eq!(status, 200, "{path}: {answer}");
    (estimated, answer)
}

async fn alt_cli(answer: &str) -> Fixture {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("alt-cli", &fixture.upstream.url, json!({})).await;
    fixture.upstream.default(json!({"body": answer, "strict": false})).await;
    fixture
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_of_a_request_for_a_count_is_answered_with_the_providers_figure() {
    let fixture = alt_cli(r#"{"totalTokens":42}"#).await;
    let contents = json!([{"role": "user", "parts": [{"text": "hi ".repeat(1000)}]}]);
    let plain = json!({"contents": contents});
    let counted = json!({"generateContentRequest": {"model": "models/m", "contents": contents,
        "tools": [{"functionDeclarations": [{"name": "f"}]}]}});
    for (path, body, sent) in [
        ("/v1beta/models/m:countTokens", &plain, &plain),
        ("/v1beta/models/m:countTokens", &counted, &counted),
        ("/v1internal:countTokens", &json!({"model": "m", "request": plain}), &plain),
        (
            "/v1internal:countTokens",
            &json!({"request": {"model": "models/m", "contents": contents}}),
            &plain,
        ),
    ] {
        let (estimated, answer) = count(&fixture, path, body).await;
        assert!(!estimated && answer == json!({"totalTokens": 42}), "{body}: {answer}");
        let asked = fixture.upstream.requests().await.pop().unwrap();
        assert_eq!(asked["path"], "/v1beta/models/m:countTokens", "{body}");
        assert_eq!(&asked["body"], sent, "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_in_the_counted_request_is_refused() {
    let fixture = alt_cli(r#"{"totalTokens":42}"#).await;
    let body = json!({"generateContentRequest": {"model": "models/other", "contents": []}});
    let answer = fixture.post("/v1beta/models/m:countTokens", &body).send().await.unwrap();
    assert_eq!(answer.status(), 400);
    assert!(fixture.upstream.requests().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_a_number_is_no_count() {
    let fixture = alt_cli(r#"{"x":1}"#).await;
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "hi ".repeat(1000)}]}]});
    let (estimated, answer) = count(&fixture, "/v1beta/models/m:countTokens", &body).await;
    assert!(estimated && answer["totalTokens"].as_u64() > Some(100), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_of_another_format_counts_what_it_would_be_sent() {
    let turn = json!([{"role": "user", "content": "hi ".repeat(1000)}]);
    let contents = json!([{"role": "user", "parts": [{"text": "hi ".repeat(1000)}]}]);
    let tools = |schema: &str| json!([{"name": "f", schema: {"type": "object"}}]);
    let native = json!({"model": "m", "messages": turn, "tools": tools("input_schema")});
    let responses = json!({"model": "m", "input": turn});
    let alt_cli = json!({"contents": contents});
    for provider in ["native", "responses", "alt-cli", "chat-compatible"] {
        let fixture = Fixture::bare(&[]).await;
        fixture.gateway.provider(provider, &fixture.upstream.url, json!({})).await;
        for (path, body, member) in [
            ("/v1/messages/count_tokens", &native, "input_tokens"),
            ("/v1/responses/input_tokens", &responses, "input_tokens"),
            ("/v1beta/models/m:countTokens", &alt_cli, "totalTokens"),
        ] {
            let (estimated, answer) = count(&fixture, path, body).await;
            assert_eq!(estimated, provider == "chat-compatible", "{provider} {path}: {answer}");
            assert!(answer[member].as_u64() > Some(500), "{provider} {path}: {answer}");
            let is_responses = answer["object"] == "response.input_tokens";
            assert_eq!(is_responses, path.contains("responses"), "{provider} {path}: {answer}");
            if estimated {
                continue;
            }
            let asked = fixture.upstream.requests().await.pop().unwrap();
            let counts = match provider {
                "native" => "/v1/messages/count_tokens",
                "responses" => "/v1/responses/input_tokens",
                _ => "/v1beta/models/m:countTokens",
            };
            assert_eq!(asked["path"], counts, "{provider} {path}");
            let sent = &asked["body"];
            if !path.contains(counts) {
                assert!(sent["stream"].is_null() && sent["max_tokens"].is_null(), "{sent}");
            }
        }
        assert!(fixture.gateway.logs(3).await.iter().all(|record| record["costUsd"] == 0));
    }
}
