//! Responses that are made in the background and streamed: the reply goes on when the client
//! leaves, is billed once, and its stream can be resumed.

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::super::fixture::{Fixture, request};
use super::background::{assert_exact, bill, fixture, mock};
use super::stored::call;

fn asking() -> Value {
    let mut body = request("responses", true);
    body["background"] = json!(true);
    body
}

/// The data of a stream's events.
fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

async fn get(fixture: &Fixture, path: &str) -> String {
    let url = format!("{}{path}", fixture.gateway.proxy);
    let answer = fixture.gateway.client.get(url).bearer_auth(&fixture.key).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    answer.text().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_read_to_its_end_is_billed_by_it() {
    let fixture = fixture(&[]).await;
    let answer = fixture.post("/v1/responses", &asking()).send().await.unwrap();
    let all = events(&answer.text().await.unwrap());
    assert_eq!(all.last().unwrap()["type"], "response.completed");
    let record = bill(&fixture, 1).await;
    assert_exact(&record);
    assert_eq!(record["streamed"], true, "{record}");
    assert_eq!(fixture.upstream.requests().await.len(), 1, "nothing was polled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_resumes_the_stream_of_a_reply_that_is_billed_once() {
    let fixture = fixture(&[]).await;
    mock(&fixture, json!({"events": 6, "stall_after": 5, "background_calls": 1})).await;
    let answer = fixture.post("/v1/responses", &asking()).send().await.unwrap();
    let mut pieces = answer.bytes_stream();
    let mut text = String::new();
    while !text.contains("response.output_text.delta") {
        text.push_str(std::str::from_utf8(&pieces.next().await.unwrap().unwrap()).unwrap());
    }
    let seen = events(&text);
    let path = format!("/v1/responses/{}", seen[0]["response"]["id"].as_str().unwrap());
    mock(&fixture, json!({})).await;
    // It is known before the gateway learns that the client left.
    let (status, reply) = call(&fixture, "GET", &path, &fixture.key).await;
    assert_eq!((status, &reply["status"]), (200, &json!("in_progress")), "{reply}");
    drop(pieces);
    let record = bill(&fixture, 2).await;
    assert_exact(&record);
    let chain = record["decisionChain"].to_string();
    assert!(chain.contains("completed in the background: the gateway fetched it"), "{chain}");
    let last = seen.last().unwrap()["sequence_number"].as_u64().unwrap();
    let resumed =
        events(&get(&fixture, &format!("{path}?stream=true&starting_after={last}")).await);
    assert_eq!(resumed[0]["sequence_number"], last + 1, "{resumed:?}");
    assert_eq!(resumed.last().unwrap()["type"], "response.completed");
    let asked = fixture.upstream.requests().await.pop().unwrap();
    assert_eq!(asked["query"], format!("stream=true&starting_after={last}"));
    let whole = events(&get(&fixture, &format!("{path}?stream=true")).await);
    assert_eq!(whole[0]["type"], "response.created");
    assert_exact(&bill(&fixture, 4).await);
    let (_, _, other) = fixture.gateway.user(json!({"name": "other"})).await;
    let (status, said) = call(&fixture, "GET", &format!("{path}?stream=true"), &other).await;
    assert_eq!(status, 404, "{said}");
}

/// A stream that its provider breaks off is a reply that goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_is_billed_by_the_end_of_its_reply() {
    let fixture = fixture(&[]).await;
    mock(&fixture, json!({"events": 6, "cut_after": 5, "between_events_ms": 30})).await;
    let answer = fixture.post("/v1/responses", &asking()).send().await.unwrap();
    let text = answer.text().await.unwrap_or_default();
    assert!(!text.contains("response.completed"), "{text}");
    mock(&fixture, json!({})).await;
    assert_exact(&bill(&fixture, 1).await);
}
