//! The four wire formats, by the ids of docs/concepts.md.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A request and reply format that a client speaks or a provider expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WireFormat {
    /// `POST /v1/messages`
    #[serde(rename = "native")]
    Native,
    /// `POST /v1/responses`
    #[serde(rename = "responses")]
    Responses,
    /// `POST /v1/chat/completions`
    #[serde(rename = "chat-compatible")]
    Chat,
    /// `POST /v1beta/models/{model}:generateContent` and relatives
    #[serde(rename = "alt-cli")]
    AltCli,
}

impl WireFormat {
    /// Every format, each once.
    pub const ALL: [Self; 4] = [Self::Native, Self::Responses, Self::Chat, Self::AltCli];

    /// The format's id, see docs/concepts.md.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Responses => "responses",
            Self::Chat => "chat-compatible",
            Self::AltCli => "alt-cli",
        }
    }

    /// The format of this id; `None` if there is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.as_str() == text)
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
