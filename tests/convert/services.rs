//! Every converted request, sent to the mock of its target service, which refuses what the real one
//! would.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::Value;
use tollgate::domain::format::WireFormat;
use tollgate::formats::convert::{self, RequestOptions};
use tower::ServiceExt as _;

use super::converted_reply;
use super::golden::{sources, targets, upstream_model};

pub fn ask(to: WireFormat, stream: bool, body: Vec<u8>) -> Request<Body> {
    ask_model(to, upstream_model(to), stream, body)
}

/// As [`ask`], for a model of this name, which one format has in its path.
pub fn ask_model(to: WireFormat, model: &str, stream: bool, body: Vec<u8>) -> Request<Body> {
    let (path, key) = match to {
        WireFormat::Native => ("/v1/messages".to_owned(), "x-api-key"),
        WireFormat::Responses => ("/v1/responses".to_owned(), "authorization"),
        WireFormat::Chat => ("/v1/chat/completions".to_owned(), "authorization"),
        WireFormat::AltCli => {
            let verb = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
            (format!("/v1beta/models/{model}:{verb}"), "x-goog-api-key")
        }
    };
    let value = if key == "authorization" { "Bearer test" } else { "test" };
    Request::post(path)
        .header(key, value)
        .header("content-type", "application/json")
        .header("anthropic-version", "2023-06-01")
        .body(Body::from(body))
        .unwrap()
}

#[tokio::test]
async fn the_services_take_every_converted_request() {
    let mock = tollgate_mock::router();
    let mut faults = Vec::new();
    let mut count = 0;
    for source in sources().iter().filter(|source| source.kind == "request") {
        for to in targets(source.format) {
            for stream in [false, true] {
                let options = RequestOptions::new(upstream_model(to), stream);
                let Ok(done) = convert::request(source.format, to, &source.bytes, &options) else {
                    continue;
                };
                count += 1;
                let reply = mock.clone().oneshot(ask(to, stream, done.body)).await.unwrap();
                let status = reply.status();
                let bytes = axum::body::to_bytes(reply.into_body(), 1 << 24).await.unwrap();
                if status != StatusCode::OK {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    faults.push(format!(
                        "{} {} to {to}: {status} {text}",
                        source.case, source.format
                    ));
                    continue;
                }
                // The service's answer must be valid for the client, too.
                let context = convert::ReplyContext { seed: "s".to_owned(), ..done.reply };
                if !stream {
                    let back = converted_reply(to, source.format, &bytes, &context).unwrap();
                    serde_json::from_slice::<Value>(&back).unwrap();
                } else {
                    let mut converter = convert::StreamConverter::new(to, source.format, context);
                    let mut out = Vec::new();
                    converter.feed(&bytes, &mut out).unwrap();
                    converter.finish(&mut out).unwrap();
                    super::checks_stream::stream(source.format, &out, true).unwrap();
                }
            }
        }
    }
    assert!(count > 200, "only {count} requests");
    assert!(faults.is_empty(), "{} of {count}:\n{}", faults.len(), faults.join("\n"));
}

#[tokio::test]
async fn of_what_a_conversion_writes_the_version_of_2026_refuses_only_the_sampling() {
    let mock = tollgate_mock::router();
    let (mut count, mut sampled) = (0, 0);
    for source in sources().iter().filter(|source| source.kind == "request") {
        for to in targets(source.format).filter(|to| *to == WireFormat::Native) {
            let options = RequestOptions::new(upstream_model(to), false);
            let Ok(done) = convert::request(source.format, to, &source.bytes, &options) else {
                continue;
            };
            count += 1;
            let mut body: Value = serde_json::from_slice(&done.body).unwrap();
            let members = body.as_object_mut().unwrap();
            let before = members.len();
            for field in ["temperature", "top_p", "top_k"] {
                members.remove(field);
            }
            sampled += usize::from(members.len() < before);
            let mut ask = ask(to, false, body.to_string().into_bytes());
            ask.headers_mut().insert("anthropic-version", "2026-10-21".parse().unwrap());
            let reply = mock.clone().oneshot(ask).await.unwrap();
            let status = reply.status();
            let bytes = axum::body::to_bytes(reply.into_body(), 1 << 24).await.unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert_eq!(status, StatusCode::OK, "{} {}: {text}", source.case, source.format);
        }
    }
    assert!(count > 30 && sampled > 0, "{count} requests, {sampled} with sampling");
}
