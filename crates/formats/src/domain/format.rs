//! The four wire formats, by the ids of docs/concepts.md.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A request and reply format that a client speaks or a provider expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[derive(strum::IntoStaticStr, strum::EnumString)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum WireFormat {
    /// `POST /v1/messages`
    Native,
    /// `POST /v1/responses`
    Responses,
    /// `POST /v1/chat/completions`
    #[serde(rename = "chat-compatible")]
    #[strum(serialize = "chat-compatible")]
    Chat,
    /// `POST /v1beta/models/{model}:generateContent` and relatives
    AltCli,
}

impl WireFormat {
    /// Every format, each once.
    pub const ALL: [Self; 4] = [Self::Native, Self::Responses, Self::Chat, Self::AltCli];

    /// The format's id, see docs/concepts.md.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The format of this id; `None` if there is none.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl fmt::Display for WireFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Finish reasons of alt-cli for a call that its service dropped, as it was none. The model or the
/// request is at fault, not the service.
pub const BROKEN_CALLS: [&str; 5] = [
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MALFORMED_RESPONSE",
    "MISSING_THOUGHT_SIGNATURE",
];
