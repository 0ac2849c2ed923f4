//! Each class of failure: what ends a request at once, what triggers a failover, a cooldown, a
//! count.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, request};
use crate::support::gateway::free_port;
use crate::support::upstream::Upstream;

/// A fixture whose first choice of each format is `first`, with a healthy provider of each format
/// after it.
async fn with_first(env: &[(&str, &str)], first: &str, fields: Value) -> (Fixture, Upstream) {
    let (fixture, healthy) = (Fixture::bare(env).await, Upstream::start().await);
    for format in FORMATS {
        let mut fields = fields.clone();
        fields["priority"] = json!(0);
        fixture.gateway.provider(format, first, fields).await;
        fixture.gateway.provider(format, &healthy.url, json!({"priority": 5})).await;
    }
    (fixture, healthy)
}

/// Without a circuit, and with a single attempt.
fn plain() -> Value {
    json!({"circuit_breaker_failure_threshold": 0, "max_retry_attempts": 1})
}

/// A fixture with two providers of a format: the first choice, and another one.
async fn two_of(format: &str) -> (Fixture, Upstream, Upstream) {
    let fixture = Fixture::bare(&[]).await;
    let (first, second) = (Upstream::start().await, Upstream::start().await);
    for (upstream, priority) in [(&first, 0), (&second, 5)] {
        let mut fields = plain();
        fields["priority"] = json!(priority);
        fixture.gateway.provider(format, &upstream.url, fields).await;
    }
    (fixture, first, second)
}

async fn ask(
    fixture: &Fixture,
    format: &str,
    stream: bool,
    session: impl ToString,
) -> (u16, Value) {
    let asked = fixture
        .post(path(format, stream), &request(format, stream))
        .header("x-session-id", session.to_string());
    let answer = asked.send().await.unwrap();
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

#[tokio::test(flavor = "multi_thread")]
async fn six_codes_end_a_request_whatever_status_they_come_with() {
    let bad = Upstream::start().await;
    let (fixture, healthy) =
        with_first(&[], &bad.url, json!({"circuit_breaker_failure_threshold": 1})).await;
    let codes = [
        ("prompt_too_long", 400),
        ("content_filter", 400),
        ("max_tokens_exceeded", 400),
        ("invalid_api_key", 401),
        ("model_not_found", 404),
        ("billing_quota_exceeded", 402),
    ];
    let mut asked = 0;
    for (code, own) in codes {
        for fault in [
            json!({"status": 400, "error": {"type": code, "message": "as told"}}),
            json!({"status": 403, "error": {"type": "some_error", "message": "as told", "code": code}}),
            json!({"status": 500, "error": {"type": "some_error", "message": "as told", "code": code}}),
            json!({"error_in_200": true, "error": {"type": code, "message": "as told", "code": code}}),
        ] {
            let upstream = fault["status"].as_u64().filter(|status| *status < 500);
            bad.default(fault.clone()).await;
            for (format, stream) in FORMATS.into_iter().zip([false, true, true, false]) {
                let (status, body) = ask(&fixture, format, stream, asked).await;
                let what = format!("{fault} {format}: {body}");
                let told = body["error"]["message"].as_str().unwrap();
                assert_eq!(u64::from(status), upstream.unwrap_or(own), "{what}");
                match code {
                    // Clients recover from it by other words (`error_words.rs`).
                    "prompt_too_long" => assert!(told.ends_with("as told"), "{what}"),
                    _ => assert_eq!(told, "as told", "{what}"),
                }
                asked += 1;
            }
        }
    }
    assert_eq!(
        (bad.requests().await.len(), healthy.requests().await.len()),
        (asked, 0),
        "no other provider, and no circuit"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_own_credential_at_fault_switches_where_configured() {
    let bad = Upstream::start().await;
    let env = [("TOLLGATE_RETRY_SWITCH_ON_UPSTREAM_AUTH", "true")];
    let (fixture, healthy) = with_first(&env, &bad.url, plain()).await;
    for (asked, code) in ["invalid_api_key", "billing_quota_exceeded"].into_iter().enumerate() {
        bad.default(json!({"status": 401, "error": {"message": "no", "code": code}})).await;
        assert_eq!(ask(&fixture, "chat-compatible", false, asked).await.0, 200, "{code}");
        assert_eq!(healthy.requests().await.len(), asked + 1);
    }
    bad.default(json!({"status": 404, "error": {"message": "no", "code": "model_not_found"}}))
        .await;
    assert_eq!(
        ask(&fixture, "chat-compatible", false, "x").await.0,
        404,
        "the others end the request as ever"
    );
}

/// Some services repeat the credential in their errors.
#[tokio::test(flavor = "multi_thread")]
async fn the_providers_credential_reaches_neither_clients_nor_the_log() {
    const KEY: &str = "upstream-secret-key";
    for format in FORMATS {
        let (fixture, upstream) = (Fixture::bare(&[]).await, Upstream::start().await);
        fixture.gateway.provider(format, &upstream.url, plain()).await;
        let message = format!("Incorrect API key provided: {KEY}.");
        for (status, code) in [(401, "invalid_api_key"), (500, "server_error")] {
            let error = json!({"type": code, "message": message, "code": code});
            upstream.default(json!({"status": status, "error": error})).await;
            let answer = ask(&fixture, format, false, status).await.1.to_string();
            assert!(answer.contains("Incorrect API key") && !answer.contains(KEY), "{answer}");
        }
        let rows = json!(fixture.gateway.logs(2).await).to_string();
        assert!(rows.contains("Incorrect API key") && !rows.contains(KEY), "{rows}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unrecognised_4xx_and_what_is_no_reply_are_the_providers_fault() {
    let bad = Upstream::start().await;
    let (fixture, healthy) = with_first(&[], &bad.url, plain()).await;
    let odd = json!({"type": "odd_error", "message": "an odd thing", "code": "odd"});
    let faults = [
        json!({"status": 400, "error": odd}),
        json!({"status": 404, "error": odd}),
        json!({"status": 413, "error": odd}),
        json!({"status": 422, "error": odd}),
        json!({"status": 402, "error": odd}),
        json!({"status": 503, "error": odd}),
        json!({"status": 400, "body": ""}),
        json!({"status": 404, "body": "<html><title>Not Found</title>", "content_type": "text/html"}),
        json!({"status": 302, "body": "", "headers": {"location": "http://127.0.0.1:1/"}}),
        json!({"body": "hello there"}),
        json!({"body": {"unexpected": true}}),
    ];
    let mut asked = 0;
    for fault in faults {
        bad.default(fault.clone()).await;
        for format in FORMATS {
            let (status, body) = ask(&fixture, format, false, asked).await;
            assert_eq!(status, 200, "{fault} {format}: {body}");
            asked += 1;
        }
    }
    // Every bad one was tried before the first good one.
    assert_eq!((bad.requests().await.len(), healthy.requests().await.len()), (4 * asked, asked));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_dies_or_stands_still_before_it_says_anything_is_tried_elsewhere() {
    let bad = Upstream::start().await;
    let mut fields = plain();
    fields["first_byte_timeout_streaming_ms"] = json!(300);
    fields["streaming_idle_timeout_ms"] = json!(300);
    let (fixture, healthy) = with_first(&[], &bad.url, fields).await;
    let mut asked = 0;
    for fault in [
        json!({"pings": 1, "cut_after": 1}),
        json!({"pings": 1, "stall_after": 1}),
        json!({"cut_after": 0}),
    ] {
        bad.default(fault.clone()).await;
        for format in FORMATS {
            let answer = fixture
                .post(path(format, true), &request(format, true))
                .header("x-session-id", asked.to_string());
            let answer = answer.send().await.unwrap();
            assert_eq!(answer.status(), 200, "{fault} {format}");
            let text = answer.text().await.unwrap();
            assert!(
                !text.contains("event: error") && !text.contains(r#""error":{"#),
                "{fault} {format}: {text}"
            );
            asked += 1;
            assert_eq!(healthy.requests().await.len(), asked, "{fault} {format}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cooldown_is_observed_and_bounded() {
    let fixture = Fixture::bare(&[("TOLLGATE_RETRY_MAX_COOLDOWN", "1s")]).await;
    let healthy = Upstream::start().await;
    fixture
        .gateway
        .provider("native", &fixture.upstream.url, json!({"circuit_breaker_failure_threshold": 0}))
        .await;
    fixture.gateway.provider("native", &healthy.url, json!({"priority": 5})).await;
    for status in [429, 503] {
        let before = fixture.upstream.requests().await.len();
        fixture
            .upstream
            .script(json!([{"status": status, "headers": {"retry-after": "86400"}}]))
            .await;
        let began = Instant::now();
        let mut n = 0;
        // The provider asked for a day; after a second it is tried again, and answers.
        while fixture.upstream.requests().await.len() < before + 2 {
            assert_eq!(ask(&fixture, "native", false, format!("{status}-{n}")).await.0, 200);
            assert!(began.elapsed() < Duration::from_secs(20), "{status}: the cooldown has no end");
            n += 1;
        }
        assert!(
            began.elapsed() >= Duration::from_millis(900),
            "{status}: it was asked again too soon"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn network_errors_open_a_circuit_only_where_configured() {
    for counted in [false, true] {
        let unreachable = format!("http://127.0.0.1:{}", free_port());
        let env =
            [("TOLLGATE_BREAKER_COUNT_NETWORK_ERRORS", if counted { "true" } else { "false" })];
        let fields = json!({"circuit_breaker_failure_threshold": 1, "max_retry_attempts": 1});
        let (fixture, _healthy) = with_first(&env, &unreachable, fields).await;
        for n in 0..2 {
            assert_eq!(ask(&fixture, "native", false, n).await.0, 200);
        }
        let row = &fixture.gateway.logs(2).await[0];
        assert_eq!(
            row["attempts"] == 1,
            counted,
            "the second request passes an open circuit over: {row}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_attempt_is_begun_after_the_deadline() {
    let slow = Upstream::start().await;
    let fixture = Fixture::bare(&[("TOLLGATE_RETRY_DEADLINE", "3s")]).await;
    for _ in 0..3 {
        let fields = json!({"circuit_breaker_failure_threshold": 0, "max_retry_attempts": 1,
            "request_timeout_non_streaming_ms": 3500});
        fixture.gateway.provider("native", &slow.url, fields).await;
    }
    slow.default(json!({"delay_ms": 600_000})).await;
    let (status, body) = ask(&fixture, "native", false, "a").await;
    assert_eq!(status, 502, "{body}");
    assert_eq!(slow.requests().await.len(), 1, "two were left");
    let row = &fixture.gateway.logs(1).await[0];
    let details: Vec<&str> = row["decisionChain"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|d| d["detail"].as_str())
        .collect();
    let over = "the time for attempts was over after 3000 ms (retry.deadline), with 2 more to ask";
    assert!(details.contains(&over), "{details:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_word_says_when_to_come_back() {
    let (fixture, other) = (Fixture::bare(&[]).await, Upstream::start().await);
    for url in [&fixture.upstream.url, &other.url] {
        fixture
            .gateway
            .provider("native", url, json!({"circuit_breaker_failure_threshold": 0}))
            .await;
    }
    fixture.upstream.default(json!({"status": 429, "headers": {"retry-after": "300"}})).await;
    other.default(json!({"status": 429, "headers": {"retry-after": "30"}})).await;
    let answer = fixture.ask().send().await.unwrap();
    assert_eq!(answer.status(), 429);
    let wait: u64 = answer.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=30).contains(&wait), "the first one that can be asked again: {wait}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_limits_of_providers_leave_none_the_503_says_when_to_come_back() {
    let fixture = Fixture::bare(&[]).await;
    let dear = json!({"input_cost_per_token": 0.1, "output_cost_per_token": 0.1});
    fixture.gateway.prices(json!({"m": dear})).await;
    let url = &fixture.upstream.url;
    let id = fixture.gateway.provider("native", url, json!({"limit_daily_usd": 0.01})).await;
    let edit = async |mut fields: Value| {
        fields["providerId"] = json!(id);
        fixture.gateway.admin("providers/editProvider", fields).await;
    };
    let wait = async || {
        let answer = fixture.ask().header("x-session-id", "another").send().await.unwrap();
        assert_eq!(answer.status(), 503);
        answer.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    // The time zone of these gateways is one where the day is far from its end.
    let until = wait().await;
    assert!((3_600..86_400).contains(&until), "the day ends later: {until}");
    // A total never resets, and sessions may end at any time.
    edit(json!({"limit_daily_usd": null, "limit_total_usd": 0.01})).await;
    assert_eq!(wait().await, 5);
    edit(json!({"limit_total_usd": null, "limit_concurrent_sessions": 1})).await;
    assert_eq!(wait().await, 5);
}

/// As in a conversion: what the client gets depends on whether something was shown before.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_ends_in_an_error_is_no_success_where_formats_agree() {
    let (fixture, bad, healthy) = two_of("chat-compatible").await;
    let chat = "chat-compatible";
    let events = |text: &str| {
        let delta = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]});
        // Several, so that some of them come before the end.
        format!("{}data: {end}\n\ndata: [DONE]\n\n", format!("data: {delta}\n\n").repeat(20))
    };
    let body = |text: &str| {
        let message = json!({"role": "assistant", "content": text.repeat(20)});
        json!({"choices": [{"index": 0, "message": message, "finish_reason": "error"}]}).to_string()
    };
    let reply = |stream: bool, text: &str| {
        let (kind, body) = match stream {
            true => ("text/event-stream", events(text)),
            false => ("application/json", body(text)),
        };
        json!({"status": 200, "content_type": kind, "body": body})
    };
    for stream in [true, false] {
        bad.default(reply(stream, "")).await;
        let (status, answer) = ask(&fixture, chat, stream, stream).await;
        assert_eq!(status, 200, "{answer}");
    }
    assert_eq!((bad.requests().await.len(), healthy.requests().await.len()), (2, 2));

    // More than is held back while a reply may still turn out to be none.
    let long = "word ".repeat(8_000);
    for stream in [true, false] {
        bad.default(reply(stream, &long)).await;
        let asked = fixture.post(path(chat, stream), &request(chat, stream));
        let answer = asked.header("x-session-id", "long").send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let _ = answer.bytes().await;
    }
    assert_eq!(healthy.requests().await.len(), 2, "no further attempt");
    let rows = fixture.gateway.logs(4).await;
    let of = |outcome: &str| rows.iter().filter(|row| row["outcome"] == outcome).count();
    assert_eq!((of("completed"), of("broken_off")), (2, 2), "{rows:?}");
}

/// Conversion keeps neither codes nor bodies that are not a stream.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_place_of_a_converted_reply_is_judged_by_its_code() {
    let (fixture, bad, healthy) = two_of("chat-compatible").await;
    let error = json!({"type": "some_error", "message": "as told", "code": "prompt_too_long"});
    let in_place = json!({"error_in_200": true, "error": error});
    let body = json!({"error": error}).to_string();
    let json_body = json!({"status": 200, "content_type": "application/json", "body": body});
    for (fault, stream) in
        [(&in_place, true), (&in_place, false), (&json_body, true), (&json_body, false)]
    {
        bad.default(fault.clone()).await;
        let (status, body) = ask(&fixture, "native", stream, bad.requests().await.len()).await;
        assert_eq!(status, 400, "{fault} {stream}: {body}");
        let message = "prompt is too long: as told";
        assert_eq!(body["error"]["message"], message, "{fault} {stream}: {body}");
    }
    assert_eq!((bad.requests().await.len(), healthy.requests().await.len()), (4, 0));
}
