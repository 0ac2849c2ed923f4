//! Blocks and items that agents of autumn 2026 send and receive, on converted routes. Shapes: the
//! vendors' SDKs (anthropic 2.14, openai 3.57).

use serde_json::{Value, json};
use tollgate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};
use tollgate::formats::convert::{self, ConvertedRequest, RequestOptions};

use super::converted_reply;
use super::golden::{convert_stream, reply_context};

fn sent(from: WireFormat, to: WireFormat, body: &Value) -> (Value, ConvertedRequest) {
    let options = RequestOptions::new("gpt-6", true);
    let request = convert::request(from, to, body.to_string().as_bytes(), &options).unwrap();
    (serde_json::from_slice(&request.body).unwrap(), request)
}

#[test]
fn a_session_with_blocks_of_its_vendor_goes_on_in_another_format() {
    let body = json!({
        "model": "m", "max_tokens": 9, "safeguards": [{"type": "dangerous_tool_use"}],
        "fallbacks": "default", "thread": {"type": "create"},
        "tools": [{"name": "a", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "tool", "name": "b"},
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [
                {"type": "fallback", "from": {"model": "x"}, "to": {"model": "y"}, "trigger": null},
                {"type": "connector_text", "text": "from a connector"},
                {"type": "mcp_tool_listing", "mcp_server_name": "s", "tools": []},
                {"type": "text", "text": "ho"},
            ]},
            {"role": "system", "content": [
                {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "a"}},
                {"type": "tool_addition", "tool": {"type": "tool_definition",
                    "definition": {"name": "b", "input_schema": {"type": "object"}}}},
                {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "a"}},
            ]},
            {"role": "system", "content": "once", "clear_at": "next_user_message"},
            {"role": "user", "content": "go on"},
            {"role": "system", "content": "now", "clear_at": "next_user_message",
             "output_config": {"effort": "high"}},
        ],
    });
    let (to_chat, request) = sent(Native, Chat, &body);
    let names: Vec<&Value> =
        to_chat["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["a", "b"], "{to_chat}");
    assert_eq!(to_chat["tool_choice"]["function"]["name"], "b", "the added one: {to_chat}");
    let text = to_chat.to_string();
    assert!(text.contains("from a connector") && text.contains("now"), "{text}");
    assert!(!text.contains("once"), "the model is no longer shown it: {text}");
    for rule in ["vendor_fields", "vendor_history", "tool_removal", "cleared_system"] {
        assert!(request.dropped.contains(&rule), "{rule}: {:?}", request.dropped);
    }
    let (to_responses, _) = sent(Native, Responses, &body);
    assert_eq!(to_responses["reasoning"]["effort"], "high", "of this turn: {to_responses}");
}

#[test]
fn a_cleared_instruction_leaves_no_empty_message() {
    let body = json!({"model": "m", "max_tokens": 9, "messages": [
        {"role": "user", "content": "hi"},
        {"role": "system", "content": "once", "clear_at": "next_user_message"},
        {"role": "assistant", "content": "ho"},
        {"role": "user", "content": "go on"},
    ]});
    let (sent, _) = sent(Native, Chat, &body);
    let roles: Vec<&Value> =
        sent["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user"], "{sent}");
}

#[test]
fn a_thread_that_goes_on_at_its_service_is_refused_elsewhere() {
    let body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}],
        "thread": {"type": "continue", "previous_message_id": "msg_1"}});
    let refused = convert::request(
        Native,
        Chat,
        body.to_string().as_bytes(),
        &RequestOptions::new("m", true),
    );
    assert_eq!(refused.unwrap_err().field, "thread");
}

/// The texts of a responses stream's messages with their phase, as its last event has them and as
/// the events before.
fn phases(blocks: &[Value], stop: &str) -> [Vec<(String, String)>; 2] {
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "m", "type": "message",
        "role": "assistant", "model": "m", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}}),
    ];
    for (index, block) in blocks.iter().enumerate() {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        if block["type"] == "text" {
            events.push(json!({"type": "content_block_delta", "index": index,
                "delta": {"type": "text_delta", "text": format!("t{index}")}}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}}));
    events.push(json!({"type": "message_stop"}));
    let bytes: String = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect();
    let context = reply_context(std::path::Path::new("/nowhere"), Responses, Native);
    let out =
        String::from_utf8(convert_stream(Native, Responses, bytes.as_bytes(), context)).unwrap();
    let events: Vec<Value> = out
        .lines()
        .filter_map(|line| {
            line.strip_prefix("data: ").map(|data| serde_json::from_str(data).unwrap())
        })
        .collect();
    let message = |item: &Value| {
        let text = item["content"][0]["text"].as_str()?.to_owned();
        Some((text, item["phase"].as_str().unwrap_or_default().to_owned()))
    };
    let done = events.iter().filter(|event| event["type"] == "response.output_item.done");
    let last = &events.last().unwrap()["response"]["output"];
    [
        done.filter_map(|event| message(&event["item"])).collect(),
        last.as_array().unwrap().iter().filter_map(message).collect(),
    ]
}

#[test]
fn codex_can_tell_commentary_from_the_answer() {
    let text = || json!({"type": "text", "text": ""});
    let call = || json!({"type": "tool_use", "id": "c", "name": "f", "input": {}});
    for (blocks, stop, expected) in [
        (vec![text(), call()], "tool_use", vec!["commentary"]),
        (vec![text()], "end_turn", vec!["final_answer"]),
        (vec![text(), text()], "end_turn", vec!["final_answer", "final_answer"]),
        (vec![text(), call(), text()], "tool_use", vec!["commentary", "commentary"]),
    ] {
        let [done, last] = phases(&blocks, stop);
        let said: Vec<&str> = done.iter().map(|(_, phase)| &**phase).collect();
        assert_eq!(said, expected, "{blocks:?}");
        assert_eq!(done, last, "{blocks:?}");
    }
}

#[test]
fn a_clients_shell_and_patches_go_on_in_another_format() {
    let body = json!({"model": "m", "input": [
        {"role": "user", "content": "fix it"},
        {"type": "shell_call", "call_id": "c1", "status": "completed",
            "action": {"commands": ["make"], "timeout_ms": 1000}},
        {"type": "shell_call_output", "call_id": "c1", "output": [
            {"stdout": "built\n", "stderr": "a warning", "outcome": {"type": "exit", "exit_code": 0}},
            {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}}]},
        {"type": "apply_patch_call", "call_id": "c2", "status": "completed",
            "operation": {"type": "update_file", "path": "a.rs", "diff": "@@"}},
        {"type": "apply_patch_call_output", "call_id": "c2", "status": "completed", "output": "done"},
        {"type": "compaction_trigger", "id": "ct_1"},
        {"role": "user", "content": "and now?"},
    ], "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}]});
    let (sent, request) = sent(Responses, Chat, &body);
    let messages = sent["messages"].as_array().unwrap();
    let calls: Vec<(&Value, Value)> = messages
        .iter()
        .filter_map(|message| message["tool_calls"].as_array())
        .flatten()
        .map(|call| {
            let arguments = call["function"]["arguments"].as_str().unwrap();
            (&call["function"]["name"], serde_json::from_str(arguments).unwrap())
        })
        .collect();
    assert_eq!(
        calls,
        [
            (&json!("shell"), json!({"commands": ["make"], "timeout_ms": 1000})),
            (&json!("apply_patch"), json!({"type": "update_file", "path": "a.rs", "diff": "@@"})),
        ]
    );
    let results: Vec<String> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].to_string())
        .collect();
    assert_eq!(results.len(), 2, "{sent}");
    assert!(results[0].contains("built") && results[0].contains("timeout"), "{}", results[0]);
    assert!(!results[0].contains("exit_code") && results[1].contains("done"), "{results:?}");
    assert!(request.dropped.contains(&"vendor_history"), "{:?}", request.dropped);
}

/// The effort and the form of the output that a request of the responses format asks for, of a
/// chat-compatible provider.
fn settings(input: &Value) -> (Value, Value) {
    let schema = json!({"type": "object", "properties": {"own": {"type": "string"}}});
    let body = json!({"model": "m", "input": input, "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", "name": "own", "schema": schema}}});
    let (sent, request) = sent(Responses, Chat, &body);
    assert!(request.dropped.is_empty(), "{:?}", request.dropped);
    (sent["reasoning_effort"].clone(), sent["response_format"]["json_schema"]["name"].clone())
}

#[test]
fn a_configuration_update_holds_until_the_next_one() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let update = |members: Value| {
        let mut item = json!({"type": "configuration_update", "id": "cu_1"});
        item.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        item
    };
    let effort = |effort: Value| update(json!({"reasoning": {"effort": effort}}));
    let schema = |name: &str| {
        let schema = json!({"type": "object", "properties": {}});
        update(json!({"text": {"format": {"type": "json_schema", "name": name, "schema": schema}}}))
    };
    let text = update(json!({"text": {"format": {"type": "text"}}}));
    for (items, expected) in [
        (vec![], (json!("low"), json!("own"))),
        (vec![effort(json!("high"))], (json!("high"), json!("own"))),
        (vec![effort(json!("high")), effort(Value::Null)], (json!("high"), json!("own"))),
        (vec![schema("a"), schema("b")], (json!("low"), json!("b"))),
        (vec![schema("a"), effort(json!("medium")), text], (json!("medium"), Value::Null)),
    ] {
        let mut input = vec![user("hi")];
        input.extend(items.clone());
        assert_eq!(settings(&json!(input)), expected, "at the end: {items:?}");
        input.push(user("go on"));
        assert_eq!(settings(&json!(input)), expected, "inside: {items:?}");
    }
}

#[test]
fn a_damaged_configuration_update_is_named() {
    for (item, field) in [
        (json!({"type": "configuration_update", "text": "x"}), "input.0.text"),
        (json!({"type": "configuration_update", "text": {"format": 1}}), "input.0.text.format"),
        (
            json!({"type": "configuration_update", "reasoning": {"effort": 1}}),
            "input.0.reasoning.effort",
        ),
        (json!({"type": "input_text", "text": {"format": {"type": "text"}}}), "input.0.text"),
    ] {
        let body = json!({"model": "m", "input": [item]}).to_string();
        let options = RequestOptions::new("m", false);
        let refused = convert::request(Responses, Chat, body.as_bytes(), &options).unwrap_err();
        assert_eq!(refused.field, field, "{refused}");
    }
}

#[test]
fn an_answer_of_gemini_that_was_cut_or_filtered_does_not_look_complete() {
    let context = || reply_context(std::path::Path::new("/nowhere"), Native, AltCli);
    // What a native client reads; `None`: the provider failed.
    for (reason, with_text, without) in [
        ("STOP", Some("end_turn"), Some("end_turn")),
        ("CONTINUATION", Some("max_tokens"), Some("max_tokens")),
        ("TOO_MANY_TOOL_CALLS", Some("max_tokens"), None),
        ("MISSING_THOUGHT_SIGNATURE", Some("end_turn"), None),
        ("MALFORMED_RESPONSE", Some("end_turn"), None),
        ("ESCALATION", Some("refusal"), Some("refusal")),
        ("PUP_LIMITED_DISABLED", Some("refusal"), Some("refusal")),
    ] {
        for (parts, expected) in [(json!([{"text": "ho"}]), with_text), (json!([]), without)] {
            let candidate = json!({"content": {"parts": parts}, "finishReason": reason});
            let reply = json!({"candidates": [candidate], "continuationToken": "x"}).to_string();
            let whole = converted_reply(AltCli, Native, reply.as_bytes(), &context());
            let whole = whole.ok().map(|body| serde_json::from_slice::<Value>(&body).unwrap());
            let stop = whole.as_ref().map(|body| body["stop_reason"].as_str().unwrap());
            assert_eq!(stop, expected, "{reason} {parts}");
            let stream = format!("data: {reply}\n\n");
            let out = convert_stream(AltCli, Native, stream.as_bytes(), context());
            let out = String::from_utf8(out).unwrap();
            match expected {
                Some(stop) => {
                    assert!(out.contains(&format!("\"stop_reason\":\"{stop}\"")), "{out}")
                }
                None => {
                    assert!(out.contains("event: error") && !out.contains("message_stop"), "{out}")
                }
            }
        }
    }
}
