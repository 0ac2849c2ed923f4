//! Signs of life: a provider's count as such, and a client that waits gets some.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::fixture::{FORMATS, Fixture, path, request};
use crate::resilience::raw::{self, Provider, STREAM_HEAD, beginning, chunk, text};
use crate::support::drip::drip;
use crate::support::upstream::Upstream;

/// Where an alt-cli client asks for one JSON array.
const ARRAY: &str = "/v1beta/models/m:streamGenerateContent";
const PING: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
const END: &str = concat!(
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",",
    "\"delta\":{\"stop_reason\":\"end_turn\"},",
    "\"usage\":{\"input_tokens\":1000,\"output_tokens\":3}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
);

/// A gateway with these providers, in the order of their priority.
async fn with(env: &[(&str, &str)], providers: &[(&str, &str, Value)]) -> Fixture {
    let fixture = Fixture::bare(env).await;
    for (priority, (kind, url, fields)) in providers.iter().enumerate() {
        let mut fields = fields.clone();
        fields["priority"] = json!(priority);
        fixture.gateway.provider(kind, url, fields).await;
    }
    fixture
}

/// The ways in which clients read a stream: a format, and a path.
fn clients() -> Vec<(&'static str, &'static str)> {
    let events = FORMATS.iter().map(|format| (*format, path(format, true)));
    events.chain([("alt-cli", ARRAY)]).collect()
}

/// The sign of life that a client gets.
fn sign(format: &str) -> &'static str {
    match format {
        "native" => "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        "alt-cli" => "\n\n",
        _ => ": keepalive\n\n",
    }
}

/// Whether the text is a complete stream of the format, as its strict readers take it.
fn assert_whole(client: (&str, &str), text: &str) {
    if client.1 == ARRAY {
        let array: Vec<Value> =
            serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert!(array.iter().any(|chunk| !chunk["usageMetadata"].is_null()), "{text}");
        return;
    }
    for line in text.lines().filter(|line| !line.is_empty()) {
        // The SDKs of alt-cli take every other line for data.
        let known = line.starts_with("data: ")
            || client.0 != "alt-cli" && (line.starts_with("event: ") || line.starts_with(": "));
        assert!(known, "{client:?}: {line:?} in {text}");
        let data = line.strip_prefix("data: ").filter(|data| *data != "[DONE]");
        if let Some(data) = data {
            let _: Value = serde_json::from_str(data).unwrap_or_else(|e| panic!("{e}: {line}"));
        }
    }
    let end = match client.0 {
        "native" => "message_stop",
        "responses" => "response.completed",
        "chat-compatible" => "[DONE]",
        _ => "finishReason",
    };
    assert!(text.contains(end) && !text.contains("\"error\":{"), "{client:?}: {text}");
}

async fn ask(fixture: &Fixture, (format, path): (&str, &str)) -> reqwest::Response {
    let asked = fixture.post(path, &request(format, true));
    // A conversation of its own: no session stays with a provider.
    asked.header("x-session-id", format!("s{}", fastrand::u64(..))).send().await.unwrap()
}

/// Bytes before the first content are a first byte, and restart the idle time-out.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_pings_before_its_content_is_alive() {
    let env = [
        ("TOLLGATE_TIMEOUTS_FIRST_BYTE_STREAMING", "900ms"),
        ("TOLLGATE_TIMEOUTS_STREAMING_IDLE", "900ms"),
        ("TOLLGATE_RETRY_DEADLINE", "1s"),
    ];
    join_all(FORMATS.map(|provider| async move {
        let (alive, second) = (Upstream::start().await, Upstream::start().await);
        let providers = [(provider, &*alive.url, json!({})), (provider, &*second.url, json!({}))];
        let fixture = with(&env, &providers).await;
        alive.default(json!({"pings": 20, "between_events_ms": 120})).await;
        for client in clients().into_iter().filter(|client| client.1 != ARRAY) {
            let answer = ask(&fixture, client).await;
            assert_eq!(answer.status(), 200, "{provider} {client:?}");
            let text = answer.text().await.unwrap().replace(": ping\r\n\r\n", "");
            assert_whole(client, &text);
        }
        assert_eq!(second.requests().await.len(), 0, "{provider}");
    }))
    .await;
}

/// A native provider that pings after its first text for longer than the idle time-out.
async fn pinging_in_the_middle(mut tcp: TcpStream, _: usize) -> Option<TcpStream> {
    let mut begin = STREAM_HEAD.as_bytes().to_vec();
    begin.extend(chunk(&beginning()));
    raw::write(&mut tcp, &begin).await;
    drip(&mut tcp, &chunk(PING), Duration::from_millis(120), 16).await;
    let rest = [chunk(&text("again")), chunk(END), chunk("")].concat();
    raw::write(&mut tcp, &rest).await.then_some(tcp)
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_within_a_stream_restart_its_idle_time_out() {
    let provider = Provider::start(pinging_in_the_middle).await;
    let fields = json!({"streaming_idle_timeout_ms": 800});
    // A client of another format sees nothing of these pings, and gets the gateway's.
    let env = [("TOLLGATE_PROXY_KEEPALIVE", "400ms")];
    let fixture = with(&env, &[("native", &*provider.url, fields)]).await;
    join_all(clients().into_iter().map(|client| {
        let fixture = &fixture;
        async move {
            let text = ask(fixture, client).await.text().await.unwrap();
            assert_whole(client, &text);
            assert!(text.contains("again"), "{client:?}: {text}");
            let pings = match client.0 {
                "native" => PING,
                format => sign(format),
            };
            assert!(text.contains(pings), "{client:?}: {text}");
        }
    }))
    .await;
    for row in fixture.gateway.logs(5).await {
        let figures = (&row["inputTokens"], &row["outputTokens"], &row["estimated"]);
        assert_eq!(figures, (&json!(1000), &json!(3), &json!(false)), "{row}");
    }
}

/// A native provider that only pings, from its first byte on or after its first text.
async fn only_pings(mut tcp: TcpStream, begin: &str) -> Option<TcpStream> {
    let mut bytes = STREAM_HEAD.as_bytes().to_vec();
    bytes.extend(chunk(begin));
    raw::write(&mut tcp, &bytes).await;
    drip(&mut tcp, &chunk(PING), Duration::from_millis(100), usize::MAX).await;
    None
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_only_pings_is_given_up_after_its_own_bound() {
    let before = Provider::start(|tcp, _| only_pings(tcp, PING)).await;
    let after = Provider::start(|tcp, _| async { only_pings(tcp, &beginning()).await }).await;
    let second = Upstream::start().await;
    // By the setting, and by the provider's own field. The deadline is over by then: it bounds the
    // time to the first byte.
    let by_field = [("TOLLGATE_RETRY_DEADLINE", "500ms")];
    let by_setting = [("TOLLGATE_TIMEOUTS_STREAMING_CONTENT", "900ms"), by_field[0]];
    for (env, fields) in [
        (&by_setting[..], json!({})),
        (&by_field[..], json!({"streaming_content_timeout_ms": 900})),
    ] {
        let providers =
            [("native", &*before.url, fields.clone()), ("native", &*second.url, json!({}))];
        let fixture = with(env, &providers).await;
        let answer = fixture.ask_stream().send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_whole(("native", ""), &answer.text().await.unwrap());
        let row = &fixture.gateway.logs(1).await[0];
        assert_eq!(row["attempts"], 2, "{row}");
        let why = "the stream had no content: nothing but signs of life within 900 ms";
        assert!(row["decisionChain"].to_string().contains(why), "{row}");

        let fixture = with(env, &[("native", &*after.url, fields)]).await;
        let text = fixture.ask_stream().send().await.unwrap().text().await.unwrap();
        assert!(text.contains("event: error") && text.contains(why), "{text}");
        let row = &fixture.gateway.logs(1).await[0];
        assert_eq!((&row["outcome"], &row["attempts"]), (&json!("broken_off"), &json!(1)), "{row}");
        assert!(row["errorMessage"].as_str().unwrap().contains(why), "{row}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_gets_pings_of_its_own_format() {
    let env = [("TOLLGATE_PROXY_KEEPALIVE", "300ms")];
    // Before the head, before the body, and before the content.
    let waits = [
        json!({"delay_ms": 1500}),
        json!({"first_byte_ms": 1500}),
        json!({"pings": 6, "between_events_ms": 250}),
    ];
    join_all(FORMATS.map(|provider| {
        let waits = waits.clone();
        async move {
            let upstream = Upstream::start().await;
            let fixture = with(&env, &[(provider, &*upstream.url, json!({}))]).await;
            let headers = json!({"x-provider": "first", "request-id": "first"});
            let mut cases: Vec<_> =
                clients().into_iter().flat_map(|c| waits.iter().map(move |w| (c, w))).collect();
            // Of an array that passes through there are no pings.
            cases.retain(|((_, path), wait)| {
                provider != "alt-cli" || *path != ARRAY || wait["pings"].is_null()
            });
            let asked = cases.len();
            for (client, wait) in cases {
                let mut wait = wait.clone();
                wait["headers"] = headers.clone();
                wait["usage"] = json!({"input": 100, "output": 7});
                upstream.default(wait).await;
                let answer = ask(&fixture, client).await;
                assert_eq!(answer.status(), 200, "{provider} {client:?}");
                let kind = if client.1 == ARRAY { "application/json" } else { "text/event-stream" };
                assert_eq!(answer.headers()["content-type"], kind, "{provider} {client:?}");
                for name in ["x-tollgate-request-id", "x-tollgate-session-id"] {
                    assert!(answer.headers().contains_key(name), "{provider} {client:?}");
                }
                for name in ["x-provider", "request-id", "content-length"] {
                    assert!(!answer.headers().contains_key(name), "{provider} {client:?} {name}");
                }
                let text = answer.text().await.unwrap();
                let start = sign(client.0).repeat(2);
                assert!(text.starts_with(&start), "{provider} {client:?}: {text:?}");
                assert_whole(client, &text.replace(": ping\r\n\r\n", ""));
            }
            for row in fixture.gateway.logs(asked).await {
                assert_eq!(
                    (&row["statusCode"], &row["outputTokens"]),
                    (&json!(200), &json!(7)),
                    "{row}"
                );
            }
        }
    }))
    .await;
}

/// The head does not wait for the provider, and the next provider may still answer.
#[tokio::test(flavor = "multi_thread")]
async fn failover_is_possible_after_a_ping() {
    let (first, second) = (Upstream::start().await, Upstream::start().await);
    let env = [("TOLLGATE_PROXY_KEEPALIVE", "200ms")];
    for provider in FORMATS {
        let providers = [(provider, &*first.url, json!({})), (provider, &*second.url, json!({}))];
        let fixture = with(&env, &providers).await;
        first.default(json!({"status": 500, "delay_ms": 700, "headers": {"x-a": "b"}})).await;
        second.default(json!({"headers": {"x-a": "b"}})).await;
        for (n, client) in clients().into_iter().enumerate() {
            let answer = ask(&fixture, client).await;
            assert_eq!(answer.status(), 200, "{provider} {client:?}");
            assert!(!answer.headers().contains_key("x-a"));
            assert_whole(client, &answer.text().await.unwrap());
            let row = &fixture.gateway.logs(n + 1).await[0];
            assert_eq!(
                (&row["outcome"], &row["attempts"]),
                (&json!("completed"), &json!(2)),
                "{row}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_was_kept_waiting_gets_the_failure_as_an_event() {
    let env = [("TOLLGATE_PROXY_KEEPALIVE", "100ms")];
    let fixture = Fixture::bare(&env).await;
    for provider in FORMATS {
        let fields = json!({"circuit_breaker_failure_threshold": 0, "max_retry_attempts": 1});
        fixture.gateway.provider(provider, &fixture.upstream.url, fields).await;
    }
    let failures = [
        (json!({"status": 500, "delay_ms": 300, "error": {"message": "boom"}}), 502, "boom"),
        (
            json!({"status": 400, "delay_ms": 300,
                "error": {"type": "invalid_request_error", "message": "too odd"}}),
            400,
            "too odd",
        ),
        // Some services answer a request for a stream in one piece: too late for a JSON reply.
        (json!({"body": {"id": "x", "choices": []}, "delay_ms": 300}), 502, "the provider sent"),
    ];
    let mut asked = 0;
    for (directive, status, words) in failures {
        fixture.upstream.default(directive.clone()).await;
        for client in
            clients().into_iter().filter(|c| c.1 != ARRAY || status != 502 || words == "boom")
        {
            let answer = ask(&fixture, client).await;
            assert_eq!(answer.status(), 200, "{client:?} {directive}");
            let text = answer.text().await.unwrap();
            let event: Value = if client.1 == ARRAY {
                serde_json::from_str::<Vec<Value>>(&text).unwrap().remove(0)
            } else {
                let mut data = text.lines().filter_map(|line| line.strip_prefix("data: "));
                let error = data.find(|data| data.contains("error"));
                serde_json::from_str(error.unwrap_or_else(|| panic!("{text}"))).unwrap()
            };
            assert!(event.to_string().contains(words), "{client:?} {directive}: {text}");
            assert!(!event["error"].is_null(), "{client:?} {directive}: {text}");
            for end in ["message_stop", "response.completed", "[DONE]", "finishReason"] {
                assert!(!text.contains(end), "{client:?} {directive}: {text}");
            }
            asked += 1;
            let row = &fixture.gateway.logs(asked).await[0];
            let outcome = if status == 400 { "client_error" } else { "upstream_failed" };
            assert_eq!(
                (&row["outcome"], &row["statusCode"]),
                (&json!(outcome), &json!(status)),
                "{row}"
            );
            assert!(row["errorMessage"].as_str().unwrap().contains(words), "{row}");
            assert!(row["decisionChain"].to_string().contains("proxy.keepalive"), "{row}");
            assert_eq!(row["costUsd"], 0.0, "{row}");
        }
    }
}

/// A stream that passes through may stop in the middle of an event: nothing may be put there.
#[tokio::test(flavor = "multi_thread")]
async fn a_ping_never_stands_within_an_event() {
    let seen = Arc::new(Notify::new());
    let of_client = Arc::clone(&seen);
    let provider = Provider::start(move |mut tcp: TcpStream, _| {
        let seen = Arc::clone(&of_client);
        async move {
            let (head, cut) = (STREAM_HEAD.as_bytes().to_vec(), text("again"));
            let (start, rest) = cut.split_at(30);
            raw::write(&mut tcp, &[head, chunk(&beginning()), chunk(start)].concat()).await;
            // Sleeps: several pings' time, in which no ping may come.
            tokio::time::sleep(Duration::from_millis(1500)).await;
            raw::write(&mut tcp, &chunk(rest)).await;
            // One comes between events.
            seen.notified().await;
            raw::write(&mut tcp, &[chunk(END), chunk("")].concat()).await.then_some(tcp)
        }
    })
    .await;
    let env = [("TOLLGATE_PROXY_KEEPALIVE", "200ms")];
    let fixture = with(&env, &[("native", &*provider.url, json!({}))]).await;
    for client in clients() {
        let (mut answer, mut text) = (ask(&fixture, client).await, String::new());
        while let Some(bytes) = answer.chunk().await.unwrap() {
            let before = is_seen(&text, client.0);
            text.push_str(std::str::from_utf8(&bytes).unwrap());
            if !before && is_seen(&text, client.0) {
                seen.notify_one();
            }
        }
        assert_whole(client, &text);
        assert!(is_seen(&text, client.0), "{client:?}: {text}");
    }
}

/// The client has the last text and a sign of life.
fn is_seen(text: &str, format: &str) -> bool {
    text.contains("again") && text.contains(sign(format))
}

/// Off: the client waits for the provider's head.
#[tokio::test(flavor = "multi_thread")]
async fn without_keepalive_the_status_waits_for_the_provider() {
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_KEEPALIVE", "0")]).await;
    fixture.upstream.default(json!({"status": 500, "delay_ms": 500})).await;
    assert_eq!(fixture.ask_stream().send().await.unwrap().status(), 502);
    // And a reply in one piece is never begun early.
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_KEEPALIVE", "100ms")]).await;
    fixture.upstream.default(json!({"status": 500, "delay_ms": 500})).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 502);
}

/// A client that leaves while it is kept waiting stops the provider, as any other.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_after_a_ping_stops_the_provider() {
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_KEEPALIVE", "100ms")]).await;
    fixture.upstream.default(json!({"delay_ms": 600_000})).await;
    let answer = fixture.ask_stream().send().await.unwrap();
    let mut body = answer.bytes_stream();
    body.next().await.unwrap().unwrap();
    drop(body);
    fixture.upstream.stats("dropped=1").await;
    let row = &fixture.gateway.logs(1).await[0];
    assert_eq!(
        (&row["outcome"], &row["statusCode"]),
        (&json!("client_aborted"), &json!(499)),
        "{row}"
    );
}

/// What was waited, not what was left of it, wherever a time-out is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_out_tells_how_long_it_was() {
    let late = json!({"delay_ms": 600_000});
    let slow = json!({"first_byte_ms": 600_000});
    let fields = json!({"first_byte_timeout_streaming_ms": 700, "streaming_idle_timeout_ms": 700,
        "request_timeout_non_streaming_ms": 700, "max_retry_attempts": 1});
    let fixture = Fixture::bare(&[]).await;
    let id = fixture.gateway.provider("native", &fixture.upstream.url, fields).await;
    let mut asked = 0;
    for (stream, directive, words) in [
        (true, late.clone(), "no first byte in time: nothing within 700 ms"),
        (true, slow.clone(), "no first byte in time: nothing within 700 ms"),
        (false, late, "no reply in time: nothing within 700 ms"),
        (false, slow, "no reply in time: not complete within 700 ms"),
        (
            true,
            json!({"events": 9, "stall_after": 6}),
            "the stream stood still: nothing within 700 ms",
        ),
        (
            true,
            json!({"pings": 3, "stall_after": 2}),
            "the stream stood still: nothing within 700 ms",
        ),
    ] {
        fixture.upstream.default(directive.clone()).await;
        let request = if stream { fixture.ask_stream() } else { fixture.ask() };
        let text = request.send().await.unwrap().text().await.unwrap();
        assert!(text.contains(words), "{directive}: {text}");
        asked += 1;
        let row = &fixture.gateway.logs(asked).await[0];
        assert!(row["errorMessage"].as_str().unwrap().contains(words), "{row}");
        assert!(row["decisionChain"].to_string().contains(words), "{row}");
        let all = fixture.gateway.admin("providers/getProvidersHealthStatus", json!({})).await;
        let health = all.as_array().unwrap().iter().find(|p| p["providerId"] == id).unwrap();
        assert!(health.to_string().contains(words), "{directive}: {health}");
        fixture.gateway.admin("providers/resetProviderCircuit", json!({"providerId": id})).await;
    }
    fixture.gateway.log_shows("no first byte in time: nothing within 700 ms").await;
}
