//! The budget of request bodies: a bound on all of them together, released as soon as no further
//! attempt is possible.

use std::io::Write;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fixture::{Fixture, saying};

/// One body, and what all may take together. A header has the mock's directive.
const BOUNDS: [(&str, &str); 3] = [
    ("TOLLGATE_HEADERS_PASS_REQUEST", "x-mock"),
    ("TOLLGATE_PROXY_MAX_BODY_BYTES", "64KiB"),
    ("TOLLGATE_PROXY_MAX_INFLIGHT_BODY_BYTES", "100KiB"),
];

async fn fixture(further: &[(&str, &str)]) -> Fixture {
    let fixture = Fixture::bare(&[&BOUNDS[..], further].concat()).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    fixture
}

fn large(format: &str, stream: bool) -> Value {
    saying(format, stream, &"all work and no play ".repeat(60_000 / 21))
}

async fn held_is(fixture: &Fixture, wanted: impl Fn(f64) -> bool) {
    fixture.gateway.metric_shows("tollgate_request_body_bytes", wanted).await;
}

/// A large body with a length, in chunks, and compressed.
fn in_three_encodings(fixture: &Fixture) -> [(&'static str, reqwest::RequestBuilder); 3] {
    let text = large("native", false).to_string();
    let post = || fixture.post("/v1/messages", &json!(null));
    let pieces: Vec<Result<Bytes, std::io::Error>> =
        text.as_bytes().chunks(20_000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(text.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    assert!(packed.len() < 5_000, "the compressed body fits: {}", packed.len());
    [
        ("length", post().body(text)),
        ("chunked", post().body(reqwest::Body::wrap_stream(futures_util::stream::iter(pieces)))),
        ("compressed", post().header("content-encoding", "gzip").body(packed)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_beyond_the_budget_are_refused_until_it_has_space() {
    let fixture = fixture(&[]).await;
    // This one is not answered: its body stays, as another provider may be needed.
    let first = fixture
        .post("/v1/messages", &large("native", false))
        .header("x-mock", r#"{"first_byte_ms": 600000}"#);
    let first = tokio::spawn(first.send());
    held_is(&fixture, |bytes| (60_000.0..70_000.0).contains(&bytes)).await;
    for (name, request) in in_three_encodings(&fixture) {
        let answer = request.send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["retry-after"]),
            (503, &"2".parse().unwrap()),
            "{name}"
        );
        let body: Value = answer.json().await.unwrap();
        assert_eq!(
            (&body["type"], &body["error"]["type"]),
            (&json!("error"), &json!("overloaded_error")),
            "{name}"
        );
    }
    // In another format's form too; and another user's small request passes beside the large one.
    let chat = fixture
        .post("/v1/chat/completions", &large("chat-compatible", false))
        .send()
        .await
        .unwrap();
    assert_eq!(chat.status(), 503);
    assert!(
        chat.json::<Value>().await.unwrap()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("request bodies")
    );
    let (_, _, other) = fixture.gateway.user(json!({"name": "bob"})).await;
    assert_eq!(asks(&fixture, &other).await, 200);
    fixture
        .gateway
        .metric_shows("tollgate_request_bodies_refused_total", |refused| refused == 4.0)
        .await;
    held_is(&fixture, |bytes| (60_000.0..70_000.0).contains(&bytes)).await;
    // The client closes: the next one gets its share.
    first.abort();
    held_is(&fixture, |bytes| bytes == 0.0).await;
    assert_eq!(
        fixture.post("/v1/messages", &large("native", false)).send().await.unwrap().status(),
        200
    );
    held_is(&fixture, |bytes| bytes == 0.0).await;
    let refused =
        fixture.gateway.logs(7).await.into_iter().filter(|row| row["statusCode"] == 503).count();
    assert_eq!(refused, 4, "a refusal is on record");
}

/// A small request with a key: its status.
async fn asks(fixture: &Fixture, key: &str) -> u16 {
    let url = format!("{}/v1/messages", fixture.gateway.proxy);
    let small = fixture
        .gateway
        .client
        .post(url)
        .header("x-api-key", key)
        .json(&saying("native", false, "hello"));
    small.send().await.unwrap().status().as_u16()
}

/// Begins an upload of this many bytes and sends none of them.
async fn begin_upload(fixture: &Fixture, bytes: usize) -> TcpStream {
    let mut tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: gate\r\nx-api-key: {}\r\ncontent-length: {bytes}\r\n\r\n",
        fixture.key
    );
    tcp.write_all(head.as_bytes()).await.unwrap();
    tcp
}

#[tokio::test(flavor = "multi_thread")]
async fn one_user_cannot_take_the_body_budget_of_the_others() {
    let fixture = fixture(&[]).await;
    let (_, _, other) = fixture.gateway.user(json!({"name": "bob"})).await;
    let mut uploads = Vec::new();
    for begun in 1..=5 {
        uploads.push(begin_upload(&fixture, 10_000).await);
        held_is(&fixture, |bytes| bytes == f64::from(begun) * 10_000.0).await;
    }
    let mut sixth = begin_upload(&fixture, 10_000).await;
    let mut answer = [0; 12];
    sixth.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 503", "half of the budget is the most for one user");
    assert_eq!(asks(&fixture, &other).await, 200, "who holds nothing is served");
    drop(uploads);
    held_is(&fixture, |bytes| bytes == 0.0).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_has_begun_holds_no_body_and_its_request_is_kept_all_the_same() {
    let fixture =
        fixture(&[("STORE_SESSION_MESSAGES", "true"), ("TOLLGATE_SESSION_MESSAGE_BYTES", "4KiB")])
            .await;
    for (provider, format, path) in [
        ("native", "native", "/v1/messages"),
        ("converted", "chat-compatible", "/v1/chat/completions"),
    ] {
        fixture.upstream.default(json!({"events": 6, "stall_after": 3})).await;
        let body = large(format, true);
        let mut stream =
            fixture.post(path, &body).header("x-session-id", provider).send().await.unwrap();
        assert!(stream.chunk().await.unwrap().is_some(), "{provider}: it has begun");
        fixture.gateway.metric_shows("tollgate_streams_in_flight", |streams| streams == 1.0).await;
        held_is(&fixture, |bytes| bytes == 0.0).await;
        fixture.upstream.default(json!({})).await;
        assert_eq!(
            fixture.post(path, &large(format, false)).send().await.unwrap().status(),
            200,
            "{provider}: the budget"
        );
        drop(stream);
        fixture.gateway.metric_shows("tollgate_streams_in_flight", |streams| streams == 0.0).await;
        let kept = super::messages::messages(&fixture, provider, 1).await;
        let beginning = &body.to_string()[..1_000];
        assert!(
            kept[0]["request"].as_str().unwrap().starts_with(beginning),
            "{provider}: {kept:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_kept_for_the_next_provider_until_one_has_answered() {
    let fixture = fixture(&[]).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({"name": "second"})).await;
    fixture.upstream.script(json!([{"status": 500}, {"pings": 1, "cut_after": 1}])).await;
    let body = large("native", true);
    let answer = fixture.post("/v1/messages", &body).send().await.unwrap();
    let (status, events) = (answer.status().as_u16(), answer.text().await.unwrap());
    let seen = fixture.upstream.requests().await;
    assert!(seen.len() >= 2, "the first failed: {} requests, {status} {events}", seen.len());
    let sizes: Vec<_> = seen
        .iter()
        .map(|request| request["bodyBytes"].as_u64().or(request["body_bytes"].as_u64()))
        .collect();
    assert!(
        sizes.iter().all(|size| *size == Some(body.to_string().len() as u64)),
        "every one got the whole: {sizes:?}"
    );
    held_is(&fixture, |bytes| bytes == 0.0).await;
}

/// A complete reply of a provider's format, of this many bytes of text.
fn reply(format: &str, bytes: usize) -> String {
    let text = "so it goes ".repeat(bytes / 11);
    let reply = match format {
        "chat-compatible" => json!({"choices": [{"message": {"role": "assistant",
            "content": text}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9,
            "completion_tokens": 9, "total_tokens": 18}}),
        _ => json!({"type": "message", "role": "assistant", "id": "msg_1", "model": "m",
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 9, "output_tokens": 9}}),
    };
    reply.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_is_converted_in_one_piece_counts_in_the_budget() {
    let fixture = Fixture::bare(&BOUNDS).await;
    let chat = json!({"priority": 0, "circuit_breaker_failure_threshold": 1});
    let chat = fixture.gateway.provider("chat-compatible", &fixture.upstream.url, chat).await;
    let answered = |bytes: usize| json!({"body": reply("chat-compatible", bytes), "strict": false});
    fixture.upstream.default(answered(50_000)).await;
    let answer = fixture.ask().send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.text().await.unwrap().contains("so it goes"));
    fixture.upstream.default(answered(150_000)).await;
    let answer = fixture.ask().send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["retry-after"]),
        (503, &"2".parse().unwrap())
    );
    held_is(&fixture, |bytes| bytes == 0.0).await;
    let own = json!({"priority": 1});
    fixture.gateway.provider("native", &fixture.upstream.url, own).await;
    let native = json!({"body": reply("native", 150_000), "strict": false});
    fixture.upstream.script(json!([answered(150_000), native])).await;
    let answer = fixture.ask().send().await.unwrap();
    assert_eq!(answer.status(), 200, "nothing is kept of a reply in the client's own format");
    held_is(&fixture, |bytes| bytes == 0.0).await;
    let health = fixture.gateway.admin("providers/getProvidersHealthStatus", json!({})).await;
    let its = health.as_array().unwrap().iter().find(|one| one["providerId"] == chat).unwrap();
    assert_eq!(
        (&its["state"], &its["recentFailures"]),
        (&json!("CLOSED"), &json!(0)),
        "no fault of the provider: {its}"
    );
}
