//! How connections end, and how their requests do.

use std::time::{Duration, Instant};

use futures_util::SinkExt as _;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::client::{Client, handshake};
use crate::proxy::fixture::Fixture;

/// The next frame is a close with this code.
async fn closed(client: &mut Client, code: u16) {
    let next = client.next().await;
    assert_eq!(next, Err(Some(code)));
}

/// A reply that is held after its first event.
async fn held(fixture: &Fixture, client: &mut Client) {
    fixture.upstream.script(json!([{"hold_after": 5, "events": 10, "text": "a long reply in many parts, of which there are ten"}])).await;
    client.create(json!({"input": "a"})).await;
    client.until("response.created").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_disabled_ends_the_connection_after_the_reply() {
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_KEEPALIVE", "200ms")]).await;
    let (mut busy, mut idle) = (Client::open(&fixture).await, Client::open(&fixture).await);
    held(&fixture, &mut busy).await;
    let edit = json!({"userId": fixture.user_id, "isEnabled": false});
    fixture.gateway.admin("users/editUser", edit).await;
    closed(&mut idle, 1008).await;
    // No further request is taken meanwhile.
    busy.create(json!({"input": "b"})).await;
    fixture.upstream.go_on(1).await;
    busy.until("response.completed").await;
    closed(&mut busy, 1008).await;
    let row = &fixture.gateway.logs(1).await[0];
    assert_eq!(row["statusCode"], 200, "{row}");
    assert_eq!(handshake(&fixture, &fixture.key, &[]).await.err().unwrap().0, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_cancels_its_reply() {
    let fixture = Fixture::native().await;
    for (asked, politely) in [(1, false), (2, true)] {
        let mut client = Client::open(&fixture).await;
        held(&fixture, &mut client).await;
        if politely {
            client.0.close(None).await.unwrap();
        }
        drop(client);
        fixture.upstream.stats(&format!("dropped={asked}")).await;
        let row = &fixture.gateway.logs(asked).await[0];
        assert_eq!(row["outcome"], "client_aborted", "{row}");
        assert!(row["costUsd"].as_f64().unwrap() > 0.0, "{row}");
    }
    fixture.gateway.metric_shows("tollgate_websockets", |open| open == 0.0).await;
    let log = fixture.gateway.log_shows("the client closed the connection; 1 requests").await;
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of = lines.filter(|line| line["endpoint"] == "/v1/responses#websocket");
    let end: Vec<Value> = of.filter(|line| line["status"] == 101).collect();
    assert_eq!(end[0]["key_id"], fixture.key_id, "{end:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_waits_for_replies_and_closes_every_connection() {
    let mut fixture = Fixture::native().await;
    let (mut busy, mut idle) = (Client::open(&fixture).await, Client::open(&fixture).await);
    held(&fixture, &mut busy).await;
    fixture.gateway.signal("TERM");
    closed(&mut idle, 1001).await;
    fixture.upstream.go_on(1).await;
    busy.until("response.completed").await;
    closed(&mut busy, 1001).await;
    assert_eq!(fixture.gateway.exit_code().await, Some(0));
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    assert_eq!(fixture.gateway.logs(1).await[0]["statusCode"], 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_a_crash_cuts_off_is_accounted_for_as_over_http() {
    let mut fixture = Fixture::native().await;
    fixture.upstream.script(json!([{"usage": {"input": 1000, "output": 500}}])).await;
    let mut client = Client::open(&fixture).await;
    client.create(json!({"input": "a"})).await;
    client.reply().await;
    held(&fixture, &mut client).await;
    fixture.gateway.kill();
    while client.next().await.is_ok() {}
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    // What a client has whole is there; of the other one there is nothing, as over HTTP.
    let row = &fixture.gateway.logs(1).await[0];
    assert_eq!(row["costUsd"].as_f64(), Some(0.002), "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_replaced_when_it_is_old() {
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_WEBSOCKET_LIFETIME", "1s")]).await;
    let (mut busy, mut idle) = (Client::open(&fixture).await, Client::open(&fixture).await);
    held(&fixture, &mut busy).await;
    assert_eq!(idle.error().await.1["code"], "websocket_connection_limit_reached");
    closed(&mut idle, 1000).await;
    fixture.upstream.go_on(1).await;
    busy.until("response.completed").await;
    assert_eq!(busy.error().await.1["code"], "websocket_connection_limit_reached");
    closed(&mut busy, 1000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_go_both_ways_and_a_silent_peer_is_dropped() {
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_KEEPALIVE", "250ms")]).await;
    let (mut lively, silent) = (Client::open(&fixture).await, Client::open(&fixture).await);
    lively.0.send(Message::Ping("x".into())).await.unwrap();
    let began = Instant::now();
    let mut open = 2.0;
    while open > 1.0 {
        // Its library answers pings while it reads.
        let read = tokio::time::timeout(Duration::from_millis(100), lively.next()).await;
        assert!(read.is_err(), "{read:?}");
        open = fixture.gateway.metric("tollgate_websockets").await;
        assert!(began.elapsed() < Duration::from_secs(30));
    }
    lively.create(json!({"input": "a"})).await;
    lively.reply().await;
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn handshakes_are_refused_as_they_should_be() {
    let fixture = Fixture::native().await;
    let mut get = fixture.gateway.client.get(format!("{}/v1/responses", fixture.gateway.proxy));
    get = get
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .bearer_auth(&fixture.key);
    let key = "dGhlIHNhbXBsZSBub25jZQ==";
    for (version, key, status) in [("8", key, 426), ("13", "short", 400), ("13", "", 400)] {
        let get = get.try_clone().unwrap().header("sec-websocket-version", version);
        let answer = get.header("sec-websocket-key", key).send().await.unwrap();
        assert_eq!(answer.status(), status, "{version} {key}");
        if status == 426 {
            assert_eq!(answer.headers()["sec-websocket-version"], "13");
        }
    }
    let off = Fixture::native_with(&[("TOLLGATE_PROXY_WEBSOCKETS", "false")]).await;
    assert_eq!(handshake(&off, &off.key, &[]).await.err().unwrap().0, 426);
}
