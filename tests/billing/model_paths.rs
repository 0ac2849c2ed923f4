//! A model's name in an upstream path stays one segment of it: the model that runs is the one that
//! was allowed and priced.

use serde_json::{Value, json};

use super::with;
use crate::proxy::fixture::{FORMATS, Fixture, path, request};

const BAD: [&str; 14] = [
    "gemini-2.5-flash%2F..%2Fgemini-2.5-pro",
    "gemini-2.5-flash%2f%2e%2e%2fgemini-2.5-pro",
    "gemini-2.5-flash/gemini-2.5-pro",
    "gemini-2.5-flash%5C..%5Cgemini-2.5-pro",
    "gemini-2.5-flash%5cgemini-2.5-pro",
    "gemini-2.5-flash%252F..%252Fgemini-2.5-pro",
    "gemini-2.5-flash%3Fkey=1",
    "gemini-2.5-flash%23x",
    "gemini-2.5-flash%3Bx",
    "gemini-2.5-flash%00",
    "gemini-2.5-flash%0a",
    "gemini-2.5-flash%ff",
    "%2e%2e",
    "gemini-2.5-flash..",
];

#[tokio::test(flavor = "multi_thread")]
async fn names_that_leave_their_segment_are_refused_in_the_path() {
    for provider in ["alt-cli", "native"] {
        let fixture = with(provider).await;
        for model in BAD {
            for path in [
                format!("/v1beta/models/{model}:generateContent"),
                format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
                format!("/v1/models/{model}:generateContent"),
            ] {
                // Unchanged: a client library would normalise the dots.
                let (status, text) =
                    raw(&fixture.gateway, &path, &fixture.key, &request("alt-cli", false)).await;
                assert!(status == 400 && text.contains("model"), "{path}: {status} {text}");
            }
        }
        assert!(fixture.upstream.requests().await.is_empty(), "{provider}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_leave_their_segment_are_refused_in_a_body_that_is_converted() {
    let fixture = with("alt-cli").await;
    for model in ["g/../other", "vendor/model", "g\\other", "g%2Fother", "..", "g?x", "g#x"] {
        for client in FORMATS.into_iter().filter(|client| *client != "alt-cli") {
            let mut body = request(client, false);
            body["model"] = json!(model);
            let answer = fixture.post(path(client, false), &body).send().await.unwrap();
            let (status, text) = (answer.status(), answer.text().await.unwrap());
            assert!(status == 400 && text.contains("model"), "{client} {model}: {status} {text}");
        }
        let wrapped = json!({"model": model, "request": request("alt-cli", false)});
        let answer = fixture.post("/v1internal:generateContent", &wrapped).send().await.unwrap();
        assert_eq!(answer.status(), 400, "wrapped {model}");
    }
    assert!(fixture.upstream.requests().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vendors_slash_is_kept_where_no_path_holds_it() {
    for provider in ["chat-compatible", "responses", "native"] {
        let fixture = with(provider).await;
        for client in FORMATS.into_iter().filter(|client| *client != "alt-cli") {
            let mut body = request(client, false);
            body["model"] = json!("vendor/model-1");
            let answer = fixture.post(path(client, false), &body).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{client} to {provider}");
            let seen = fixture.upstream.requests().await.pop().unwrap();
            assert_eq!(seen["body"]["model"], "vendor/model-1", "{client} to {provider}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_into_another_segment_is_refused_when_it_is_configured() {
    let fixture = with("native").await;
    let fields = |kind: &str, to: &str| {
        json!({"name": format!("p-{}", fastrand::u32(..)), "url": fixture.upstream.url,
        "key": "k", "provider_type": kind, "model_redirects": {"m": to}})
    };
    for to in ["g/../other", "g%2Fother", "g\\other", "g//other", ".."] {
        let (status, answer) =
            fixture.gateway.call("providers/addProvider", fields("alt-cli", to)).await;
        assert_eq!(
            (status, &answer["errorCode"]),
            (400, &json!("INVALID_FORMAT")),
            "{to}: {answer}"
        );
        assert_eq!(answer["errorParams"]["field"], "model_redirects", "{answer}");
    }
    fixture.gateway.admin("providers/addProvider", fields("chat-compatible", "a/../b")).await;
    let id = fixture.gateway.provider("alt-cli", &fixture.upstream.url, json!({})).await;
    let edit = json!({"providerId": id, "model_redirects": {"m": "a/../b"}});
    assert_eq!(fixture.gateway.call("providers/editProvider", edit).await.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operators_slash_is_encoded_in_the_path() {
    let fixture = Fixture::bare(&[]).await;
    let redirect =
        json!({"model_redirects": {"m": "vendor/model"}, "circuit_breaker_failure_threshold": 0});
    fixture.gateway.provider("alt-cli", &fixture.upstream.url, redirect).await;
    for client in FORMATS {
        fixture.post(path(client, false), &request(client, false)).send().await.unwrap();
        let seen = fixture.upstream.requests().await.pop().unwrap();
        assert_eq!(seen["path"], "/v1beta/models/vendor%2Fmodel:generateContent", "{client}");
    }
}

/// Sends a request with an unchanged path: status and the complete answer.
async fn raw(
    gateway: &crate::support::gateway::Gateway,
    path: &str,
    key: &str,
    body: &Value,
) -> (u16, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut tcp = tokio::net::TcpStream::connect(gateway.proxy_addr()).await.unwrap();
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\nx-api-key: {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    tcp.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, answer)
}
