//! A WebSocket to a provider with TLS, through a CONNECT proxy: as HTTP requests to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use super::client::user;
use crate::proxy::fixture::Fixture;
use crate::resilience::http2_provider::{acceptor, trusted};

/// Ends TLS before a mock, and prefers HTTP/2 as services do. Returns its address.
async fn with_tls(mock: String) -> String {
    let (acceptor, listener) =
        (acceptor(&["h2", "http/1.1"]), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let address = format!("localhost:{}", listener.local_addr().unwrap().port());
    #[expect(clippy::disallowed_methods, reason = "the test's runtime outlives it")]
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (acceptor, mock) = (acceptor.clone(), mock.clone());
            tokio::spawn(async move {
                let Ok(mut tls) = acceptor.accept(tcp).await else { return };
                let mut mock = TcpStream::connect(mock).await.unwrap();
                let _ = copy_bidirectional(&mut tls, &mut mock).await;
            });
        }
    });
    address
}

/// A CONNECT proxy. Returns its address, and the tunnels that it made.
async fn connect_proxy() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let tunnels = Arc::new(AtomicUsize::new(0));
    let made = Arc::clone(&tunnels);
    #[expect(clippy::disallowed_methods, reason = "the test's runtime outlives it")]
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let made = Arc::clone(&made);
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(client.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                let target = head.split(' ').nth(1).unwrap().to_owned();
                let mut target = TcpStream::connect(target).await.unwrap();
                client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                made.fetch_add(1, Ordering::Relaxed);
                let _ = copy_bidirectional(&mut client, &mut target).await;
            });
        }
    });
    (address, tunnels)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_goes_through_the_providers_tls_and_proxy() {
    for is_trusted in [true, false] {
        let certificate = trusted();
        let env: Vec<_> = certificate.iter().map(|(name, value)| (*name, &**value)).collect();
        let fixture = Fixture::bare(if is_trusted { &env } else { &[] }).await;
        fixture.upstream.default(json!({"websocket": true})).await;
        let mock = fixture.upstream.url.trim_start_matches("http://").to_owned();
        let (proxy, tunnels) = connect_proxy().await;
        let fields = json!({"websocket": true, "proxy_url": format!("http://{proxy}"),
            "max_retry_attempts": 1});
        let url = format!("https://{}", with_tls(mock).await);
        fixture.gateway.provider("responses", &url, fields).await;
        let body = json!({"model": "m", "stream": true, "input": [user("hi")]});
        let ask = async || {
            let asked = fixture.post("/v1/responses", &body).header("session_id", "a");
            asked.send().await.unwrap().text().await.unwrap()
        };
        if !is_trusted {
            assert!(!ask().await.contains("response.completed"));
            assert!(fixture.upstream.requests().await.is_empty());
            continue;
        }
        for _ in 0..2 {
            let text = ask().await;
            assert!(text.contains("response.completed"), "{text}");
        }
        let over: Vec<_> = fixture
            .upstream
            .requests()
            .await
            .into_iter()
            .map(|request| request["headers"]["x-mock-socket"].clone())
            .collect();
        assert_eq!(over, [json!("1"), json!("1")]);
        assert_eq!(tunnels.load(Ordering::Relaxed), 1);
    }
}
