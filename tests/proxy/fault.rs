//! Whose fault a failed attempt is: not the provider's, if a slow client, the gateway's own
//! deadline, a token count or the model was the cause.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::fixture::{Fixture, request};
use crate::support::upstream::Upstream;

/// A gateway with these providers of the native format, in the order of their priority.
async fn with(env: &[(&str, &str)], providers: &[(&Upstream, Value)]) -> Fixture {
    let fixture = Fixture::bare(env).await;
    for (priority, (upstream, fields)) in providers.iter().enumerate() {
        let mut fields = fields.clone();
        fields["priority"] = json!(priority);
        fixture.gateway.provider("native", &upstream.url, fields).await;
    }
    fixture
}

/// Failures in a row of each provider's circuit, in the order of their ids.
async fn failures(fixture: &Fixture) -> Vec<i64> {
    let all = fixture.gateway.admin("providers/getProvidersHealthStatus", json!({})).await;
    all.as_array().unwrap().iter().map(|p| p["failureCount"].as_i64().unwrap()).collect()
}

async fn streamed(fixture: &Fixture, session: &str) -> u16 {
    let asked = fixture.ask_stream().header("x-session-id", session);
    let answer = asked.send().await.unwrap();
    let status = answer.status().as_u16();
    let _body = answer.text().await.unwrap();
    status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_upload_is_not_the_providers_time() {
    let upstream = Upstream::start().await;
    let fixture = with(&[("TOLLGATE_RETRY_DEADLINE", "1s")], &[(&upstream, json!({}))]).await;
    upstream.default(json!({"delay_ms": 300})).await;
    let text = request("native", true).to_string();
    let (first, rest) = text.split_at(20);
    let pieces = [(0, first.to_owned()), (1500, rest.to_owned())];
    let slow = stream::iter(pieces).then(|(wait, piece)| async move {
        // Sleeps: the upload takes longer than the gateway's deadline, by its real clock.
        tokio::time::sleep(Duration::from_millis(wait)).await;
        Ok::<_, std::io::Error>(piece)
    });
    let asked = fixture.ask_stream().body(reqwest::Body::wrap_stream(slow));
    assert_eq!(asked.send().await.unwrap().status(), 200);
    assert_eq!(failures(&fixture).await, [0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_hangs_leaves_time_for_the_next() {
    let (hangs, answers) = (Upstream::start().await, Upstream::start().await);
    let providers = [(&hangs, json!({})), (&answers, json!({}))];
    let fixture = with(&[("TOLLGATE_RETRY_DEADLINE", "4s")], &providers).await;
    hangs.default(json!({"delay_ms": 600_000})).await;
    assert_eq!(streamed(&fixture, "a").await, 200);
    assert_eq!(failures(&fixture).await, [1, 0]);
    assert_eq!(hangs.requests().await.len(), 1, "the rest of the time is for the other one");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_left_of_the_deadline_says_nothing_about_a_provider() {
    let (fails_late, slow) = (Upstream::start().await, Upstream::start().await);
    let once = json!({"max_retry_attempts": 1});
    let fixture = with(
        &[("TOLLGATE_RETRY_DEADLINE", "4s")],
        &[(&fails_late, once.clone()), (&slow, once.clone())],
    )
    .await;
    fails_late.default(json!({"status": 500, "delay_ms": 1700})).await;
    slow.default(json!({"delay_ms": 600_000})).await;
    let bound = json!({"first_byte_timeout_streaming_ms": 1900});
    fixture.gateway.admin("providers/editProvider", edit(&fixture, 0, bound).await).await;
    // 1.7 s of 4 are gone; the slow one gets the other 2.3, which is more than half of all.
    assert_eq!(streamed(&fixture, "a").await, 502);
    assert_eq!(failures(&fixture).await, [1, 1]);
    fails_late.default(json!({"status": 500, "delay_ms": 3000})).await;
    let bound = json!({"first_byte_timeout_streaming_ms": 3500});
    fixture.gateway.admin("providers/editProvider", edit(&fixture, 0, bound).await).await;
    assert_eq!(streamed(&fixture, "b").await, 502);
    assert_eq!(failures(&fixture).await, [2, 1], "one second says nothing");
}

/// The arguments that set these fields of a provider.
async fn edit(fixture: &Fixture, at: usize, mut fields: Value) -> Value {
    let all = fixture.gateway.admin("providers/getProviders", json!({})).await;
    fields["providerId"] = all[at]["id"].clone();
    fields
}

#[tokio::test(flavor = "multi_thread")]
async fn token_counts_neither_open_nor_close_a_circuit() {
    let upstream = Upstream::start().await;
    let threshold = json!({"circuit_breaker_failure_threshold": 2, "max_retry_attempts": 1});
    let fixture = with(&[], &[(&upstream, threshold)]).await;
    let count = async || {
        let body = json!({"model": "m", "messages": request("native", false)["messages"]});
        let answer = fixture.post("/v1/messages/count_tokens", &body).send().await.unwrap();
        let is_estimate = answer.headers().contains_key("x-tollgate-token-count");
        assert_eq!(answer.status(), 200);
        is_estimate
    };
    upstream.default(json!({"status": 500})).await;
    for _ in 0..4 {
        assert!(count().await, "the gateway estimates what no provider counts");
    }
    upstream.default(json!({"status": 429, "headers": {"retry-after": "60"}})).await;
    assert!(count().await);
    upstream.default(json!({})).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200, "no circuit, no cooldown");
    upstream.default(json!({"status": 500})).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 502);
    upstream.default(json!({})).await;
    assert!(!count().await, "the provider counts");
    assert_eq!(failures(&fixture).await, [1], "a count is not a success");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_refusals_with_a_pause_counts_once() {
    let upstream = Upstream::start().await;
    let threshold = json!({"circuit_breaker_failure_threshold": 3, "max_retry_attempts": 1});
    let fixture = with(&[], &[(&upstream, threshold)]).await;
    upstream
        .default(json!({"status": 429, "headers": {"retry-after": "1"}, "delay_ms": 500}))
        .await;
    let asked = (0..6).map(|n| fixture.ask().header("x-session-id", n.to_string()).send());
    for answer in futures_util::future::join_all(asked).await {
        assert_eq!(answer.unwrap().status(), 429);
    }
    assert_eq!(failures(&fixture).await, [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unavailable_provider_that_could_serve_it_is_worth_waiting_for() {
    let (rests, other) = (Upstream::start().await, Upstream::start().await);
    let fixture = Fixture::bare(&[]).await;
    let (first, second) = (json!({"priority": 0}), json!({"priority": 1}));
    fixture.gateway.provider("responses", &rests.url, first).await;
    fixture.gateway.provider("native", &other.url, second).await;
    rests.default(json!({"status": 429, "headers": {"retry-after": "30"}})).await;
    let body = json!({"model": "m", "input": "x", "previous_response_id": "resp_1"});
    let ask = async || fixture.post("/v1/responses", &body).send().await.unwrap();
    assert_eq!(ask().await.status(), 429);
    let later = ask().await;
    assert_eq!(later.status(), 503, "not 400: the provider that rests could serve it");
    assert!(later.headers().contains_key("retry-after"));
    let row = &fixture.gateway.logs(2).await[0];
    assert_eq!((&row["attempts"], &row["outcome"]), (&json!(0), &json!("refused")), "{row}");
}
