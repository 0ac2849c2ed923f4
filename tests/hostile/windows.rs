//! Flow control as an attack: windows that are never opened, or by one byte at a time, and data
//! beyond the gateway's own window.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::attack::{
    Attack, DATA, END_HEADERS, Ended, FLOW_CONTROL_ERROR, HEADERS, RST_STREAM, WINDOW_UPDATE,
    connect, fixture, frame, pour, request_fields,
};
use crate::proxy::fixture::{Fixture, request};
use crate::resilience::raw::{self, Provider, STREAM_HEAD, beginning, chunk, text};
use crate::support::drip::drip;
use crate::support::wait;

/// SETTINGS_INITIAL_WINDOW_SIZE: 0.
const NO_WINDOW: [u8; 6] = [0, 4, 0, 0, 0, 0];
const STREAMS: u32 = 50;

/// A provider of endless streams, and how often its connection was closed.
async fn endless() -> (Provider, Arc<AtomicU64>) {
    let left = Arc::new(AtomicU64::new(0));
    let leaving = Arc::clone(&left);
    let provider = Provider::start(move |mut tcp: TcpStream, _| {
        let left = Arc::clone(&leaving);
        async move {
            raw::write(&mut tcp, STREAM_HEAD.as_bytes()).await;
            raw::write(&mut tcp, &chunk(&beginning())).await;
            let more = chunk(&text(&"many words ".repeat(2_000)));
            while raw::write(&mut tcp, &more).await {}
            left.fetch_add(1, Ordering::SeqCst);
            None
        }
    })
    .await;
    (provider, left)
}

/// Requests for streams whose reader is slow.
fn requests(fixture: &Fixture) -> Vec<u8> {
    let body = request("native", true).to_string();
    let one = |n: u32| {
        let head = frame(HEADERS, END_HEADERS, n * 2 + 1, &request_fields(&fixture.key));
        [head, frame(DATA, 1, n * 2 + 1, body.as_bytes())].concat()
    };
    (0..STREAMS).flat_map(one).collect()
}

/// Every provider connection is closed within the bound, and its reply is billed.
async fn given_up(fixture: &Fixture, left: &AtomicU64) {
    let left = || left.load(Ordering::SeqCst);
    let all = async || (left() >= u64::from(STREAMS)).then_some(());
    let found = wait::within(Duration::from_secs(90), all).await;
    assert!(found.is_some(), "{} providers were left", left());
    for row in fixture.gateway.logs(STREAMS as usize).await {
        assert_eq!(
            (&row["outcome"], &row["estimated"]),
            (&json!("client_aborted"), &json!(true)),
            "{row}"
        );
    }
    fixture.gateway.metric_shows("tollgate_requests_in_flight", |running| running == 0.0).await;
}

async fn slow_fixture() -> (Fixture, Provider, Arc<AtomicU64>) {
    let (provider, left) = endless().await;
    let env = [("TOLLGATE_PROXY_H2C", "true"), ("TOLLGATE_PROXY_REPLY_WRITE_TIMEOUT", "2s")];
    let fixture = Fixture::bare(&env).await;
    fixture.gateway.provider("native", &provider.url, json!({})).await;
    (fixture, provider, left)
}

/// Asks a provider that answers, so that the attack's end can be checked.
async fn end(attack: Attack, fixture: &Fixture, provider_id: i64) {
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    fixture
        .gateway
        .admin("providers/editProvider", json!({"providerId": provider_id, "is_enabled": false}))
        .await;
    attack.end(fixture, STREAMS as usize, 64).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_to_a_window_that_is_never_opened_are_given_up_and_billed() {
    let (fixture, _provider, left) = slow_fixture().await;
    let id =
        fixture.gateway.admin("providers/getProviders", json!({})).await[0]["id"].as_i64().unwrap();
    let attack = Attack::begin(&fixture, "windows that are never opened");
    let mut tcp = connect(&fixture, &NO_WINDOW).await;
    tcp.write_all(&requests(&fixture)).await.unwrap();
    given_up(&fixture, &left).await;
    end(attack, &fixture, id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_to_a_window_of_single_bytes_are_given_up_and_billed() {
    let (fixture, _provider, left) = slow_fixture().await;
    let id =
        fixture.gateway.admin("providers/getProviders", json!({})).await[0]["id"].as_i64().unwrap();
    let attack = Attack::begin(&fixture, "windows of single bytes");
    let (mut reading, mut writing) = connect(&fixture, &NO_WINDOW).await.into_split();
    writing.write_all(&requests(&fixture)).await.unwrap();
    let reading =
        tokio::spawn(async move { tokio::io::copy(&mut reading, &mut tokio::io::sink()).await });
    let opening = tokio::spawn(async move {
        let open = |n: u32| frame(WINDOW_UPDATE, 0, n * 2 + 1, &1_u32.to_be_bytes());
        let all: Vec<u8> = (0..STREAMS).flat_map(open).collect();
        drip(&mut writing, &all, Duration::from_millis(100), usize::MAX).await;
    });
    given_up(&fixture, &left).await;
    opening.abort();
    reading.abort();
    end(attack, &fixture, id).await;
}

/// More data than the gateway's window allows is an error of the client.
#[tokio::test(flavor = "multi_thread")]
async fn data_beyond_the_gateways_window_is_an_error() {
    let fixture = fixture(&[]).await;
    let attack = Attack::begin(&fixture, "DATA beyond the window");
    let mut refused = 0;
    for _ in 0..10 {
        let mut tcp = connect(&fixture, &[]).await;
        let head = frame(HEADERS, END_HEADERS, 1, &request_fields(&fixture.key));
        let flood = [head, frame(DATA, 0, 1, &[b' '; 16_384]).repeat(512)].concat();
        pour(&mut tcp, std::iter::once(flood)).await;
        // The client has sent everything.
        let _ = tcp.shutdown().await;
        let ended = Ended::of(&mut tcp).await;
        let reset = ended.frames.iter().any(|(kind, .., why)| *kind == RST_STREAM && why[3] == 3);
        refused += usize::from(reset || ended.goaway() == Some(FLOW_CONTROL_ERROR));
    }
    // If a reset overtakes it, the error is not read.
    assert!(refused > 0, "none of them was refused");
    assert!(fixture.upstream.requests().await.is_empty());
    attack.end(&fixture, 10, 48).await;
}
