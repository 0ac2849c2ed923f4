//! Heads that become no request: Pingora cannot read them, or they break a bound. Their answers
//! are complete too.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fixture::{Fixture, request};
use crate::resilience::raw;

const SOON: Duration = Duration::from_secs(30);

fn head(rest: &str) -> String {
    format!("POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: sk-none\r\n{rest}")
}

/// A name, the bytes, the status and the reason's name.
fn heads() -> Vec<(&'static str, String, u16, &'static str)> {
    let bad = |fields: &str| head(&format!("{fields}\r\n\r\n"));
    vec![
        ("two lengths", bad("content-length: 5\r\ncontent-length: 3"), 400, "malformed_head"),
        ("no number", bad("content-length: ten"), 400, "malformed_head"),
        ("a space before the colon", bad("x-name : y"), 400, "malformed_head"),
        ("no HTTP", "hello there\r\n\r\n".to_owned(), 400, "malformed_head"),
        ("another coding", bad("transfer-encoding: gzip"), 400, "malformed_head"),
        ("a tunnel", "CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(), 405, "wrong_method"),
        ("a huge head", head(&format!("x-large: {}", "y".repeat(200_000))), 431, "head_too_large"),
        ("a head that stops", head("x-half"), 408, "head_timed_out"),
    ]
}

/// All that comes until the gateway closes.
async fn answer(tcp: &mut TcpStream) -> String {
    let mut got = Vec::new();
    tokio::time::timeout(SOON, tcp.read_to_end(&mut got))
        .await
        .expect("the connection is still open")
        .unwrap();
    String::from_utf8(got).unwrap()
}

/// Checks an answer; returns the request's id.
fn checked(got: &str, name: &str, status: u16, code: &str) -> String {
    let (head, body) = got.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{name}: {got}"));
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {got}");
    let field = |name: &str| {
        head.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{got}"))
    };
    assert_eq!(field("connection: "), "close", "{name}");
    assert_eq!(field("content-type: "), "application/json", "{name}");
    assert_eq!(field("content-length: ").parse(), Ok(body.len()), "{name}");
    let body: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{name}: {got}"));
    assert_eq!((&body["type"], &body["error"]["code"]), (&"error".into(), &code.into()), "{body}");
    assert_eq!(body["error"]["type"], "invalid_request_error", "{body}");
    assert!(body["error"]["message"].as_str().is_some_and(|said| !said.is_empty()), "{body}");
    field("x-tollgate-request-id: ").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn they_are_answered_with_a_reason_and_an_id_that_the_log_has_too() {
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_HEAD_TIMEOUT", "1s")]).await;
    let good = raw::request(&fixture.key, &request("native", false));
    let mut ids = Vec::new();
    for (name, bytes, status, code) in heads() {
        // As the first request, after another one, and sent together with another one.
        for before in [0, 1, 2] {
            if before == 2 && status == 408 {
                // A part that came with another request: the idle time of a connection ends it.
                continue;
            }
            let mut tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
            let mut sent = bytes.as_bytes().to_vec();
            if before == 1 {
                tcp.write_all(&good).await.unwrap();
                assert!(raw::read_message(&mut tcp).await.unwrap().0.contains(" 200 "));
            } else if before == 2 {
                sent.splice(..0, good.clone());
            }
            let _ = tcp.write_all(&sent).await;
            let got = answer(&mut tcp).await;
            // The answer to the good request, if its own is in front.
            let at = if before == 2 { got.rfind("HTTP/1.1 ").unwrap() } else { 0 };
            ids.push(checked(&got[at..], name, status, code));
        }
    }
    for id in ids {
        fixture.gateway.log_shows(&id).await;
    }
    let text = fixture.gateway.client.get(format!("{}/metrics", fixture.gateway.metrics));
    let text = text.send().await.unwrap().text().await.unwrap();
    for (reason, count) in [("malformed_head", 15), ("head_too_large", 3), ("head_timed_out", 2)] {
        let line = format!("{{reason=\"{reason}\"}} {count}");
        assert!(text.contains(&line), "{line}: {text}");
    }
    assert!(!fixture.gateway.log().contains("panicked"), "{}", fixture.gateway.log());
    assert_eq!(fixture.upstream.requests().await.len(), 15, "only the good ones");
}

/// If the connection were closed with unread bytes, a reset would overtake the answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_still_sending_reads_the_answer() {
    let fixture = Fixture::native().await;
    for _ in 0..20 {
        let mut tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
        let sent = head("content-length : 1\r\n\r\n") + &"x".repeat(600_000);
        tcp.write_all(sent.as_bytes()).await.expect("the rest is taken");
        tcp.shutdown().await.unwrap();
        checked(&answer(&mut tcp).await, "sending", 400, "malformed_head");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_refusal_of_a_websocket_names_the_option_and_keeps_the_connection() {
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_WEBSOCKETS", "false")]).await;
    let mut tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
    let upgrade = |more: &str| {
        format!(
            "GET /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: upgrade{more}\r\n\
             upgrade: websocket\r\nsec-websocket-version: 13\r\n\r\n"
        )
    };
    for _ in 0..2 {
        tcp.write_all(upgrade("").as_bytes()).await.unwrap();
        let (head, body) = raw::read_message(&mut tcp).await.unwrap();
        assert!(head.starts_with("http/1.1 426 ") && head.contains("\r\nupgrade: "), "{head}");
        assert!(head.contains("\r\nconnection: upgrade, keep-alive\r\n"), "{head}");
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert!(body["error"]["message"].is_string(), "{body}");
    }
    // An answer of another kind says nothing of it.
    tcp.write_all(&raw::request(&fixture.key, &request("native", false))).await.unwrap();
    let (head, _) = raw::read_message(&mut tcp).await.unwrap();
    assert!(head.contains(" 200 ") && head.contains("\r\nconnection: keep-alive\r\n"), "{head}");
    tcp.write_all(upgrade(", close").as_bytes()).await.unwrap();
    let got = answer(&mut tcp).await.to_ascii_lowercase();
    assert!(got.contains("\r\nconnection: upgrade, close\r\n"), "{got}");
}
