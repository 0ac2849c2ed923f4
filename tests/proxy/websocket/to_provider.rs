//! WebSockets to a provider that serves them: one for each session, and HTTP otherwise.

use serde_json::{Value, json};

use super::client::{Client, user};
use crate::proxy::fixture::{Fixture, path, request};

/// 0.002 USD.
fn usage() -> Value {
    json!({"input": 1000, "output": 500})
}

/// A gateway with one provider that serves WebSockets, and with further settings.
async fn fixture(env: &[(&str, &str)]) -> Fixture {
    let fixture = Fixture::bare(env).await;
    fixture.upstream.default(json!({"websocket": true, "usage": usage()})).await;
    let websocket = json!({"websocket": true, "max_retry_attempts": 1});
    fixture.gateway.provider("responses", &fixture.upstream.url, websocket).await;
    fixture
}

/// A streamed request of a session.
fn asked(fixture: &Fixture, key: &str, session: &str, more: Value) -> reqwest::RequestBuilder {
    let mut body = json!({"model": "m", "stream": true, "store": false, "input": [user("hi")]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let url = format!("{}/v1/responses", fixture.gateway.proxy);
    fixture.gateway.client.post(url).bearer_auth(key).header("session_id", session).json(&body)
}

/// Its answer.
async fn ask(fixture: &Fixture, session: &str, more: Value) -> (u16, String) {
    let answer = asked(fixture, &fixture.key, session, more).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// A reply that is complete. Returns its id.
async fn complete(fixture: &Fixture, session: &str, more: Value) -> String {
    let (status, text) = ask(fixture, session, more).await;
    assert_eq!(status, 200, "{text}");
    let last = text.trim_end().rsplit("data: ").next().unwrap();
    let event: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{text}"));
    assert_eq!(event["type"], "response.completed", "{text}");
    event["response"]["id"].as_str().unwrap().to_owned()
}

/// The numbers of the sockets over which requests came; `None`: over HTTP.
async fn sockets(fixture: &Fixture) -> Vec<Option<u64>> {
    let requests = fixture.upstream.requests().await;
    let number = |request: &Value| request["headers"]["x-mock-socket"].as_str()?.parse().ok();
    requests.iter().filter(|request| request["method"] == "POST").map(number).collect()
}

/// The last records, oldest first: outcome, status and cost in dollars.
async fn records(fixture: &Fixture, n: usize) -> Vec<(String, u64, String)> {
    let rows = fixture.gateway.logs(n).await;
    let one = |row: &Value| {
        let outcome = row["outcome"].as_str().unwrap().to_owned();
        (outcome, row["statusCode"].as_u64().unwrap_or_default(), row["costUsd"].to_string())
    };
    rows.iter().rev().map(one).collect()
}

fn succeeded() -> (String, u64, String) {
    ("completed".to_owned(), 200, "0.002".to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_session_of_a_key_has_one_socket_and_each_reply_its_exact_bill() {
    let fixture = fixture(&[]).await;
    let first = complete(&fixture, "a", json!({})).await;
    let more = json!({"previous_response_id": first, "input": [user("only this")]});
    complete(&fixture, "a", more).await;
    let body = &fixture.upstream.requests().await.pop().unwrap();
    assert_eq!(body["body"]["previous_response_id"], *first, "{body}");
    assert_eq!(body["body"]["input"], json!([user("only this")]), "{body}");
    assert_eq!(body["headers"]["authorization"], "Bearer upstream-secret-key", "{body}");
    assert_eq!(body["headers"]["openai-beta"], "responses_websockets=2026-02-06", "{body}");

    complete(&fixture, "b", json!({})).await;
    let (_, _, other) = fixture.gateway.user(json!({"name": "bob"})).await;
    let answer = asked(&fixture, &other, "a", json!({})).send().await.unwrap();
    assert!(answer.text().await.unwrap().contains("response.completed"));
    complete(&fixture, "a", json!({})).await;
    // A reply that is not streamed comes over HTTP; so does that of a converted one.
    assert_eq!(ask(&fixture, "a", json!({"stream": false})).await.0, 200);
    assert_eq!(sockets(&fixture).await, [Some(1), Some(1), Some(2), Some(3), Some(1), None]);
    let chat = fixture.post(path("chat-compatible", true), &request("chat-compatible", true));
    let answer = chat.header("session_id", "a").send().await.unwrap();
    assert!(answer.text().await.unwrap().contains("[DONE]"));
    assert_eq!(sockets(&fixture).await.last().unwrap(), &Some(1));
    assert_eq!(records(&fixture, 7).await, vec![succeeded(); 7]);
    fixture.gateway.metric_shows("tollgate_provider_websockets", |open| open == 3.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_refuses_the_upgrade_is_asked_over_http() {
    let fixture = fixture(&[]).await;
    fixture.upstream.default(json!({"usage": usage()})).await;
    for _ in 0..3 {
        complete(&fixture, "a", json!({})).await;
    }
    assert_eq!(sockets(&fixture).await, [None, None, None]);
    let all = fixture.upstream.requests().await;
    // The refusal is remembered.
    assert_eq!(all.iter().filter(|request| request["method"] == "GET").count(), 1, "{all:?}");
    assert_eq!(records(&fixture, 3).await, vec![succeeded(); 3]);
    for row in fixture.gateway.logs(3).await {
        assert_eq!(row["attempts"], 1, "{row}");
    }
    fixture.gateway.log_shows("no WebSocket to the provider").await;
    fixture.gateway.metric_shows("tollgate_provider_websockets", |open| open == 0.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_before_the_reply_is_that_of_http() {
    let fixture = fixture(&[]).await;
    let wrong = json!({"status": 400, "error": {"message": "no such thing", "code": "odd"}});
    let late = json!({"status": 429, "headers": {"retry-after": "7"}});
    fixture.upstream.script(json!([wrong, {}, late, {}])).await;
    let (status, text) = ask(&fixture, "a", json!({})).await;
    assert_eq!(status, 400, "{text}");
    assert!(text.contains("no such thing") && text.contains("odd"), "{text}");
    complete(&fixture, "a", json!({})).await;
    // The other provider takes over.
    fixture
        .gateway
        .provider("chat-compatible", &fixture.upstream.url, json!({"priority": 9}))
        .await;
    complete(&fixture, "a", json!({})).await;
    assert_eq!(sockets(&fixture).await, [Some(1), Some(1), Some(1), None]);
    let rows = fixture.gateway.logs(3).await;
    assert_eq!(rows[0]["attempts"], 2, "{}", rows[0]);
    let costs: Vec<_> = rows.iter().map(|row| row["costUsd"].as_f64()).collect();
    assert_eq!(costs[..2], [Some(0.002), Some(0.002)], "{rows:?}");
    assert_eq!(costs[2].unwrap_or_default(), 0.0, "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_ends_before_the_reply_costs_the_client_nothing() {
    let fixture = fixture(&[]).await;
    let old = json!({"status": 400, "error": {"code": "websocket_connection_limit_reached"}});
    for (fault, used) in
        [(json!({"cut_after": 0}), true), (old, true), (json!({"cut_after": 0}), false)]
    {
        let session = fault.to_string() + &used.to_string();
        let begun = sockets(&fixture).await.len();
        if used {
            complete(&fixture, &session, json!({})).await;
        }
        fixture.upstream.script(json!([fault])).await;
        complete(&fixture, &session, json!({})).await;
        complete(&fixture, &session, json!({})).await;
        let over = &sockets(&fixture).await[begun..];
        let is_over: Vec<bool> = over.iter().map(Option::is_some).collect();
        // A socket that had served a reply is replaced; a new one counts as a refusal.
        let expected: &[bool] =
            if used { &[true, true, false, true] } else { &[true, false, false] };
        assert_eq!(is_over, expected, "{fault} {over:?}");
    }
    assert_eq!(records(&fixture, 8).await, vec![succeeded(); 8]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_ends_within_a_reply_is_a_broken_stream() {
    let fixture = fixture(&[]).await;
    fixture.upstream.script(json!([{"cut_after": 6, "events": 9}])).await;
    let (status, text) = ask(&fixture, "a", json!({})).await;
    assert_eq!(status, 200);
    assert!(!text.contains("response.completed") && text.contains("event: error"), "{text}");
    complete(&fixture, "a", json!({})).await;
    assert_eq!(sockets(&fixture).await, [Some(1), Some(2)]);
    let rows = fixture.gateway.logs(2).await;
    assert_eq!(rows[1]["outcome"], "broken_off", "{}", rows[1]);
    assert_eq!(rows[0]["costUsd"].as_f64(), Some(0.002));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_ends_the_socket_with_its_reply() {
    let fixture = fixture(&[]).await;
    fixture.upstream.script(json!([{"hold_after": 6, "events": 9}])).await;
    let mut answer = asked(&fixture, &fixture.key, "a", json!({})).send().await.unwrap();
    answer.chunk().await.unwrap().unwrap();
    // Meanwhile another request of the session goes over HTTP.
    complete(&fixture, "a", json!({})).await;
    drop(answer);
    fixture.upstream.stats("dropped=1").await;
    fixture.gateway.metric_shows("tollgate_provider_websockets", |open| open == 0.0).await;
    complete(&fixture, "a", json!({})).await;
    assert_eq!(sockets(&fixture).await, [Some(1), None, Some(2)]);
    let rows = fixture.gateway.logs(3).await;
    let aborted = rows.iter().filter(|row| row["outcome"] == "client_aborted").count();
    assert_eq!(aborted, 1, "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_socket_is_replaced_and_the_provider_says_what_it_does_not_know() {
    let fixture = fixture(&[("TOLLGATE_PROXY_WEBSOCKET_LIFETIME", "1s")]).await;
    // The socket becomes too old meanwhile.
    fixture.upstream.script(json!([{"delay_ms": 1100}])).await;
    let first = complete(&fixture, "a", json!({})).await;
    let (status, text) = ask(&fixture, "a", json!({"previous_response_id": first})).await;
    assert_eq!(status, 400, "{text}");
    assert!(text.contains("previous_response_not_found"), "{text}");
    complete(&fixture, "a", json!({})).await;
    assert_eq!(sockets(&fixture).await, [Some(1), Some(2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_and_nothing_is_sent_for_a_refusal() {
    let fixture = fixture(&[]).await;
    let (_, _, key) = fixture.gateway.user(json!({"name": "bob", "rpm": 1})).await;
    for status in [200, 429] {
        let answer = asked(&fixture, &key, "a", json!({})).send().await.unwrap();
        assert_eq!(answer.status(), status);
        answer.bytes().await.unwrap();
    }
    assert_eq!(sockets(&fixture).await, [Some(1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_waits_for_the_reply() {
    let mut fixture = fixture(&[]).await;
    fixture.upstream.script(json!([{"hold_after": 6, "events": 9}])).await;
    let mut answer = asked(&fixture, &fixture.key, "a", json!({})).send().await.unwrap();
    answer.chunk().await.unwrap().unwrap();
    fixture.gateway.signal("TERM");
    fixture.upstream.go_on(1).await;
    assert!(answer.text().await.unwrap().contains("response.completed"));
    assert_eq!(fixture.gateway.exit_code().await, Some(0));
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    assert_eq!(records(&fixture, 1).await, [succeeded()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_conversation_arrives_whole() {
    let fixture = fixture(&[]).await;
    for size in [60_000, 700_000] {
        let text = "é\"\\".repeat(size / 6);
        complete(&fixture, "a", json!({"input": [user(&text)]})).await;
        let last = fixture.upstream.requests().await.pop().unwrap();
        assert_eq!(last["headers"]["x-mock-socket"], "1");
        assert_eq!(last["body"]["input"][0]["content"], text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_over_a_websocket_gets_its_replies_over_one() {
    let fixture = fixture(&[]).await;
    let mut client = Client::with(&fixture, &[("session_id", "a")]).await;
    client.create(json!({"input": [user("one")]})).await;
    let (_, first) = client.reply().await;
    client.create(json!({"input": [user("two")], "previous_response_id": first})).await;
    client.reply().await;
    // The gateway knows the conversation: the provider gets all of it.
    let last = fixture.upstream.requests().await.pop().unwrap();
    assert_eq!(last["body"]["input"].as_array().unwrap().len(), 3, "{last}");

    // Steering ends the reply, and so its socket.
    let held = json!({"hold_after": 5, "text": "a reply in parts", "events": 9,
        "between_events_ms": 100,
        "thinking": "hm", "usage": usage()});
    fixture.upstream.script(json!([held, {"text": "the successor", "usage": usage()}])).await;
    client.create(json!({"input": [user("three")]})).await;
    let begun = client.until("response.output_item.added").await;
    let steer = json!({"type": "response.steer", "input": [user("rather this")],
        "previous_response_id": begun[0]["response"]["id"]});
    client.say(&steer).await;
    client.until("response.steer.accepted").await;
    fixture.upstream.go_on(1).await;
    client.until("response.incomplete").await;
    client.until("response.completed").await;
    // The successor does not wait for the end of its socket.
    assert_eq!(sockets(&fixture).await[..3], [Some(1), Some(1), Some(1)]);
    drop(client);
    let rows = fixture.gateway.logs(4).await;
    assert_eq!(rows[0]["costUsd"].as_f64(), Some(0.002), "{rows:?}");
}
