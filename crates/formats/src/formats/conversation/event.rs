//! The neutral stream: one block at a time, opened, filled, closed.
//!
//! Blocks are in order (never two open), so writers need no look-up by index. Only the blocks of a
//! reader may be mixed: see [`Event::Turn`].

use super::{Finish, Signature, Str, Text, ToolName, locate};
use crate::domain::usage::Usage;

/// The content of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block<'a> {
    /// Text of the reply.
    Text,
    /// The model's own text for declining.
    Refusal,
    /// Visible reasoning.
    Thinking,
    /// A tool call; its deltas are the arguments.
    Tool {
        /// The call's id. If the provider sent none, readers give one that begins with
        /// [`GENERATED`](super::GENERATED), which the converter replaces.
        id: Text<'a>,
        /// The tool's name: the provider's from a reader, the client's for a writer.
        name: ToolName<'a>,
    },
}

/// One step of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// The reply begins. Usage as far as it is known (the native format reports its input first).
    /// Readers leave it empty, here and at the end: the converter fills it from the only usage
    /// reader.
    Start {
        /// Tokens so far.
        usage: Usage,
    },
    /// A block begins. Every block is closed before the next one is opened.
    Open(Block<'a>),
    /// More of the open block: text, or JSON text of a tool's arguments.
    Delta(Text<'a>),
    /// The proof of the open thinking block.
    Signature(Signature<'a>),
    /// The open block ends.
    Close,
    /// What follows is of the block that the provider gives this number: begun by the next event,
    /// or continued. In place of [`Event::Close`] between blocks that may be mixed, and before the
    /// first of them. Of two in a row, the first is for the block that is open already. The
    /// converter puts blocks one after the other, so writers never receive it.
    Turn(u64),
    /// More of the head of the call whose turn it is. A call that was opened without a name begins
    /// with its first argument, or with its end: until then its name may grow. Writers never
    /// receive it.
    Head {
        /// The id, if it is known now.
        id: Option<Text<'a>>,
        /// More of the name, or the whole name once more.
        name: Option<Text<'a>>,
    },
    /// Nothing more comes for the block of this number, while others go on. Only of blocks that are
    /// mixed; writers never receive it.
    Done(u64),
    /// The reply is complete.
    Finish {
        /// Why the model stopped.
        finish: Finish,
        /// Tokens of the complete reply.
        usage: Usage,
    },
}

impl Event<'_> {
    /// Whether the event is visible to a client.
    pub const fn is_content(&self) -> bool {
        matches!(self, Self::Open(_) | Self::Delta(_))
    }
}

/// Whether an event's data have no content: keep-alive events of some services, which may be no
/// JSON, and the end of a chat-compatible stream, which relays also add to others.
pub fn is_empty_event(data: &[u8]) -> bool {
    match data.trim_ascii() {
        b"{}" | b"[DONE]" => true,
        data => !matches!(data.first(), Some(b'{' | b'[')),
    }
}

/// The pieces of text of one event of the provider, put together where they are of one block: a
/// piece may have a byte, and the event that is written for it has hundreds.
pub struct EventPieces<'a, K>(Option<(K, Str<'a>)>);

impl<K> Default for EventPieces<'_, K> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'a, K: PartialEq> EventPieces<'a, K> {
    /// Adds a piece of a block of this kind. Returns the pieces before it if they are of another.
    pub fn push(&mut self, kind: K, text: Str<'a>) -> Option<(K, Str<'a>)> {
        match &mut self.0 {
            Some((last, pieces)) if *last == kind => {
                pieces.push_str(&text);
                None
            }
            other => other.replace((kind, text)),
        }
    }

    /// The last pieces.
    pub fn take(&mut self) -> Option<(K, Str<'a>)> {
        self.0.take()
    }
}

/// Why a stream cannot continue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StreamProblem {
    /// The provider reported an error within the stream.
    #[error("{message}")]
    Upstream {
        /// The error's type in the provider's words; `None` if it has none.
        kind: Option<String>,
        /// The provider's message.
        message: String,
    },
    /// An event that is not of the provider's format.
    #[error("the provider sent an event that cannot be read: {message}")]
    Malformed {
        /// What is wrong with the event.
        message: String,
    },
    /// One event, or the part of the reply that must be kept, exceeds the bound.
    #[error("the provider's stream is larger than can be converted: {what}")]
    TooLarge {
        /// The part that is too large, such as `one event`.
        what: &'static str,
    },
    /// The stream ended before the format's own end.
    #[error("the provider's stream ended before the reply was complete")]
    Cut,
}

impl StreamProblem {
    /// An event that is not of the format.
    pub fn unreadable(data: &[u8], error: &serde_json::Error) -> Self {
        Self::Malformed { message: locate::problem(data, error).to_string() }
    }

    /// More of a call came after its end.
    pub fn mixed_calls() -> Self {
        Self::malformed("the arguments of two tool calls are mixed")
    }

    /// What is wrong with an event, or with its place in the stream.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::Malformed { message: message.into() }
    }
}

/// Receives the readers' events.
pub type Sink<'s> = dyn FnMut(Event<'_>) + 's;
