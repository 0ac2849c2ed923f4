//! SIGTERM and Ctrl-C with live streams: they complete, nothing is lost, and the process exits
//! without delay.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::json;

use crate::proxy::fixture::{Fixture, request};

/// The grace of these gateways is 20 seconds: a stop that waited for it would take longer than
/// this, however slow the machine.
const WELL_BELOW_THE_GRACE: Duration = Duration::from_secs(15);
/// Concurrent streams.
const STREAMS: usize = 20;

/// Streams that have begun, each read to its end by a task that returns its text.
async fn streams(
    ask: reqwest::RequestBuilder,
) -> Vec<tokio::task::JoinHandle<Result<String, reqwest::Error>>> {
    let mut reading = Vec::new();
    for n in 0..STREAMS {
        let ask = ask.try_clone().unwrap().header("x-session-id", format!("s{n}"));
        let answer = ask.send().await.unwrap();
        let mut body = answer.bytes_stream();
        let first = body.next().await.unwrap().unwrap();
        reading.push(tokio::spawn(async move {
            let mut text = String::from_utf8(first.to_vec()).unwrap();
            while let Some(piece) = body.next().await {
                text.push_str(&String::from_utf8_lossy(&piece?));
            }
            Ok(text)
        }));
    }
    reading
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_and_ctrl_c_let_live_streams_end_and_then_do_not_wait() {
    for (signal, http2) in [("TERM", false), ("INT", false), ("TERM", true)] {
        let mut fixture =
            Fixture::bare(if http2 { &[("TOLLGATE_PROXY_H2C", "true")] } else { &[] }).await;
        fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
        let ask = if http2 {
            // All streams on one connection.
            let client =
                reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
            let post = client.post(format!("{}/v1/messages", fixture.gateway.proxy));
            post.header("x-api-key", &fixture.key).json(&request("native", true))
        } else {
            fixture.ask_stream()
        };
        fixture.upstream.default(json!({"events": 6, "hold_after": 4})).await;
        let reading = streams(ask).await;
        fixture.gateway.signal(signal);
        // No longer ready, while it still answers requests in flight.
        fixture
            .gateway
            .readiness_shows(|ready, parts| !ready && parts["process"] == "is stopping")
            .await;
        fixture.upstream.go_on(STREAMS).await;
        let mut last = Instant::now();
        for stream in reading {
            let text = stream.await.unwrap().unwrap();
            assert!(
                text.contains("message_stop") && !text.contains("event: error"),
                "{signal}: {text}"
            );
            last = Instant::now();
        }
        fixture.gateway.ended().await;
        assert!(
            last.elapsed() < WELL_BELOW_THE_GRACE,
            "{signal}, HTTP/2 {http2}: it took {:?} to leave",
            last.elapsed()
        );
        fixture.gateway.spawn();
        fixture.gateway.ready().await;
        let rows = fixture.gateway.logs(STREAMS).await;
        assert!(rows.iter().all(|row| row["outcome"] == "completed"), "{signal}: {rows:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_ctrl_c_ends_it_at_once_and_what_was_recorded_stays() {
    let mut fixture = Fixture::native().await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    fixture.upstream.default(json!({"events": 6, "stall_after": 3})).await;
    let reading = streams(fixture.ask_stream()).await;
    fixture.gateway.signal("INT");
    fixture
        .gateway
        .readiness_shows(|ready, parts| !ready && parts["process"] == "is stopping")
        .await;
    fixture.gateway.signal("INT");
    let took = fixture.gateway.ended().await;
    assert!(took < WELL_BELOW_THE_GRACE, "{took:?}");
    for stream in reading {
        let cut = stream.await.unwrap();
        assert!(cut.is_err(), "a cut stream must not look whole: {cut:?}");
    }
    fixture.gateway.log_shows("stopped at once").await;
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    assert_eq!(fixture.gateway.logs(1).await[0]["outcome"], "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_takes_too_long_cuts_what_still_runs_and_records_it() {
    let mut fixture = Fixture::bare(&[("TOLLGATE_SHUTDOWN_GRACE", "1s")]).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    fixture
        .upstream
        .default(json!({"events": 6, "stall_after": 3, "usage": {"input": 1000, "output": 5}}))
        .await;
    let reading = streams(fixture.ask_stream()).await;
    fixture.gateway.signal("TERM");
    for stream in reading {
        assert!(stream.await.unwrap().is_err(), "cut at the end of the grace");
    }
    fixture.gateway.ended().await;
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    let rows = fixture.gateway.logs(STREAMS).await;
    assert!(rows.iter().all(|row| row["outcome"] == "internal"), "{rows:?}");
    let cut = "the request was cut off inside the gateway";
    assert!(rows.iter().all(|row| row["errorMessage"] == cut), "{rows:?}");
}
