//! Streams: as they come, held until their first meaningful event, ended honestly.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::json;

use super::stage::{FORMATS, Stage, path, request};

#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_as_they_are_sent() {
    let stage = Stage::native().await;
    stage.upstream.default(json!({"events": 5, "between_events_ms": 200})).await;
    let mut body = stage.ask_stream().send().await.unwrap().bytes_stream();
    let (began, mut first) = (Instant::now(), None);
    while let Some(piece) = body.next().await {
        piece.unwrap();
        first.get_or_insert(began.elapsed());
    }
    let (first, last) = (first.unwrap(), began.elapsed());
    assert!(first + Duration::from_millis(500) < last, "the first event came at {first:?}, the last at {last:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_off_ends_with_an_error_event() {
    let stage = Stage::full().await;
    let terminators = [("native", "message_stop"), ("responses", "response.completed"), ("chat-compatible", "[DONE]")];
    for directive in [
        json!({"events": 6, "cut_after": 4, "between_events_ms": 10}),
        json!({"events": 6, "error_after": 4, "between_events_ms": 10}),
    ] {
        stage.upstream.default(directive.clone()).await;
        for format in FORMATS {
            let answer = stage.post(path(format, true), &request(format, true)).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{format} {directive}");
            let text = answer.text().await.unwrap_or_else(|e| panic!("{format} {directive}: {e}"));
            assert!(text.contains("error"), "{format} {directive}: {text}");
            for (_, end) in terminators.iter().filter(|(f, _)| *f == format) {
                assert!(!text.contains(end), "{format} {directive} ends as if it were whole: {text}");
            }
        }
    }
    let rows = stage.gateway.logs(8).await;
    assert!(rows.iter().all(|r| r["outcome"] == "broken_off"), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_stands_still_is_given_up_even_behind_pings() {
    let stage = Stage::bare(&[]).await;
    let fields = json!({"streaming_idle_timeout_ms": 300, "first_byte_timeout_streaming_ms": 5000});
    stage.gateway.provider("native", &stage.upstream.url, fields).await;
    stage.upstream.default(json!({"events": 6, "stall_after": 3})).await;
    let began = Instant::now();
    let text = stage.ask_stream().send().await.unwrap().text().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(text.contains("event: error") && !text.contains("message_stop"), "{text}");
    assert_eq!(stage.gateway.logs(1).await[0]["outcome"], "broken_off");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_stops_the_upstream_and_is_billed_for_what_came() {
    let stage = Stage::native().await;
    let usage = json!({"input": 1000, "output": 50});
    stage.upstream.default(json!({"events": 50, "stall_after": 5, "usage": usage})).await;
    let mut body = stage.ask_stream().send().await.unwrap().bytes_stream();
    body.next().await.unwrap().unwrap();
    drop(body);
    let stats = stage.upstream.stats("dropped=1&timeout_ms=5000").await;
    assert_eq!(stats["dropped"], 1, "{stats}");
    let row = &stage.gateway.logs(1).await[0];
    assert_eq!((&row["outcome"], &row["statusCode"]), (&json!("client_aborted"), &json!(499)), "{row}");
    assert_eq!((&row["inputTokens"], &row["estimated"]), (&json!(1000), &json!(true)), "{row}");
    assert!(row["costUsd"].as_f64().unwrap() >= 0.001, "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_before_the_first_byte_stops_the_upstream() {
    let stage = Stage::native().await;
    stage.upstream.default(json!({"delay_ms": 30_000})).await;
    let asked = tokio::time::timeout(Duration::from_millis(300), stage.ask().send()).await;
    assert!(asked.is_err(), "the reply is late");
    let stats = stage.upstream.stats("dropped=1&timeout_ms=5000").await;
    assert_eq!(stats["dropped"], 1, "{stats}");
    let row = &stage.gateway.logs(1).await[0];
    assert_eq!((&row["outcome"], &row["costUsd"]), (&json!("client_aborted"), &json!(0)), "nothing came: {row}");
}
