//! The endpoints beside the replies: embeddings, images, sound and others. Each is a row of
//! [`ENDPOINTS`], and has a case here; those that make batches and files are in `batches.rs`.

mod background;
mod background_streams;
mod batches;
mod bills;
mod embeddings;
mod google_batches;
mod google_files;
mod refusals;
mod stored;

use serde_json::{Value, json};
use tollgate::domain::endpoint::{ApiEndpoint, ENDPOINTS, EndpointBody};

use super::fixture::Fixture;

/// A request to an endpoint.
pub struct EndpointCase {
    pub name: &'static str,
    /// The body, or a form's fields; the file is added.
    pub body: Value,
    /// What the client gets contains this.
    pub reply: &'static str,
    /// Tokens in and out, if the mock reports any.
    pub tokens: (u64, u64),
}

/// A case of each endpoint. The mock reports 1 000 tokens in and 500 out, or other units.
pub fn cases() -> Vec<EndpointCase> {
    let case = |name, body, reply, tokens| EndpointCase { name, body, reply, tokens };
    let content = json!({"parts": [{"text": "hello"}]});
    vec![
        case("embeddings", json!({"model": "m", "input": ["a", "b"]}), "\"embedding\"", (1000, 0)),
        // Google reports none: they are estimated.
        case("embed_content", json!({"content": content}), "\"values\"", (0, 0)),
        case(
            "batch_embed_contents",
            json!({"requests": [{"model": "models/m", "content": content}]}),
            "\"values\"",
            (0, 0),
        ),
        case(
            "rerank",
            json!({"model": "m", "query": "q", "documents": ["a", "b"]}),
            "relevance_score",
            (0, 0),
        ),
        case("moderations", json!({"input": "a"}), "\"flagged\"", (0, 0)),
        case("completions", json!({"model": "m", "prompt": "a"}), "text_completion", (1000, 500)),
        case(
            "image_generation",
            json!({"model": "m", "prompt": "a cat", "background": "transparent"}),
            "b64_json",
            (1000, 500),
        ),
        case("image_edit", json!({"model": "m", "prompt": "a hat"}), "b64_json", (1000, 500)),
        case("image_variation", json!({"model": "m", "n": "2"}), "b64_json", (1000, 500)),
        case("predict", json!({"instances": [{"prompt": "a cat"}]}), "bytesBase64Encoded", (0, 0)),
        case(
            "speech",
            json!({"model": "m", "input": "hello", "voice": "ash", "speed": 1.5}),
            "",
            (0, 0),
        ),
        case("transcription", json!({"model": "m"}), "mock recording", (1000, 500)),
        case("translation", json!({"model": "m"}), "mock recording", (0, 0)),
        case("compact", json!({"model": "m", "input": "a"}), "response.compaction", (1000, 500)),
    ]
}

pub fn endpoint(name: &str) -> &'static ApiEndpoint {
    ENDPOINTS.iter().find(|endpoint| endpoint.name == name).unwrap()
}

/// The path of an endpoint's request.
pub fn path(endpoint: &ApiEndpoint) -> String {
    match endpoint.is_action() {
        true => format!("/v1beta/models/m:{}", endpoint.path),
        false => endpoint.path.to_owned(),
    }
}

const BOUNDARY: &str = "tollgate-test";

/// A form with these fields, and a file of `size` bytes.
pub fn form(fields: &Value, size: usize) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, value) in fields.as_object().unwrap() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"");
        body.extend(format!("{head}\r\n\r\n{value}\r\n").into_bytes());
    }
    let head = "Content-Disposition: form-data; name=\"file\"; filename=\"a.wav\"";
    body.extend(format!("--{BOUNDARY}\r\n{head}\r\n\r\n").into_bytes());
    body.extend(std::iter::repeat_n(b'x', size));
    body.extend(format!("\r\n--{BOUNDARY}--\r\n").into_bytes());
    body
}

impl Fixture {
    /// A POST of a form.
    pub fn send_form(&self, path: &str, form: Vec<u8>) -> reqwest::RequestBuilder {
        self.gateway
            .client
            .post(format!("{}{path}", self.gateway.proxy))
            .header("x-api-key", &self.key)
            .header("content-type", format!("multipart/form-data; boundary={BOUNDARY}"))
            .body(form)
    }

    /// A request to an endpoint, with its body in the right form.
    pub fn call(&self, endpoint: &ApiEndpoint, body: &Value) -> reqwest::RequestBuilder {
        match endpoint.body {
            EndpointBody::Json => self.post(&path(endpoint), body),
            EndpointBody::Form => self.send_form(endpoint.path, form(body, 8_000)),
            EndpointBody::Any => unreachable!("uploads have their own tests"),
        }
    }
}

#[test]
fn each_endpoint_has_its_case_and_its_line_in_the_documents() {
    let names: Vec<_> = cases().iter().map(|case| case.name).collect();
    let page = include_str!("../../../docs/endpoints.md");
    for endpoint in &ENDPOINTS {
        assert!(names.contains(&endpoint.name) || endpoint.is_held(), "{}", endpoint.name);
        let path = match endpoint.is_action() {
            true => format!("/v1beta/models/{{model}}:{}", endpoint.path),
            false => endpoint.path.to_owned(),
        };
        let line = format!("| `{path}` | {} |", endpoint.doc.trim_end_matches('.'));
        assert!(page.contains(&line), "docs/endpoints.md: {line}");
    }
}

/// The type of a provider that serves an endpoint.
fn kinds(endpoint: &ApiEndpoint) -> &'static [&'static str] {
    match endpoint.name {
        _ if endpoint.is_action() => &["alt-cli"],
        "compact" => &["responses"],
        _ => &["chat-compatible", "responses"],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_replies_pass_unchanged_and_leave_one_exact_record_each() {
    for kind in ["chat-compatible", "responses", "alt-cli"] {
        let fixture = Fixture::bare(&[]).await;
        fixture.gateway.provider(kind, &fixture.upstream.url, json!({})).await;
        fixture.upstream.default(json!({"usage": {"input": 1000, "output": 500}})).await;
        let mut rows = 0;
        for case in cases() {
            let endpoint = endpoint(case.name);
            if !kinds(endpoint).contains(&kind) {
                continue;
            }
            let sent = fixture.call(endpoint, &case.body);
            let body = sent.try_clone().unwrap().build().unwrap();
            let (body, kind_of_body) = (
                body.body().unwrap().as_bytes().unwrap().to_vec(),
                body.headers()["content-type"].to_str().unwrap().starts_with("multipart/"),
            );
            let answer = sent.send().await.unwrap();
            let status = answer.status();
            let content_type = answer.headers()["content-type"].to_str().unwrap().to_owned();
            let reply = answer.bytes().await.unwrap();
            let text = String::from_utf8_lossy(&reply);
            assert_eq!(status, 200, "{kind} {}: {text}", case.name);
            assert!(text.contains(case.reply), "{kind} {}: {text}", case.name);
            let expected = if case.name == "speech" { "audio/mpeg" } else { "application/json" };
            assert_eq!(content_type, expected, "{kind} {}", case.name);
            let asked = fixture.upstream.requests().await.pop().unwrap();
            assert_eq!(asked["path"], path(endpoint), "{kind} {}", case.name);
            let type_of_it = asked["headers"]["content-type"].as_str().unwrap();
            assert_eq!(type_of_it.starts_with("multipart/"), kind_of_body, "{type_of_it}");
            assert_eq!(asked["body_bytes"], body.len(), "{kind} {}", case.name);
            let sent_text = String::from_utf8_lossy(&body);
            let received = asked["body"].as_str().map_or_else(
                || asked["body"] == serde_json::from_slice::<Value>(&body).unwrap_or_default(),
                |text| text == sent_text,
            );
            assert!(received, "{kind} {}: {asked}", case.name);
            rows += 1;
            let log = fixture.gateway.logs(rows).await;
            let record = &log[0];
            assert_eq!(record["endpoint"], path(endpoint), "{record}");
            assert_eq!(record["statusCode"], 200, "{record}");
            let (input, output) = case.tokens;
            if input > 0 {
                assert_eq!(record["inputTokens"], input, "{}: {record}", case.name);
                assert_eq!(record["outputTokens"], output, "{}: {record}", case.name);
                assert_eq!(record["estimated"], false, "{}: {record}", case.name);
                let cost = 1e-6 * 1000.0 + 2e-6 * f64::from(u32::try_from(output).unwrap());
                let of_record = record["costUsd"].as_f64().unwrap();
                assert!((of_record - cost).abs() < 1e-12, "{}: {record}", case.name);
            }
        }
        assert!(rows > 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_pass_as_they_come_and_are_billed_by_their_last_event() {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("chat-compatible", &fixture.upstream.url, json!({})).await;
    fixture.upstream.default(json!({"usage": {"input": 1000, "output": 500}})).await;
    let cases = [
        ("completions", json!({"model": "m", "prompt": "a", "stream": true}), "[DONE]"),
        ("image_generation", json!({"model": "m", "prompt": "a", "stream": true}), ".completed"),
        ("image_edit", json!({"model": "m", "prompt": "a", "stream": "true"}), ".completed"),
        (
            "speech",
            json!({"model": "m", "input": "a", "voice": "ash", "stream_format": "sse"}),
            "speech.audio.done",
        ),
        ("transcription", json!({"model": "m", "stream": "true"}), "transcript.text.done"),
    ];
    for (at, (name, body, end)) in cases.iter().enumerate() {
        let answer = fixture.call(endpoint(name), body).send().await.unwrap();
        assert_eq!(answer.headers()["content-type"], "text/event-stream", "{name}");
        let text = answer.text().await.unwrap();
        assert!(text.contains(end), "{name}: {text}");
        assert!(!text.contains("\"usage\"") || *name != "completions", "{text}");
        let log = fixture.gateway.logs(at + 1).await;
        assert_eq!(log[0]["costUsd"], 0.002, "{name}: {}", log[0]);
        assert_eq!(log[0]["streamed"], true, "{name}");
    }
    // A stream that ends in an error is none that is complete.
    fixture.upstream.default(json!({"error_in_200": true})).await;
    let body = json!({"model": "m", "prompt": "a", "stream": true});
    let answer = fixture.call(endpoint("image_generation"), &body).send().await.unwrap();
    assert_eq!(answer.status(), 502);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_changes_the_model_in_json_in_a_form_and_in_a_path() {
    let fixture = Fixture::bare(&[]).await;
    let redirects = json!({"model_redirects": {"m": "other"}});
    for kind in ["chat-compatible", "responses", "alt-cli"] {
        fixture.gateway.provider(kind, &fixture.upstream.url, redirects.clone()).await;
    }
    for case in cases().into_iter().filter(|case| case.name != "moderations") {
        let endpoint = endpoint(case.name);
        let answer = fixture.call(endpoint, &case.body).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{}", case.name);
        answer.bytes().await.unwrap();
        let asked = fixture.upstream.requests().await.pop().unwrap();
        let body = &asked["body"];
        match (endpoint.is_action(), endpoint.body) {
            (true, _) => {
                let path = format!("/v1beta/models/other:{}", endpoint.path);
                assert_eq!(asked["path"], path);
                let inner = &body["requests"][0]["model"];
                assert!(inner.is_null() || inner == "models/other", "{body}");
            }
            (_, EndpointBody::Form) => {
                let text = body.as_str().unwrap();
                assert!(text.contains("name=\"model\"\r\n\r\nother\r\n"), "{text}");
            }
            _ => assert_eq!(body["model"], "other", "{}", case.name),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_fails_is_followed_by_the_next() {
    let fixture = Fixture::bare(&[]).await;
    let first = json!({"key": "first", "priority": 0});
    fixture.gateway.provider("chat-compatible", &fixture.upstream.url, first).await;
    let second = json!({"key": "second", "priority": 1});
    fixture.gateway.provider("responses", &fixture.upstream.url, second).await;
    for (name, status) in [("embeddings", 500), ("transcription", 429), ("speech", 503)] {
        let failing = json!([{"status": status}]);
        fixture.upstream.script(failing).await;
        let case = cases().into_iter().find(|case| case.name == name).unwrap();
        let answer = fixture.call(endpoint(name), &case.body).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{name}");
        answer.bytes().await.unwrap();
    }
}
