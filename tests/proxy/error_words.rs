//! Errors by whose words clients recover: unchanged where they are of the client's own service,
//! in the words of the client's service where they are of another.

use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, request};

const LONG: [(&str, &str); 4] = [
    (
        "native",
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 250000 tokens > 200000 maximum"},"request_id":"req_011"}"#,
    ),
    (
        "responses",
        r#"{"error": {"message": "Your input exceeds the context window of this model. Please adjust your input and try again.", "type": "invalid_request_error", "param": "input", "code": "context_length_exceeded"}}"#,
    ),
    (
        "chat-compatible",
        r#"{"error":{"message":"This model's maximum context length is 200000 tokens. However, your messages resulted in 250000 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
    ),
    (
        "alt-cli",
        r#"{"error": {"code": 400, "message": "The input token count (250000) exceeds the maximum number of tokens allowed (200000).", "status": "INVALID_ARGUMENT"}}"#,
    ),
];

const IMAGE: [(&str, &str); 4] = [
    (
        "native",
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6123456 bytes > 5242880 bytes"}}"#,
    ),
    (
        "responses",
        r#"{"error":{"message":"The image data you provided does not represent a valid image. Please check your input and try again.","type":"invalid_request_error","param":"input[0].content[1].image_url","code":"invalid_value"}}"#,
    ),
    (
        "chat-compatible",
        r#"{"error":{"message":"You uploaded an unsupported image. Please make sure your image is valid.","type":"invalid_request_error","param":null,"code":"image_parse_error"}}"#,
    ),
    (
        "alt-cli",
        r#"{"error":{"code":400,"message":"Unable to process input image. Please retry or report.","status":"INVALID_ARGUMENT"}}"#,
    ),
];

/// Further errors of the native service that Claude Code reads.
const NATIVE: [&str; 5] = [
    "input length and `max_tokens` exceed context limit: 180000 + 128000 > 200000, decrease input length or `max_tokens` and try again",
    "safeguards: Extra inputs are not permitted",
    "thinking.adaptive.block_binding: Extra inputs are not permitted",
    "messages.1.content.0: Invalid `signature` in `thinking` block",
    "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.",
];

async fn answer(fixture: &Fixture, client: &str, stream: bool) -> (u16, Vec<u8>) {
    let sent = fixture.post(path(client, stream), &request(client, stream)).send().await.unwrap();
    (sent.status().as_u16(), sent.bytes().await.unwrap().to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_words_of_the_clients_own_service_pass_byte_by_byte() {
    for format in FORMATS {
        let fixture = Fixture::bare(&[]).await;
        fixture.gateway.provider(format, &fixture.upstream.url, json!({})).await;
        let of = |all: &[(&str, &'static str)]| {
            all.iter().find(|(name, _)| *name == format).map(|(_, body)| (*body).to_owned())
        };
        let mut bodies: Vec<String> = [of(&LONG), of(&IMAGE)].into_iter().flatten().collect();
        if format == "native" {
            bodies.extend(NATIVE.iter().map(|message| {
                format!(r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"{message}"}},"request_id":"req_1"}}"#)
            }));
        }
        for body in bodies {
            for stream in [false, true] {
                fixture.upstream.default(json!({"status": 400, "body": body})).await;
                let (status, told) = answer(&fixture, format, stream).await;
                assert_eq!(
                    (status, String::from_utf8(told).unwrap()),
                    (400, body.clone()),
                    "{format}"
                );
            }
        }
    }
}

/// What a client of each format compares: a part of the message, the code, the end of the field.
fn recognises(client: &str, is_image: bool, body: &Value) -> bool {
    let error = &body["error"];
    let text = |name: &str| error[name].as_str().unwrap_or_default();
    let (message, code) = (text("message"), text("code"));
    match (client, is_image) {
        ("native", false) => message.to_lowercase().contains("prompt is too long"),
        ("native", true) => {
            message.contains("image exceeds") && message.contains("maximum")
                || message.contains("Could not process image")
        }
        ("alt-cli", false) => message.contains("exceeds the maximum number of tokens allowed"),
        ("alt-cli", true) => message.contains("Unable to process input image"),
        (_, false) => code == "context_length_exceeded",
        ("responses", true) => code == "invalid_value" && text("param").ends_with(".image_url"),
        (_, true) => code.contains("image"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_services_words_become_those_of_the_clients_service() {
    for provider in FORMATS {
        let fixture = Fixture::bare(&[]).await;
        fixture.gateway.provider(provider, &fixture.upstream.url, json!({})).await;
        for (all, is_image) in [(&LONG, false), (&IMAGE, true)] {
            let body = all.iter().find(|(name, _)| *name == provider).unwrap().1;
            fixture.upstream.default(json!({"status": 400, "body": body})).await;
            for client in FORMATS {
                let (status, told) = answer(&fixture, client, true).await;
                let told: Value = serde_json::from_slice(&told).unwrap();
                let what = format!("{client} from {provider}: {told}");
                assert_eq!(status, 400, "{what}");
                assert!(recognises(client, is_image, &told), "{what}");
                // The responses service gives no figures.
                let message = told["error"]["message"].as_str().unwrap();
                if !is_image && provider != "responses" {
                    assert!(message.contains("250000") && message.contains("200000"), "{what}");
                }
                if client == "native" && !is_image && provider != "responses" {
                    let native: Value = serde_json::from_str(LONG[0].1).unwrap();
                    assert_eq!(message, native["error"]["message"], "{what}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_does_not_fit_is_told_with_its_figures() {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("chat-compatible", &fixture.upstream.url, json!({})).await;
    let message = "This model's maximum context length is 200000 tokens. However, you requested \
                   308000 tokens (180000 in the messages, 128000 in the completion).";
    let error = json!({"message": message, "code": "context_length_exceeded"});
    fixture.upstream.default(json!({"status": 400, "error": error})).await;
    let (status, told) = answer(&fixture, "native", true).await;
    let told: Value = serde_json::from_slice(&told).unwrap();
    assert_eq!((status, &told["error"]["message"]), (400, &json!(NATIVE[0])));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limit_says_when_to_come_back() {
    for client in FORMATS {
        // Of its own: a provider that is rate limited is not asked again for a while.
        let fixture = Fixture::bare(&[]).await;
        fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
        let limited = json!({"status": 429, "headers": {"retry-after": "12"}});
        fixture.upstream.default(limited).await;
        let sent = fixture.post(path(client, true), &request(client, true)).send().await.unwrap();
        let wait: u64 = sent.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=12).contains(&wait), "{wait}");
        assert_eq!(sent.status(), 429, "{client}");
        let body: Value = sent.json().await.unwrap();
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("Please try again in {wait}s.")), "{client}: {body}");
        match client {
            "alt-cli" => {
                let details = body["error"]["details"].to_string();
                assert!(details.contains(&format!(r#""retryDelay":"{wait}s""#)), "{body}");
            }
            "native" => assert_eq!(body["error"]["type"], "rate_limit_error"),
            _ => assert_eq!(body["error"]["code"], "rate_limit_exceeded", "{body}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_mid_stream_is_told_in_the_clients_words() {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    for (kind, message, code, part) in [
        (
            "rate_limit_error",
            "This request would exceed your rate limit. Try again in 1.5s",
            "rate_limit_exceeded",
            "ry again in 1.5s",
        ),
        (
            "invalid_request_error",
            "prompt is too long: 250000 tokens > 200000 maximum",
            "context_length_exceeded",
            "exceeds the context window",
        ),
    ] {
        let error = json!({"type": kind, "message": message});
        let directive = json!({"events": 8, "error_after": 5, "hold_after": 5, "error": error});
        fixture.upstream.default(directive).await;
        let body = request("responses", true);
        let sent = fixture.post(path("responses", true), &body).send().await.unwrap();
        // The client has the beginning.
        assert_eq!(sent.status(), 200);
        fixture.upstream.go_on(1).await;
        let told = sent.text().await.unwrap();
        let failed = told.split("\n\n").find(|e| e.starts_with("event: response.failed")).unwrap();
        let data: Value = serde_json::from_str(failed.split_once("data: ").unwrap().1).unwrap();
        let error = &data["response"]["error"];
        assert_eq!(error["code"], code, "{told}");
        assert!(error["message"].as_str().unwrap().contains(part), "{told}");
    }
}
