//! What is read of the events of a reply.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::write::ResponseHead;

/// What an event is, as far as the connection needs to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `response.created`.
    Created,
    /// `response.output_item.added`.
    ItemAdded,
    /// `response.output_item.done`.
    ItemDone,
    /// `response.completed`.
    Completed,
    /// `response.incomplete`.
    Incomplete,
    /// `response.failed`.
    Failed,
    /// `error`. `response.failed` may follow.
    Error,
    /// Any other.
    Other,
}

impl Kind {
    /// Whether the reply ends with it.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Completed | Self::Incomplete | Self::Failed)
    }
}

/// What an event is, by its name; by its `type` if it has no name.
pub fn kind(name: &str, data: &[u8]) -> Kind {
    #[derive(Deserialize)]
    struct Typed {
        #[serde(default, rename = "type")]
        kind: String,
    }
    if name.is_empty() {
        return match serde_json::from_slice::<Typed>(data) {
            Ok(typed) if !typed.kind.is_empty() => kind(&typed.kind, &[]),
            _ => Kind::Other,
        };
    }
    match name {
        "response.created" => Kind::Created,
        "response.output_item.added" => Kind::ItemAdded,
        "response.output_item.done" => Kind::ItemDone,
        "response.completed" => Kind::Completed,
        "response.incomplete" => Kind::Incomplete,
        "response.failed" => Kind::Failed,
        "error" => Kind::Error,
        _ => Kind::Other,
    }
}

/// The response that an event is about.
pub fn head(data: &[u8]) -> Option<ResponseHead> {
    #[derive(Deserialize)]
    struct Event {
        response: ResponseHead,
    }
    serde_json::from_slice::<Event>(data).ok().map(|event| event.response)
}

/// The item that an event is about.
pub fn item(data: &[u8]) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Event<'j> {
        #[serde(borrow)]
        item: &'j RawValue,
    }
    serde_json::from_slice::<Event<'_>>(data).ok().map(|event| event.item)
}
