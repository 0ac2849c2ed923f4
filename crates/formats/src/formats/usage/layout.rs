//! What a reply's bytes are, and whose figures are read in them.

use crate::domain::format::WireFormat;

/// The layout of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// A stream whose first byte is still to come.
    Unknown,
    Events,
    /// One JSON value: a complete reply, an error, or an array of alt-cli events.
    Json,
    /// Of an endpoint: sound, or plain text.
    Opaque,
}

/// Whose figures are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    Native,
    Responses,
    Chat,
    AltCli,
    /// An endpoint's own.
    Endpoint,
}

impl From<WireFormat> for Reading {
    fn from(format: WireFormat) -> Self {
        match format {
            WireFormat::Native => Self::Native,
            WireFormat::Responses => Self::Responses,
            WireFormat::Chat => Self::Chat,
            WireFormat::AltCli => Self::AltCli,
        }
    }
}

/// What the body of an endpoint's reply is, by its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// A stream of events.
    Events,
    /// JSON.
    Json,
    /// Anything else.
    Other,
}
