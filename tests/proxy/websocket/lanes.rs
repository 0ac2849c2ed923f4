//! Lanes: at the same time, in order within each.

use serde_json::json;

use super::client::Client;
use crate::proxy::fixture::Fixture;

#[tokio::test(flavor = "multi_thread")]
async fn lanes_run_beside_each_other_and_each_in_order() {
    let fixture = Fixture::full().await;
    let held = json!({"hold_after": 5, "events": 10, "text": "a slow reply in many parts, of which there are ten"});
    fixture.upstream.script(json!([held, {"text": "quick"}, {"text": "later"}])).await;
    let mut client = Client::open(&fixture).await;
    client.create(json!({"input": "a", "stream_id": "slow.lane"})).await;
    let begun = client.until("response.created").await;
    assert_eq!(begun[0]["stream_id"], "slow.lane");
    client.create(json!({"input": "b", "stream_id": "slow.lane"})).await;
    client.create(json!({"input": "c"})).await;
    // The unnamed lane answers while the other one waits.
    let quick = client.until("response.completed").await;
    assert!(quick[quick.len() - 1].get("stream_id").is_none(), "{quick:?}");
    fixture.upstream.go_on(1).await;
    let first = client.until("response.completed").await;
    let second = client.until("response.completed").await;
    for frame in first.iter().chain(&second) {
        assert_eq!(frame["stream_id"], "slow.lane", "{frame}");
    }
    assert_eq!(second[0]["type"], "response.created");
    // A lane continues what another one began.
    let id = &second[0]["response"]["id"];
    client.create(json!({"input": "d", "stream_id": "fork", "previous_response_id": id})).await;
    client.until("response.completed").await;
    fixture.gateway.logs(4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_lanes_and_their_names_are_bounded() {
    let fixture = Fixture::full().await;
    let mut client = Client::open(&fixture).await;
    for lane in 0..32 {
        client.create(json!({"input": "a", "stream_id": lane.to_string()})).await;
    }
    for _ in 0..32 {
        client.until("response.completed").await;
    }
    client.create(json!({"input": "a", "stream_id": "one-more"})).await;
    assert_eq!(client.error().await.1["code"], "websocket_stream_limit_reached");
    client.create(json!({"input": "a", "stream_id": "not valid"})).await;
    assert_eq!(client.error().await.1["code"], "invalid_stream_id");
    client.create(json!({"input": "a"})).await;
    client.reply().await;
}
