//! The neutral reply.

use super::{Signature, Str, Thinking, ToolCall};
use crate::domain::usage::Usage;

/// What is wrong with a reply whose call could be answered by no tool.
pub const NAMELESS_CALL: &str = "a tool call names no tool";

/// A complete reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply<'a> {
    /// The content in order; empty if the model wrote nothing.
    pub parts: Vec<ReplyPart<'a>>,
    /// Why the model stopped.
    pub finish: Finish,
    /// A format's own reader leaves it empty; `convert` fills it from the only usage reader.
    pub usage: Usage,
}

impl Reply<'_> {
    /// The approximate size of the reply in a format, in bytes: what its buffer begins with.
    pub fn size(&self) -> usize {
        let texts = self.parts.iter().map(|part| match part {
            ReplyPart::Text(text) | ReplyPart::Refusal(text) => text.size(),
            ReplyPart::Thinking(thinking) => thinking.text.size(),
            ReplyPart::ToolCall(call) => call.arguments.len(),
        });
        let texts: usize = texts.sum();
        // Escapes, and the members around the texts.
        texts + texts / 8 + 512 + self.parts.len() * 128
    }
}

/// One piece of a reply.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyPart<'a> {
    /// Text for the client.
    Text(Str<'a>),
    /// The model's own text for declining.
    Refusal(Str<'a>),
    /// Visible reasoning and its proof.
    Thinking(Thinking<'a>),
    /// A call that the client is to make.
    ToolCall(ToolCall<'a>),
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Finish {
    /// The model was finished.
    #[default]
    Stop,
    /// One of the client's stop sequences, and which one if the format reports it.
    StopSequence(Option<String>),
    /// The token limit was reached.
    Length,
    /// The model calls tools and waits for their results.
    ToolCalls,
    /// The model or the vendor's filter declined.
    Refusal,
}

impl ReplyPart<'_> {
    /// Whether the part is a tool call.
    pub const fn is_tool_call(&self) -> bool {
        matches!(self, Self::ToolCall(_))
    }
}

impl Finish {
    /// Tool calls override a plain stop: some providers report "stop" although the model called a
    /// tool.
    #[must_use]
    pub fn with_calls(self, any_call: bool) -> Self {
        if any_call && matches!(self, Self::Stop) { Self::ToolCalls } else { self }
    }
}

/// A piece of thinking that consists only of a proof.
impl<'a> From<Signature<'a>> for Thinking<'a> {
    fn from(signature: Signature<'a>) -> Self {
        Self { text: Str::default(), signature: Some(signature) }
    }
}
