//! The neutral conversation: the content of a request, a reply or a stream in a form common to all
//! wire formats.
//!
//! Each format's folder converts between itself and these types; no format depends on another.
//! Texts, schemas and arguments are borrowed from the request's bytes if possible, so a large
//! prompt is not copied. The rules of conversion, for what a target cannot express, are in
//! [`rules`].

pub mod arguments;
pub mod event;
pub mod frame;
pub mod generation;
pub mod json;
pub mod locate;
pub mod media;
pub mod nulls;
pub mod number;
pub mod open_blocks;
pub mod pairs;
pub mod reply;
pub mod request;
pub mod rules;
pub mod schema;
pub mod signature;
pub mod surrogates;
pub mod target;
pub mod template;
pub mod text;
pub mod turns;

use std::borrow::Cow;

pub use crate::domain::effort::Effort;
pub use arguments::Arguments;
pub use event::{Block, Event, EventPieces, Sink, StreamProblem, is_empty_event};
pub use generation::GptGeneration;
pub use media::{Media, MediaKind, MediaSource};
pub use reply::{Finish, Reply, ReplyPart};
pub use request::{
    CacheMark, CacheMarks, OutputFormat, Reasoning, Request, Sampling, Tool, ToolChoice, ToolKind,
    WebSearch,
};
pub use rules::Rule;
pub use rules::Rules;
pub use signature::{Origin, Signature};
pub use target::{ReplyContext, Target, TargetModel};
pub use text::{Content, Str, Text};

/// The prefix of the id of a call for which the provider sent none; it is replaced by one from the
/// reply's own seed.
pub const GENERATED: &str = "tollgate-generated-";

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// An instruction in the middle of the conversation; instructions before its start are in
    /// [`Request::system`].
    System,
    /// The client: texts, media and results of tools.
    User,
    /// The model: texts, reasoning and tool calls.
    Assistant,
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn<'a> {
    /// Who wrote it.
    pub role: Role,
    /// Its content in order; may be empty.
    pub parts: Vec<Part<'a>>,
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part<'a> {
    /// Text, from either side.
    Text(Str<'a>),
    /// An image, a document, audio or video.
    Media(Media<'a>),
    /// The model's reasoning of an earlier turn.
    Thinking(Thinking<'a>),
    /// A call that the model made.
    ToolCall(ToolCall<'a>),
    /// What the client's tool returned.
    ToolResult(ToolResult<'a>),
    /// Tools that are offered from here on, beside [`Request::tools`]; in turns of [`Role::System`].
    NewTools(Vec<Tool<'a>>),
    /// What is before it is to be in the prompt cache; only if the target has such marks.
    CacheMark(CacheMark),
}

/// A model's visible reasoning, and its proof.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thinking<'a> {
    /// Empty if the model hid it.
    pub text: Str<'a>,
    /// `None` if the format has no proof; such reasoning cannot be sent back.
    pub signature: Option<Signature<'a>>,
}

impl Thinking<'_> {
    /// Whether it is a step of a search, and no reasoning.
    pub fn is_step(&self) -> bool {
        self.signature.as_ref().is_some_and(|signature| signature.origin == Origin::AltCliStep)
    }
}

/// The name of a tool: in the responses format it may have a namespace, elsewhere it is one word.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ToolName<'a> {
    /// The namespace; `None` if the name is one word.
    pub namespace: Option<Text<'a>>,
    /// The name within the namespace. It may be longer than other formats allow (see
    /// `formats::names`).
    pub name: Text<'a>,
}

impl<'a> ToolName<'a> {
    /// A name without a namespace.
    pub fn plain(name: impl Into<Text<'a>>) -> Self {
        Self { namespace: None, name: name.into() }
    }

    /// The name as one word: the namespace first, joined by two underscores unless they are already
    /// there.
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

/// A call by the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall<'a> {
    /// The call's id, which its result repeats. If the sender gave none, it is empty, or the reader
    /// made one.
    pub id: Text<'a>,
    /// The tool's name.
    pub name: ToolName<'a>,
    /// JSON text, usually an object. A free-text tool's input is the object's member `input`.
    pub arguments: Text<'a>,
}

/// The result of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult<'a> {
    /// The id of the call.
    pub id: Text<'a>,
    /// The tool's name, for formats that repeat it; empty if the call is not in the conversation.
    pub name: ToolName<'a>,
    /// Text and media only.
    pub parts: Vec<Part<'a>>,
    /// Whether the tool failed. Formats without such a field say it in the text.
    pub is_error: bool,
}

impl<'a> ToolResult<'a> {
    /// All its texts.
    pub fn texts(&self) -> impl Iterator<Item = &Str<'a>> {
        self.parts.iter().filter_map(Part::as_text)
    }
}

impl<'a> Part<'a> {
    /// The text of a text part; `None` for any other part.
    pub const fn as_text(&self) -> Option<&Str<'a>> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text of a text part; `None` for any other part.
    pub fn into_text(self) -> Option<Str<'a>> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The tools that the part adds; of any other part none.
    #[must_use]
    pub fn new_tools(&self) -> &[Tool<'a>] {
        match self {
            Self::NewTools(tools) => tools,
            _ => &[],
        }
    }

    /// A text part, from anything that converts to text.
    pub fn text(text: impl Into<Str<'a>>) -> Self {
        Self::Text(text.into())
    }
}

/// The request cannot be converted: a 400 in the client's format, naming the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Unsupported {
    /// Path of the field in the client's body: `messages.2.content.0.source`.
    pub field: String,
    /// What is wrong, for the client. It never repeats the field's content.
    pub message: String,
}

impl Unsupported {
    /// The refusal of the field at this path.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }

    /// The refusal of a request that lacks the field at this path.
    pub fn missing(field: impl Into<String>) -> Self {
        Self::new(field, "this field is required")
    }
}

/// An upstream's reply cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyProblem {
    /// Not JSON, or not the shape of the provider's format.
    #[error("the provider's reply is not a {format} reply: {message}")]
    NotAReply {
        /// Id of the provider's format, such as `native`.
        format: &'static str,
        /// What is wrong with the body.
        message: String,
    },
    /// A success status with an error in the body.
    #[error("the provider answered with an error: {message}")]
    Upstream {
        /// The error's type in the provider's words; `None` if it has none.
        kind: Option<String>,
        /// The provider's message.
        message: String,
    },
}
