//! Conversions of much data, beside other requests on the only thread that serves.

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::proxy::fixture::Fixture;

/// More than a body of these tests has: what a conversion holds in the budget, for as long as it
/// runs.
const CONVERTING: f64 = 20e6;

/// Elements that take seconds to convert without optimisation, but not the bound of ten.
const COUNT: usize = 110_000;

/// A gateway with one serving thread, and a provider of another format than its requests.
async fn fixture() -> Fixture {
    let fixture = Fixture::bare(&[
        ("TOLLGATE_HEADERS_PASS_REQUEST", "x-mock"),
        ("TOLLGATE_PROXY_THREADS", "1"),
    ])
    .await;
    fixture.gateway.provider("chat-compatible", &fixture.upstream.url, json!({})).await;
    fixture
}

fn large() -> Value {
    let parts = vec![json!({"type": "text", "text": "a"}); COUNT];
    json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": parts}]})
}

/// Nothing is held any more.
async fn ends(fixture: &Fixture) {
    fixture.gateway.metric_shows("tollgate_request_body_bytes", |held| held == 0.0).await;
}

async fn held(fixture: &Fixture) -> f64 {
    fixture.gateway.metric("tollgate_request_body_bytes").await
}

/// On a busy machine the test itself may come too late to ask, or to look, or the conversion may
/// take longer than its bound: then it tries again. If a conversion keeps the others waiting, no
/// try succeeds.
const TRIES: usize = 5;

/// Asks a short question once the conversion of `asked` runs. Whether it was answered before that
/// ended.
async fn another_is_answered_meanwhile<T>(fixture: &Fixture, asked: &JoinHandle<T>) -> bool {
    while held(fixture).await < CONVERTING {
        if asked.is_finished() {
            return false;
        }
    }
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    held(fixture).await > CONVERTING
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_request_is_converted_beside_others() {
    let fixture = fixture().await;
    for _ in 0..TRIES {
        let asked = tokio::spawn(fixture.post("/v1/messages", &large()).send());
        let was_answered = another_is_answered_meanwhile(&fixture, &asked).await;
        let status = asked.await.unwrap().unwrap().status();
        assert!([200, 503].contains(&status.as_u16()), "{status}");
        ends(&fixture).await;
        if was_answered && status == 200 {
            return;
        }
    }
    panic!("the other requests waited");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_reply_is_converted_beside_others() {
    let fixture = fixture().await;
    let parts = vec![json!({"type": "text", "text": "a"}); COUNT];
    let reply = json!({"choices": [{"message": {"role": "assistant", "content": parts},
        "finish_reason": "stop"}]});
    let directive = json!({"body": reply.to_string(), "strict": false});
    for _ in 0..TRIES {
        fixture.upstream.script(json!([directive])).await;
        let asked = tokio::spawn(fixture.ask().send());
        let was_answered = another_is_answered_meanwhile(&fixture, &asked).await;
        let answer = asked.await.unwrap().unwrap();
        assert_eq!(answer.status(), 200);
        let reply: Value = answer.json().await.unwrap();
        assert_eq!(reply["content"].as_array().unwrap().len(), COUNT);
        ends(&fixture).await;
        if was_answered {
            return;
        }
    }
    panic!("the other requests waited");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_while_its_request_is_converted_ends_it() {
    let fixture = fixture().await;
    let asked = tokio::spawn(fixture.post("/v1/messages", &large()).send());
    fixture.gateway.metric_shows("tollgate_request_body_bytes", |held| held > CONVERTING).await;
    asked.abort();
    // Not by the log: on a fast machine the conversion ends before the database has the record.
    fixture
        .gateway
        .metric_shows("tollgate_gateway_overhead_seconds_count", |recorded| recorded == 1.0)
        .await;
    assert!(held(&fixture).await > CONVERTING, "the record does not wait for the conversion");
    let log = fixture.gateway.logs(1).await;
    assert_eq!(log[0]["outcome"], "client_aborted", "{log:?}");
    ends(&fixture).await;
    assert_eq!(fixture.upstream.requests().await, Vec::<Value>::new(), "no provider was asked");
}
