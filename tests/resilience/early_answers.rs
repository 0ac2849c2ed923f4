//! Providers that answer before they have read the request: with an error, and then they read no
//! further; with an interim answer, or with the head of a reply.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, mpsc};

use super::frames::HEADERS;
use super::http2_provider::{self, RST_STREAM, TOO_LARGE};
use super::raw;
use crate::proxy::fixture::{Fixture, request};
use crate::support::unread::taken;

/// Writing gives up after 30 s without progress, so an answer within this time did not wait for it.
const SOON: Duration = Duration::from_secs(20);
/// More than the buffers of both sockets hold.
const LARGE: usize = 12 << 20;
const REFUSED: &str =
    r#"{"type":"error","error":{"type":"request_too_large","message":"far too long"}}"#;

/// A listener whose connections take few bytes that are not read.
fn listener() -> (TcpListener, u16) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 << 10).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(16).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Passes each connection to `play`.
async fn provider<F>(play: impl Fn(TcpStream) -> F + Send + 'static) -> String
where
    F: Future<Output = ()> + Send + 'static,
{
    let (listener, port) = listener();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(play(tcp));
        }
    });
    format!("http://127.0.0.1:{port}")
}

async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap().to_ascii_lowercase()
}

fn length(head: &str) -> usize {
    let found = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    found.unwrap_or_else(|| panic!("{head}"))
}

fn refusal(status: u16) -> String {
    format!(
        "HTTP/1.1 {status} No\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{REFUSED}",
        REFUSED.len()
    )
}

fn large() -> Value {
    let mut body = request("native", false);
    body["messages"][0]["content"] = json!("x".repeat(LARGE));
    body
}

/// Sends a large request; its status and body.
async fn ask(fixture: &Fixture) -> (u16, Value) {
    let asking = async {
        let answer = fixture.post("/v1/messages", &large()).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    };
    tokio::time::timeout(SOON, asking)
        .await
        .expect("the answer waits for the request to be written")
}

async fn fixture(url: &str, env: &[(&str, &str)]) -> Fixture {
    let fixture = Fixture::bare(env).await;
    let fields = json!({"max_retry_attempts": 1, "circuit_breaker_failure_threshold": 0});
    fixture.gateway.provider("native", url, fields).await;
    fixture
}

/// It neither reads the rest nor closes.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_comes_while_the_body_is_sent_is_delivered_at_once() {
    for status in [400, 413] {
        let url = provider(move |mut tcp| async move {
            read_head(&mut tcp).await;
            raw::write(&mut tcp, refusal(status).as_bytes()).await;
            std::future::pending::<()>().await;
        })
        .await;
        let fixture = fixture(&url, &[]).await;
        let (got, body) = ask(&fixture).await;
        assert_eq!((got, &body["error"]["message"]), (status, &json!("far too long")), "{body}");
        let row = &fixture.gateway.logs(1).await[0];
        let seen = [&row["outcome"], &row["statusCode"], &row["attempts"], &row["costUsd"]];
        assert_eq!(seen, [&json!("client_error"), &json!(status), &json!(1), &json!(0)], "{row}");
    }
}

/// The connection has a part of a request in it: the next request needs another one.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_with_half_a_request_is_not_used_again() {
    let connections = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&connections);
    let answered = Arc::new(Notify::new());
    let (tell, mut told) = mpsc::unbounded_channel();
    let opened = Arc::clone(&answered);
    let url = provider(move |mut tcp| {
        let number = counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let (answered, tell) = (Arc::clone(&opened), tell.clone());
        async move {
            let head = read_head(&mut tcp).await;
            if number == 0 {
                raw::write(&mut tcp, refusal(413).as_bytes()).await;
                answered.notified().await;
                // All that comes until the gateway closes.
                let mut rest = Vec::new();
                let _ = tcp.read_to_end(&mut rest).await;
                tell.send((rest.len(), length(&head))).unwrap();
                return;
            }
            let mut body = vec![0; length(&head)];
            tcp.read_exact(&mut body).await.unwrap();
            raw::write(&mut tcp, raw::reply().as_bytes()).await;
            let _ = tcp.read_u8().await;
        }
    })
    .await;
    let fixture = fixture(&url, &[]).await;
    assert_eq!(ask(&fixture).await.0, 413);
    answered.notify_one();
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    assert_eq!(connections.load(std::sync::atomic::Ordering::SeqCst), 2);
    let rest = tokio::time::timeout(SOON, told.recv()).await.expect("the gateway closes");
    let (sent, length) = rest.unwrap();
    assert!(sent < length, "the rest was sent after the answer");
}

/// The next provider gets the whole request.
#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limit_that_comes_while_the_body_is_sent_leads_to_the_next_provider() {
    let limited = provider(|mut tcp| async move {
        read_head(&mut tcp).await;
        raw::write(&mut tcp, refusal(429).as_bytes()).await;
        std::future::pending::<()>().await;
    })
    .await;
    let fixture = Fixture::bare(&[]).await;
    let first = json!({"priority": 0, "max_retry_attempts": 1});
    fixture.gateway.provider("native", &limited, first).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({"priority": 1})).await;
    let (status, body) = ask(&fixture).await;
    assert_eq!(status, 200, "{body}");
    let row = &fixture.gateway.logs(1).await[0];
    assert_eq!((&row["attempts"], &row["outcome"]), (&json!(2), &json!("completed")), "{row}");
}

/// What comes before the body has been read is not an error: the body is still needed.
#[tokio::test(flavor = "multi_thread")]
async fn an_interim_answer_or_the_head_of_a_reply_stops_no_body() {
    let reply = raw::reply();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    let (head, body) = (format!("{head}\r\n\r\n"), body.to_owned());
    for (early, late) in [
        ("HTTP/1.1 100 Continue\r\n\r\n".to_owned(), reply.clone()),
        ("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".to_owned() + &head, body.clone()),
        (head.clone(), body.clone()),
        (head[..12].to_owned(), head[12..].to_owned() + &body),
    ] {
        let told = early.clone();
        let url = provider(move |mut tcp| {
            let (early, late) = (told.clone(), late.clone());
            async move {
                let sent = read_head(&mut tcp).await;
                raw::write(&mut tcp, early.as_bytes()).await;
                // The gateway's write is blocked meanwhile.
                taken(&tcp).await;
                let mut body = vec![0; length(&sent)];
                tcp.read_exact(&mut body).await.unwrap();
                raw::write(&mut tcp, late.as_bytes()).await;
                let _ = tcp.read_u8().await;
            }
        })
        .await;
        let fixture = fixture(&url, &[]).await;
        let (status, body) = ask(&fixture).await;
        assert_eq!((status, &body["content"][0]["text"]), (200, &json!("hello")), "{early:?}");
    }
}

/// A provider that closes its writing side cannot answer any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_ends_its_side_while_the_body_is_sent_has_failed() {
    let url = provider(|mut tcp| async move {
        read_head(&mut tcp).await;
        let _ = tcp.shutdown().await;
        std::future::pending::<()>().await;
    })
    .await;
    let fixture = fixture(&url, &[]).await;
    let (status, body) = ask(&fixture).await;
    assert_eq!(status, 502, "{body}");
    assert_eq!(fixture.gateway.logs(1).await[0]["outcome"], "upstream_failed");
}

/// It opens no window for the rest. The stream is reset, and the connection serves the next one.
#[tokio::test(flavor = "multi_thread")]
async fn over_http2_an_error_is_delivered_at_once_too() {
    let (resets, mut reset) = tokio::sync::mpsc::unbounded_channel();
    let url = http2_provider::provider(move |mut http2, number| {
        let resets = resets.clone();
        async move {
            while let Some((kind, _, stream, _)) = http2.next().await {
                if kind == HEADERS {
                    http2.answer(stream, TOO_LARGE, REFUSED, true).await;
                }
                if kind == RST_STREAM {
                    let _ = resets.send((number, stream));
                }
            }
        }
    })
    .await;
    let env = http2_provider::trusted();
    let fixture = fixture(&url, &env.each_ref().map(|(name, file)| (*name, file.as_str()))).await;
    for stream in [1, 3] {
        let (status, body) = ask(&fixture).await;
        assert_eq!((status, &body["error"]["message"]), (413, &json!("far too long")), "{body}");
        let given_up = tokio::time::timeout(SOON, reset.recv()).await;
        assert_eq!(given_up.expect("the rest of the request is given up"), Some((0, stream)));
    }
}
