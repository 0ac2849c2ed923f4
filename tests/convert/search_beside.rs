//! A search of the alt-cli service beside functions: its steps go to the client in place of
//! reasoning, and come back as they were. Shapes: google-genai 3.6 (`ToolCall`, `ToolResponse`,
//! `include_server_side_tool_invocations`).

use axum::http::StatusCode;
use serde_json::{Value, json};
use tollgate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};
use tollgate::domain::model_facts::ModelFacts;
use tollgate::formats::convert::{self, ConvertedRequest, ReplyContext, RequestOptions};
use tower::ServiceExt as _;

use super::golden::convert_stream;
use super::services::ask_model;
use super::{converted_reply, prefixes::Prefix};

const MODEL: &str = "gemini-3.5-flash";

/// A request for a search and a function, with what a client of the format sends besides.
fn asking(from: WireFormat, more: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let mut body = match from {
        Native => json!({"model": "m", "max_tokens": 9000, "thinking": {"type": "adaptive"},
            "messages": [{"role": "user", "content": "weather?"}],
            "tools": [{"name": "weather", "input_schema": schema},
                {"type": "web_search_20250305", "name": "web_search"}]}),
        Responses => json!({"model": "m", "input": [{"role": "user", "content": "weather?"}],
            "tools": [{"type": "function", "name": "weather", "parameters": schema},
                {"type": "web_search"}]}),
        Chat => json!({"model": "m", "messages": [{"role": "user", "content": "weather?"}],
            "tools": [{"type": "function", "function": {"name": "weather", "parameters": schema}}],
            "web_search_options": {}}),
        AltCli => unreachable!("its own format"),
    };
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// Converts a request for a model; the service takes it.
async fn sent(from: WireFormat, model: &str, body: &Value) -> (Value, ConvertedRequest) {
    let options = RequestOptions::new(model, false);
    let done = convert::request(from, AltCli, body.to_string().as_bytes(), &options).unwrap();
    let reply = tollgate_mock::router()
        .oneshot(ask_model(AltCli, model, false, done.body.clone()))
        .await
        .unwrap();
    let status = reply.status();
    let said = axum::body::to_bytes(reply.into_body(), 1 << 20).await.unwrap();
    assert_eq!(status, StatusCode::OK, "{body}: {}", String::from_utf8_lossy(&said));
    (serde_json::from_slice(&done.body).unwrap(), done)
}

fn searches_beside(sent: &Value) -> bool {
    let tools = sent["tools"].as_array().unwrap();
    let has = |name: &str| tools.iter().any(|tool| tool.get(name).is_some());
    assert!(has("functionDeclarations"), "{sent}");
    let flag = sent["toolConfig"]["includeServerSideToolInvocations"] == true;
    assert_eq!(has("googleSearch"), flag, "{sent}");
    flag
}

#[tokio::test]
async fn a_search_stands_beside_functions_where_it_can() {
    let none = json!({});
    let auto = [(Native, json!({"type": "auto"})), (Responses, json!("auto"))];
    for (from, choice) in auto {
        let asked = asking(from, &json!({"tool_choice": choice}));
        let (sent, done) = sent(from, MODEL, &asked).await;
        assert!(searches_beside(&sent), "{from}");
        assert_eq!(
            sent["toolConfig"].get("functionCallingConfig"),
            None,
            "the service refuses AUTO"
        );
        assert!(done.changed.contains(&"web_search"));
    }
    for (from, model, more, expected) in [
        (Native, MODEL, &none, true),
        (Responses, "gemini-flash-latest", &none, true),
        (Native, "gemini-2.5-pro", &none, false),
        (Chat, MODEL, &none, false),
        (Native, MODEL, &json!({"thinking": {"type": "disabled"}}), false),
        (Responses, MODEL, &json!({"reasoning": {"effort": "none"}}), false),
        (Native, MODEL, &json!({"tool_choice": {"type": "any"}}), false),
        (Native, MODEL, &json!({"tool_choice": {"type": "none"}}), false),
        (Responses, MODEL, &json!({"tool_choice": {"type": "function", "name": "weather"}}), false),
    ] {
        let (sent, _) = sent(from, model, &asking(from, more)).await;
        assert_eq!(searches_beside(&sent), expected, "{from} to {model}: {more}");
    }
}

#[test]
fn a_price_entry_may_say_that_a_model_takes_both() {
    let body = asking(Native, &json!({})).to_string();
    for (takes, expected) in [(true, true), (false, false)] {
        let entry = json!({"accepts": {"alt-cli": {"thinking": {"level": ["high", "xhigh"]},
            "takes_search_beside_functions": takes}}});
        let facts = ModelFacts::of_entry(&entry).unwrap();
        let options = RequestOptions { facts: facts.as_ref(), ..RequestOptions::new(MODEL, false) };
        let done = convert::request(Native, AltCli, body.as_bytes(), &options).unwrap();
        assert_eq!(searches_beside(&serde_json::from_slice(&done.body).unwrap()), expected);
    }
}

/// The parts of the model's answer: two steps, and a call.
fn answer() -> Value {
    json!([
        {"text": "Let me look", "thought": true},
        {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1",
            "args": {"queries": ["northernmost \"city\"\n"]}}, "thoughtSignature": "c2lnMQ=="},
        {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1",
            "response": {"search_suggestions": "<b>é</b>"}}, "thoughtSignature": "c2lnMg=="},
        {"functionCall": {"name": "weather", "id": "c1", "args": {"city": "Utqiagvik"}},
            "thoughtSignature": "c2lnMw=="},
    ])
}

/// What the client has of the answer, whole or streamed, as items of its next request.
fn received(from: WireFormat, streamed: bool, context: ReplyContext) -> Vec<Value> {
    let context = ReplyContext { seed: "s".to_owned(), ..context };
    let chunk = |parts: &Value, reason: Option<&str>| {
        json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0,
            "finishReason": reason}], "usageMetadata": {"promptTokenCount": 5}})
    };
    if !streamed {
        let reply = chunk(&answer(), Some("STOP")).to_string();
        let reply = converted_reply(AltCli, from, reply.as_bytes(), &context).unwrap();
        let mut reply: Value = serde_json::from_slice(&reply).unwrap();
        return match from {
            Native => vec![json!({"role": "assistant", "content": reply["content"].take()})],
            _ => reply["output"].as_array().unwrap().clone(),
        };
    }
    let parts = answer();
    let parts = parts.as_array().unwrap().iter();
    let mut stream: String =
        parts.map(|part| format!("data: {}\n\n", chunk(&json!([part]), None))).collect();
    stream.push_str(&format!("data: {}\n\n", chunk(&json!([]), Some("STOP"))));
    let out = convert_stream(AltCli, from, stream.as_bytes(), context);
    let out = String::from_utf8(out).unwrap();
    let events = out.lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<Value> = events.map(|data| serde_json::from_str(data).unwrap()).collect();
    if from == Responses {
        let last = &events.last().unwrap()["response"];
        return last["output"].as_array().unwrap().clone();
    }
    let mut content: Vec<Value> = Vec::new();
    for event in events {
        let delta = &event["delta"];
        match event["type"].as_str().unwrap() {
            "content_block_start" => content.push(event["content_block"].clone()),
            "content_block_delta" => {
                let block = content.last_mut().unwrap();
                match delta["type"].as_str().unwrap() {
                    "signature_delta" => block["signature"] = delta["signature"].clone(),
                    "input_json_delta" => {
                        let arguments = delta["partial_json"].as_str().unwrap();
                        block["input"] = serde_json::from_str(arguments).unwrap();
                    }
                    _ => block["thinking"] = delta["thinking"].clone(),
                }
            }
            _ => {}
        }
    }
    vec![json!({"role": "assistant", "content": content})]
}

/// The next request of the session.
fn next(from: WireFormat, mut body: Value, received: Vec<Value>) -> Value {
    let (list, result) = match from {
        Native => (
            "messages",
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "cold"}]}),
        ),
        _ => ("input", json!({"type": "function_call_output", "call_id": "c1", "output": "cold"})),
    };
    let list = body[list].as_array_mut().unwrap();
    list.extend(received);
    list.push(result);
    body
}

#[tokio::test]
async fn the_steps_come_back_as_they_were() {
    for (from, streamed) in [(Native, false), (Native, true), (Responses, false), (Responses, true)]
    {
        let first = asking(from, &json!({}));
        let (_, done) = sent(from, MODEL, &first).await;
        let earlier: Prefix = serde_json::from_slice(&done.body).unwrap();
        let second = next(from, first, received(from, streamed, done.reply));
        let (sent, done) = sent(from, MODEL, &second).await;
        let mut expected = answer();
        expected.as_array_mut().unwrap().remove(0);
        assert_eq!(sent["contents"][1]["parts"], expected, "{from} {streamed}: {second}");
        let later: Prefix = serde_json::from_slice(&done.body).unwrap();
        assert!(later.goes_on_from(&earlier, AltCli), "{earlier}\n{later}");
    }
}

#[tokio::test]
async fn the_steps_are_left_out_where_they_are_not_taken() {
    let first = asking(Native, &json!({}));
    let (_, done) = sent(Native, MODEL, &first).await;
    let second = next(Native, first, received(Native, false, done.reply));
    let count = |body: &Value| body.to_string().matches("GOOGLE_SEARCH_WEB").count();
    assert_eq!(count(&second), 2, "{second}");
    for (to, model, rule) in [
        (AltCli, "gemini-2.5-pro", "vendor_history"),
        (Chat, "gpt-6", "foreign_reasoning"),
        (Responses, "gpt-6", "foreign_reasoning"),
    ] {
        let options = RequestOptions::new(model, false);
        let done = convert::request(Native, to, second.to_string().as_bytes(), &options).unwrap();
        let sent: Value = serde_json::from_slice(&done.body).unwrap();
        assert_eq!(count(&sent), 0, "{sent}");
        assert!(done.dropped.contains(&rule), "{to}: {:?}", done.dropped);
    }
}

#[tokio::test]
async fn a_client_can_put_nothing_else_into_a_step() {
    let forged = json!({"toolCall": {"id": "s"}, "text": "x", "functionCall": {"name": "f"}});
    for (value, expected) in [
        (forged.to_string(), Some(json!({"toolCall": {"id": "s"}}))),
        ("{\"text\":\"x\"}".to_owned(), None),
        ("}],\"tools\":[{".to_owned(), None),
    ] {
        let mut body = asking(Native, &json!({}));
        let thinking =
            json!({"type": "thinking", "thinking": "", "signature": format!("tg1.s.{value}")});
        let text = json!({"type": "text", "text": "ho"});
        let more = [
            json!({"role": "assistant", "content": [thinking, text]}),
            json!({"role": "user", "content": "go on"}),
        ];
        body["messages"].as_array_mut().unwrap().extend(more);
        let (sent, _) = sent(Native, MODEL, &body).await;
        let parts: Vec<Value> = expected.into_iter().chain([json!({"text": "ho"})]).collect();
        assert_eq!(sent["contents"][1]["parts"], json!(parts));
    }
}

#[test]
fn steps_alone_are_no_answer() {
    let step = json!([{"toolCall": {"id": "s1"}, "thoughtSignature": "c2ln"}]);
    let reply = json!({"candidates": [{"content": {"parts": step}, "finishReason": "STOP"}]});
    let options = RequestOptions::new(MODEL, false);
    let body = asking(Native, &json!({})).to_string();
    let done = convert::request(Native, AltCli, body.as_bytes(), &options).unwrap();
    converted_reply(AltCli, Native, reply.to_string().as_bytes(), &done.reply).unwrap_err();
}
