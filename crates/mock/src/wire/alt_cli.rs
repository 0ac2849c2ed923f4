//! The alt-cli format: content parts, event streams with `alt=sse`, JSON arrays without.

use serde_json::{Value, json};

use crate::directive::Finish;
use crate::reply::{MockCall, MockPart, MockReply};
use tollgate_formats::domain::usage::Usage;

const CALL_PREFIX: &str = "fc_";
/// In place of the real service's signature of a thought: valid base64.
const SIGNATURE: &str = "bW9jay10aG91Z2h0";

pub(super) fn whole(reply: &MockReply) -> Value {
    let parts: Vec<Value> = reply.parts.iter().map(part).collect();
    wrap(reply, chunk(reply, parts, true))
}

fn wrap(reply: &MockReply, value: Value) -> Value {
    if reply.wrapped {
        json!({"response": value, "traceId": format!("mock{:06}", reply.serial)})
    } else {
        value
    }
}

fn part(part: &MockPart) -> Value {
    match part {
        MockPart::Thinking(text) => json!({"text": text, "thought": true}),
        MockPart::Text(text) => json!({"text": text}),
        MockPart::MockCall(call) => call_part(call),
    }
}

fn call_part(call: &MockCall) -> Value {
    json!({
        "functionCall": {"id": call.id(CALL_PREFIX), "name": call.name, "args": call.arguments},
        "thoughtSignature": SIGNATURE,
    })
}

fn chunk(reply: &MockReply, parts: Vec<Value>, last: bool) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}});
    if last {
        candidate["finishReason"] = json!(finish_reason(reply.finish));
    }
    candidate["index"] = json!(0);
    let mut chunk = json!({"candidates": [candidate]});
    if let Some(usage) = &reply.usage {
        chunk["usageMetadata"] = usage_value(usage, last);
    }
    chunk["modelVersion"] = json!(reply.model);
    chunk["responseId"] = json!(format!("mock{:06}", reply.serial));
    chunk
}

const fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::StopSequence | Finish::ToolCalls => "STOP",
        Finish::Length => "MAX_TOKENS",
        Finish::Refusal => "SAFETY",
    }
}

/// Early chunks contain only the prompt's usage, as at the real service.
fn usage_value(usage: &Usage, last: bool) -> Value {
    let input = usage.total_input();
    let text = input.saturating_sub(usage.image_input);
    let mut details = vec![json!({"modality": "TEXT", "tokenCount": text})];
    if usage.image_input > 0 {
        details.push(json!({"modality": "IMAGE", "tokenCount": usage.image_input}));
    }
    let mut value = json!({"promptTokenCount": input});
    if last {
        value["candidatesTokenCount"] = json!(usage.output.saturating_sub(usage.reasoning));
    }
    value["totalTokenCount"] = json!(if last { usage.total() } else { input });
    if usage.cache_read > 0 {
        value["cachedContentTokenCount"] = json!(usage.cache_read);
    }
    value["promptTokensDetails"] = Value::Array(details);
    if last && usage.image_output > 0 {
        value["candidatesTokensDetails"] =
            json!([{"modality": "IMAGE", "tokenCount": usage.image_output}]);
    }
    if last && usage.reasoning > 0 {
        value["thoughtsTokenCount"] = json!(usage.reasoning);
    }
    value
}

/// One event of an `alt=sse` stream; this service ends its lines with CR LF.
pub(super) fn sse_line(value: &Value) -> String {
    format!("data: {value}\r\n\r\n")
}

pub(super) fn events(reply: &MockReply) -> Vec<String> {
    let mut pieces: Vec<Value> = Vec::new();
    for one in &reply.parts {
        match one {
            MockPart::Thinking(text) => {
                pieces.extend(
                    reply.deltas(text).into_iter().map(|p| json!({"text": p, "thought": true})),
                );
            }
            MockPart::Text(text) => {
                pieces.extend(reply.deltas(text).into_iter().map(|p| json!({"text": p})))
            }
            MockPart::MockCall(call) => pieces.push(call_part(call)),
        }
    }
    let mut chunks: Vec<Value> = Vec::with_capacity(pieces.len() + 1);
    let count = pieces.len();
    for (index, piece) in pieces.into_iter().enumerate() {
        chunks.push(wrap(reply, chunk(reply, vec![piece], index + 1 == count)));
    }
    if chunks.is_empty() {
        chunks.push(wrap(reply, chunk(reply, vec![json!({"text": ""})], true)));
    }
    if reply.sse {
        let pings = (0..reply.pings).map(|_| ": ping\r\n\r\n".to_owned());
        return pings.chain(chunks.iter().map(sse_line)).collect();
    }
    let last = chunks.len() - 1;
    let open = |index: usize| if index == 0 { "[" } else { ",\r\n" };
    let close = |index: usize| if index == last { "]" } else { "\n" };
    chunks.iter().enumerate().map(|(i, chunk)| format!("{}{chunk}{}", open(i), close(i))).collect()
}
