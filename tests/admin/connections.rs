//! Connections of the administration listener: an answer before the end of the body, and idle time.
//!
//! The pages behind the listener belong to the tests.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tollgate::admin::serve;

use crate::resilience::raw::read_message;
use crate::support::drip::drip;

/// How long a head may take.
const HEAD: Duration = Duration::from_secs(20);

/// `/refuse` answers 401 from the head; `/take` answers with the body's length.
fn start(tasks: &mut JoinSet<()>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let pages = Router::new()
        .route("/refuse", post(async || (StatusCode::UNAUTHORIZED, "who are you?")))
        .route("/take", post(async |body: Bytes| body.len().to_string()));
    tasks.spawn(async move {
        serve(listener, None, pages, super::places::slots(), std::future::pending()).await.unwrap()
    });
    address
}

/// Sends, and reads one answer: its head in lower case, and its body.
async fn ask(tcp: &mut TcpStream, request: &str) -> (String, String) {
    tcp.write_all(request.as_bytes()).await.unwrap();
    answer(tcp).await
}

async fn answer(tcp: &mut TcpStream) -> (String, String) {
    let (head, body) = read_message(tcp).await.expect("an answer, and not a closed connection");
    (head, String::from_utf8(body).unwrap())
}

const TAKE: &str = "POST /take HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc";

#[tokio::test]
async fn a_request_that_is_refused_from_its_head_keeps_its_connection() {
    let mut tasks = JoinSet::new();
    let address = start(&mut tasks);
    for chunked in [false, true] {
        let mut tcp = TcpStream::connect(&address).await.unwrap();
        let (field, rest) = match chunked {
            true => ("transfer-encoding: chunked", "5\r\nhello\r\n0\r\n\r\n"),
            false => ("content-length: 5", "hello"),
        };
        let head = format!("POST /refuse HTTP/1.1\r\nhost: x\r\n{field}\r\n\r\n");
        let (refused, _) = ask(&mut tcp, &head).await;
        assert!(
            refused.starts_with("http/1.1 401") && !refused.contains("connection: close"),
            "{refused}"
        );
        // The body comes later than the head, as some clients send it, and with it the next
        // request.
        tcp.write_all(rest.as_bytes()).await.unwrap();
        let (taken, body) = ask(&mut tcp, TAKE).await;
        assert!(taken.starts_with("http/1.1 200"), "{taken}");
        assert_eq!(body, "3");
    }
}

#[tokio::test]
async fn a_body_of_any_announced_size_is_answered_from_the_head_and_the_answer_arrives() {
    let mut tasks = JoinSet::new();
    let address = start(&mut tasks);
    let tcp = TcpStream::connect(&address).await.unwrap();
    let (mut reading, mut writing) = tcp.into_split();
    writing
        .write_all(b"POST /refuse HTTP/1.1\r\nhost: x\r\ncontent-length: 1073741824\r\n\r\n")
        .await
        .unwrap();
    let sending = async move {
        // More than both kernels' buffers hold: the write completes only if it is read.
        let piece = vec![0; 64 << 10];
        for _ in 0..512 {
            writing.write_all(&piece).await.expect("the client is cut off while it sends");
        }
        writing
    };
    let receiving = async {
        let mut got = vec![0; 16];
        reading.read_exact(&mut got).await.unwrap();
        got
    };
    let (_writing, got) = tokio::join!(sending, receiving);
    assert!(got.starts_with(b"HTTP/1.1 401"), "{}", got.escape_ascii());
}

#[tokio::test]
async fn a_refused_client_that_expects_100_continue_gets_none() {
    let mut tasks = JoinSet::new();
    let address = start(&mut tasks);
    let mut tcp = TcpStream::connect(&address).await.unwrap();
    let head = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n"
        )
    };
    let (refused, _) = ask(&mut tcp, &head("/refuse")).await;
    assert!(
        refused.starts_with("http/1.1 401") && refused.contains("connection: close"),
        "{refused}"
    );
    assert_eq!(tcp.read(&mut [0; 8]).await.unwrap(), 0, "closed, as was said");
    let mut tcp = TcpStream::connect(&address).await.unwrap();
    let (interim, _) = ask(&mut tcp, &head("/take")).await;
    assert!(interim.starts_with("http/1.1 100"), "{interim}");
    let (taken, _) = ask(&mut tcp, "abc").await;
    assert!(taken.starts_with("http/1.1 200"), "{taken}");
}

#[tokio::test]
async fn an_idle_connection_stays_when_a_head_would_be_late() {
    let mut tasks = JoinSet::new();
    let address = start(&mut tasks);
    let mut tcp = TcpStream::connect(&address).await.unwrap();
    ask(&mut tcp, TAKE).await;
    // Clients keep a connection for 90 s, and a POST on one that the server closes at that moment
    // is lost. Before, it was closed after 20 s.
    let idle = tokio::time::timeout(HEAD + Duration::from_secs(4), tcp.read(&mut [0; 8])).await;
    assert!(idle.is_err(), "it was closed: {idle:?}");
    let (taken, _) = ask(&mut tcp, TAKE).await;
    assert!(taken.starts_with("http/1.1 200"), "{taken}");
}

#[tokio::test]
async fn a_head_must_arrive_in_time_whichever_request_it_is() {
    let mut tasks = JoinSet::new();
    let address = start(&mut tasks);
    let drip = async |second: bool| {
        let mut tcp = TcpStream::connect(&address).await.unwrap();
        if second {
            ask(&mut tcp, TAKE).await;
        }
        tcp.write_all(b"POST /take HTTP/1.1\r\nhost: x\r\nx-drip: ").await.unwrap();
        let began = Instant::now();
        let dripping = drip(&mut tcp, b"a", Duration::from_millis(250), usize::MAX);
        assert!(tokio::time::timeout(3 * HEAD, dripping).await.is_ok(), "it is still open");
        assert!(began.elapsed() > HEAD / 2, "too early: {:?}", began.elapsed());
    };
    tokio::join!(drip(false), drip(true));
}
