//! `response.steer`: a reply gives way to a successor, which is a request of its own.

use serde_json::{Value, json};

use super::client::{Client, text, user};
use crate::proxy::fixture::{FORMATS, Fixture};

const USAGE: [u64; 2] = [1000, 500];

/// Steers a reply that is held within its first item. Returns its id.
async fn steered(fixture: &Fixture, client: &mut Client, directive: Value, more: Value) -> String {
    let mut held = directive;
    held["hold_after"] = held.get("hold_after").cloned().unwrap_or(json!(5));
    held["usage"] = json!({"input": USAGE[0], "output": USAGE[1]});
    fixture
        .upstream
        .script(json!([held, {"text": "the successor",
        "usage": {"input": USAGE[0], "output": USAGE[1]}}]))
        .await;
    client.create(more).await;
    // Before it the reply would end at once.
    let begun = client.until("response.output_item.added").await;
    let id = begun[0]["response"]["id"].as_str().unwrap().to_owned();
    let steer = json!({"type": "response.steer", "previous_response_id": id,
        "input": [user("rather do this")]});
    client.say(&steer).await;
    let accepted = client.until("response.steer.accepted").await;
    let steer = &accepted[accepted.len() - 1]["steer"];
    assert_eq!(steer["previous_response_id"], *id, "{steer}");
    assert!(steer["id"].as_str().unwrap().starts_with("steer_"), "{steer}");
    fixture.upstream.go_on(1).await;
    id
}

async fn last_body(fixture: &Fixture) -> String {
    fixture.upstream.requests().await.last().unwrap()["body"].to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_completes_is_followed_by_its_successor() {
    for kind in FORMATS {
        let fixture = Fixture::bare(&[]).await;
        fixture.gateway.provider(kind, &fixture.upstream.url, json!({})).await;
        let mut client = Client::open(&fixture).await;
        let directive = json!({"text": "all of it, in many parts, and to the end", "events": 10});
        steered(&fixture, &mut client, directive, json!({"input": "go"})).await;
        client.until("response.completed").await;
        assert_eq!(text(&client.until("response.completed").await), "the successor", "{kind}");
        let body = last_body(&fixture).await;
        assert!(body.contains("to the end") && body.contains("rather do this"), "{kind}: {body}");
        let rows = fixture.gateway.logs(2).await;
        for row in rows {
            assert_eq!(row["costUsd"].as_f64(), Some(0.002), "{kind}: {row}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_ends_before_its_next_item() {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    let mut client = Client::open(&fixture).await;
    let directive = json!({"thinking": "a first thought of some length", "text": "never said", "events": 8, "hold_after": 3, "between_events_ms": 300});
    let reasons = json!({"input": "go", "reasoning": {"effort": "low", "summary": "auto"}});
    let id = steered(&fixture, &mut client, directive, reasons).await;
    let cut = client.until("response.incomplete").await;
    let end = &cut[cut.len() - 1]["response"];
    assert_eq!(end["incomplete_details"]["reason"], "steered", "{end}");
    assert_eq!((&end["id"], &end["status"]), (&json!(id), &json!("incomplete")));
    assert_eq!(text(&client.until("response.completed").await), "the successor");
    let body = last_body(&fixture).await;
    assert!(body.contains("rather do this") && !body.contains("never said"), "{body}");
    let rows = fixture.gateway.logs(2).await;
    let outcomes: Vec<&Value> = rows.iter().map(|row| &row["outcome"]).collect();
    assert!(outcomes.contains(&&json!("client_aborted")), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn input_waits_for_the_results_of_tools() {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    let mut client = Client::open(&fixture).await;
    let call = json!([{"name": "look", "arguments": {"at": "it"}, "id": "call_1"}]);
    let tool = json!({"type": "function", "name": "look", "parameters": {"type": "object"}});
    let more = json!({"input": "go", "tools": [tool]});
    fixture.upstream.script(json!([{"tools": call, "hold_after": 3}, {"text": "done"}])).await;
    client.create(more.clone()).await;
    let begun = client.until("response.output_item.added").await;
    let id = begun[0]["response"]["id"].clone();
    client
        .say(&json!({"type": "response.steer", "previous_response_id": id, "input": "and hurry"}))
        .await;
    client.until("response.steer.accepted").await;
    fixture.upstream.go_on(1).await;
    client.until("response.completed").await;
    let pending = client.next().await.unwrap();
    assert_eq!(pending["type"], "response.steer.pending", "{pending}");
    let required = pending["required_input"][0].clone();
    assert_eq!(
        (&required["type"], &required["name"]),
        (&json!("function_call_output"), &json!("look"))
    );
    let mut result = required;
    result.as_object_mut().unwrap().remove("name");
    result["output"] = json!("seen");
    let mut next = more;
    next["input"] = json!([result]);
    next["previous_response_id"] = id;
    client.create(next).await;
    client.until("response.completed").await;
    let body = last_body(&fixture).await;
    assert!(body.contains("and hurry") && body.contains("seen"), "{body}");
    fixture.gateway.logs(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_that_cannot_be_taken_is_given_back() {
    let fixture = Fixture::native().await;
    let mut client = Client::open(&fixture).await;
    client.create(json!({"input": "a"})).await;
    let (_, id) = client.reply().await;
    for (response, input, code) in [
        ("resp_unknown", json!("x"), "response_not_found"),
        (&*id, json!("x"), "response_already_completed"),
        (&*id, json!([{"role": "system", "content": "x"}]), "invalid_input"),
    ] {
        let steer =
            json!({"type": "response.steer", "previous_response_id": response, "input": input});
        client.say(&steer).await;
        let failed = client.next().await.unwrap();
        assert_eq!(
            (&failed["type"], &failed["error"]["code"]),
            (&json!("response.steer.failed"), &json!(code))
        );
        assert_eq!(failed["steer"], json!({"previous_response_id": response, "input": input}));
    }
    // The successor is refused.
    let edit = json!({"userId": fixture.user_id, "rpm": 2});
    fixture.gateway.admin("users/editUser", edit).await;
    steered(
        &fixture,
        &mut client,
        json!({"text": "all of it, in many parts, and to the end", "events": 10}),
        json!({"input": "go"}),
    )
    .await;
    let frames = client.until("response.steer.failed").await;
    let [.., refused, failed] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!(refused["status"], 429, "{refused}");
    assert_eq!(failed["error"]["code"], "successor_creation_failed");
    assert!(failed["steer"]["id"].is_string(), "{failed}");
}
