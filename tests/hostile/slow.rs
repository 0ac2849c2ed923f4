//! Clients that send slowly: heads and bodies over both versions of HTTP.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::attack::{
    Attack, CONTINUATION, DATA, END_HEADERS, Ended, HEADERS, PREFACE, SETTINGS, SOON, connect,
    fixture, frame, request_fields,
};
use crate::support::drip;

/// Sends one byte at a time until the peer has closed; returns the answer and the duration.
async fn drip(tcp: TcpStream, begin: Vec<u8>, byte: Vec<u8>) -> (Vec<u8>, Duration) {
    let began = Instant::now();
    let (mut reading, mut writing) = tcp.into_split();
    let dripping = tokio::spawn(async move {
        if writing.write_all(&begin).await.is_err() {
            return;
        }
        drip::drip(&mut writing, &byte, Duration::from_millis(100), usize::MAX).await;
    });
    let mut got = Vec::new();
    let _ = tokio::time::timeout(SOON, reading.read_to_end(&mut got))
        .await
        .expect("the connection is still open");
    dripping.abort();
    (got, began.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http2_head_that_drips_or_stops_ends_its_connection() {
    let fixture = fixture(&[
        ("TOLLGATE_PROXY_HEAD_TIMEOUT", "1s"),
        ("TOLLGATE_PROXY_KEEPALIVE_TIMEOUT", "10m"),
    ])
    .await;
    let attack = Attack::begin(&fixture, "slow HTTP/2 heads");
    let address = fixture.gateway.proxy_addr();
    let begun = [PREFACE.to_vec(), frame(SETTINGS, 0, 0, &[])].concat();
    let head = frame(HEADERS, 0, 1, &request_fields(&fixture.key));
    let half = head[..head.len() - 5].to_vec();
    // The rest of the head's last field, byte by byte, each in a frame; the rest of its frame;
    // nothing at all.
    let cases = [
        (
            "CONTINUATION frames that drip",
            [begun.clone(), head.clone()].concat(),
            frame(CONTINUATION, 0, 1, &[]),
        ),
        ("a frame that stops", [begun.clone(), half].concat(), Vec::new()),
        ("a head without an end", [begun.clone(), head].concat(), Vec::new()),
        ("a frame's head that stops", [begun, vec![0, 0]].concat(), Vec::new()),
    ];
    let mut waiting = Vec::new();
    for _ in 0..10 {
        for (name, begin, byte) in cases.clone() {
            let tcp = TcpStream::connect(address).await.unwrap();
            waiting.push(tokio::spawn(async move { (name, drip(tcp, begin, byte).await.1) }));
        }
    }
    let tried = waiting.len();
    for one in waiting {
        let (name, took) = one.await.unwrap();
        // By the setting, and not by its default.
        assert!(took < Duration::from_secs(25), "{name}: {took:?}");
    }
    attack.end(&fixture, tried, 16).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_drips_is_refused_over_both_versions_of_http() {
    let fixture = fixture(&[("TOLLGATE_PROXY_REQUEST_READ_TIMEOUT", "1s")]).await;
    let attack = Attack::begin(&fixture, "slow bodies");
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\nconnection: close\r\ncontent-length: 9999\r\n\r\n{{",
            fixture.key
        );
        waiting.push(tokio::spawn(async move {
            let (got, took) = drip(tcp, head.into_bytes(), b" ".to_vec()).await;
            assert!(got.starts_with(b"HTTP/1.1 408 "), "{}", got.escape_ascii());
            assert!(took < SOON, "{took:?}");
        }));
    }
    for _ in 0..20 {
        let mut tcp = connect(&fixture, &[]).await;
        let head = frame(HEADERS, END_HEADERS, 1, &request_fields(&fixture.key));
        waiting.push(tokio::spawn(async move {
            tcp.write_all(&[head, frame(DATA, 0, 1, b"{")].concat()).await.unwrap();
            let mut got = Vec::new();
            // The stream is answered and ended; the connection may go on.
            while !super::attack::frames(&got).iter().any(|(kind, flags, stream, _)| {
                *stream == 1
                    && (*kind == super::attack::RST_STREAM || (*kind <= HEADERS && flags & 1 != 0))
            }) {
                let read = tokio::time::timeout(SOON, tcp.read_buf(&mut got))
                    .await
                    .expect("it is not answered");
                assert!(read.unwrap() > 0, "closed: {:?}", super::attack::frames(&got));
                let _ = tcp.write_all(&frame(DATA, 0, 1, b" ")).await;
            }
            assert!(
                String::from_utf8_lossy(&got).contains("\"error\""),
                "{:?}",
                super::attack::frames(&got)
            );
        }));
    }
    let tried = waiting.len();
    for one in waiting {
        one.await.unwrap();
    }
    for row in fixture.gateway.logs(tried).await {
        assert_eq!(row["statusCode"], 408, "{row}");
    }
    assert!(fixture.upstream.requests().await.is_empty());
    fixture.gateway.metric_shows("tollgate_request_body_bytes", |held| held == 0.0).await;
    attack.end(&fixture, tried, 16).await;
}

/// Over TLS the preface follows the handshake: half of it must not hold the connection.
#[tokio::test(flavor = "multi_thread")]
async fn half_of_a_preface_behind_tls_does_not_hold_its_connection() {
    let file = |name: &str| format!("{}/tests/admin/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let (cert, key) = (file("cert.pem"), file("key.pem"));
    let env = [
        ("TOLLGATE_PROXY_TLS_CERT", cert.as_str()),
        ("TOLLGATE_PROXY_TLS_KEY", key.as_str()),
        ("TOLLGATE_PROXY_HEAD_TIMEOUT", "1s"),
        ("TOLLGATE_PROXY_KEEPALIVE_TIMEOUT", "10m"),
    ];
    let fixture = crate::proxy::fixture::Fixture::native_with(&env).await;
    let mut tls =
        super::handshake::client_tls(fixture.gateway.proxy_addr(), &file("cert.pem")).await;
    tls.write_all(&PREFACE[..10]).await.unwrap();
    tls.flush().await.unwrap();
    Ended::of(&mut tls).await;
}

/// A client that sends its preface and no SETTINGS has begun nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_preface_without_settings_does_not_hold_its_connection() {
    let fixture = fixture(&[
        ("TOLLGATE_PROXY_HEAD_TIMEOUT", "1s"),
        ("TOLLGATE_PROXY_KEEPALIVE_TIMEOUT", "10m"),
    ])
    .await;
    let attack = Attack::begin(&fixture, "prefaces without SETTINGS");
    let mut waiting = Vec::new();
    for _ in 0..10 {
        let tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
        waiting.push(tokio::spawn(drip(tcp, PREFACE.to_vec(), Vec::new())));
    }
    for one in waiting {
        let (_, took) = one.await.unwrap();
        assert!(took < Duration::from_secs(25), "{took:?}");
    }
    attack.end(&fixture, 10, 16).await;
}

/// The listeners of the administration and of the metrics have the bounds of the proxy's.
#[tokio::test(flavor = "multi_thread")]
async fn slow_heads_at_the_other_listeners_end_their_connections() {
    let fixture = fixture(&[]).await;
    let attack = Attack::begin(&fixture, "slow heads at the administration and the metrics");
    let settings = frame(SETTINGS, 0, 0, &[]);
    let begun = [PREFACE.to_vec(), settings.clone()].concat();
    let head = frame(HEADERS, 0, 1, &request_fields(&fixture.key));
    let cases = [
        ("an HTTP/1 head that drips", b"GET /livez HTTP/1.1\r\nx-drip: ".to_vec(), b"a".to_vec()),
        ("an HTTP/1 head that stops", b"G".to_vec(), Vec::new()),
        ("half a preface", PREFACE[..10].to_vec(), Vec::new()),
        ("a preface without SETTINGS", PREFACE.to_vec(), Vec::new()),
        ("a frame's head that stops", [begun.clone(), vec![0, 0]].concat(), Vec::new()),
        // Pings are answered, so that only the bound of heads can end these.
        (
            "CONTINUATION frames that drip",
            [begun.clone(), head.clone()].concat(),
            frame(CONTINUATION, 0, 1, &[]),
        ),
        ("a head without an end", [begun, head].concat(), Vec::new()),
    ];
    let mut waiting = Vec::new();
    for url in [&fixture.gateway.admin, &fixture.gateway.metrics] {
        let address = url.strip_prefix("http://").unwrap().to_owned();
        for (name, begin, byte) in cases.clone() {
            let tcp = TcpStream::connect(&address).await.unwrap();
            waiting.push(tokio::spawn(async move { (name, drip(tcp, begin, byte).await.1) }));
        }
    }
    let tried = waiting.len();
    for one in waiting {
        let (name, took) = one.await.unwrap();
        assert!(took < Duration::from_secs(35), "{name}: {took:?}");
    }
    attack.end(&fixture, tried, 16).await;
}
