//! Requests to native models by their generation: Claude from 4.7 on thinks as much as it decides, and
//! takes neither a budget nor sampling. The mock of the service refuses what the real one would.

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
    let reply = tollgate::mock::router().oneshot(request).await.unwrap();
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

#[tokio::test]
async fn without_reasoning_nothing_is_asked_for() {
    for body in [
        json!({"model": "m", "messages": [{"role": "user", "content": "x"}]}),
        json!({"model": "m", "messages": [{"role": "user", "content": "x"}], "reasoning_effort": "none"}),
    ] {
        let sent = sent(Chat, "claude-opus-4-7", &body).await;
        assert_eq!((sent.body.get("thinking"), sent.body.get("output_config")), (None, None));
    }
    // Nor beside a tool that must be called.
    let tool =
        json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}});
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "x"}],
        "reasoning_effort": "high", "tools": [tool], "tool_choice": "required"});
    let sent = sent(Chat, "claude-opus-4-7", &body).await;
    assert_eq!(sent.body.get("thinking"), None);
    assert!(sent.dropped.contains(&"thinking_off"));
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
