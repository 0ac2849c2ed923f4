//! Replies, conversations and errors: as over HTTP, in frames.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::client::{Client, create, handshake, text, user};
use crate::proxy::fixture::{FORMATS, Fixture, path};

/// The last request that a provider received, as the texts that it holds, in order.
async fn received(fixture: &Fixture) -> (Value, String) {
    let requests = fixture.upstream.requests().await;
    let body = requests.last().unwrap()["body"].clone();
    let text = body.to_string();
    (body, text)
}

/// The places of texts in a body, which must be in this order.
fn in_order(body: &str, texts: &[&str]) {
    let places: Vec<Option<usize>> = texts.iter().map(|text| body.find(text)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} {body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_of_provider_answers_and_each_reply_is_one_record() {
    let usage = json!({"input": 1000, "output": 500});
    for kind in FORMATS {
        let fixture = Fixture::bare(&[]).await;
        fixture.gateway.provider(kind, &fixture.upstream.url, json!({})).await;
        let directive = |text: &str| json!({"text": text, "usage": usage, "events": 3});
        let answers = ["first answer", "second answer", "third answer"].map(directive);
        fixture.upstream.script(json!(answers)).await;
        let headers = [
            ("session_id", "conversation-7"),
            ("user-agent", "codex_test/1"),
            ("openai-beta", "responses_websockets=2026-02-06"),
        ];
        let mut client = Client::with(&fixture, &headers).await;
        client
            .create(json!({"input": [user("one")], "instructions": "be brief",
            "client_metadata": {"ws_request_header_traceparent": "00-1"}}))
            .await;
        let (text, first) = client.reply().await;
        assert_eq!(text, "first answer", "{kind}");
        client.say(&json!({"type": "response.processed", "response_id": first})).await;

        client.create(json!({"input": [user("two")], "previous_response_id": first})).await;
        let (text, second) = client.reply().await;
        assert_eq!(text, "second answer", "{kind}");
        let (body, whole) = received(&fixture).await;
        in_order(&whole, &["one", "first answer", "two"]);
        for member in ["previous_response_id", "stream_id", "generate", "ws_request_header"] {
            assert!(!whole.contains(member), "{kind}: {whole}");
        }
        if kind == "responses" {
            assert_eq!((&body["stream"], &body["store"]), (&json!(true), &json!(false)));
            assert_eq!(body["input"].as_array().unwrap().len(), 3, "{body}");
        }

        // Unknown to this connection: the client sends everything again.
        let mut other = Client::with(&fixture, &headers).await;
        other.create(json!({"input": [user("three")], "previous_response_id": second})).await;
        let (status, error) = other.error().await;
        assert_eq!((status, &error["code"]), (400, &json!("previous_response_not_found")));
        assert_eq!(error["param"], "previous_response_id");
        other.create(json!({"input": [user("anew")]})).await;
        assert_eq!(other.reply().await.0, "third answer", "{kind}");

        for row in fixture.gateway.logs(3).await {
            let facts = ["endpoint", "sessionId", "userAgent", "streamed", "statusCode"]
                .map(|name| &row[name]);
            let wanted = [
                json!("/v1/responses#websocket"),
                json!("conversation-7"),
                json!("codex_test/1"),
                json!(true),
                json!(200),
            ];
            assert_eq!(facts, wanted.each_ref(), "{kind}: {row}");
            assert_eq!(row["costUsd"].as_f64(), Some(0.002), "{row}");
        }
        let sent = fixture.upstream.requests().await;
        assert!(!json!(sent).to_string().contains("responses_websockets"), "{sent:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_over_either_transport_is_the_same_to_its_provider() {
    let fixture = Fixture::full().await;
    let input = json!([user("say hello"), {"type": "message", "role": "assistant",
        "content": [{"type": "output_text", "text": "\u{e9} \"quoted\" 1e400"}]}, user("again")]);
    let body = json!({"model": "m", "store": false, "input": input, "stream": true,
        "prompt_cache_key": "k", "parallel_tool_calls": true});
    let headers = [("session_id", "s"), ("x-codex-window", "w")];
    let mut posted = fixture.post(path("responses", true), &body);
    for (name, value) in headers {
        posted = posted.header(name, value);
    }
    assert_eq!(posted.send().await.unwrap().status(), 200);
    let mut client = Client::with(&fixture, &headers).await;
    let mut frame = body.clone();
    frame["type"] = json!("response.create");
    client.say(&frame).await;
    client.reply().await;
    let [one, two] = &fixture.upstream.requests().await[..] else { panic!("two requests") };
    assert_eq!(one["path"], two["path"]);
    assert_eq!(one["body"], two["body"]);
    let names = |request: &Value| -> BTreeSet<String> {
        let names = request["headers"].as_object().unwrap().keys().cloned();
        names
            .filter(|name| !matches!(&name[..], "content-length" | "user-agent" | "accept"))
            .collect()
    };
    assert_eq!(names(one), names(two));
}

#[tokio::test(flavor = "multi_thread")]
async fn prewarming_costs_nothing_and_begins_a_conversation() {
    let fixture = Fixture::full().await;
    let mut client = Client::open(&fixture).await;
    client.create(json!({"input": [user("beginning")], "generate": false})).await;
    let frames = client.until("response.completed").await;
    assert_eq!(frames.len(), 2, "{frames:?}");
    let response = &frames[1]["response"];
    assert_eq!((&response["output"], &response["model"]), (&json!([]), &json!("m")));
    assert_eq!(response["usage"]["total_tokens"], 0);
    let id = response["id"].as_str().unwrap().to_owned();
    client.create(json!({"input": [user("the rest")], "previous_response_id": id})).await;
    client.reply().await;
    in_order(&received(&fixture).await.1, &["beginning", "the rest"]);
    fixture.gateway.logs(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_is_appended_and_a_compacted_history_replaces() {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("responses", &fixture.upstream.url, json!({})).await;
    let mut client = Client::open(&fixture).await;
    let append = |items: Value| json!({"type": "response.append", "input": items});
    client.say(&append(json!([user("early")]))).await;
    assert_eq!(client.error().await.0, 400);
    client.create(json!({"input": "one", "instructions": "kept"})).await;
    client.reply().await;
    client.say(&append(json!([user("two")]))).await;
    let (_, id) = client.reply().await;
    let (body, whole) = received(&fixture).await;
    in_order(&whole, &["one", "two"]);
    assert_eq!(body["instructions"], "kept");
    fixture.upstream.default(json!({"strict": false})).await;
    let compacted = json!([{"type": "compaction", "encrypted_content": "short"}, user("three")]);
    client.create(json!({"input": compacted, "previous_response_id": id})).await;
    client.reply().await;
    let (body, _) = received(&fixture).await;
    assert_eq!(body["input"], compacted);
    client.say(&append(json!([{"role": "assistant", "content": "own"}, user("four")]))).await;
    client.reply().await;
    let (body, whole) = received(&fixture).await;
    assert!(body["input"].as_array().unwrap().len() == 2 && !whole.contains("three"), "{body}");
    fixture.gateway.logs(4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_its_provider_stores_is_continued_there() {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("responses", &fixture.upstream.url, json!({})).await;
    fixture.upstream.default(json!({"strict": false})).await;
    let mut client = Client::open(&fixture).await;
    client.create(json!({"input": "one", "store": true})).await;
    let (_, first) = client.reply().await;
    let mut other = Client::open(&fixture).await;
    other.create(json!({"input": "two", "store": true, "previous_response_id": first})).await;
    let (_, second) = other.reply().await;
    let (body, whole) = received(&fixture).await;
    assert_eq!(body["previous_response_id"], *first);
    assert!(!whole.contains("one"), "{whole}");
    other.create(json!({"input": "three", "store": true, "previous_response_id": second})).await;
    other.reply().await;
    assert_eq!(received(&fixture).await.0["previous_response_id"], *second);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_frames_and_the_connection_goes_on() {
    let fixture = Fixture::bare(&[]).await;
    let only = json!({"allowed_models": ["m"], "max_retry_attempts": 1});
    fixture.gateway.provider("native", &fixture.upstream.url, only).await;
    for key in ["", "sk-00000000000000000000000000000000"] {
        let (status, body) = handshake(&fixture, key, &[]).await.err().unwrap();
        assert_eq!(status, 401);
        assert!(body.contains("\"error\""), "{body}");
    }
    let mut client = Client::open(&fixture).await;
    for (frame, status, member) in [
        (json!("no object"), 400, Value::Null),
        (json!({"type": "session.update"}), 400, json!("type")),
        (create(json!({"background": true, "input": "a"})), 400, json!("background")),
        (create(json!({"input": 7})), 400, json!("input")),
        (create(json!({"model": "unknown", "input": "a"})), 404, Value::Null),
        (create(json!({"input": "a", "tools": 7})), 400, Value::Null),
    ] {
        client.say(&frame).await;
        let (got, error) = client.error().await;
        assert_eq!(got, status, "{frame}: {error}");
        assert!(error["message"].is_string() && error["type"].is_string(), "{error}");
        if !member.is_null() {
            assert_eq!(error["param"], member, "{frame}: {error}");
        }
    }
    fixture.upstream.script(json!([{"status": 500}, {"error_after": 6, "events": 9, "between_events_ms": 30, "text": "some text of some length"}])).await;
    client.create(json!({"input": "a"})).await;
    assert!(client.error().await.0 >= 500);
    client.create(json!({"input": "a"})).await;
    let frames = client.until("response.failed").await;
    assert!(frames.iter().any(|frame| frame["type"] == "error"), "{frames:?}");

    let edit = json!({"userId": fixture.user_id, "rpm": 1});
    fixture.gateway.admin("users/editUser", edit).await;
    let mut limited = false;
    for _ in 0..2 {
        client.create(json!({"input": "a"})).await;
        let frame = client.next().await.unwrap();
        limited = frame["status"] == 429;
        if limited {
            assert_eq!(frame["error"]["limit_type"], "user_rpm", "{frame}");
            assert!(frame["headers"]["retry-after"].is_string(), "{frame}");
            assert!(frame["headers"]["x-tollgate-request-id"].is_string(), "{frame}");
            break;
        }
        client.until("response.completed").await;
    }
    assert!(limited);
    let edit = json!({"userId": fixture.user_id, "rpm": null});
    fixture.gateway.admin("users/editUser", edit).await;
    client.create(json!({"input": "a"})).await;
    client.reply().await;
}

/// The bytes of a history that is not kept are given back.
#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_is_too_large_is_unknown() {
    let fixture = Fixture::bare(&[
        ("TOLLGATE_PROXY_MAX_BODY_BYTES", "64KiB"),
        ("TOLLGATE_PROXY_MAX_INFLIGHT_BODY_BYTES", "512KiB"),
    ])
    .await;
    fixture.gateway.provider("responses", &fixture.upstream.url, json!({})).await;
    let mut client = Client::open(&fixture).await;
    let large = "x".repeat(20_000);
    let mut ids = Vec::new();
    for lane in ["a", "b", "c", "d", "e", "f", "g"] {
        client.create(json!({"input": large, "stream_id": lane})).await;
        let frames = client.until("response.completed").await;
        assert!(!text(&frames).is_empty());
        ids.push(frames[0]["response"]["id"].clone());
    }
    // Together they would take more than a quarter of the budget.
    client.create(json!({"input": "more", "previous_response_id": ids[6]})).await;
    assert_eq!(client.error().await.1["code"], "previous_response_not_found");
    client.create(json!({"input": "more", "previous_response_id": ids[0]})).await;
    client.reply().await;
    drop(client);
    fixture.gateway.metric_shows("tollgate_websockets", |open| open == 0.0).await;
    fixture.gateway.metric_shows("tollgate_request_body_bytes", |held| held == 0.0).await;
}
