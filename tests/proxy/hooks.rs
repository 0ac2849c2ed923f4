//! The hooks of the proxy's `ProxyHttp` service, in the order in which requests pass them.

use futures_util::StreamExt;
use serde_json::{Value, json};

use super::fixture::Fixture;
use crate::resilience::raw::{self, Provider, STREAM_HEAD, beginning, chunk};
use crate::support::gateway::free_port;
use crate::support::upstream::Upstream;

/// The hooks of every request before its first provider.
const BEGIN: [&str; 4] =
    ["early_request_filter", "request_filter", "proxy_upstream_filter", "upstream_peer"];
/// A request up to the head of the provider's reply.
const ASK: [&str; 4] = [
    "connected_to_upstream",
    "upstream_request_filter",
    "request_body_filter",
    "upstream_response_filter",
];
/// A reply in one piece, to its end.
const REPLY: [&str; 3] =
    ["upstream_response_body_filter", "response_filter", "response_body_filter"];

async fn fixture() -> Fixture {
    Fixture::bare(&[("LOG_LEVEL", "trace")]).await
}

/// The hooks of one request up to `logging`; a hook that runs for several pieces in a row is listed
/// once.
async fn hooks(fixture: &Fixture, request: &str) -> Vec<String> {
    let last = format!("\"request_id\":\"{request}\",\"hook\":\"logging\"");
    let log = fixture.gateway.log_shows(&last).await;
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut hooks: Vec<String> = lines
        .filter(|line| line["target"] == "tollgate::hook" && line["request_id"] == request)
        .map(|line| line["hook"].as_str().unwrap().to_owned())
        .collect();
    hooks.dedup();
    hooks
}

async fn last_request(fixture: &Fixture) -> String {
    fixture.gateway.logs(1).await[0]["requestId"].as_str().unwrap().to_owned()
}

fn id(answer: &reqwest::Response) -> String {
    answer.headers()["x-tollgate-request-id"].to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answered_request_and_a_refused_one() {
    let fixture = fixture().await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    let answer = fixture.ask().send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let answered = [&BEGIN[..], &ASK, &REPLY, &["logging"]].concat();
    assert_eq!(hooks(&fixture, &id(&answer)).await, answered);

    let answer = fixture.ask().header("x-api-key", "sk-unknown").send().await.unwrap();
    assert_eq!(answer.status(), 401);
    let refused = [
        "early_request_filter",
        "request_filter",
        "fail_to_proxy",
        "response_filter",
        "response_body_filter",
        "logging",
    ];
    assert_eq!(hooks(&fixture, &id(&answer)).await, refused);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_after_500() {
    let (fixture, bad) = (fixture().await, Upstream::start().await);
    bad.default(json!({"status": 500})).await;
    fixture.gateway.provider("native", &bad.url, json!({"priority": 0})).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({"priority": 5})).await;
    let answer = fixture.ask().send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let failed = ["upstream_response_body_filter", "error_while_proxy", "upstream_peer"];
    let expected = [&BEGIN[..], &ASK, &failed, &ASK, &REPLY, &["logging"]].concat();
    assert_eq!(hooks(&fixture, &id(&answer)).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_connect() {
    let fixture = fixture().await;
    let nothing = format!("http://127.0.0.1:{}", free_port());
    fixture.gateway.provider("native", &nothing, json!({"max_retry_attempts": 1})).await;
    let answer = fixture.ask().send().await.unwrap();
    assert_eq!(answer.status(), 502);
    let failed = ["fail_to_connect", "upstream_peer", "fail_to_proxy"];
    let expected =
        [&BEGIN[..], &failed, &["response_filter", "response_body_filter", "logging"]].concat();
    assert_eq!(
        hooks(&fixture, &id(&answer)).await,
        expected,
        "the plan's end is found where peers are chosen"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_off() {
    let provider = Provider::start(|mut tcp, _| async move {
        raw::write(&mut tcp, STREAM_HEAD.as_bytes()).await;
        raw::write(&mut tcp, &chunk(&beginning())).await;
        None
    })
    .await;
    let fixture = fixture().await;
    fixture.gateway.provider("native", &provider.url, json!({})).await;
    let answer = fixture.ask_stream().send().await.unwrap();
    let id = id(&answer);
    assert!(answer.text().await.unwrap().contains("event: error"));
    let broken = ["error_while_proxy", "fail_to_proxy", "response_body_filter", "logging"];
    let expected = [&BEGIN[..], &ASK, &REPLY, &broken].concat();
    assert_eq!(hooks(&fixture, &id).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_before_the_first_byte() {
    let fixture = fixture().await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    fixture.upstream.default(json!({"delay_ms": 600_000})).await;
    let asking = tokio::spawn(fixture.ask().send());
    fixture.upstream.stats("started=1").await;
    asking.abort();
    let left = ["error_while_proxy", "fail_to_proxy", "logging"];
    let expected = [&BEGIN[..], &ASK[..3], &left].concat();
    assert_eq!(
        hooks(&fixture, &last_request(&fixture).await).await,
        expected,
        "nothing is written to it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_after_the_first_byte() {
    let fixture = fixture().await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    fixture.upstream.default(json!({"events": 50, "stall_after": 4})).await;
    let answer = fixture.ask_stream().send().await.unwrap();
    let id = id(&answer);
    let mut body = answer.bytes_stream();
    body.next().await.unwrap().unwrap();
    drop(body);
    let hooks = hooks(&fixture, &id).await;
    let (begun, left) = hooks.split_at(hooks.len() - 3);
    assert_eq!(left, ["error_while_proxy", "fail_to_proxy", "logging"], "nothing is written to it");
    assert_eq!(begun[..BEGIN.len() + ASK.len() + REPLY.len()], [&BEGIN[..], &ASK, &REPLY].concat());
}
