//! The entry in the list of live sessions for a session whose first request is still in flight.

use serde_json::{Value, json};

use crate::nodes::pair::Pair;
use crate::proxy::fixture::{Fixture, request};
use crate::support::gateway::Gateway;

async fn listed(gateway: &Gateway) -> Value {
    let all = gateway.admin("active-sessions/getActiveSessions", json!({})).await;
    assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
    json!([all[0]["model"], all[0]["apiType"], all[0]["requestCount"], all[0]["concurrentCount"]])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_shows_model_and_format_of_its_latest_request_while_the_first_one_runs() {
    let fixture = Fixture::full().await;
    let ask = |format: &str, path: &str, model: &str| {
        let mut body = request(format, false);
        body["model"] = json!(model);
        fixture.post(path, &body).header("x-session-id", "one")
    };
    fixture.upstream.default(json!({"first_byte_ms": 600_000})).await;
    let first = tokio::spawn(ask("native", "/v1/messages", "m-first").send());
    fixture.upstream.stats("started=1").await;
    assert_eq!(listed(&fixture.gateway).await, json!(["m-first", "native", 1, 1]));
    let second = tokio::spawn(ask("chat-compatible", "/v1/chat/completions", "m-second").send());
    fixture.upstream.stats("started=2").await;
    assert_eq!(listed(&fixture.gateway).await, json!(["m-second", "chat-compatible", 2, 2]));
    // A later one that has ended is still the latest, although earlier ones are in flight.
    fixture.upstream.default(json!({})).await;
    let third = ask("responses", "/v1/responses", "m-third").send().await.unwrap();
    assert_eq!(third.status(), 200, "{}", third.text().await.unwrap());
    assert_eq!(listed(&fixture.gateway).await, json!(["m-third", "responses", 3, 2]));
    first.abort();
    second.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_shows_it() {
    let pair = Pair::start().await;
    let who = pair.person(json!({}), json!({})).await;
    pair.upstream.default(json!({"first_byte_ms": 600_000})).await;
    let running = tokio::spawn(pair.ask(0, &who, "one").send());
    pair.upstream.stats("started=1").await;
    for node in &pair.nodes {
        assert_eq!(listed(node).await, json!(["m", "native", 1, 1]));
    }
    running.abort();
}
