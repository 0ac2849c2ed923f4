//! Writes the frames that are not a provider's.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::frame::FrameError;
use crate::domain::format::WireFormat;
use crate::formats::error::{self as errors, ErrorReply};

/// What names a response.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct ResponseHead {
    /// Its id.
    pub id: String,
    /// The model.
    #[serde(default)]
    pub model: String,
    /// Seconds of the epoch.
    #[serde(default)]
    pub created_at: u64,
}

/// A frame, with the lane that it belongs to.
pub fn on_lane(lane: Option<&str>, frame: &str) -> String {
    let (Some(lane), Some(inside)) = (lane, frame.trim_start().strip_prefix('{')) else {
        return frame.to_owned();
    };
    let comma = if inside.trim_start().starts_with('}') { "" } else { "," };
    format!("{{\"stream_id\":{}{comma}{inside}", Value::from(lane))
}

/// The frame of an error reply, given its status, headers and body.
pub fn refused(status: u16, headers: &[(String, String)], body: &[u8]) -> String {
    let own: Option<Value> = serde_json::from_slice(body).ok();
    let object = own.and_then(|mut own: Value| own.get_mut("error").map(Value::take));
    let object = object.filter(Value::is_object).unwrap_or_else(|| {
        let read = errors::read(WireFormat::Responses, status, body);
        let kind = errors::kind_for(WireFormat::Responses, read.kind.as_deref(), status);
        object_of(&ErrorReply {
            status,
            kind,
            message: &read.message,
            code: read.code.as_deref(),
            extra: &[],
        })
    });
    let headers: Map<String, Value> =
        headers.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    json!({"type": "error", "status": status, "error": object, "headers": headers}).to_string()
}

/// The frame of an error of the gateway's own.
pub fn error(status: u16, fault: &FrameError) -> String {
    let param = [("param", fault.param.map_or(Value::Null, Value::from))];
    let object = object_of(&ErrorReply {
        status,
        kind: errors::kind_of_status(status),
        message: &fault.message,
        code: fault.code,
        extra: &param,
    });
    let frame = json!({"type": "error", "status": status, "error": object}).to_string();
    on_lane(fault.lane.as_deref(), &frame)
}

fn object_of(error: &ErrorReply<'_>) -> Value {
    errors::value(WireFormat::Responses, error)["error"].take()
}

/// The frames that answer a prewarming request: an empty reply that costs nothing.
pub fn prewarmed(head: &ResponseHead) -> [String; 2] {
    let of = |name: &str, sequence: u64, response: Value| {
        json!({"type": name, "sequence_number": sequence, "response": response}).to_string()
    };
    let mut begun = response(head, "in_progress", json!([]));
    let created = of("response.created", 0, begun.clone());
    begun["status"] = "completed".into();
    begun["usage"] = json!({
        "input_tokens": 0,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 0,
    });
    [created, of("response.completed", 1, begun)]
}

/// The frame that ends a reply that gives way to its successor. `output`: a list.
pub fn incomplete(head: &ResponseHead, sequence: u64, output: &str) -> String {
    let output = serde_json::from_str(output).unwrap_or_else(|_| json!([]));
    let mut object = response(head, "incomplete", output);
    object["incomplete_details"] = json!({"reason": "steered"});
    json!({"type": "response.incomplete", "sequence_number": sequence, "response": object})
        .to_string()
}

/// A response object with every member that the SDKs require.
fn response(head: &ResponseHead, status: &str, output: Value) -> Value {
    json!({
        "id": head.id,
        "object": "response",
        "created_at": head.created_at,
        "status": status,
        "background": false,
        "error": null,
        "incomplete_details": null,
        "instructions": null,
        "metadata": {},
        "model": head.model,
        "output": output,
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "temperature": null,
        "tool_choice": "auto",
        "tools": [],
        "top_p": null,
        "usage": null,
    })
}

/// A raw value in a tree.
pub(super) fn tree(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or(Value::Null)
}
