//! Failover between providers: what triggers it, what does not, and the final answer.

use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, request};
use crate::support::gateway::free_port;
use crate::support::upstream::Upstream;

/// A fixture whose first choice is `first`, with a healthy provider of each format after it.
async fn with_first(first: &str, fields: Value) -> (Fixture, Upstream) {
    let (fixture, healthy) = (Fixture::bare(&[]).await, Upstream::start().await);
    for format in FORMATS {
        let mut fields = fields.clone();
        fields["priority"] = json!(0);
        fixture.gateway.provider(format, first, fields).await;
        fixture.gateway.provider(format, &healthy.url, json!({"priority": 5})).await;
    }
    (fixture, healthy)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_provider_is_left_for_the_next_one() {
    let bad = Upstream::start().await;
    let fields = json!({"first_byte_timeout_streaming_ms": 250, "request_timeout_non_streaming_ms": 250,
        "circuit_breaker_failure_threshold": 0, "max_retry_attempts": 1});
    let (fixture, healthy) = with_first(&bad.url, fields).await;
    let faults = [
        json!({"status": 500}),
        json!({"status": 529}),
        json!({"status": 401, "error": {"type": "authentication_error", "message": "no such account", "code": "account"}}),
        json!({"status": 403, "error": {"type": "permission_error", "message": "this region is not served", "code": "region"}}),
        json!({"hang_up": true}),
        json!({"empty": true}),
        json!({"html": true}),
        json!({"error_in_200": true}),
        json!({"delay_ms": 600_000}),
        json!({"first_byte_ms": 600_000}),
    ];
    let mut asked = 0;
    for fault in &faults {
        bad.default(fault.clone()).await;
        for format in FORMATS {
            for stream in [false, true] {
                // A separate conversation: session affinity must not hide the first provider.
                let answer = fixture
                    .post(path(format, stream), &request(format, stream))
                    .header("x-session-id", format!("s{asked}"));
                let answer = answer.send().await.unwrap();
                let (status, text) = (answer.status(), answer.text().await.unwrap());
                assert_eq!(status, 200, "{fault} {format} {stream}: {text}");
                asked += 1;
            }
        }
    }
    assert!(healthy.requests().await.len() >= asked, "the healthy provider answered all");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_connection_is_tried_twice_and_left() {
    let unreachable = format!("http://127.0.0.1:{}", free_port());
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("native", &unreachable, json!({"priority": 0})).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({"priority": 5})).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    let row = &fixture.gateway.logs(1).await[0];
    assert_eq!(row["attempts"], 3, "once, once more, and the next provider: {row}");
    let chain = row["decisions"].as_array().or(row["decisionChain"].as_array()).unwrap();
    let steps: Vec<&str> = chain.iter().filter_map(|d| d["step"].as_str()).collect();
    assert!(steps.contains(&"retried") && steps.contains(&"attempt_failed"), "{steps:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clients_own_error_goes_back_at_once() {
    let bad = Upstream::start().await;
    let (fixture, healthy) = with_first(&bad.url, json!({})).await;
    let error = json!({"type": "invalid_request_error", "message": "prompt is too long: 250000 tokens > 200000 maximum"});
    bad.default(json!({"status": 400, "error": error})).await;
    for format in FORMATS {
        let answer =
            fixture.post(path(format, false), &request(format, false)).send().await.unwrap();
        assert_eq!(answer.status(), 400, "{format}");
        let body: Value = answer.json().await.unwrap();
        assert!(
            body["error"]["message"].as_str().unwrap().contains("prompt is too long"),
            "{format}: {body}"
        );
    }
    assert_eq!(healthy.requests().await.len(), 0, "no other provider was tried");
    assert!(
        fixture
            .gateway
            .logs(4)
            .await
            .iter()
            .all(|r| r["outcome"] == "client_error" && r["attempts"] == 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn when_all_fail_the_last_failure_decides() {
    let (fixture, bad) = (Fixture::bare(&[]).await, Upstream::start().await);
    for _ in 0..2 {
        fixture
            .gateway
            .provider("native", &bad.url, json!({"circuit_breaker_failure_threshold": 0}))
            .await;
    }
    bad.default(json!({"status": 500})).await;
    let answer = fixture.ask().send().await.unwrap();
    assert_eq!(answer.status(), 502);
    let body: Value = answer.json().await.unwrap();
    assert_eq!(body["error"]["type"], "api_error", "{body}");
    bad.default(json!({"status": 429, "headers": {"retry-after": "7"}})).await;
    let answer = fixture.ask().send().await.unwrap();
    assert_eq!(answer.status(), 429);
    assert!(answer.headers().contains_key("retry-after"));
    // Both are in a cooldown now: neither is tried.
    let asked = bad.requests().await.len();
    let answer = fixture.ask().send().await.unwrap();
    assert_eq!(answer.status(), 503);
    assert!(answer.headers().contains_key("retry-after"));
    assert_eq!(bad.requests().await.len(), asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_stays_with_its_provider() {
    let (fixture, other) = (Fixture::bare(&[]).await, Upstream::start().await);
    for url in [&fixture.upstream.url, &other.url] {
        fixture.gateway.provider("native", url, json!({})).await;
    }
    let mut used = std::collections::HashSet::new();
    // With weights alone, all twelve go to one provider once in two thousand runs.
    for session in 0..60 {
        if session >= 12 && used.len() == 2 {
            break;
        }
        let id = format!("conversation-{session}");
        for _ in 0..3 {
            assert_eq!(
                fixture.ask().header("x-session-id", &id).send().await.unwrap().status(),
                200
            );
        }
        let rows = fixture.gateway.logs((session + 1) * 3).await;
        let of_session: std::collections::HashSet<i64> = rows
            .iter()
            .filter(|r| r["sessionId"] == id.as_str())
            .map(|r| r["providerId"].as_i64().unwrap())
            .collect();
        assert_eq!(of_session.len(), 1, "session {id} was moved");
        used.extend(of_session);
    }
    assert_eq!(used.len(), 2, "weights spread the sessions over both");
}

/// A client repeats a request that failed. The provider that failed it last is no better choice
/// than it is for any other request.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_not_bound_to_the_provider_that_failed_it_last() {
    let (fixture, second) = (Fixture::bare(&[]).await, Upstream::start().await);
    let add = async |name: &str, url: &str, fields: Value| {
        let mut all = json!({"name": name, "circuit_breaker_failure_threshold": 0});
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        fixture.gateway.provider("native", url, all).await
    };
    let first_id = add("first", &fixture.upstream.url, json!({"priority": 0})).await;
    add("second", &second.url, json!({"priority": 5})).await;
    let ask = async |session: &str| {
        let answer = fixture.ask().header("x-session-id", session).send().await.unwrap();
        answer.status().as_u16()
    };
    let both = async |directive: Value| {
        fixture.upstream.default(directive.clone()).await;
        second.default(directive).await;
    };
    both(json!({"status": 500})).await;
    assert_eq!(ask("one").await, 502);
    both(json!({})).await;
    assert_eq!(ask("one").await, 200);
    let row = fixture.gateway.logs(2).await.swap_remove(0);
    assert_eq!(row["providerId"], first_id, "by priority, as a new session: {row}");
    // What was answered stays where it was answered, whatever failed before.
    fixture.upstream.script(json!([{"status": 500}])).await;
    assert_eq!((ask("one").await, ask("one").await), (200, 200));
    let rows = fixture.gateway.logs(4).await;
    assert!(rows[..2].iter().all(|row| row["providerName"] == "second"), "{rows:?}");
}

/// Nearly every draw is for the provider whose reply broke off.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_reply_broke_off_goes_to_another_provider_of_the_same_rank() {
    let (fixture, other) = (Fixture::bare(&[]).await, Upstream::start().await);
    let add = async |name: &str, url: &str, weight: i64| {
        let fields =
            json!({"name": name, "weight": weight, "circuit_breaker_failure_threshold": 0});
        fixture.gateway.provider("native", url, fields).await
    };
    add("breaking", &fixture.upstream.url, 100).await;
    let other_id = add("other", &other.url, 1).await;
    fixture.upstream.default(json!({"events": 9, "cut_after": 6})).await;
    let mut broken = 0;
    for session in 0..12 {
        let session = format!("s{session}");
        let ask = fixture.ask_stream().header("x-session-id", &session).send().await.unwrap();
        let first = ask.text().await.unwrap();
        if !first.contains("event: error") {
            continue;
        }
        broken += 1;
        let again = fixture.ask_stream().header("x-session-id", &session).send().await.unwrap();
        assert!(again.text().await.unwrap().contains("message_stop"), "{session}");
    }
    assert!(broken > 0);
    let rows = fixture.gateway.logs(12 + broken).await;
    let row = rows.iter().find(|row| row["outcome"] == "completed").unwrap();
    assert_eq!(row["providerId"], other_id, "{row}");
    let chain = row["decisionChain"].as_array().unwrap();
    let passed = chain.iter().find(|step| step["providerName"] == "breaking").unwrap();
    assert_eq!(passed["detail"], "it failed the last request of this session", "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_pooled_connection_is_no_failure() {
    let fixture = Fixture::native().await;
    for round in 0..5 {
        assert_eq!(fixture.ask().send().await.unwrap().status(), 200, "round {round}");
        fixture.upstream.script(json!([{"hang_up": true}])).await;
        assert_eq!(
            fixture.ask().send().await.unwrap().status(),
            200,
            "round {round}: the break is passed over"
        );
    }
    let rows = fixture.gateway.logs(10).await;
    let attempts: Vec<u64> =
        rows.iter().rev().map(|row| row["attempts"].as_u64().unwrap()).collect();
    assert_eq!(
        attempts,
        [1, 2, 1, 2, 1, 2, 1, 2, 1, 2],
        "the request that is sent again is recorded"
    );
    assert_eq!(fixture.upstream.requests().await.len(), 15, "and nothing else is sent");
    let health = fixture.gateway.admin("providers/getProvidersHealthStatus", json!({})).await;
    assert!(
        health.to_string().contains("\"failureCount\":0"),
        "no failure of the provider: {health}"
    );
}
