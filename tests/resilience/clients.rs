//! Clients that read slowly, or not at all, and hundreds of clients that close at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::load::Load;
use super::raw::{self, Provider, STREAM_HEAD, beginning, chunk, text};
use crate::proxy::fixture::{Fixture, request};
use crate::support::wait;

/// A provider of endless streams, how many bytes it could send, and how often its connection was
/// closed.
async fn endless() -> (Provider, Arc<AtomicU64>, Arc<AtomicU64>) {
    let (sent, left) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (sending, leaving) = (Arc::clone(&sent), Arc::clone(&left));
    let provider = Provider::start(move |mut tcp: TcpStream, _| {
        let (sent, left) = (Arc::clone(&sending), Arc::clone(&leaving));
        async move {
            raw::write(&mut tcp, STREAM_HEAD.as_bytes()).await;
            raw::write(&mut tcp, &chunk(&beginning())).await;
            let more = chunk(&text(&"many words ".repeat(2_000)));
            while raw::write(&mut tcp, &more).await {
                sent.fetch_add(more.len() as u64, Ordering::SeqCst);
            }
            left.fetch_add(1, Ordering::SeqCst);
            None
        }
    })
    .await;
    (provider, sent, left)
}

/// A client with a small window that has requested a stream and read nothing yet.
async fn reluctant(fixture: &Fixture) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut tcp = socket.connect(fixture.gateway.proxy_addr().parse().unwrap()).await.unwrap();
    let mut body = request("native", true);
    body["model"] = json!("endless");
    tcp.write_all(&raw::request(&fixture.key, &body)).await.unwrap();
    tcp
}

/// Waits until the provider cannot send any more: nothing for half a second. Returns how much it
/// had sent.
async fn held_up(sent: &AtomicU64) -> u64 {
    let (mut seen, mut since) = (0, Instant::now());
    let sent = || sent.load(Ordering::SeqCst);
    wait::found(
        || format!("the provider is never held up: {} bytes", sent()),
        async || {
            if sent() != seen {
                (seen, since) = (sent(), Instant::now());
            }
            (seen > 0 && since.elapsed() > Duration::from_millis(500)).then_some(seen)
        },
    )
    .await
}

async fn until_left(left: &AtomicU64, times: u64) {
    wait::until(
        || "the provider was not left".to_owned(),
        async || left.load(Ordering::SeqCst) >= times,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_a_byte_now_and_then_holds_up_its_provider_alone() {
    let (provider, sent, left) = endless().await;
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({"priority": 5})).await;
    fixture.gateway.provider("native", &provider.url, json!({"allowed_models": ["endless"]})).await;
    let before = fixture.gateway.memory_mib("VmHWM");
    let mut slow = Vec::new();
    for _ in 0..8 {
        slow.push(reluctant(&fixture).await);
    }
    let bytes = held_up(&sent).await;
    assert!(
        bytes < 8 * (16 << 20),
        "kernel buffers of two connections each, and no more: {bytes} bytes"
    );
    let load = Load::start(&fixture, 4);
    for _ in 0..20 {
        for tcp in &mut slow {
            assert_eq!(tcp.read(&mut [0; 1]).await.unwrap(), 1, "it is still served");
        }
        load.more(10).await;
    }
    let outcome = load.end().await;
    assert_eq!(outcome.failures, Vec::<String>::new());
    // A client that waited for one of the slow ones would wait until all of them are read.
    assert!(outcome.slowest < Duration::from_secs(15), "{:?}", outcome.slowest);
    let after = fixture.gateway.memory_mib("VmHWM");
    assert!(after < before + 64, "the gateway grew from {before} to {after} MiB");
    drop(slow);
    until_left(&left, 8).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_nothing_any_more_is_given_up_and_billed() {
    let (provider, _, left) = endless().await;
    let fixture = Fixture::bare(&[("TOLLGATE_PROXY_REPLY_WRITE_TIMEOUT", "1s")]).await;
    fixture.gateway.provider("native", &provider.url, json!({})).await;
    let silent = reluctant(&fixture).await;
    until_left(&left, 1).await;
    let row = &fixture.gateway.logs(1).await[0];
    assert_eq!(
        (&row["outcome"], &row["estimated"]),
        (&json!("client_aborted"), &json!(true)),
        "{row}"
    );
    assert!(row["outputTokens"].as_u64().unwrap() > 1_000, "{row}");
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_leave_by_the_hundred_give_everything_back_and_are_billed_for_what_came() {
    const LEAVING: usize = 200;
    let fixture = Fixture::bare(&[("SESSION_TTL", "1s")]).await;
    fixture
        .gateway
        .provider("native", &fixture.upstream.url, json!({"limit_concurrent_sessions": LEAVING}))
        .await;
    let full =
        json!({"keyId": fixture.key_id, "limitConcurrentSessions": LEAVING, "name": "default"});
    fixture.gateway.admin("keys/editKey", full).await;
    fixture
        .upstream
        .default(json!({"events": 50, "stall_after": 8, "usage": {"input": 1000, "output": 50}}))
        .await;
    let mut bodies = Vec::new();
    for n in 0..LEAVING {
        let answer = fixture
            .ask_stream()
            .header("x-session-id", format!("leaving-{n}"))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        let mut body = answer.bytes_stream();
        body.next().await.unwrap().unwrap();
        bodies.push(body);
    }
    let one_more = || fixture.ask().header("x-session-id", "one more").send();
    assert_eq!(one_more().await.unwrap().status(), 429, "all places are taken");
    fixture
        .gateway
        .metric_shows("tollgate_streams_in_flight", |streams| streams == LEAVING as f64)
        .await;
    drop(bodies);
    let stats = fixture.upstream.stats(&format!("dropped={LEAVING}")).await;
    assert_eq!(stats["dropped"], LEAVING, "{stats}");
    fixture.gateway.metric_shows("tollgate_requests_in_flight", |running| running == 0.0).await;
    fixture.gateway.metric_shows("tollgate_sessions_live", |live| live == 0.0).await;
    fixture.upstream.default(json!({})).await;
    assert_eq!(one_more().await.unwrap().status(), 200, "the places are free again");
    fixture
        .gateway
        .metric_shows("tollgate_journal_pending_records", |pending| pending == 0.0)
        .await;
    let page = fixture
        .gateway
        .admin("usage-logs/getUsageLogs", json!({"pageSize": 100, "statusCode": 499}))
        .await;
    assert_eq!(page["total"], LEAVING, "{page}");
    for row in page["logs"].as_array().unwrap() {
        assert_eq!(
            (&row["outcome"], &row["estimated"]),
            (&json!("client_aborted"), &json!(true)),
            "{row}"
        );
        assert!(row["inputTokens"] == 1000 && row["costUsd"].as_f64().unwrap() >= 0.001, "{row}");
    }
}
