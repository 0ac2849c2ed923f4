//! Streams: relayed as they arrive, held until their first meaningful event, ended correctly.

use futures_util::StreamExt;
use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, request};

#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_as_they_are_sent() {
    let fixture = Fixture::native().await;
    fixture.upstream.default(json!({"events": 5, "hold_after": 4})).await;
    let mut body = fixture.ask_stream().send().await.unwrap().bytes_stream();
    let mut got = String::new();
    // The provider waits for the test: these cannot come with what follows.
    while !got.contains("event: content_block_delta") {
        got.push_str(std::str::from_utf8(&body.next().await.unwrap().unwrap()).unwrap());
    }
    assert!(!got.contains("message_stop"), "{got}");
    fixture.upstream.go_on(1).await;
    while let Some(piece) = body.next().await {
        got.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
    }
    assert!(got.contains("message_stop"), "{got}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_off_ends_with_an_error_event() {
    let fixture = Fixture::full().await;
    let terminators = [
        ("native", "message_stop"),
        ("responses", "response.completed"),
        ("chat-compatible", "[DONE]"),
    ];
    for directive in [
        json!({"events": 6, "cut_after": 4, "hold_after": 4}),
        json!({"events": 6, "error_after": 4, "hold_after": 4}),
    ] {
        fixture.upstream.default(directive.clone()).await;
        for format in FORMATS {
            let answer =
                fixture.post(path(format, true), &request(format, true)).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{format} {directive}");
            // The client has the beginning.
            fixture.upstream.go_on(1).await;
            let text = answer.text().await.unwrap_or_else(|e| panic!("{format} {directive}: {e}"));
            assert!(text.contains("error"), "{format} {directive}: {text}");
            for (_, end) in terminators.iter().filter(|(f, _)| *f == format) {
                assert!(
                    !text.contains(end),
                    "{format} {directive} ends as if it were whole: {text}"
                );
            }
        }
    }
    let rows = fixture.gateway.logs(8).await;
    assert!(rows.iter().all(|r| r["outcome"] == "broken_off"), "{rows:?}");
}

/// The last events continue the numbers of those before them, and name the same response.
#[tokio::test(flavor = "multi_thread")]
async fn a_responses_stream_that_breaks_off_ends_as_the_service_ends_it() {
    let fixture = Fixture::full().await;
    fixture.upstream.default(json!({"events": 6, "cut_after": 4, "hold_after": 4})).await;
    let answer =
        fixture.post(path("responses", true), &request("responses", true)).send().await.unwrap();
    fixture.upstream.go_on(1).await;
    let text = answer.text().await.unwrap();
    let events: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let numbers: Vec<_> = events.iter().map(|event| event["sequence_number"].clone()).collect();
    assert_eq!(numbers, (0..events.len()).map(Value::from).collect::<Vec<_>>(), "{text}");
    let kinds = |n: usize| events[events.len() - n]["type"].clone();
    assert_eq!((kinds(2), kinds(1)), (json!("error"), json!("response.failed")), "{text}");
    assert_eq!(events[events.len() - 1]["response"]["id"], events[0]["response"]["id"], "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_stands_still_is_given_up() {
    let fixture = Fixture::bare(&[]).await;
    let fields = json!({"streaming_idle_timeout_ms": 300, "first_byte_timeout_streaming_ms": 5000});
    fixture.gateway.provider("native", &fixture.upstream.url, fields).await;
    fixture.upstream.default(json!({"events": 6, "stall_after": 3})).await;
    // Without that bound it would end at the client's own, with an error.
    let text = fixture.ask_stream().send().await.unwrap().text().await.unwrap();
    assert!(text.contains("event: error") && !text.contains("message_stop"), "{text}");
    assert_eq!(fixture.gateway.logs(1).await[0]["outcome"], "broken_off");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_stops_the_upstream_and_is_billed_for_what_came() {
    let fixture = Fixture::native().await;
    let usage = json!({"input": 1000, "output": 50});
    fixture.upstream.default(json!({"events": 50, "stall_after": 5, "usage": usage})).await;
    let mut body = fixture.ask_stream().send().await.unwrap().bytes_stream();
    body.next().await.unwrap().unwrap();
    drop(body);
    fixture.upstream.stats("dropped=1").await;
    let row = &fixture.gateway.logs(1).await[0];
    assert_eq!(
        (&row["outcome"], &row["statusCode"]),
        (&json!("client_aborted"), &json!(499)),
        "{row}"
    );
    assert_eq!((&row["inputTokens"], &row["estimated"]), (&json!(1000), &json!(true)), "{row}");
    assert!(row["costUsd"].as_f64().unwrap() >= 0.001, "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_before_the_first_byte_stops_the_upstream() {
    let fixture = Fixture::native().await;
    fixture.upstream.default(json!({"delay_ms": 600_000})).await;
    let asking = tokio::spawn(fixture.ask().send());
    fixture.upstream.stats("started=1").await;
    asking.abort();
    fixture.upstream.stats("dropped=1").await;
    let row = &fixture.gateway.logs(1).await[0];
    assert_eq!(
        (&row["outcome"], &row["estimated"]),
        (&json!("client_aborted"), &json!(true)),
        "{row}"
    );
    // The provider had the complete request: its input is billed, by an estimate.
    assert!(
        row["inputTokens"].as_u64().unwrap() > 0 && row["costUsd"].as_f64().unwrap() > 0.0,
        "{row}"
    );
}
