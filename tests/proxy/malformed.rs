//! Malformed heads and bodies over raw sockets: always an answer in the right form, never a hang,
//! never a panic.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fixture::{FORMATS, Fixture, path, request};

/// Sends raw bytes and reads until the answer is complete or the connection ends. Status and body.
async fn raw(fixture: &Fixture, bytes: &[u8]) -> (u16, String) {
    let mut tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
    tcp.write_all(bytes).await.unwrap();
    let mut got = Vec::new();
    let reading = async {
        let mut piece = [0; 4096];
        loop {
            match tcp.read(&mut piece).await {
                Ok(0) | Err(_) => return,
                Ok(n) => got.extend_from_slice(&piece[..n]),
            }
            if whole(&got) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reading)
        .await
        .expect("an answer, or the end of the connection");
    let text = String::from_utf8_lossy(&got).into_owned();
    let status = text.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    (status, text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}

fn whole(got: &[u8]) -> bool {
    let text = String::from_utf8_lossy(got);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|l| {
        l.to_ascii_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok()
    });
    length.is_some_and(|n| body.len() >= n)
}

fn head(fixture: &Fixture, rest: &str) -> String {
    format!("POST /v1/messages HTTP/1.1\r\nHost: x\r\nx-api-key: {}\r\n{rest}", fixture.key)
}

/// A name, the bytes, and the possible statuses; 0 is a connection closed without an answer.
fn heads(fixture: &Fixture) -> Vec<(&'static str, String, &'static [u16])> {
    let good = request("native", false).to_string();
    let length = good.len();
    vec![
        (
            "two lengths",
            head(fixture, &format!("content-length: {length}\r\ncontent-length: 3\r\n\r\n{good}")),
            &[400],
        ),
        (
            "length and chunked",
            head(
                fixture,
                &format!("content-length: {length}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
            ),
            &[400],
        ),
        ("bad length", head(fixture, "content-length: ten\r\n\r\n"), &[400]),
        ("negative length", head(fixture, "content-length: -1\r\n\r\n"), &[400]),
        (
            "bad chunk",
            head(fixture, "transfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n"),
            &[400],
        ),
        (
            "no host",
            format!(
                "POST /v1/messages HTTP/1.1\r\nx-api-key: {}\r\ncontent-length: 0\r\n\r\n",
                fixture.key
            ),
            &[400],
        ),
        (
            "space before colon",
            head(fixture, &format!("content-length : {length}\r\n\r\n{good}")),
            &[400],
        ),
        (
            "a tunnel",
            "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n".to_owned(),
            &[405],
        ),
        ("not http", "hello there\r\n\r\n".to_owned(), &[0, 400]),
        ("nothing but line ends", "\r\n\r\n\r\n".to_owned(), &[0, 400]),
        (
            "old version",
            format!("POST /v1/messages HTTP/0.9\r\nx-api-key: {}\r\n\r\n", fixture.key),
            &[0, 400, 505],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_heads() {
    let fixture = Fixture::native().await;
    for (name, bytes, expected) in heads(&fixture) {
        let half_closed = name == "nothing but line ends";
        if half_closed {
            let mut tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
            tcp.write_all(bytes.as_bytes()).await.unwrap();
            tcp.shutdown().await.unwrap();
            let mut rest = Vec::new();
            tokio::time::timeout(Duration::from_secs(60), tcp.read_to_end(&mut rest))
                .await
                .unwrap()
                .unwrap();
            continue;
        }
        let (status, body) = raw(&fixture, bytes.as_bytes()).await;
        assert!(expected.contains(&status), "{name}: {status} {body}");
    }
    // The gateway is not affected.
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    assert!(!fixture.gateway.log().contains("panicked"), "{}", fixture.gateway.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn http_1_0_and_pipelined_requests_are_served() {
    let fixture = Fixture::native().await;
    let good = request("native", true).to_string();
    let one = format!(
        "POST /v1/messages HTTP/1.1\r\nHost: x\r\nx-api-key: {}\r\ncontent-length: {}\r\n\r\n{good}",
        fixture.key,
        good.len()
    );
    let old = one.replace("HTTP/1.1", "HTTP/1.0");
    let mut tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
    tcp.write_all(old.as_bytes()).await.unwrap();
    let mut got = String::new();
    tokio::time::timeout(Duration::from_secs(60), tcp.read_to_string(&mut got))
        .await
        .unwrap()
        .unwrap();
    assert!(
        got.contains(" 200 ") && got.contains("message_stop") && !got.contains("chunked"),
        "{got}"
    );

    let mut tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
    tcp.write_all(format!("{one}{one}").as_bytes()).await.unwrap();
    let mut got = Vec::new();
    let both = async {
        let mut piece = [0; 4096];
        while String::from_utf8_lossy(&got).matches("event: message_stop").count() < 2 {
            let n = tcp.read(&mut piece).await.unwrap();
            assert!(n > 0, "{}", String::from_utf8_lossy(&got));
            got.extend_from_slice(&piece[..n]);
        }
    };
    tokio::time::timeout(Duration::from_secs(60), both).await.unwrap();
}

/// Bodies that no format takes, with a name.
fn malformed_bodies() -> Vec<(&'static str, Vec<u8>)> {
    let deep =
        format!("{{\"model\":\"m\",\"messages\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    vec![
        ("nothing", b"".to_vec()),
        ("no JSON", b"hello".to_vec()),
        ("cut", b"{\"model\":\"m\",\"messages\":[{\"role\":\"user\"".to_vec()),
        ("an array", b"[]".to_vec()),
        ("a number", b"42".to_vec()),
        ("trailing garbage", b"{\"model\":\"m\",\"messages\":[]} x".to_vec()),
        ("bad UTF-8", b"{\"model\":\"m\xff\",\"messages\":[]}".to_vec()),
        ("control character", b"{\"model\":\"m\x01\",\"messages\":[]}".to_vec()),
        ("deep", deep.into_bytes()),
        ("no model", br#"{"messages":[],"input":[]}"#.to_vec()),
        ("model is a number", br#"{"model":1,"messages":[],"input":[]}"#.to_vec()),
        ("model is empty", br#"{"model":"","messages":[],"input":[]}"#.to_vec()),
        ("two models", br#"{"model":"m","model":"n","messages":[],"input":[]}"#.to_vec()),
        (
            "stream is text",
            br#"{"model":"m","messages":[],"input":[],"contents":[],"stream":"yes"}"#.to_vec(),
        ),
        ("no messages", br#"{"model":"m"}"#.to_vec()),
        (
            "messages is text",
            br#"{"model":"m","messages":"hi","input":5,"contents":"hi"}"#.to_vec(),
        ),
        ("unpaired quote", br#"{"model":"m}"#.to_vec()),
        ("NaN", br#"{"model":"m","messages":[],"input":[],"contents":[],"t":NaN}"#.to_vec()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_bodies_name_the_field_in_the_clients_format() {
    let fixture = Fixture::full().await;
    let mut refused = 0;
    for (name, body) in &malformed_bodies() {
        for format in FORMATS {
            if format == "alt-cli" && (name.contains("model") || *name == "stream is text") {
                continue; // the path names both
            }
            let post = fixture.gateway.client.post(format!(
                "{}{}",
                fixture.gateway.proxy,
                path(format, false)
            ));
            let answer =
                post.header("x-api-key", &fixture.key).body(body.clone()).send().await.unwrap();
            let status = answer.status().as_u16();
            let text = answer.text().await.unwrap();
            assert_eq!(status, 400, "{name} {format}: {text}");
            let error: Value = serde_json::from_str(&text).unwrap();
            assert!(
                error["error"]["message"].as_str().is_some_and(|m| !m.is_empty()),
                "{name} {format}: {text}"
            );
            if format == "native" {
                assert_eq!(
                    (&error["type"], &error["error"]["type"]),
                    (&json!("error"), &json!("invalid_request_error"))
                );
            }
            if *name == "no model" {
                assert!(text.contains("model"), "{text}");
            }
            refused += 1;
        }
    }
    assert_eq!(fixture.upstream.requests().await.len(), 0, "nothing malformed goes on");
    let rows = fixture
        .gateway
        .admin("usage-logs/getUsageLogs", json!({"pageSize": 1, "statusCode": 400}))
        .await;
    assert!(rows["total"].as_u64().unwrap() <= refused);
}
