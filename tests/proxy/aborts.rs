//! Clients that close before their reply is complete: nothing that a provider did is free.

use futures_util::StreamExt;
use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, request};

const DRAIN: (&str, &str) = ("TOLLGATE_PROXY_ABORT", "drain");

/// A fixture with one provider per format, each for clients of the same format.
async fn fixture(env: &[(&str, &str)]) -> Fixture {
    let fixture = Fixture::bare(env).await;
    for kind in FORMATS {
        fixture.gateway.provider(kind, &fixture.upstream.url, json!({})).await;
    }
    fixture
}

/// Sends a request in a format and closes once the provider has it.
async fn leave_before_the_first_byte(fixture: &Fixture, format: &str, stream: bool, nth: usize) {
    let asking = tokio::spawn(fixture.post(path(format, stream), &request(format, stream)).send());
    fixture.upstream.stats(&format!("started={nth}")).await;
    asking.abort();
}

fn billed(row: &Value) -> (u64, u64, bool, bool) {
    let tokens = |name: &str| row[name].as_u64().unwrap();
    let paid = row["costUsd"].as_f64().unwrap() > 0.0;
    (tokens("inputTokens"), tokens("outputTokens"), row["estimated"].as_bool().unwrap(), paid)
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_before_the_first_byte_costs_the_input_in_every_format() {
    let fixture = fixture(&[]).await;
    fixture.upstream.default(json!({"delay_ms": 600_000})).await;
    let mut asked = 0;
    for format in FORMATS {
        for stream in [false, true] {
            asked += 1;
            leave_before_the_first_byte(&fixture, format, stream, asked).await;
            let row = &fixture.gateway.logs(asked).await[0];
            let (input, output, estimated, paid) = billed(row);
            assert!(input > 0 && output == 0 && estimated && paid, "{format} {stream}: {row}");
            assert_eq!(
                (&row["outcome"], &row["statusCode"]),
                (&json!("client_aborted"), &json!(499)),
                "{row}"
            );
        }
    }
    fixture.upstream.stats(&format!("dropped={asked}")).await;
    let usage =
        fixture.gateway.admin("keys/getKeyLimitUsage", json!({"keyId": fixture.key_id})).await;
    assert!(usage["costTotal"]["current"].as_f64().unwrap() > 0.0, "the limits move: {usage}");
    assert_eq!(fixture.gateway.metric("tollgate_aborted_exchanges_total").await, asked as f64);
}

#[tokio::test(flavor = "multi_thread")]
async fn drained_replies_are_billed_exactly_in_every_format() {
    let fixture = fixture(&[DRAIN]).await;
    let usage = json!({"input": 1000, "output": 500, "reasoning": 400});
    let mut asked = 0;
    for format in FORMATS {
        for stream in [false, true] {
            asked += 1;
            fixture.upstream.default(json!({"delay_ms": 400, "usage": usage, "events": 5})).await;
            leave_before_the_first_byte(&fixture, format, stream, asked).await;
            let row = &fixture.gateway.logs(asked).await[0];
            assert_eq!(billed(row), (1000, 500, false, true), "{format} {stream}: {row}");
            assert_eq!(row["outcome"], "client_aborted", "{row}");
            assert!(row["errorMessage"].as_str().unwrap().contains("read to its end"), "{row}");
        }
    }
    let stats = fixture.upstream.stats("started=1").await;
    assert_eq!(stats["dropped"], 0, "no provider was cut off: {stats}");
}

/// Only the final figures include hidden reasoning.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_left_in_the_middle_is_drained_to_its_final_figures() {
    let fixture = fixture(&[DRAIN]).await;
    let usage = json!({"input": 1000, "output": 5000, "reasoning": 4900});
    fixture.upstream.default(json!({"usage": usage, "events": 20, "between_events_ms": 20})).await;
    for (asked, format) in (1..).zip(FORMATS) {
        let answer = fixture.post(path(format, true), &request(format, true)).send().await.unwrap();
        let mut body = answer.bytes_stream();
        body.next().await.unwrap().unwrap();
        drop(body);
        let row = &fixture.gateway.logs(asked).await[0];
        assert_eq!(billed(row), (1000, 5000, false, true), "{format}: {row}");
        assert_eq!(row["outcome"], "client_aborted", "{row}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_is_bounded_in_time_and_bytes() {
    let time = ("TOLLGATE_PROXY_ABORT_DRAIN", "1s");
    let fixture = fixture(&[DRAIN, time, ("TOLLGATE_PROXY_ABORT_DRAIN_BYTES", "8KiB")]).await;
    for (asked, reply) in (1..).zip([
        json!({"delay_ms": 600_000}),
        json!({"events": 100_000, "words": 100_000, "between_events_ms": 1}),
    ]) {
        fixture.upstream.default(reply).await;
        let asking = tokio::spawn(fixture.ask_stream().send());
        fixture.upstream.stats(&format!("started={asked}")).await;
        asking.abort();
        // It may have its reply already, whose connection would stay open.
        drop(asking);
        fixture.upstream.stats(&format!("dropped={asked}")).await;
        let row = &fixture.gateway.logs(asked).await[0];
        let (input, _, estimated, paid) = billed(row);
        assert!(input > 0 && estimated && paid, "{row}");
        assert!(
            row["errorMessage"].as_str().unwrap().contains("could not be read to its end"),
            "{row}"
        );
    }
}

/// The request never reached the provider: nothing is billed.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_after_the_client_has_closed_is_not_billed() {
    let fixture = fixture(&[DRAIN]).await;
    fixture.upstream.default(json!({"status": 500, "delay_ms": 300})).await;
    leave_before_the_first_byte(&fixture, "native", false, 1).await;
    let row = &fixture.gateway.logs(1).await[0];
    assert_eq!(
        (billed(row), &row["outcome"]),
        ((0, 0, false, false), &json!("client_aborted")),
        "{row}"
    );
}
