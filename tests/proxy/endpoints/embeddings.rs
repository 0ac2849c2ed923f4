//! Embeddings between OpenAI's form and Google's, both ways.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::fixture::Fixture;
use super::endpoint;

#[tokio::test(flavor = "multi_thread")]
async fn openais_form_is_served_by_an_alt_cli_provider() {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("alt-cli", &fixture.upstream.url, json!({})).await;
    for (at, format) in ["float", "base64"].into_iter().enumerate() {
        let body = json!({
            "model": "m", "input": ["one", "two"], "dimensions": 4, "encoding_format": format,
        });
        let answer = fixture.call(endpoint("embeddings"), &body).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let reply: Value = answer.json().await.unwrap();
        let vector = &reply["data"][1]["embedding"];
        let numbers = match vector.as_str() {
            Some(text) => STANDARD.decode(text).unwrap().len() / 4,
            None => vector.as_array().unwrap().len(),
        };
        assert_eq!((vector.is_string(), numbers), (format == "base64", 4), "{reply}");
        assert_eq!(reply["model"], "m");
        let tokens = reply["usage"]["prompt_tokens"].as_u64().unwrap();
        let asked = fixture.upstream.requests().await.pop().unwrap();
        assert_eq!(asked["path"], "/v1beta/models/m:batchEmbedContents");
        assert_eq!(asked["body"]["requests"][0]["outputDimensionality"], 4);
        let log = fixture.gateway.logs(at + 1).await;
        assert_eq!(log[0]["inputTokens"], tokens, "the client is told what is billed");
        assert_eq!(log[0]["estimated"], true);
    }
    // Tokens are no text: no provider can take them.
    let body = json!({"model": "m", "input": [1, 2]});
    let answer = fixture.call(endpoint("embeddings"), &body).send().await.unwrap();
    assert_eq!(answer.status(), 400);
    let message = answer.text().await.unwrap();
    assert!(message.contains("a text or a list of texts"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn googles_form_is_served_by_other_providers() {
    for kind in ["chat-compatible", "responses"] {
        let fixture = Fixture::bare(&[]).await;
        fixture.gateway.provider(kind, &fixture.upstream.url, json!({})).await;
        let one = json!({"content": {"parts": [{"text": "hello"}]}, "taskType": "CLUSTERING"});
        let answer = fixture.call(endpoint("embed_content"), &one).send().await.unwrap();
        let reply: Value = answer.json().await.unwrap();
        assert_eq!(reply["embedding"]["values"].as_array().unwrap().len(), 8, "{reply}");
        let batch = json!({"requests": [one, one]});
        let answer = fixture.call(endpoint("batch_embed_contents"), &batch).send().await.unwrap();
        let reply: Value = answer.json().await.unwrap();
        assert_eq!(reply["embeddings"].as_array().unwrap().len(), 2, "{reply}");
        let asked = fixture.upstream.requests().await.pop().unwrap();
        assert_eq!(asked["path"], "/v1/embeddings");
        assert_eq!(asked["body"]["input"], json!(["hello", "hello"]));
        let log = fixture.gateway.logs(2).await;
        assert_eq!(log[0]["estimated"], false, "OpenAI's form reports tokens");
        let mut other = batch;
        other["requests"][0]["model"] = json!("models/dear");
        let answer = fixture.call(endpoint("batch_embed_contents"), &other).send().await.unwrap();
        assert_eq!(answer.status(), 400);
        assert!(answer.text().await.unwrap().contains("differs from the model in the path"));
    }
}
