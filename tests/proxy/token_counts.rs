//! Token counts of the alt-cli format, in the forms that its clients send; and answers that are
//! none.

use serde_json::{Value, json};

use super::fixture::Fixture;

/// Asks for a count. Returns whether the gateway estimated it, and the answer.
async fn count(fixture: &Fixture, path: &str, body: &Value) -> (bool, Value) {
    let answer = fixture.post(path, body).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{path} {body}");
    let estimated = answer.headers().contains_key("x-tollgate-token-count");
    (estimated, answer.json().await.unwrap())
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
