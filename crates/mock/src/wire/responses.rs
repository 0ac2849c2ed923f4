//! The responses format: the items of a reply, and the strictly ordered events that build them.

use serde_json::{Map, Value, json};

use super::{CREATED, sse};
use crate::directive::Finish;
use crate::reply::{MockCall, MockPart, MockReply};
use tollgate_formats::domain::usage::Usage;

const CALL_PREFIX: &str = "call_";
const ARGUMENT_PIECE: usize = 24;
/// Fields of the request that the response object repeats, with their values if the request has
/// none.
const REPEATED: [(&str, &str); 13] = [
    ("instructions", "null"),
    ("max_output_tokens", "null"),
    ("metadata", "{}"),
    ("parallel_tool_calls", "true"),
    ("previous_response_id", "null"),
    ("prompt_cache_key", "null"),
    ("reasoning", r#"{"effort":null,"summary":null}"#),
    ("store", "true"),
    ("temperature", "1"),
    ("text", r#"{"format":{"type":"text"}}"#),
    ("tool_choice", "\"auto\""),
    ("tools", "[]"),
    ("top_p", "1"),
];

/// The response object in a given state.
fn response(reply: &MockReply, status: &str, output: Vec<Value>) -> Value {
    let mut map = Map::new();
    map.insert("id".to_owned(), json!(format!("resp_mock{:06}", reply.serial)));
    map.insert("object".to_owned(), json!("response"));
    map.insert("created_at".to_owned(), json!(CREATED));
    map.insert("status".to_owned(), json!(status));
    map.insert("background".to_owned(), json!(reply.request["background"] == true));
    map.insert("error".to_owned(), Value::Null);
    map.insert("incomplete_details".to_owned(), incomplete(reply, status));
    map.insert("model".to_owned(), json!(reply.model));
    map.insert("output".to_owned(), Value::Array(output));
    for (field, default) in REPEATED {
        let asked = &reply.request[field];
        let value = if asked.is_null() {
            serde_json::from_str(default).unwrap_or_default()
        } else {
            asked.clone()
        };
        map.insert(field.to_owned(), value);
    }
    map.insert("service_tier".to_owned(), json!("default"));
    map.insert("truncation".to_owned(), json!("disabled"));
    let done = status != "in_progress";
    map.insert(
        "usage".to_owned(),
        reply.usage.as_ref().filter(|_| done).map_or(Value::Null, usage_value),
    );
    Value::Object(map)
}

fn incomplete(reply: &MockReply, status: &str) -> Value {
    match reply.finish {
        Finish::Length if status == "incomplete" => json!({"reason": "max_output_tokens"}),
        Finish::Refusal if status == "incomplete" => json!({"reason": "content_filter"}),
        _ => Value::Null,
    }
}

const fn final_status(finish: Finish) -> &'static str {
    match finish {
        Finish::Length | Finish::Refusal => "incomplete",
        Finish::Stop | Finish::ToolCalls | Finish::StopSequence => "completed",
    }
}

fn usage_value(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.total_input(),
        "input_tokens_details": {
            "cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write_5m + usage.cache_write_1h,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total(),
    })
}

pub(super) fn whole(reply: &MockReply) -> Value {
    let status = final_status(reply.finish);
    let items =
        reply.parts.iter().enumerate().map(|(index, part)| item(reply, index, part, "completed"));
    response(reply, status, items.collect())
}

fn item_id(reply: &MockReply, index: usize, part: &MockPart) -> String {
    let prefix = match part {
        MockPart::Thinking(_) => "rs",
        MockPart::Text(_) => "msg",
        MockPart::MockCall(_) => "fc",
    };
    format!("{prefix}_mock{:06}x{index}", reply.serial)
}

/// The finished item of `part`; with status `in_progress`, the empty one that opens it.
fn item(reply: &MockReply, index: usize, part: &MockPart, status: &str) -> Value {
    let id = item_id(reply, index, part);
    let open = status == "in_progress";
    match part {
        MockPart::Thinking(text) => {
            let summary =
                if open { json!([]) } else { json!([{"type": "summary_text", "text": text}]) };
            let mut value = json!({"id": id, "type": "reasoning", "summary": summary});
            let include = reply.request["include"].as_array();
            if include
                .is_some_and(|list| list.iter().any(|entry| entry == "reasoning.encrypted_content"))
            {
                value["encrypted_content"] = json!("bW9jay1lbmNyeXB0ZWQ=");
            }
            value
        }
        MockPart::Text(text) => {
            let content = if open { json!([]) } else { json!([text_part(text)]) };
            json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content})
        }
        MockPart::MockCall(call) => {
            call_item(&id, call, status, if open { "" } else { &call.text })
        }
    }
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
}

fn call_item(id: &str, call: &MockCall, status: &str, arguments: &str) -> Value {
    json!({
        "id": id, "type": "function_call", "status": status, "arguments": arguments,
        "call_id": call.id(CALL_PREFIX), "name": call.name,
    })
}

/// Collects events and numbers them.
struct Events(Vec<String>);

impl Events {
    fn push(&mut self, kind: &str, fields: Value) {
        let mut event = Map::new();
        event.insert("type".to_owned(), json!(kind));
        event.insert("sequence_number".to_owned(), json!(self.0.len()));
        if let Value::Object(fields) = fields {
            event.extend(fields);
        }
        self.0.push(sse(kind, &Value::Object(event)));
    }
}

pub(super) fn events(reply: &MockReply) -> Vec<String> {
    let mut events = Events(Vec::new());
    let opening = response(reply, "in_progress", Vec::new());
    events.push("response.created", json!({"response": opening}));
    events.push("response.in_progress", json!({"response": opening}));
    for _ in 0..reply.pings {
        events.push("keepalive", json!({}));
    }
    for (index, part) in reply.parts.iter().enumerate() {
        let id = item_id(reply, index, part);
        let added = json!({"output_index": index, "item": item(reply, index, part, "in_progress")});
        events.push("response.output_item.added", added);
        match part {
            MockPart::Thinking(text) => reasoning_events(reply, &id, index, text, &mut events),
            MockPart::Text(text) => text_events(reply, &id, index, text, &mut events),
            MockPart::MockCall(call) => call_events(&id, index, call, &mut events),
        }
        let done = json!({"output_index": index, "item": item(reply, index, part, "completed")});
        events.push("response.output_item.done", done);
    }
    let last = whole(reply);
    events.push(&format!("response.{}", final_status(reply.finish)), json!({"response": last}));
    events.0
}

fn reasoning_events(reply: &MockReply, id: &str, output: usize, text: &str, events: &mut Events) {
    let at = |more: Value| {
        let mut fields = json!({"item_id": id, "output_index": output, "summary_index": 0});
        merge(&mut fields, more);
        fields
    };
    let empty = json!({"part": {"type": "summary_text", "text": ""}});
    events.push("response.reasoning_summary_part.added", at(empty));
    for piece in reply.deltas(text) {
        events.push("response.reasoning_summary_text.delta", at(json!({"delta": piece})));
    }
    events.push("response.reasoning_summary_text.done", at(json!({"text": text})));
    let part = json!({"part": {"type": "summary_text", "text": text}});
    events.push("response.reasoning_summary_part.done", at(part));
}

fn text_events(reply: &MockReply, id: &str, output: usize, text: &str, events: &mut Events) {
    let at = |more: Value| {
        let mut fields = json!({"item_id": id, "output_index": output, "content_index": 0});
        merge(&mut fields, more);
        fields
    };
    events.push("response.content_part.added", at(json!({"part": text_part("")})));
    for piece in reply.deltas(text) {
        events.push("response.output_text.delta", at(json!({"delta": piece, "logprobs": []})));
    }
    events.push("response.output_text.done", at(json!({"text": text, "logprobs": []})));
    events.push("response.content_part.done", at(json!({"part": text_part(text)})));
}

fn call_events(id: &str, output: usize, call: &MockCall, events: &mut Events) {
    for piece in call.pieces(ARGUMENT_PIECE) {
        let delta = json!({"item_id": id, "output_index": output, "delta": piece});
        events.push("response.function_call_arguments.delta", delta);
    }
    let done = json!({"item_id": id, "output_index": output, "arguments": call.text});
    events.push("response.function_call_arguments.done", done);
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}
