//! The neutral conversation: what a request, a reply or a stream says, whatever the wire format.
//!
//! Each format's folder reads itself into these types and writes itself from them; no format knows
//! another. Texts, schemas and arguments are borrowed from the request's bytes where they can be,
//! so a large prompt is not copied on its way through. Nothing here decides a rule of conversion:
//! what a target cannot express is in [`rules`].

pub mod effort;
pub mod event;
pub mod frame;
pub mod json;
pub mod locate;
pub mod media;
pub mod reply;
pub mod request;
pub mod rules;
pub mod schema;
pub mod signature;
pub mod target;
pub mod text;
pub mod turns;

use std::borrow::Cow;

pub use effort::Effort;
pub use event::{Block, Event, Sink, StreamProblem};
pub use media::{Media, MediaKind, Source};
pub use reply::{Finish, Reply, ReplyPart};
pub use request::{OutputFormat, Reasoning, Request, Sampling, Tool, ToolChoice, ToolKind, WebSearch};
pub use rules::Rule;
pub use rules::Rules;
pub use signature::{Origin, Signature};
pub use target::{ReplyContext, Target};
pub use text::{Content, Str, Text};

/// Begins the id of a call that the provider gave none; the reply's own seed takes its place.
pub const GENERATED: &str = "tollgate-generated-";

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// An instruction in the middle of the conversation; instructions before its start are in
    /// [`Request::system`].
    System,
    User,
    Assistant,
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn<'a> {
    pub role: Role,
    pub parts: Vec<Part<'a>>,
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part<'a> {
    Text(Text<'a>),
    Media(Media<'a>),
    Thinking(Thinking<'a>),
    ToolCall(ToolCall<'a>),
    ToolResult(ToolResult<'a>),
}

/// Reasoning that a model showed, and the proof of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thinking<'a> {
    /// Empty when the model hid it.
    pub text: Text<'a>,
    /// `None` where the format has no proof; such reasoning cannot be given back.
    pub signature: Option<Signature<'a>>,
}

/// The name of a tool: in the responses format it may stand in a namespace, elsewhere it is one
/// word.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ToolName<'a> {
    pub namespace: Option<Text<'a>>,
    pub name: Text<'a>,
}

impl<'a> ToolName<'a> {
    /// A name without a namespace.
    pub fn plain(name: impl Into<Text<'a>>) -> Self {
        Self { namespace: None, name: name.into() }
    }

    /// The name as one word: the namespace first, joined by two underscores unless they are there
    /// already.
    #[must_use]
    pub fn flat(&self) -> Cow<'_, str> {
        match &self.namespace {
            None => Cow::Borrowed(&*self.name),
            Some(space) if space.ends_with("__") || self.name.starts_with("__") => {
                Cow::Owned(format!("{space}{}", self.name))
            }
            Some(space) => Cow::Owned(format!("{space}__{}", self.name)),
        }
    }
}

/// A call that the model made.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall<'a> {
    pub id: Text<'a>,
    pub name: ToolName<'a>,
    /// JSON text, an object as a rule. A free-text tool's input is the object's member `input`.
    pub arguments: Text<'a>,
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult<'a> {
    /// The id of the call.
    pub id: Text<'a>,
    /// The tool's name, for formats that repeat it; empty where the call is not in the
    /// conversation.
    pub name: ToolName<'a>,
    /// Text and media only.
    pub parts: Vec<Part<'a>>,
    pub is_error: bool,
}

impl ToolResult<'_> {
    /// All text parts, joined by newlines.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.parts.iter().filter_map(Part::as_text).collect();
        texts.join("\n")
    }
}

impl<'a> Part<'a> {
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A text part, from anything that is text.
    pub fn text(text: impl Into<Text<'a>>) -> Self {
        Self::Text(text.into())
    }
}

/// The request cannot be converted: a 400 in the client's format, naming the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Unsupported {
    /// Path of the field in the client's body: `messages.2.content.0.source`.
    pub field: String,
    pub message: String,
}

impl Unsupported {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

/// An upstream's reply cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyProblem {
    /// Not JSON, or not the shape of the provider's format.
    #[error("the provider's reply is not a {format} reply: {message}")]
    NotAReply { format: &'static str, message: String },
    /// A success status with an error in the body.
    #[error("the provider answered with an error: {message}")]
    Upstream { kind: Option<String>, message: String },
}
