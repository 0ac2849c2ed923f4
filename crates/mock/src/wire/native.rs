//! The native messages format.

use serde_json::{Value, json};

use super::sse;
use crate::directive::{Finish, Verdict};
use crate::reply::{MockCall, MockPart, MockReply};
use tollgate_formats::domain::usage::Usage;

const CALL_PREFIX: &str = "toolu_";
/// Letters of arguments per `input_json_delta`.
const ARGUMENT_PIECE: usize = 24;
/// In place of the real service's signature of its thinking: valid base64 and nothing more.
const SIGNATURE: &str = "bW9jay10aGlua2luZy1zaWduYXR1cmU=";

pub(super) fn whole(reply: &MockReply) -> Value {
    let content: Vec<Value> = reply.parts.iter().map(block).collect();
    let mut message = head(reply);
    message["content"] = Value::Array(content);
    message["stop_reason"] = json!(stop_reason(reply.finish));
    message["stop_sequence"] = stop_sequence(reply);
    if let Some(results) = safeguard_results(reply) {
        message["safeguard_results"] = results;
    }
    if let Some(usage) = &reply.usage {
        message["usage"] = full_usage(usage, usage.output);
    }
    message
}

fn head(reply: &MockReply) -> Value {
    json!({
        "id": format!("msg_mock{:06}", reply.serial), "type": "message", "role": "assistant", "model": reply.model,
        "content": [], "stop_reason": null, "stop_sequence": null,
    })
}

fn block(part: &MockPart) -> Value {
    match part {
        MockPart::Thinking(text) => {
            json!({"type": "thinking", "thinking": text, "signature": SIGNATURE})
        }
        MockPart::Text(text) => json!({"type": "text", "text": text}),
        MockPart::MockCall(call) => call_block(call, call.arguments.clone()),
    }
}

fn call_block(call: &MockCall, input: Value) -> Value {
    json!({"type": "tool_use", "id": call.id(CALL_PREFIX), "name": call.name, "input": input})
}

const fn stop_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
        Finish::ToolCalls => "tool_use",
        Finish::Refusal => "refusal",
        Finish::StopSequence => "stop_sequence",
    }
}

/// The first stop sequence of the request, if it ended the reply.
fn stop_sequence(reply: &MockReply) -> Value {
    if reply.finish == Finish::StopSequence {
        reply.request["stop_sequences"][0].clone()
    } else {
        Value::Null
    }
}

/// The result of the check of tool calls, which the request asks for with `safeguards`.
fn safeguard_results(reply: &MockReply) -> Option<Value> {
    let asked = !reply.request["safeguards"].is_null();
    let status = match reply.verdict {
        _ if !asked => return None,
        Verdict::Absent => return None,
        Verdict::Unsupported => json!({"type": "unsupported"}),
        verdict => {
            let said = match verdict {
                Verdict::Flagged => json!({"type": "evaluated", "outcome": "flagged",
                    "explanation": "The mock was asked to flag this call."}),
                Verdict::Unavailable => json!({"type": "unavailable", "reason": "error"}),
                _ => json!({"type": "evaluated", "outcome": "not_flagged"}),
            };
            let calls = reply.parts.iter().filter_map(|part| match part {
                MockPart::MockCall(call) => Some((call.id(CALL_PREFIX), said.clone())),
                _ => None,
            });
            let calls: serde_json::Map<_, _> = calls.collect();
            json!({"type": "available", "tool_uses": calls})
        }
    };
    Some(json!([{"type": "dangerous_tool_use", "status": status}]))
}

fn full_usage(usage: &Usage, output: u64) -> Value {
    let mut value = short_usage(usage, output);
    value["cache_creation"] = json!({
        "ephemeral_5m_input_tokens": usage.cache_write_5m, "ephemeral_1h_input_tokens": usage.cache_write_1h,
    });
    value["service_tier"] = json!("standard");
    value
}

fn short_usage(usage: &Usage, output: u64) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write_5m + usage.cache_write_1h,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": output,
    })
}

pub(super) fn events(reply: &MockReply) -> Vec<String> {
    let mut message = head(reply);
    if let Some(usage) = &reply.usage {
        message["usage"] = full_usage(usage, 1);
    }
    let mut events =
        vec![sse("message_start", &json!({"type": "message_start", "message": message}))];
    events.extend((0..reply.pings).map(|_| sse("ping", &json!({"type": "ping"}))));
    for (index, part) in reply.parts.iter().enumerate() {
        block_events(reply, index, part, &mut events);
    }
    let mut delta =
        json!({"stop_reason": stop_reason(reply.finish), "stop_sequence": stop_sequence(reply)});
    if let Some(results) = safeguard_results(reply) {
        delta["safeguard_results"] = results;
    }
    let mut last = json!({"type": "message_delta", "delta": delta});
    if let Some(usage) = &reply.usage {
        last["usage"] = short_usage(usage, usage.output);
    }
    events.push(sse("message_delta", &last));
    events.push(sse("message_stop", &json!({"type": "message_stop"})));
    events
}

fn block_events(reply: &MockReply, index: usize, part: &MockPart, events: &mut Vec<String>) {
    let start = match part {
        MockPart::Thinking(_) => json!({"type": "thinking", "thinking": "", "signature": ""}),
        MockPart::Text(_) => json!({"type": "text", "text": ""}),
        MockPart::MockCall(call) => call_block(call, json!({})),
    };
    let start = json!({"type": "content_block_start", "index": index, "content_block": start});
    events.push(sse("content_block_start", &start));
    if index == 0 {
        events.push(sse("ping", &json!({"type": "ping"})));
    }
    let mut push = |delta: Value| {
        let event = json!({"type": "content_block_delta", "index": index, "delta": delta});
        events.push(sse("content_block_delta", &event));
    };
    match part {
        MockPart::Thinking(text) => {
            for piece in reply.deltas(text) {
                push(json!({"type": "thinking_delta", "thinking": piece}));
            }
            push(json!({"type": "signature_delta", "signature": SIGNATURE}));
        }
        MockPart::Text(text) => {
            for piece in reply.deltas(text) {
                push(json!({"type": "text_delta", "text": piece}));
            }
        }
        MockPart::MockCall(call) => {
            push(json!({"type": "input_json_delta", "partial_json": ""}));
            for piece in call.pieces(ARGUMENT_PIECE) {
                push(json!({"type": "input_json_delta", "partial_json": piece}));
            }
        }
    }
    events.push(sse("content_block_stop", &json!({"type": "content_block_stop", "index": index})));
}
