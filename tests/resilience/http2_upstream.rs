//! Providers that speak HTTP/2: how streams and connections end, and what that means for requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::frames::PING;
use super::http2_provider::{self, Connection, EVENTS, OK, RST_STREAM};
use super::raw;
use crate::proxy::fixture::Fixture;

const REFUSED_STREAM: [u8; 4] = [0, 0, 0, 7];
const INTERNAL_ERROR: [u8; 4] = [0, 0, 0, 2];

async fn fixture(url: &str) -> Fixture {
    let env = http2_provider::trusted();
    let env = env.each_ref().map(|(name, file)| (*name, file.as_str()));
    let fixture = Fixture::bare(&env).await;
    let fields = json!({"max_retry_attempts": 1, "circuit_breaker_failure_threshold": 0});
    fixture.gateway.provider("native", url, fields).await;
    fixture
}

fn reply() -> String {
    raw::reply().split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn stream_head() -> Vec<u8> {
    [OK, EVENTS].concat()
}

fn rest_of_stream() -> String {
    let stop = r#"{"type":"content_block_stop","index":0}"#;
    let delta = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}"#;
    format!(
        "event: content_block_stop\ndata: {stop}\n\nevent: message_delta\ndata: {delta}\n\n\
         event: message_stop\ndata: {{\"type\":\"message_stop\"}}\n\n"
    )
}

/// The steps of the last request's decision chain.
async fn steps(fixture: &Fixture, requests: usize) -> Vec<String> {
    let row = fixture.gateway.logs(requests).await.swap_remove(0);
    let chain = row["decisionChain"].as_array().unwrap();
    chain.iter().map(|step| step["step"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_share_one_connection_and_large_bodies_arrive_whole() {
    let (connections, bytes) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, summed) = (Arc::clone(&connections), Arc::clone(&bytes));
    let url = http2_provider::provider(move |mut http2: Connection, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        let summed = Arc::clone(&summed);
        async move {
            while let Some((stream, length)) = http2.request().await {
                summed.fetch_add(length, Ordering::SeqCst);
                http2.answer(stream, OK, &reply(), true).await;
            }
        }
    })
    .await;
    let fixture = fixture(&url).await;
    let mut body = crate::proxy::fixture::request("native", false);
    body["messages"][0]["content"] = json!("x".repeat(3 << 20));
    let mut sent = 0;
    for body in [crate::proxy::fixture::request("native", false), body] {
        sent += body.to_string().len();
        let answer = fixture.post("/v1/messages", &body).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.text().await.unwrap()), (200, reply()));
    }
    assert_eq!(bytes.load(Ordering::SeqCst), sent);
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    assert!(fixture.gateway.logs(2).await.iter().all(|row| row["outcome"] == "completed"));
}

/// The provider says that it has not begun with the request: it is sent again, and that is no
/// attempt.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_was_not_begun_is_sent_again() {
    for how in ["goaway", "refused"] {
        let url = http2_provider::provider(move |mut http2: Connection, number| async move {
            let Some((stream, _)) = http2.request().await else { return };
            match (number, how) {
                (0, "goaway") => http2.goaway(0).await,
                (0, _) => http2.send(RST_STREAM, 0, stream, &REFUSED_STREAM).await,
                _ => http2.answer(stream, OK, &reply(), true).await,
            }
            while http2.request().await.is_some() {}
        })
        .await;
        let fixture = fixture(&url).await;
        let answer = fixture.ask().send().await.unwrap();
        assert_eq!(answer.status(), 200, "{how}");
        assert_eq!(steps(&fixture, 1).await, ["chosen", "retried", "succeeded"], "{how}");
    }
}

/// A provider that announces its end finishes what it has begun; the next request needs another
/// connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_goaway_ends_no_stream_that_it_admits() {
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    let url = http2_provider::provider(move |mut http2: Connection, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let Some((stream, _)) = http2.request().await else { return };
            http2.answer(stream, &stream_head(), &raw::beginning(), false).await;
            http2.goaway(stream).await;
            // It answers a ping after it has read what came before.
            http2.send(PING, 0, 0, &[0; 8]).await;
            assert!(http2.until(PING).await.is_some(), "the connection stays open");
            http2.data(stream, &rest_of_stream(), true).await;
            while http2.request().await.is_some() {}
        }
    })
    .await;
    let fixture = fixture(&url).await;
    for _ in 0..2 {
        let answer = fixture.ask_stream().send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let text = answer.text().await.unwrap();
        assert!(text.contains("hello") && text.contains("message_stop"), "{text}");
    }
    assert_eq!(connections.load(Ordering::SeqCst), 2);
    assert!(fixture.gateway.logs(2).await.iter().all(|row| row["outcome"] == "completed"));
}

/// Within a reply: the client gets an error event, and what had come is billed.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_reset_in_its_middle_has_broken_off() {
    for how in ["reset", "end", "connection"] {
        let url = http2_provider::provider(move |mut http2: Connection, _| async move {
            let Some((stream, _)) = http2.request().await else { return };
            http2.answer(stream, &stream_head(), &raw::beginning(), false).await;
            match how {
                "reset" => http2.send(RST_STREAM, 0, stream, &INTERNAL_ERROR).await,
                "end" => http2.data(stream, "", true).await,
                _ => {
                    // A connection that is closed before all of it is read loses what was written.
                    http2.send(PING, 0, 0, &[0; 8]).await;
                    let _acknowledged = http2.until(PING).await;
                    return;
                }
            }
            while http2.request().await.is_some() {}
        })
        .await;
        let fixture = fixture(&url).await;
        let text = fixture.ask_stream().send().await.unwrap().text().await.unwrap();
        assert!(text.contains("hello") && text.contains("event: error"), "{how}: {text}");
        let row = &fixture.gateway.logs(1).await[0];
        assert_eq!((&row["outcome"], &row["estimated"]), (&json!("broken_off"), &json!(true)));
        assert!(row["costUsd"].as_str().is_some_and(|cost| cost != "0") || row["costUsd"] != 0);
    }
}

/// The provider learns of it at once, and the connection serves the next request.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_resets_its_stream_only() {
    let (resets, mut reset) = tokio::sync::mpsc::unbounded_channel();
    let url = http2_provider::provider(move |mut http2: Connection, number| {
        let resets = resets.clone();
        async move {
            while let Some((stream, _)) = http2.request().await {
                if stream > 1 {
                    http2.answer(stream, OK, &reply(), true).await;
                    continue;
                }
                http2.answer(stream, &stream_head(), &raw::beginning(), false).await;
                let (_, _, stream, code) = http2.until(RST_STREAM).await.unwrap();
                let _ = resets.send((number, stream, code));
            }
        }
    })
    .await;
    let fixture = fixture(&url).await;
    let mut answer = fixture.ask_stream().send().await.unwrap();
    assert!(answer.chunk().await.unwrap().is_some());
    drop(answer);
    let given_up = tokio::time::timeout(std::time::Duration::from_secs(30), reset.recv()).await;
    // CANCEL
    assert_eq!(given_up.expect("the provider works on"), Some((0, 1, vec![0, 0, 0, 8])));
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    assert_eq!(fixture.gateway.logs(2).await[1]["outcome"], "client_aborted");
}
