//! Requests to endpoints that are refused: each in its client's format, with a remedy, and nothing
//! is charged.

use serde_json::{Value, json};
use tollgate::domain::endpoint::EndpointBody;
use tollgate::domain::format::WireFormat;

use super::super::fixture::Fixture;
use super::{BOUNDARY, cases, endpoint, form, path};

async fn fixture(kind: &str) -> Fixture {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider(kind, &fixture.upstream.url, json!({})).await;
    fixture
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_no_provider_serves_is_not_found() {
    // A native service has none of them.
    let fixture = fixture("native").await;
    for case in cases() {
        let endpoint = endpoint(case.name);
        let answer = fixture.call(endpoint, &case.body).send().await.unwrap();
        assert_eq!(answer.status(), 404, "{}", case.name);
        let body: Value = answer.json().await.unwrap();
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains("an administrator can add one"), "{message}");
        let is_google = body["error"]["status"].is_string();
        assert_eq!(is_google, endpoint.format == WireFormat::AltCli, "{body}");
    }
    let log = fixture.gateway.logs(cases().len()).await;
    assert!(log.iter().all(|record| record["costUsd"].as_f64() == Some(0.0)));
    assert!(fixture.upstream.requests().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn records_allow_and_deny_endpoints() {
    let fixture = Fixture::bare(&[]).await;
    let denied = json!({"denied_features": ["images"]});
    fixture.gateway.provider("chat-compatible", &fixture.upstream.url, denied).await;
    let images = json!({"model": "m", "prompt": "a"});
    let answer = fixture.call(endpoint("image_generation"), &images).send().await.unwrap();
    assert_eq!(answer.status(), 404);
    // A native provider whose host serves them too.
    let allowed = json!({"allowed_features": ["images"]});
    fixture.gateway.provider("native-auth", &fixture.upstream.url, allowed).await;
    let answer = fixture.call(endpoint("image_generation"), &images).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let asked = fixture.upstream.requests().await.pop().unwrap();
    assert_eq!(asked["path"], "/v1/images/generations");
    let key = json!({"keyId": fixture.key_id, "deniedFeatures": ["embeddings"]});
    fixture.gateway.admin("keys/editKey", key).await;
    let body = json!({"model": "m", "input": "a"});
    let answer = fixture.call(endpoint("embeddings"), &body).send().await.unwrap();
    assert_eq!(answer.status(), 403);
    assert!(answer.text().await.unwrap().contains("ask an administrator to allow it"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_another_type_is_refused() {
    let fixture = fixture("chat-compatible").await;
    for case in cases().into_iter().filter(|case| !endpoint(case.name).is_action()) {
        let endpoint = endpoint(case.name);
        let other = match endpoint.body {
            EndpointBody::Any => continue,
            EndpointBody::Form => fixture.post(&path(endpoint), &case.body),
            EndpointBody::Json => fixture.send_form(&path(endpoint), form(&case.body, 10)),
        };
        let answer = other.send().await.unwrap();
        assert_eq!(answer.status(), 415, "{}", case.name);
        let message = answer.text().await.unwrap();
        assert!(message.contains("content-type"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_form_is_refused_with_its_fault() {
    let fixture = fixture("chat-compatible").await;
    let whole = |text: &str| text.replace("BOUNDARY", BOUNDARY);
    let part = "--BOUNDARY\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n";
    for (body, message) in [
        (whole(part), "damaged"),
        (whole(&format!("{part}{part}--BOUNDARY--\r\n")), "occurs twice"),
        (whole("--BOUNDARY\r\nContent-Type: a/b\r\n\r\nm\r\n--BOUNDARY--\r\n"), "no name"),
        (whole("--BOUNDARY--\r\n"), "file: this field is required"),
        (String::from_utf8(form(&json!({"prompt": "a"}), 9)).unwrap(), "model: this field"),
    ] {
        let sent = fixture.send_form("/v1/audio/transcriptions", body.clone().into_bytes());
        let answer = sent.send().await.unwrap();
        assert_eq!(answer.status(), 400, "{body}");
        let text = answer.text().await.unwrap();
        assert!(text.contains(message), "{body}: {text}");
    }
    assert!(fixture.upstream.requests().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn sensitive_words_are_found_in_every_body() {
    let fixture = Fixture::full().await;
    fixture
        .gateway
        .admin(
            "sensitive-words/createSensitiveWordAction",
            json!({"word": "xyzzy", "matchType": "contains"}),
        )
        .await;
    let google = json!({"content": {"parts": [{"text": "an xyzzy"}]}});
    for (name, body) in [
        ("embeddings", json!({"model": "m", "input": ["a", "an xyzzy"]})),
        ("embed_content", google.clone()),
        ("batch_embed_contents", json!({"requests": [google]})),
        ("rerank", json!({"model": "m", "query": "xyzzy", "documents": ["a"]})),
        ("rerank", json!({"model": "m", "query": "a", "documents": ["xyzzy"]})),
        ("moderations", json!({"input": "xyzzy"})),
        ("completions", json!({"model": "m", "prompt": ["a", "xyzzy"]})),
        ("image_generation", json!({"model": "m", "prompt": "an xyzzy"})),
        ("image_edit", json!({"model": "m", "prompt": "an xyzzy"})),
        ("predict", json!({"instances": [{"prompt": "an xyzzy"}]})),
        ("speech", json!({"model": "m", "input": "xyzzy", "voice": "ash"})),
        ("transcription", json!({"model": "m", "prompt": "xyzzy"})),
        ("compact", json!({"model": "m", "input": "xyzzy"})),
    ] {
        let answer = fixture.call(endpoint(name), &body).send().await.unwrap();
        assert_eq!(answer.status(), 403, "{name} {body}: {}", answer.text().await.unwrap());
    }
    assert!(fixture.upstream.requests().await.is_empty());
}
