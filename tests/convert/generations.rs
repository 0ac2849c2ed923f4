//! Requests to native models by their generation: Claude from 4.7 on thinks as much as it decides,
//! and takes neither a budget nor sampling. The mock refuses what the real service would.

use axum::http::StatusCode;
use serde_json::{Value, json};
use tollgate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};
use tollgate::formats::convert::{self, RequestOptions};
use tower::ServiceExt as _;

use super::services::ask;

struct Sent {
    body: Value,
    dropped: Vec<&'static str>,
    changed: Vec<&'static str>,
}

/// Converts a request for a model and has the mock take it.
async fn sent(from: WireFormat, model: &str, body: &Value) -> Sent {
    let options = RequestOptions::new(model, false);
    let done = convert::request(from, Native, body.to_string().as_bytes(), &options).unwrap();
    let request = ask(Native, false, done.body.clone());
    let reply = tollgate_mock::router().oneshot(request).await.unwrap();
    let status = reply.status();
    let said = axum::body::to_bytes(reply.into_body(), 1 << 20).await.unwrap();
    assert_eq!(status, StatusCode::OK, "{model}: {}", String::from_utf8_lossy(&said));
    let body = serde_json::from_slice(&done.body).unwrap();
    Sent { body, dropped: done.dropped, changed: done.changed }
}

/// A request of each format for reasoning, with sampling, and the effort that it means.
fn asking() -> [(WireFormat, Value, &'static str); 4] {
    let chat = |effort: &str| {
        json!({"model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": 9000,
            "reasoning_effort": effort, "temperature": 0.2, "top_p": 0.9})
    };
    [
        (Chat, chat("minimal"), "low"),
        (Chat, chat("xhigh"), "xhigh"),
        (
            Responses,
            json!({"model": "m", "input": "x", "reasoning": {"effort": "medium"}, "top_p": 0.9}),
            "medium",
        ),
        (
            AltCli,
            json!({"contents": [{"role": "user", "parts": [{"text": "x"}]}], "generationConfig": {
                "temperature": 0, "topP": 0.95, "topK": 64,
                "thinkingConfig": {"thinkingBudget": -1}}}),
            "high",
        ),
    ]
}

#[tokio::test]
async fn newer_models_think_adaptively_and_take_no_sampling() {
    for model in ["claude-opus-4-7", "claude-opus-4-8-20260701", "claude-sonnet-5"] {
        for (from, body, effort) in asking() {
            let sent = sent(from, model, &body).await;
            let thinking = json!({"type": "adaptive", "display": "summarized"});
            assert_eq!(sent.body["thinking"], thinking, "{from} {model}");
            assert_eq!(sent.body["output_config"], json!({"effort": effort}), "{from} {model}");
            for field in ["temperature", "top_p", "top_k"] {
                assert_eq!(sent.body.get(field), None, "{from} {model} {field}");
            }
            assert!(sent.dropped.contains(&"adaptive_sampling"), "{from} {:?}", sent.dropped);
        }
    }
}

#[tokio::test]
async fn older_models_have_a_budget() {
    for model in ["claude-opus-4-6", "claude-sonnet-4-5-20250929", "claude-haiku-4-5"] {
        for (from, body, _) in asking() {
            let sent = sent(from, model, &body).await;
            assert_eq!(sent.body["thinking"]["type"], "enabled", "{from} {model}");
            assert_eq!(sent.body.get("output_config"), None, "{from} {model}");
        }
    }
}

#[tokio::test]
async fn a_budget_becomes_an_effort() {
    let body = json!({"contents": [{"parts": [{"text": "x"}]}],
        "generationConfig": {"thinkingConfig": {"thinkingBudget": 9000}}});
    let sent = sent(AltCli, "claude-opus-4-7", &body).await;
    assert_eq!(sent.body["output_config"]["effort"], "medium");
    assert_eq!(sent.changed, ["adaptive_thinking"]);
}

/// A chat request with these fields beside the usual ones.
fn chat(fields: &Value) -> Value {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "x"}]});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn what_asks_for_no_thinking_gets_none_or_the_least() {
    let off = json!({"type": "disabled"});
    let low = json!({"effort": "low"});
    let binding = json!({"prefix_mismatch_behavior": "drop_block"});
    // What they do unasked, and that thinking which does not fit is left out.
    let bound = json!({"type": "adaptive", "block_binding": binding});
    let shown = json!({"type": "adaptive", "display": "summarized"});
    let both = json!({"type": "adaptive", "display": "summarized", "block_binding": binding});
    for (model, thinking, output, changed, unasked) in [
        ("claude-opus-4-7", None, None, false, None),
        ("claude-opus-5", Some(&off), None, false, None),
        ("claude-sonnet-5", Some(&off), None, false, None),
        ("claude-haiku-5-5", Some(&off), None, false, Some(&bound)),
        ("claude-opus-5-5", Some(&bound), Some(&low), true, Some(&both)),
        ("claude-sonnet-5-5", Some(&bound), Some(&low), true, Some(&both)),
        ("claude-fable-5", None, Some(&low), true, Some(&shown)),
    ] {
        let none = sent(Chat, model, &chat(&json!({"reasoning_effort": "none"}))).await;
        let got = (none.body.get("thinking"), none.body.get("output_config"));
        assert_eq!(got, (thinking, output), "{model}");
        assert_eq!(none.changed.contains(&"adaptive_thinking"), changed, "{model}");
        let unsaid = sent(Chat, model, &chat(&json!({}))).await;
        let got = (unsaid.body.get("thinking"), unsaid.body.get("output_config"));
        assert_eq!(got, (unasked, None), "{model}");
    }
}

#[tokio::test]
async fn a_tool_that_must_be_called_keeps_the_effort() {
    let tool =
        json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}});
    let body =
        chat(&json!({"reasoning_effort": "high", "tools": [tool], "tool_choice": "required"}));
    for (model, thinks, choice) in [
        ("claude-opus-4-7", false, "any"),
        ("claude-opus-5", true, "any"),
        ("claude-opus-5-5", true, "auto"),
        ("claude-fable-5-1", true, "auto"),
    ] {
        let sent = sent(Chat, model, &body).await;
        assert_eq!(sent.body.get("thinking").is_some(), thinks, "{model}");
        assert_eq!(sent.body["output_config"]["effort"], "high", "{model}");
        assert_eq!(sent.body["tool_choice"]["type"], choice, "{model}");
        assert_eq!(sent.dropped.contains(&"thinking_off"), !thinks, "{model}");
        assert_eq!(sent.changed.contains(&"forced_tool"), choice == "auto", "{model}");
    }
}

#[tokio::test]
async fn answers_to_unsigned_calls_keep_the_thinking() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let messages = json!([
        {"role": "user", "content": "x"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "done"},
    ]);
    let body = chat(&json!({"reasoning_effort": "low", "messages": messages}));
    for model in ["claude-opus-4-8", "claude-sonnet-5"] {
        let sent = sent(Chat, model, &body).await;
        assert_eq!(sent.body["thinking"]["type"], "adaptive", "{model}");
        assert_eq!(sent.body["output_config"]["effort"], "low", "{model}");
    }
}

#[tokio::test]
async fn an_effort_stands_beside_a_schema() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}},
        "required": ["a"], "additionalProperties": false});
    let body = json!({"model": "m", "input": "x", "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": schema, "strict": true}}});
    let sent = sent(Responses, "claude-opus-4-7", &body).await;
    assert_eq!(sent.body["output_config"]["effort"], "low");
    assert_eq!(sent.body["output_config"]["format"]["schema"], schema);
}

#[tokio::test]
async fn a_strict_tool_stays_strict_where_its_schema_can_be_taken() {
    let body = |schema: Value| {
        json!({"model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": 9,
            "tools": [{"type": "function", "function": {
                "name": "f", "strict": true, "parameters": schema}}]})
    };
    let bounded = json!({"type": "object", "required": ["n"],
        "properties": {"n": {"type": "integer", "minimum": 1}}, "additionalProperties": false});
    let sent_bounded = sent(Chat, "claude-opus-4-6", &body(bounded)).await;
    let tool = &sent_bounded.body["tools"][0];
    assert_eq!(tool["strict"], true);
    assert_eq!(tool["input_schema"]["properties"]["n"], json!({"type": "integer"}));
    assert!(sent_bounded.changed.contains(&"schema_keywords"));

    let map = json!({"type": "object", "properties": {
        "env": {"type": "object", "additionalProperties": {"type": "string"}}}});
    let sent_map = sent(Chat, "claude-opus-4-6", &body(map.clone())).await;
    let tool = &sent_map.body["tools"][0];
    assert_eq!((tool.get("strict"), &tool["input_schema"]), (None, &map));
    assert!(sent_map.changed.contains(&"strict"));
}

#[tokio::test]
async fn a_conversation_that_ends_with_the_assistant_goes_on() {
    let body = json!({"model": "m", "max_tokens": 9, "messages": [
        {"role": "user", "content": "x"}, {"role": "assistant", "content": "begun "}]});
    let newer = sent(Chat, "claude-sonnet-4-6", &body).await;
    let last = json!({"role": "user", "content": "(continue)"});
    assert_eq!(newer.body["messages"].as_array().unwrap().last(), Some(&last));
    assert!(newer.changed.contains(&"last_turn"));
    let older = sent(Chat, "claude-opus-4-5", &body).await;
    assert_eq!(older.body["messages"].as_array().unwrap().len(), 2);
    assert!(!older.changed.contains(&"last_turn"));
}
