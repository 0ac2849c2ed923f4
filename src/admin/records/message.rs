//! Stored messages, as shown.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Iso;
use crate::store::{Clip, StoredMessage};

/// The stored messages of a session.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionMessages {
    /// The session, as asked for.
    pub session_id: String,
    /// In the order in which the requests began.
    pub messages: Vec<MessageRecord>,
    /// Asks for the messages before these; `null` = there are none.
    pub next_cursor: Option<String>,
}

/// A request and its reply.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageRecord {
    /// The request's id, as in the usage log.
    pub request_id: String,
    /// When the request began.
    pub created_at: Iso,
    /// As the client sent it, in its format: JSON, or the text where it is cut or no JSON.
    pub request: Value,
    /// As the client got it: JSON, or the text of a stream's events.
    pub response: Value,
    /// There was more than is kept.
    pub request_truncated: bool,
    /// There was more of the reply than is kept.
    pub response_truncated: bool,
}

fn shown(clip: &Clip) -> Value {
    let text = || Value::String(String::from_utf8_lossy(&clip.bytes).into_owned());
    if clip.cut { text() } else { serde_json::from_slice(&clip.bytes).unwrap_or_else(|_| text()) }
}

impl From<&StoredMessage> for MessageRecord {
    fn from(message: &StoredMessage) -> Self {
        Self {
            request_id: message.request_id.to_string(),
            created_at: Iso(message.started_at),
            request: shown(&message.request),
            response: shown(&message.response),
            request_truncated: message.request.cut,
            response_truncated: message.response.cut,
        }
    }
}
