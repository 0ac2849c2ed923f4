//! Providers that send endlessly, or far too much: bounded memory, and an end with a reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::load::Load;
use super::raw::{self, Provider, STREAM_HEAD, beginning, chunk, text};
use crate::proxy::fixture::{Fixture, path, request};
use crate::support::drip::drip;
use crate::support::wait;

const MIB: usize = 1 << 20;
/// How long a flood may take on a busy machine.
const A_FLOOD: Duration = Duration::from_secs(300);
/// Allowed growth of a gateway while a flood of many times that size passes.
const GROWTH_MIB: u64 = 48;

/// A gateway with one native provider at `url`.
async fn fixture(url: &str, fields: Value) -> Fixture {
    let fixture = Fixture::bare(&[]).await;
    let mut all = json!({"circuit_breaker_failure_threshold": 0, "max_retry_attempts": 1});
    for (name, value) in fields.as_object().unwrap() {
        all[name] = value.clone();
    }
    fixture.gateway.provider("native", url, all).await;
    fixture
}

/// Sends a request in a format and reads `bytes` of the answer, or all of it: status, number of
/// bytes, and the last ones.
async fn read(fixture: &Fixture, format: &str, stream: bool, bytes: usize) -> (u16, usize, String) {
    let asked = fixture.post(path(format, stream), &request(format, stream)).timeout(A_FLOOD);
    let answer = asked.send().await.unwrap();
    let status = answer.status().as_u16();
    let (mut got, mut tail, mut answer) = (0, Vec::new(), answer);
    while got < bytes {
        let Ok(Some(piece)) = answer.chunk().await else { break };
        got += piece.len();
        tail.extend_from_slice(&piece);
        let surplus = tail.len().saturating_sub(4096);
        tail.drain(..surplus);
    }
    (status, got, String::from_utf8_lossy(&tail).into_owned())
}

fn grown(fixture: &Fixture, before: u64) {
    let now = fixture.gateway.memory_mib("VmHWM");
    assert!(now < before + GROWTH_MIB, "the gateway grew from {before} to {now} MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_stream_is_passed_on_in_bounded_memory_until_the_client_has_enough() {
    let gone = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&gone);
    let endless = Provider::start(move |mut tcp: TcpStream, _| {
        let gone = Arc::clone(&counted);
        async move {
            raw::write(&mut tcp, STREAM_HEAD.as_bytes()).await;
            raw::write(&mut tcp, &chunk(&beginning())).await;
            let more = chunk(&text(&"many words ".repeat(1_000)));
            while raw::write(&mut tcp, &more).await {}
            gone.fetch_add(1, Ordering::SeqCst);
            None
        }
    })
    .await;
    let fixture = fixture(&endless.url, json!({})).await;
    let before = fixture.gateway.memory_mib("VmHWM");
    for (n, format) in ["native", "chat-compatible"].into_iter().enumerate() {
        let (status, got, _) = read(&fixture, format, true, 48 * MIB).await;
        assert!(status == 200 && got >= 48 * MIB, "{format}: {status}, {got} bytes");
        wait::until(
            || format!("{format}: the provider did not notice"),
            async || gone.load(Ordering::SeqCst) > n as u64,
        )
        .await;
    }
    grown(&fixture, before);
    for row in fixture.gateway.logs(2).await {
        assert_eq!(
            (&row["outcome"], &row["estimated"]),
            (&json!("client_aborted"), &json!(true)),
            "{row}"
        );
        assert!(row["outputTokens"].as_u64().unwrap() > 1_000_000, "what came is billed: {row}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_giant_line_passes_through_and_is_not_converted() {
    let giant = Provider::start(|mut tcp: TcpStream, _| async move {
        raw::write(&mut tcp, STREAM_HEAD.as_bytes()).await;
        raw::write(&mut tcp, &chunk(&beginning())).await;
        raw::write(
            &mut tcp,
            &chunk("data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\""),
        )
        .await;
        let more = chunk(&"x".repeat(MIB));
        for _ in 0..96 {
            if !raw::write(&mut tcp, &more).await {
                return None;
            }
        }
        None
    })
    .await;
    let fixture = fixture(&giant.url, json!({})).await;
    let before = fixture.gateway.memory_mib("VmHWM");
    let (status, got, tail) = read(&fixture, "native", true, usize::MAX).await;
    assert!(
        status == 200 && got >= 96 * MIB && tail.contains("event: error"),
        "{status}, {got} bytes, {tail}"
    );
    grown(&fixture, before);
    // For conversion an event must be held: up to 32 MiB, and no more.
    let (status, got, tail) = read(&fixture, "chat-compatible", true, usize::MAX).await;
    assert!(
        status == 200 && got < MIB && tail.contains("\"error\"") && !tail.contains("[DONE]"),
        "{got}, {tail}"
    );
    let now = fixture.gateway.memory_mib("VmHWM");
    assert!(now < before + 32 + 80, "the gateway grew from {before} to {now} MiB");
    for row in fixture.gateway.logs(2).await {
        assert_eq!(row["outcome"], "broken_off", "{row}");
        assert!(row["errorMessage"].is_string(), "{row}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_giant_reply_in_one_piece_passes_through_and_is_not_converted() {
    let giant = Provider::start(|mut tcp: TcpStream, _| async move {
        let (begin, end) =
            (r#"{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":""#, r#""}]}"#);
        let length = begin.len() + 96 * MIB + end.len();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{begin}");
        raw::write(&mut tcp, head.as_bytes()).await;
        let more = "x".repeat(MIB).into_bytes();
        for _ in 0..96 {
            if !raw::write(&mut tcp, &more).await {
                return None;
            }
        }
        raw::write(&mut tcp, end.as_bytes()).await.then_some(tcp)
    })
    .await;
    let fixture = fixture(&giant.url, json!({})).await;
    let before = fixture.gateway.memory_mib("VmHWM");
    let (status, got, _) = read(&fixture, "native", false, usize::MAX).await;
    assert!(status == 200 && got > 96 * MIB, "{status}, {got} bytes");
    grown(&fixture, before);
    // For conversion it must be held: up to 32 MiB, and no more.
    let (status, _, text) = read(&fixture, "chat-compatible", false, usize::MAX).await;
    assert!(status == 502 && text.contains("\"error\""), "{status}: {text}");
    let now = fixture.gateway.memory_mib("VmHWM");
    assert!(now < before + 32 + 80, "the gateway grew from {before} to {now} MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_and_giant_heads_are_given_up() {
    let long = format!("HTTP/1.1 200 OK\r\nx-long: {}\r\n\r\n", "x".repeat(8 * MIB));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x-many: y\r\n".repeat(10_000));
    // So many at a time that the next one always arrives before the last is read.
    let early = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".repeat(20_000);
    let error = format!(
        "HTTP/1.1 500 Oh\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{}\r\n",
        MIB,
        "x".repeat(MIB)
    );
    for (name, once, again) in [
        ("one long header", long.clone(), String::new()),
        ("many headers", many, String::new()),
        ("a head without end", "HTTP/1.1 200 OK\r\n".to_owned(), "x-more: y\r\n".to_owned()),
        ("1xx without end", String::new(), early),
        ("an error body without end", error, "10\r\n0123456789abcdef\r\n".to_owned()),
    ] {
        let endless = again.clone();
        let provider = Provider::start(move |mut tcp: TcpStream, _| {
            let (once, again) = (once.clone(), endless.clone());
            async move {
                raw::write(&mut tcp, once.as_bytes()).await;
                if !again.is_empty() {
                    let pause = Duration::from_micros(100);
                    drip(&mut tcp, again.as_bytes(), pause, usize::MAX).await;
                }
                // Until the gateway closes.
                let _ = tcp.read(&mut [0; 1]).await;
                None
            }
        })
        .await;
        let fields = json!({"request_timeout_non_streaming_ms": 1_000, "first_byte_timeout_streaming_ms": 1_000});
        let fixture = fixture(&provider.url, fields).await;
        let (before, began) = (fixture.gateway.memory_mib("VmHWM"), Instant::now());
        for stream in [false, true] {
            let (status, _, text) = read(&fixture, "native", stream, usize::MAX).await;
            assert!(
                status == 502 && text.contains("\"type\":\"error\""),
                "{name}: {status} {text}"
            );
        }
        assert!(began.elapsed() < Duration::from_secs(40), "{name}: {:?}", began.elapsed());
        grown(&fixture, before);
        for row in fixture.gateway.logs(2).await {
            assert_eq!(row["outcome"], "upstream_failed", "{name}: {row}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_stands_still_or_breaks_off_in_its_middle_is_cut_in_time() {
    for stalls in [true, false] {
        let provider = Provider::start(move |mut tcp: TcpStream, _| async move {
            let reply = raw::reply();
            raw::write(&mut tcp, &reply.as_bytes()[..reply.len() - 20]).await;
            if stalls {
                let _ = tcp.read(&mut [0; 1]).await;
            }
            None
        })
        .await;
        let fixture =
            fixture(&provider.url, json!({"request_timeout_non_streaming_ms": 500})).await;
        let began = Instant::now();
        let answer = fixture.ask().send().await.unwrap();
        let whole = answer.status() == 200 && answer.bytes().await.is_ok();
        assert!(
            !whole && began.elapsed() < Duration::from_secs(30),
            "stalls {stalls}: {:?}",
            began.elapsed()
        );
        assert_ne!(fixture.gateway.logs(1).await[0]["outcome"], "completed");
    }
}

/// Three ways to close a connection that the gateway keeps: at once, while it is idle, and when the
/// next request has arrived.
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_the_provider_closes_while_they_are_kept_fail_no_request() {
    let closing = Provider::start(|mut tcp: TcpStream, number| async move {
        if number == 2 {
            // It has read the request, and closes without an answer.
            return None;
        }
        raw::write(&mut tcp, raw::reply().as_bytes()).await;
        match fastrand::u8(..3) {
            0 => None,
            1 => {
                // Sleeps: the connection is idle a moment after the reply, which shows nowhere.
                tokio::time::sleep(Duration::from_millis(2)).await;
                let _ = tcp.shutdown().await;
                None
            }
            _ => Some(tcp),
        }
    })
    .await;
    let fixture = fixture(&closing.url, json!({})).await;
    let load = Load::of_answers(&fixture, 4);
    load.more(300).await;
    let outcome = load.end().await;
    assert_eq!(outcome.failures, Vec::<String>::new());
}

/// As behind a load balancer that restarts: every connection in the pool is dead at once, and each
/// looks alive until it is used.
#[tokio::test(flavor = "multi_thread")]
async fn a_pool_full_of_dead_connections_fails_no_request() {
    const KEPT: usize = 12;
    let all_there = Arc::new(tokio::sync::Barrier::new(KEPT));
    let asked = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asked);
    let provider = Provider::start(move |mut tcp: TcpStream, number| {
        let (all_there, asked) = (Arc::clone(&all_there), Arc::clone(&counted));
        async move {
            if number > 0 {
                // It has read the request, and closes without an answer.
                return None;
            }
            if asked.fetch_add(1, Ordering::SeqCst) < KEPT as u64 {
                all_there.wait().await;
            }
            raw::write(&mut tcp, raw::reply().as_bytes()).await.then_some(tcp)
        }
    })
    .await;
    let fixture = fixture(&provider.url, json!({})).await;
    let together = (0..KEPT).map(|_| tokio::spawn(fixture.ask().send()));
    for answer in together.collect::<Vec<_>>() {
        let answer = answer.await.unwrap().unwrap();
        assert_eq!(answer.status(), 200);
        answer.bytes().await.unwrap();
    }
    let answer = fixture.ask().send().await.unwrap();
    assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
    assert_eq!(asked.load(Ordering::SeqCst), KEPT as u64 + 1);
    let row = &fixture.gateway.logs(KEPT + 1).await[0];
    // One request too many reached the provider, and is recorded; its health is not affected.
    assert_eq!((&row["outcome"], &row["attempts"]), (&json!("completed"), &json!(2)), "{row}");
    let steps: Vec<_> =
        row["decisionChain"].as_array().unwrap().iter().map(|step| step["step"].clone()).collect();
    assert_eq!(steps, ["chosen_for_session", "retried", "succeeded"], "{row}");
}
