//! The end of HTTP/2 connections at a stop, on the wire. Requests from before the client read the
//! GOAWAY are answered, later ones are reported as unprocessed, and the client can read both.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::frames::{ACK, ANY_STREAM, Frame, HEADERS, PING, UNKNOWN, Wire};
use super::raw::{self, Provider, STREAM_HEAD, beginning, chunk};
use crate::proxy::fixture::{Fixture, request};

/// More than the kernels buffer between a client and the gateway, in frames.
const MUCH: usize = 1024;
/// The rest of a native stream.
const END: &str = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

/// A provider whose streams begin at once; this many of the first end, as the test permits.
async fn held(let_go: watch::Receiver<usize>) -> Provider {
    let came = Arc::new(AtomicUsize::new(0));
    Provider::start(move |mut tcp: TcpStream, _| {
        let (number, mut let_go) = (came.fetch_add(1, Ordering::SeqCst), let_go.clone());
        async move {
            raw::write(&mut tcp, STREAM_HEAD.as_bytes()).await;
            raw::write(&mut tcp, &chunk(&beginning())).await;
            let_go.wait_for(|many| *many > number).await.unwrap();
            raw::write(&mut tcp, &chunk(END)).await;
            raw::write(&mut tcp, &chunk("")).await.then_some(tcp)
        }
    })
    .await
}

/// The ping that checks whether the client has read the GOAWAY.
async fn ping_after_goaway(wire: &mut Wire) -> Frame {
    let first = wire.until(|f| f.last_stream().is_some()).await;
    assert_eq!(first.last_stream(), Some(ANY_STREAM), "nothing is refused yet");
    wire.until(|f| f.kind == PING && f.flags & ACK == 0).await
}

/// Answers the ping; returns the last stream that is processed.
async fn answer_ping(wire: &mut Wire, ping: &Frame) -> Option<u32> {
    wire.send(PING, ACK, 0, &ping.payload).await;
    wire.until(|f| f.last_stream().is_some()).await.last_stream()
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_requests_at_a_stop_are_answered_or_marked_safe_to_repeat() {
    let (let_go, held_back) = watch::channel(0);
    let provider = held(held_back).await;
    let mut fixture = Fixture::bare(&[("TOLLGATE_PROXY_H2C", "true")]).await;
    fixture.gateway.provider("native", &provider.url, json!({})).await;
    let (addr, body) = (fixture.gateway.proxy_addr().to_owned(), request("native", true));
    let mut busy = Wire::connect(&addr).await;
    busy.begin().await;
    for stream in [1, 3, 5] {
        busy.ask(stream, &fixture.key, &body).await;
        busy.until(|f| f.kind == HEADERS && f.stream == stream).await;
    }
    // Accepted, and silent.
    let mut fresh = Wire::connect(&addr).await;
    fixture.gateway.metric_shows("tollgate_connections", |open| open >= 2.0).await;
    fixture.gateway.signal("TERM");
    let ping = ping_after_goaway(&mut busy).await;
    // A request that the client sends before it reads the GOAWAY is like any other; so is the first
    // on a connection that was silent so far.
    busy.ask(7, &fixture.key, &body).await;
    busy.until(|f| f.kind == HEADERS && f.stream == 7).await;
    fresh.begin().await;
    fresh.ask(1, &fixture.key, &body).await;
    let fresh_ping = ping_after_goaway(&mut fresh).await;
    assert_eq!(
        (answer_ping(&mut busy, &ping).await, answer_ping(&mut fresh, &fresh_ping).await),
        (Some(7), Some(1))
    );
    busy.ask(9, &fixture.key, &body).await;
    let_go.send_replace(4);
    for _ in 0..4 {
        busy.until(Frame::is_end).await;
    }
    // With the last reply the gateway has sent everything, while the client does not know that yet
    // and continues to send.
    for _ in 0..MUCH {
        busy.send(UNKNOWN, 0, 0, &[0; 16 << 10]).await;
    }
    busy.rest().await;
    let_go.send_replace(5);
    fresh.rest().await;
    for (wire, streams) in [(&busy, &[1, 3, 5, 7][..]), (&fresh, &[1])] {
        for stream in streams {
            let reply = wire
                .reply(*stream)
                .unwrap_or_else(|| panic!("{stream} is not whole: {:?}", wire.came));
            assert!(reply.ends_with(END), "{stream}: {reply}");
        }
    }
    assert!(!busy.is_touched(9), "what came later was not looked at");
    drop((busy, fresh));
    fixture.gateway.ended().await;
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    let rows = fixture.gateway.logs(5).await;
    assert!(rows.iter().all(|row| row["outcome"] == "completed"), "{rows:?}");
}
