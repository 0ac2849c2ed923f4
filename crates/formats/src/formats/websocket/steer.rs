//! `response.steer`: input for a reply in flight, and what becomes of it.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::items::Items;
use super::write::tree;

/// Input that waits for the successor of a reply.
#[derive(Debug, Clone)]
pub struct Steer {
    /// Its id; `None` if it was not accepted.
    pub id: Option<String>,
    /// The reply that it steers.
    pub response: String,
    /// The input as the client sent it.
    pub input: Box<RawValue>,
}

/// Why input was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SteerError {
    /// The connection does not know the reply.
    NotFound,
    /// The reply is over.
    Completed,
    /// The input is not valid.
    Invalid(&'static str),
    /// Too much input waits.
    TooMany,
    /// The successor could not begin.
    NoSuccessor,
}

impl SteerError {
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::NotFound => ("response_not_found", "this connection has no such response"),
            Self::Completed => ("response_already_completed", "the response is already complete"),
            Self::Invalid(why) => ("invalid_input", why),
            Self::TooMany => ("too_many_pending_steers", "too much input is pending"),
            Self::NoSuccessor => {
                ("successor_creation_failed", "the successor of the response could not begin")
            }
        }
    }
}

impl Steer {
    /// The input's items.
    pub fn items(&self) -> Items {
        Items::of_input(&self.input).unwrap_or_default()
    }

    fn object(&self) -> Value {
        let mut steer = json!({"previous_response_id": self.response});
        if let Some(id) = &self.id {
            steer["id"] = id.as_str().into();
        }
        steer
    }
}

/// The gateway keeps the input for the reply's successor.
pub fn accepted(steer: &Steer, sequence: u64) -> String {
    let steer = steer.object();
    json!({"type": "response.steer.accepted", "sequence_number": sequence, "steer": steer})
        .to_string()
}

/// The input was not taken, or has no successor.
pub fn failed(steer: &Steer, error: SteerError, sequence: u64) -> String {
    let (code, message) = error.words();
    let mut object = steer.object();
    object["input"] = tree(&steer.input);
    json!({
        "type": "response.steer.failed",
        "sequence_number": sequence,
        "steer": object,
        "error": {"type": "invalid_request_error", "code": code, "message": message},
    })
    .to_string()
}

/// The input waits until the client has sent what the reply asks for.
pub fn pending(steer: &Steer, required: &[Value], sequence: u64) -> String {
    json!({
        "type": "response.steer.pending",
        "sequence_number": sequence,
        "steer": steer.object(),
        "reason": "waiting_for_required_input",
        "required_input": required,
    })
    .to_string()
}

/// What the client must send before the conversation goes on, given an output item; `None` if the
/// item needs no answer of the client.
pub fn required_input(item: &str) -> Option<Value> {
    #[derive(Deserialize)]
    struct Call {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        id: Value,
        #[serde(default)]
        call_id: Value,
        #[serde(default)]
        name: Value,
        #[serde(default)]
        execution: Value,
    }
    let call: Call = serde_json::from_str(item).ok()?;
    let kind = match call.kind.as_str() {
        "function_call" => {
            return Some(json!({"type": "function_call_output", "call_id": call.call_id,
                "name": call.name}));
        }
        "mcp_approval_request" => {
            return Some(json!({"type": "mcp_approval_response", "approval_request_id": call.id}));
        }
        "tool_search_call" if call.execution == "client" => {
            return Some(json!({"type": "tool_search_output", "call_id": call.call_id,
                "execution": "client"}));
        }
        "custom_tool_call" => "custom_tool_call_output",
        "computer_call" => "computer_call_output",
        "shell_call" | "local_shell_call" => "shell_call_output",
        "apply_patch_call" => "apply_patch_call_output",
        _ => return None,
    };
    Some(json!({"type": kind, "call_id": call.call_id}))
}
