//! The edge of a client's connection: heads, idle time, pipelining, refused bodies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fixture::{Fixture, request};
use crate::resilience::raw::{self, Provider};
use crate::support::drip::drip;
use crate::support::unread::taken;

/// Time-out of any single step.
const LONG: Duration = Duration::from_secs(60);
/// Connections are closed long before this; they used to be kept forever.
const SOON: Duration = Duration::from_secs(30);

async fn connect(fixture: &Fixture) -> TcpStream {
    TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap()
}

fn ask(fixture: &Fixture) -> Vec<u8> {
    raw::request(&fixture.key, &request("native", false))
}

/// One answer: its head in lower case, and its body.
async fn answer(tcp: &mut TcpStream) -> (String, String) {
    let (head, body) = raw::read_message(tcp).await.expect("an answer");
    (head, String::from_utf8_lossy(&body).into_owned())
}

/// Sends a request on a connection and reads the answer's head; it must be a 200.
async fn answered(fixture: &Fixture, tcp: &mut TcpStream) -> String {
    tcp.write_all(&ask(fixture)).await.unwrap();
    let (head, body) = answer(tcp).await;
    assert!(head.starts_with("http/1.1 200"), "{head}{body}");
    head
}

/// Reads to the end of the connection, which must come soon; returns the bytes before it.
async fn closed(tcp: &mut TcpStream) -> String {
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(SOON, tcp.read_to_end(&mut rest))
        .await
        .expect("the connection is still open");
    // A reset ends it as well.
    let _ = ended;
    String::from_utf8_lossy(&rest).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_is_closed_after_its_first_request_too() {
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_KEEPALIVE_TIMEOUT", "1s")]).await;
    let mut tcp = connect(&fixture).await;
    answered(&fixture, &mut tcp).await;
    assert_eq!(closed(&mut tcp).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn half_of_a_second_head_does_not_hold_its_connection() {
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_KEEPALIVE_TIMEOUT", "1s")]).await;
    let mut tcp = connect(&fixture).await;
    answered(&fixture, &mut tcp).await;
    tcp.write_all(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-half").await.unwrap();
    closed(&mut tcp).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_drips_is_refused_whichever_request_it_is() {
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_HEAD_TIMEOUT", "1s")]).await;
    for second in [false, true] {
        let mut tcp = connect(&fixture).await;
        if second {
            answered(&fixture, &mut tcp).await;
        }
        let (mut reading, mut writing) = tcp.into_split();
        let dripping = tokio::spawn(async move {
            let _ = writing.write_all(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-drip: ").await;
            drip(&mut writing, b"a", Duration::from_millis(100), usize::MAX).await;
        });
        let mut got = Vec::new();
        let reading = reading.read_to_end(&mut got);
        let _ = tokio::time::timeout(SOON, reading).await.expect("the connection is still open");
        assert!(got.starts_with(b"HTTP/1.1 408 "), "second {second}: {}", got.escape_ascii());
        dripping.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_above_its_bound_is_refused() {
    let fixture = Fixture::native().await;
    let body = request("native", false).to_string();
    for (padding, status) in [(50_000, "HTTP/1.1 200"), (140_000, "HTTP/1.1 431")] {
        let mut tcp = connect(&fixture).await;
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\nx-padding: {}\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            fixture.key,
            "p".repeat(padding),
            body.len()
        );
        let _ = tcp.write_all(head.as_bytes()).await;
        let got = closed(&mut tcp).await;
        assert!(got.starts_with(status), "{padding}: {got}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_above_the_limit_are_refused_and_the_others_go_on() {
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_MAX_CONNECTIONS", "3")]).await;
    // The readiness check of the start used its own connection.
    fixture.gateway.metric_shows("tollgate_connections", |open| open == 0.0).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(connect(&fixture).await);
    }
    fixture.gateway.metric_shows("tollgate_connections", |open| open == 3.0).await;
    let mut fourth = connect(&fixture).await;
    let got = closed(&mut fourth).await;
    assert!(got.starts_with("HTTP/1.1 503 ") && got.contains("retry-after: 5\r\n"), "{got}");
    assert_eq!(fixture.gateway.metric("tollgate_connections_refused_total").await, 1.0);
    fixture.gateway.log_shows("proxy.max_connections are open").await;
    answered(&fixture, &mut held[0]).await;
    held.pop();
    fixture.gateway.metric_shows("tollgate_connections", |open| open == 2.0).await;
    answered(&fixture, &mut connect(&fixture).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_ends_with_notice_after_its_last_request() {
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_KEEPALIVE_REQUESTS", "3")]).await;
    let mut tcp = connect(&fixture).await;
    for last in [false, false, true] {
        let head = answered(&fixture, &mut tcp).await;
        assert_eq!(head.contains("connection: close"), last, "{head}");
    }
    assert_eq!(closed(&mut tcp).await, "");
}

/// It had read the request and worked on it: a retry would be billed twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_hangs_up_after_working_is_not_retried_silently() {
    let asked = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asked);
    let provider = Provider::start(move |mut tcp: TcpStream, number| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            if number > 0 {
                // Sleeps: by its real clock the gateway takes this long for work.
                tokio::time::sleep(Duration::from_millis(1_500)).await;
                return None;
            }
            raw::write(&mut tcp, raw::reply().as_bytes()).await.then_some(tcp)
        }
    })
    .await;
    let fixture = Fixture::bare(&[]).await;
    let fields = json!({"max_retry_attempts": 2, "circuit_breaker_failure_threshold": 0});
    fixture.gateway.provider("native", &provider.url, fields).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    // On the connection that the first one left in the pool.
    let status = fixture.ask().send().await.unwrap().status();
    assert_eq!(status, 200, "the second attempt has a connection of its own");
    let rows = fixture.gateway.logs(2).await;
    let attempts: u64 = rows.iter().map(|row| row["attempts"].as_u64().unwrap()).sum();
    assert_eq!(asked.load(Ordering::SeqCst), attempts, "{rows:?}");
    let chain = rows[0]["decisionChain"].to_string();
    assert!(chain.contains("retried") && !chain.contains("pooled"), "{chain}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_with_a_length_and_chunks_is_refused_and_its_connection_closed() {
    let fixture = Fixture::native().await;
    let body = request("native", false).to_string();
    let head = format!("POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\n", fixture.key);
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for framing in [
        format!("content-length: {}\r\ntransfer-encoding: chunked\r\n", chunked.len()),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {}\r\n", body.len()),
    ] {
        let mut tcp = connect(&fixture).await;
        tcp.write_all(format!("{head}{framing}\r\n{chunked}").as_bytes()).await.unwrap();
        let got = closed(&mut tcp).await;
        assert!(got.starts_with("HTTP/1.1 400 ") && got.contains("not both"), "{got}");
        assert_eq!(got.matches("HTTP/1.1").count(), 1, "{got}");
    }
    assert!(fixture.upstream.requests().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_behind_a_pipelined_byte_stops_the_provider() {
    let fixture = Fixture::native().await;
    fixture.upstream.default(json!({"delay_ms": 600_000})).await;
    let mut tcp = connect(&fixture).await;
    tcp.write_all(&ask(&fixture)).await.unwrap();
    fixture.upstream.stats("started=1").await;
    tcp.write_all(b"P").await.unwrap();
    taken(&tcp).await;
    drop(tcp);
    fixture.upstream.stats("dropped=1").await;
    assert_eq!(fixture.gateway.logs(1).await[0]["outcome"], "client_aborted");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_come_before_the_reply_to_the_first_are_answered_in_order() {
    let fixture = Fixture::native().await;
    fixture.upstream.script(json!([{"delay_ms": 300}])).await;
    let mut tcp = connect(&fixture).await;
    tcp.write_all(&ask(&fixture)).await.unwrap();
    fixture.upstream.stats("started=1").await;
    // While the first is being answered; the second one's last byte comes even later.
    let (two, mut last) = (ask(&fixture), ask(&fixture));
    let end = last.split_off(last.len() - 1);
    tcp.write_all(&[two, last].concat()).await.unwrap();
    let (head, _) = one(&mut tcp).await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    tcp.write_all(&end).await.unwrap();
    for _ in 0..2 {
        let (head, _) = one(&mut tcp).await;
        assert!(head.starts_with("http/1.1 200"), "{head}");
    }
    fixture.gateway.logs(3).await;
}

/// Reads one answer byte by byte, and nothing after it.
async fn one(tcp: &mut TcpStream) -> (String, Vec<u8>) {
    let mut got = Vec::new();
    while !got.ends_with(b"\r\n\r\n") {
        got.push(tokio::time::timeout(LONG, tcp.read_u8()).await.unwrap().unwrap());
    }
    let head = String::from_utf8_lossy(&got).to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
        .expect("a length");
    let mut body = vec![0; length];
    tokio::time::timeout(LONG, tcp.read_exact(&mut body)).await.unwrap().unwrap();
    (head, body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_still_sending_reads_its_refusal_and_goes_on() {
    let fixture = Fixture::native().await;
    let mut tcp = connect(&fixture).await;
    let large = vec![b' '; 6 << 20];
    let head = |more: &str| {
        format!(
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: sk-unknown\r\n{more}content-length: {}\r\n\r\n",
            large.len()
        )
    };
    tcp.write_all(head("").as_bytes()).await.unwrap();
    tcp.write_all(&large).await.expect("the rest of the body is taken");
    let (refused, _) = answer(&mut tcp).await;
    assert!(
        refused.starts_with("http/1.1 401") && refused.contains("connection: keep-alive"),
        "{refused}"
    );
    answered(&fixture, &mut tcp).await;
    // A connection that will be closed is drained as well.
    tcp.write_all(head("connection: close\r\n").as_bytes()).await.unwrap();
    tcp.write_all(&large).await.expect("the rest of the body is taken");
    let (refused, _) = answer(&mut tcp).await;
    assert!(
        refused.starts_with("http/1.1 401") && refused.contains("connection: close"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_for_100_continue_keeps_its_connection() {
    let fixture = Fixture::native().await;
    let mut tcp = connect(&fixture).await;
    let body = request("native", false).to_string();
    for _ in 0..2 {
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\nexpect: 100-continue\r\n\
             content-length: {}\r\n\r\n",
            fixture.key,
            body.len()
        );
        tcp.write_all(head.as_bytes()).await.unwrap();
        let mut got = Vec::new();
        while !got.ends_with(b"\r\n\r\n") {
            got.push(tokio::time::timeout(LONG, tcp.read_u8()).await.unwrap().unwrap());
        }
        assert!(got.starts_with(b"HTTP/1.1 100 "), "{}", got.escape_ascii());
        tcp.write_all(body.as_bytes()).await.unwrap();
        let (head, _) = answer(&mut tcp).await;
        assert!(
            head.starts_with("http/1.1 200") && head.contains("connection: keep-alive"),
            "{head}"
        );
    }
}

/// If the gateway kept the connection, it could not distinguish a late body from the next request.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_for_100_continue_and_is_refused_gets_a_closed_connection() {
    let fixture = Fixture::native().await;
    let mut tcp = connect(&fixture).await;
    let head = "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: sk-unknown\r\nexpect: 100-continue\r\n\
                content-length: 100\r\n\r\n";
    tcp.write_all(head.as_bytes()).await.unwrap();
    let began = std::time::Instant::now();
    let got = closed(&mut tcp).await;
    assert!(
        got.starts_with("HTTP/1.1 401 ") && got.to_ascii_lowercase().contains("connection: close"),
        "{got}"
    );
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "it waited for the body: {:?}",
        began.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_follows_a_damaged_body_is_no_request() {
    let fixture = Fixture::native().await;
    let hidden = String::from_utf8(ask(&fixture)).unwrap();
    let head = format!("POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\n", fixture.key);
    let mut tcp = connect(&fixture).await;
    tcp.write_all(format!("{head}transfer-encoding: chunked\r\n\r\nzz\r\n").as_bytes())
        .await
        .unwrap();
    taken(&tcp).await;
    let _ = tcp.write_all(hidden.as_bytes()).await;
    let got = closed(&mut tcp).await;
    assert!(got.starts_with("HTTP/1.1 400 "), "{got}");
    assert_eq!(got.matches("HTTP/1.1").count(), 1, "{got}");
    assert!(fixture.upstream.requests().await.is_empty());
}

/// Its events are smaller than the gateway's own write buffer.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_nothing_of_many_small_events_is_given_up_and_billed() {
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_REPLY_WRITE_TIMEOUT", "1s")]).await;
    fixture.upstream.default(json!({"events": 200_000, "words": 200_000})).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut tcp = socket.connect(fixture.gateway.proxy_addr().parse().unwrap()).await.unwrap();
    tcp.write_all(&raw::request(&fixture.key, &request("native", true))).await.unwrap();
    let row = &fixture.gateway.logs(1).await[0];
    assert_eq!(
        (&row["outcome"], &row["estimated"]),
        (&json!("client_aborted"), &json!(true)),
        "{row}"
    );
    fixture.gateway.metric_shows("tollgate_requests_in_flight", |running| running == 0.0).await;
    drop(tcp);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_h2c_a_client_that_says_nothing_or_little_is_closed() {
    let env = [("TOLLGATE_PROXY_H2C", "true"), ("TOLLGATE_PROXY_KEEPALIVE_TIMEOUT", "1s")];
    let fixture = Fixture::native_with(&env).await;
    for said in ["", "PRI * HTTP/2"] {
        let mut tcp = connect(&fixture).await;
        tcp.write_all(said.as_bytes()).await.unwrap();
        assert_eq!(closed(&mut tcp).await, "", "{said:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_during_its_upload_is_recorded_as_gone() {
    let fixture = Fixture::native().await;
    let whole = ask(&fixture);
    let mut tcp = connect(&fixture).await;
    tcp.write_all(&whole[..whole.len() - 10]).await.unwrap();
    drop(tcp);
    let row = &fixture.gateway.logs(1).await[0];
    let seen: [&Value; 3] = [&row["outcome"], &row["statusCode"], &row["costUsd"]];
    assert_eq!(seen, [&json!("client_aborted"), &json!(499), &json!(0)], "{row}");
    assert!(fixture.upstream.requests().await.is_empty());
}

/// The listing cannot be written: no error of the gateway's own follows it.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_more_is_written_to_a_client_whose_reply_could_not_be_written() {
    let fixture = Fixture::native_with(&[("LOG_LEVEL", "trace")]).await;
    fixture.upstream.default(json!({"delay_ms": 600_000})).await;
    let mut tcp = connect(&fixture).await;
    let listing =
        format!("GET /v1/models HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\n\r\n", fixture.key);
    tcp.write_all(listing.as_bytes()).await.unwrap();
    // The provider is asked what it serves.
    fixture.upstream.stats("started=1").await;
    tcp.set_zero_linger().unwrap();
    drop(tcp);
    fixture.gateway.logs(1).await;
    let log = fixture.gateway.log_shows("\"hook\":\"logging\"").await;
    assert!(!log.contains("already sent"), "{log}");
    assert_eq!(log.matches("\"hook\":\"response_filter\"").count(), 1, "{log}");
}
