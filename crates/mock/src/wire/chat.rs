//! The chat-compatible format.

use serde_json::{Value, json};

use super::{CREATED, data};
use crate::directive::Finish;
use crate::reply::{MockCall, MockPart, MockReply};
use tollgate_formats::domain::usage::Usage;

const CALL_PREFIX: &str = "call_";
const ARGUMENT_PIECE: usize = 24;

pub(super) fn whole(reply: &MockReply) -> Value {
    let mut message =
        json!({"role": "assistant", "content": null, "refusal": null, "annotations": []});
    let mut text: Option<String> = None;
    let mut calls = Vec::new();
    for part in &reply.parts {
        match part {
            MockPart::Thinking(thinking) => message["reasoning_content"] = json!(thinking),
            MockPart::Text(more) => text.get_or_insert_default().push_str(more),
            MockPart::MockCall(call) => calls.push(call_value(call, &call.text)),
        }
    }
    message["content"] = json!(text);
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(reply.finish)});
    let mut whole = head(reply, "chat.completion");
    whole["choices"] = json!([choice]);
    if let Some(usage) = &reply.usage {
        whole["usage"] = usage_value(usage);
    }
    whole
}

fn head(reply: &MockReply, object: &str) -> Value {
    json!({
        "id": format!("chatcmpl-mock{:06}", reply.serial), "object": object, "created": CREATED, "model": reply.model,
        "service_tier": "default", "system_fingerprint": "fp_mock",
    })
}

fn call_value(call: &MockCall, arguments: &str) -> Value {
    json!({
        "id": call.id(CALL_PREFIX), "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    })
}

const fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::StopSequence => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_calls",
        Finish::Refusal => "content_filter",
    }
}

fn usage_value(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.total_input(), "completion_tokens": usage.output, "total_tokens": usage.total(),
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read, "audio_tokens": 0,
            "cache_write_tokens": usage.cache_write_5m + usage.cache_write_1h,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}

pub(super) fn events(reply: &MockReply) -> Vec<String> {
    let mut events = Vec::new();
    events.extend((0..reply.pings).map(|_| ": ping\n\n".to_owned()));
    let chunk = |delta: Value, finish: Option<&str>| {
        let mut chunk = head(reply, "chat.completion.chunk");
        chunk["choices"] =
            json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
        if reply.include_usage {
            chunk["usage"] = Value::Null;
        }
        data(&chunk)
    };
    if reply.prompt_filter {
        let safe = json!({"filtered": false, "severity": "safe"});
        let results = json!({"hate": safe, "jailbreak": {"filtered": false, "detected": false}});
        events
            .push(data(&json!({"id": "", "object": "", "created": 0, "model": "", "choices": [],
            "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": results}]})));
    }
    events.push(chunk(json!({"role": "assistant", "content": "", "refusal": null}), None));
    let mut index = 0;
    for part in &reply.parts {
        match part {
            MockPart::Thinking(text) => {
                events.extend(
                    reply
                        .deltas(text)
                        .into_iter()
                        .map(|p| chunk(json!({"reasoning_content": p}), None)),
                );
            }
            MockPart::Text(text) => {
                events.extend(
                    reply.deltas(text).into_iter().map(|p| chunk(json!({"content": p}), None)),
                );
            }
            MockPart::MockCall(call) => {
                let mut first = call_value(call, "");
                first["index"] = json!(index);
                events.push(chunk(json!({"tool_calls": [first]}), None));
                for piece in call.pieces(ARGUMENT_PIECE) {
                    let delta =
                        json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]});
                    events.push(chunk(delta, None));
                }
                index += 1;
            }
        }
    }
    events.push(chunk(json!({}), Some(finish_reason(reply.finish))));
    if let Some(usage) = reply.usage.as_ref().filter(|_| reply.include_usage) {
        let mut last = head(reply, "chat.completion.chunk");
        last["choices"] = json!([]);
        last["usage"] = usage_value(usage);
        events.push(data(&last));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}
