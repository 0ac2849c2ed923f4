//! Requests for reasoning to models that take some efforts and refuse others. The mock refuses what
//! the real services would.

use axum::http::StatusCode;
use serde_json::{Value, json};
use tollgate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};
use tollgate::domain::model_facts::ModelFacts;
use tollgate::formats::convert::{self, RequestOptions};
use tower::ServiceExt as _;

use super::services::ask_model;

struct Sent {
    body: Value,
    rules: Vec<&'static str>,
}

/// Converts a request for a model and has the mock take it.
async fn sent(from: WireFormat, to: WireFormat, model: &str, body: &Value) -> Sent {
    let options = RequestOptions::new(model, false);
    let done = convert::request(from, to, body.to_string().as_bytes(), &options).unwrap();
    let request = ask_model(to, model, false, done.body.clone());
    let reply = tollgate_mock::router().oneshot(request).await.unwrap();
    let status = reply.status();
    let said = axum::body::to_bytes(reply.into_body(), 1 << 20).await.unwrap();
    assert_eq!(status, StatusCode::OK, "{model} {body}: {}", String::from_utf8_lossy(&said));
    let rules = [done.dropped, done.changed].concat();
    Sent { body: serde_json::from_slice(&done.body).unwrap(), rules }
}

fn native(fields: &Value) -> Value {
    let mut body = json!({"model": "m", "max_tokens": 70_000, "temperature": 0.5,
        "stop_sequences": ["END"], "messages": [{"role": "user", "content": "x"}]});
    for (field, value) in fields.as_object().unwrap() {
        body[field] = value.clone();
    }
    body
}

fn chat(effort: &str) -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "x"}], "stop": "END",
        "temperature": 0.5, "presence_penalty": 0.1, "reasoning_effort": effort})
}

/// Every way to ask for some reasoning, or for none.
fn asking() -> Vec<(WireFormat, Value)> {
    let efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
    let mut all: Vec<_> = efforts.iter().map(|effort| (Chat, chat(effort))).collect();
    let thinking = |thinking: Value| (Native, native(&json!({"thinking": thinking})));
    all.push((Native, native(&json!({}))));
    all.push(thinking(json!({"type": "disabled"})));
    all.push(thinking(json!({"type": "adaptive"})));
    for budget in [1024, 10_000, 31_999, 65_536] {
        all.push(thinking(json!({"type": "enabled", "budget_tokens": budget})));
    }
    all
}

#[tokio::test]
async fn the_models_take_every_request_for_reasoning() {
    let gpt = ["gpt-4o", "o3", "gpt-5", "gpt-5-mini", "gpt-5.1", "gpt-5.1-codex", "gpt-5.2"];
    let newer = ["gpt-5.2-pro", "gpt-5.6-sol", "gpt-6-astra"];
    let gemini = ["gemini-2.5-pro", "gemini-2.5-flash", "gemini-3-pro-preview"];
    let levels = ["gemini-3-flash-preview", "gemini-3.1-pro-preview", "gemini-3.7-flash"];
    for (from, body) in asking() {
        for model in [&gpt[..], &newer].concat() {
            for to in [Chat, Responses].into_iter().filter(|to| *to != from) {
                sent(from, to, model, &body).await;
            }
        }
        for model in [&gemini[..], &levels].concat() {
            sent(from, AltCli, model, &body).await;
        }
    }
}

#[tokio::test]
async fn an_effort_is_the_nearest_that_the_model_takes() {
    let adaptive = |effort: &str| {
        native(&json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}))
    };
    for (model, asked, in_responses, in_chat) in [
        ("gpt-5", "max", json!("high"), json!("high")),
        ("gpt-5.2", "max", json!("xhigh"), json!("xhigh")),
        ("gpt-6-astra", "max", json!("max"), json!("xhigh")),
        ("gpt-5.2-pro", "low", json!("medium"), json!("medium")),
        ("gpt-4o", "high", Value::Null, Value::Null),
        ("some-model", "max", json!("max"), json!("max")),
    ] {
        let responses = sent(Native, Responses, model, &adaptive(asked)).await;
        assert_eq!(responses.body["reasoning"]["effort"], in_responses, "{model}");
        let is_changed = in_responses != json!(asked);
        assert_eq!(responses.rules.contains(&"effort"), is_changed, "{model}");
        let chat = sent(Native, Chat, model, &adaptive(asked)).await;
        assert_eq!(chat.body.get("reasoning_effort").unwrap_or(&Value::Null), &in_chat, "{model}");
    }
    let least = sent(Chat, Responses, "gpt-5", &chat("none")).await;
    assert_eq!(least.body["reasoning"]["effort"], "minimal");
}

#[tokio::test]
async fn functions_of_newer_models_keep_their_reasoning_in_responses_only() {
    let tools = json!([{"name": "f", "input_schema": {"type": "object", "properties": {}}}]);
    let thinking = json!({"type": "enabled", "budget_tokens": 9000});
    for fields in [json!({"tools": tools, "thinking": thinking}), json!({"tools": tools})] {
        let body = native(&fields);
        let chat = sent(Native, Chat, "gpt-5.6-sol", &body).await;
        assert_eq!(chat.body["reasoning_effort"], "none");
        assert!(chat.rules.contains(&"effort"));
        let older = sent(Native, Chat, "gpt-5.2", &body).await;
        assert_ne!(older.body.get("reasoning_effort"), Some(&json!("none")));
    }
    let body = native(&json!({"tools": tools, "thinking": thinking}));
    let responses = sent(Native, Responses, "gpt-5.6-sol", &body).await;
    assert_eq!(responses.body["reasoning"]["effort"], "medium");
}

#[tokio::test]
async fn what_a_model_refuses_beside_reasoning_is_left_out() {
    let body = native(&json!({}));
    for (model, temperature, stops) in
        [("gpt-5", false, false), ("gpt-5.2", true, false), ("gpt-4o", true, true)]
    {
        let sent = sent(Native, Chat, model, &body).await;
        assert_eq!(sent.body.get("temperature").is_some(), temperature, "{model}");
        assert_eq!(sent.rules.contains(&"reasoning_sampling"), !temperature, "{model}");
        assert_eq!(sent.body.get("stop").is_some(), stops, "{model}");
        assert_eq!(sent.rules.contains(&"stop_sequences"), !stops, "{model}");
    }
}

#[tokio::test]
async fn gemini_thinks_within_its_bounds() {
    let config = |sent: &Sent| sent.body["generationConfig"]["thinkingConfig"].clone();
    for (model, effort, expected) in [
        ("gemini-2.5-pro", "none", json!({"includeThoughts": false, "thinkingBudget": 128})),
        ("gemini-2.5-flash", "none", json!({"includeThoughts": false, "thinkingBudget": 0})),
        ("gemini-2.5-flash", "max", json!({"includeThoughts": true, "thinkingBudget": 24_576})),
        ("gemini-3-pro-preview", "none", json!({"includeThoughts": false, "thinkingLevel": "LOW"})),
        ("gemini-3-pro-preview", "max", json!({"includeThoughts": true, "thinkingLevel": "HIGH"})),
        ("gemini-3.7-flash", "medium", json!({"includeThoughts": true, "thinkingLevel": "MEDIUM"})),
    ] {
        let sent = sent(Chat, AltCli, model, &chat(effort)).await;
        assert_eq!(config(&sent), expected, "{model} {effort}");
    }
    let adaptive = native(&json!({"thinking": {"type": "adaptive"}}));
    let sent = sent(Native, AltCli, "gemini-3-pro-preview", &adaptive).await;
    assert_eq!(config(&sent), json!({"includeThoughts": true}));
    assert!(!sent.rules.contains(&"thinking_level"));
}

#[test]
fn a_gemini_gets_the_levels_that_its_entry_lists() {
    let level = |facts: Option<&ModelFacts>, effort: &str| {
        let options = RequestOptions { facts, ..RequestOptions::new("gemini-3.5-flash", false) };
        let body = chat(effort).to_string();
        let done = convert::request(Chat, AltCli, body.as_bytes(), &options).unwrap();
        let sent: Value = serde_json::from_slice(&done.body).unwrap();
        sent["generationConfig"]["thinkingConfig"]["thinkingLevel"].clone()
    };
    let entry = json!({"accepts": {"alt-cli": {"thinking": {"level": ["low", "high", "xhigh"]}}}});
    let facts = ModelFacts::of_entry(&entry).unwrap();
    for (effort, shipped, listed) in
        [("high", "HIGH", "HIGH"), ("xhigh", "HIGH", "XHIGH"), ("max", "HIGH", "XHIGH")]
    {
        assert_eq!(
            (level(None, effort), level(facts.as_ref(), effort)),
            (json!(shipped), json!(listed))
        );
    }
}
