//! Request bodies: any framing, any size up to the bound, compressed or not.

use std::io::Write;

use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::fixture::{Fixture, request, saying};
use crate::support::drip::drip;

fn large(bytes: usize) -> Value {
    saying("native", false, &"all work and no play ".repeat(bytes / 21 + 1))
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_pass_with_a_length_and_chunked() {
    let fixture = Fixture::native().await;
    for size in [100_000, 5_000_000] {
        let body = large(size);
        assert_eq!(
            fixture.post("/v1/messages", &body).send().await.unwrap().status(),
            200,
            "{size} with a length"
        );
        let text = body.to_string();
        let pieces: Vec<Result<Bytes, std::io::Error>> =
            text.as_bytes().chunks(50_000).map(|c| Ok(Bytes::copy_from_slice(c))).collect();
        let chunked = fixture
            .gateway
            .client
            .post(format!("{}/v1/messages", fixture.gateway.proxy))
            .header("x-api-key", &fixture.key)
            .header("content-type", "application/json")
            .body(reqwest::Body::wrap_stream(stream::iter(pieces)));
        assert_eq!(chunked.send().await.unwrap().status(), 200, "{size} chunked");
        let seen = fixture.upstream.requests().await.pop().unwrap();
        assert_eq!(
            seen["bodyBytes"].as_u64().or(seen["body_bytes"].as_u64()).unwrap(),
            text.len() as u64
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_without_a_length() {
    let fixture = Fixture::bare(&[("TOLLGATE_PROXY_H2C", "true")]).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    for (size, stream) in [(100, false), (2_000_000, false), (100, true)] {
        let mut body = large(size);
        body["stream"] = json!(stream);
        let pieces: Vec<Result<Bytes, std::io::Error>> = body
            .to_string()
            .as_bytes()
            .chunks(60_000)
            .map(|c| Ok(Bytes::copy_from_slice(c)))
            .collect();
        let answer = client
            .post(format!("{}/v1/messages", fixture.gateway.proxy))
            .bearer_auth(&fixture.key)
            .body(reqwest::Body::wrap_stream(futures_util::stream::iter(pieces)))
            .send()
            .await
            .unwrap();
        assert_eq!((answer.version(), answer.status().as_u16()), (reqwest::Version::HTTP_2, 200));
        assert!(!answer.text().await.unwrap().is_empty());
    }
    fixture.gateway.logs(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_the_bound_is_413_in_every_framing() {
    let fixture = Fixture::bare(&[("TOLLGATE_PROXY_MAX_BODY_BYTES", "64KiB")]).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    let body = large(200_000).to_string();
    let post = || {
        fixture
            .gateway
            .client
            .post(format!("{}/v1/messages", fixture.gateway.proxy))
            .header("x-api-key", &fixture.key)
    };
    let pieces: Vec<Result<Bytes, std::io::Error>> =
        body.as_bytes().chunks(30_000).map(|c| Ok(Bytes::copy_from_slice(c))).collect();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gz.write_all(body.as_bytes()).unwrap();
    let cases = [
        ("length", post().body(body.clone())),
        ("chunked", post().body(reqwest::Body::wrap_stream(futures_util::stream::iter(pieces)))),
        ("compressed", post().header("content-encoding", "gzip").body(gz.finish().unwrap())),
    ];
    for (name, request) in cases {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 413, "{name}");
        let body: Value = answer.json().await.unwrap();
        assert_eq!(
            (&body["type"], &body["error"]["type"]),
            (&json!("error"), &json!("request_too_large")),
            "{name}"
        );
    }
    assert_eq!(fixture.upstream.requests().await.len(), 0);
    assert_eq!(fixture.gateway.logs(3).await[0]["statusCode"], 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_trickles_in_is_given_up() {
    let fixture = Fixture::bare(&[("TOLLGATE_PROXY_REQUEST_READ_TIMEOUT", "1s")]).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nHost: x\r\nx-api-key: {}\r\ncontent-length: 5000\r\n\r\n",
        fixture.key
    );
    let mut tcp = tokio::net::TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
    tcp.write_all(head.as_bytes()).await.unwrap();
    let (mut read, mut write) = tcp.into_split();
    let trickle = tokio::spawn(async move {
        drip(&mut write, b" ", std::time::Duration::from_millis(100), usize::MAX).await;
    });
    let mut got = vec![0; 4096];
    let reading =
        tokio::time::timeout(std::time::Duration::from_secs(60), read.read(&mut got)).await;
    let n = reading.expect("an answer in time").unwrap();
    assert!(
        String::from_utf8_lossy(&got[..n]).starts_with("HTTP/1.1 408"),
        "{}",
        String::from_utf8_lossy(&got[..n])
    );
    trickle.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_requests_are_decoded() {
    let fixture = Fixture::native().await;
    let plain = request("native", false).to_string().into_bytes();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&plain).unwrap();
    let mut br = Vec::new();
    brotli::CompressorWriter::new(&mut br, 4096, 3, 20).write_all(&plain).unwrap();
    let zs = zstd::encode_all(&plain[..], 1).unwrap();
    for (coding, body) in
        [("gzip", gz.finish().unwrap()), ("br", br), ("zstd", zs), ("identity", plain.clone())]
    {
        let post = fixture.gateway.client.post(format!("{}/v1/messages", fixture.gateway.proxy));
        let sent = post
            .header("x-api-key", &fixture.key)
            .header("content-encoding", coding)
            .body(body)
            .send()
            .await
            .unwrap();
        assert_eq!(sent.status(), 200, "{coding}");
        let seen = fixture.upstream.requests().await.pop().unwrap();
        assert_eq!(seen["body"], request("native", false), "{coding}");
        assert!(seen["headers"]["content-encoding"].is_null(), "{coding}: {seen}");
    }
    let unknown = fixture.ask().header("content-encoding", "lzma").send().await.unwrap();
    assert_eq!(unknown.status(), 415);
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_that_a_provider_compresses_unrequested_are_decoded() {
    let fixture = Fixture::native().await;
    fixture
        .upstream
        .default(json!({"gzip": true, "text": "squeezed", "usage": {"input": 10, "output": 20}}))
        .await;
    for stream in [false, true] {
        let answer = fixture.post("/v1/messages", &request("native", stream)).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert!(answer.headers().get("content-encoding").is_none());
        assert!(answer.text().await.unwrap().contains("squeezed"), "stream {stream}");
    }
    let rows = fixture.gateway.logs(2).await;
    assert!(rows.iter().all(|r| r["inputTokens"] == 10 && r["outputTokens"] == 20), "{rows:?}");
}
