//! The neutral request.

use std::collections::HashSet;

use serde_json::Number;

use super::rules::Rules;
use super::{Effort, Part, Str, Text, ToolName, Turn};
use crate::formats::json_read::Json;

/// A request for one reply. Members that exist only in its own format are listed in `dropped`, not
/// kept.
#[derive(Debug, Clone, Default)]
pub struct Request<'a> {
    /// The client's name for it; empty if the format has it in the path.
    pub model: Text<'a>,
    /// Instructions before the conversation, in order.
    pub system: Vec<Str<'a>>,
    /// The conversation in order, without the instructions before it.
    pub turns: Vec<Turn<'a>>,
    /// The tools that the model may call; empty = none.
    pub tools: Vec<Tool<'a>>,
    /// Which of them it must or may call; `None` = the format's default.
    pub tool_choice: Option<ToolChoice<'a>>,
    /// Whether several tools may be called at once; `None` = the format's default, which is yes in
    /// all of them.
    pub parallel_tools: Option<bool>,
    /// The limit on output tokens; `None` if the client set none.
    pub max_tokens: Option<u64>,
    /// The sampling fields.
    pub sampling: Sampling,
    /// Texts at which the model stops, in the client's order; empty = none.
    pub stop: Vec<Text<'a>>,
    /// Whether and how much the model reasons.
    pub reasoning: Reasoning,
    /// The form of the reply's text.
    pub output: OutputFormat<'a>,
    /// How long the reply's text is to be: `low`, `medium` or `high`.
    pub verbosity: Option<Text<'a>>,
    /// An opaque id of the end user.
    pub user: Option<Text<'a>>,
    /// The key of the vendor's prompt cache.
    pub cache_key: Option<Text<'a>>,
    /// Marks for the prompt cache, beside those in turns; only if the target has such marks.
    pub marks: CacheMarks,
    /// Whether the reply is to be streamed.
    pub stream: bool,
    /// chat-compatible: the client requests the usage chunk.
    pub include_usage: bool,
    /// alt-cli: the body was in a `{model, request}` wrapper.
    pub wrapped: bool,
    /// Whether the client requests the model's reasoning; `None` = not specified.
    pub show_reasoning: Option<bool>,
    /// Rules that were applied while reading.
    pub dropped: Rules,
}

impl<'a> Request<'a> {
    /// The instructions before the conversation that have a text.
    pub fn instructions(&self) -> Vec<&Str<'a>> {
        self.system.iter().filter(|text| !text.is_empty()).collect()
    }

    /// All tools: those of the request, and those that the conversation adds.
    pub fn all_tools(&self) -> impl Iterator<Item = &Tool<'a>> {
        let parts = self.turns.iter().flat_map(|turn| &turn.parts);
        self.tools.iter().chain(parts.flat_map(Part::new_tools))
    }

    /// The names of the only tools that the model may call; `None` = all.
    pub fn allowed_tools(&self) -> Option<HashSet<&ToolName<'a>>> {
        match &self.tool_choice {
            Some(ToolChoice::Allowed { names, .. }) => Some(names.iter().collect()),
            _ => None,
        }
    }
}

/// How long a marked prefix stays in the prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheMark {
    /// Five minutes.
    Short,
    /// An hour.
    Hour,
}

/// Marks for the prompt cache outside of turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheMarks {
    /// After these texts of [`Request::system`].
    pub system: Vec<(usize, CacheMark)>,
    /// After the tools.
    pub tools: Option<CacheMark>,
    /// After the last message.
    pub last: Option<CacheMark>,
}

/// Sampling fields, as the client's numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampling {
    /// `temperature`. The formats allow 0 to 2, native 0 to 1; readers do not check it.
    pub temperature: Option<Number>,
    /// `top_p`, 0 to 1; not checked either.
    pub top_p: Option<Number>,
    /// `top_k`, a number of tokens.
    pub top_k: Option<Number>,
    /// `frequency_penalty`, -2 to 2.
    pub frequency_penalty: Option<Number>,
    /// `presence_penalty`, -2 to 2.
    pub presence_penalty: Option<Number>,
    /// `seed`, an integer.
    pub seed: Option<Number>,
}

/// One tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool<'a> {
    /// The name, which calls and choice repeat.
    pub name: ToolName<'a>,
    /// What it does, for the model.
    pub description: Option<Str<'a>>,
    /// Who runs it, and what it takes.
    pub kind: ToolKind<'a>,
}

/// What kind of tool.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolKind<'a> {
    /// Run by the client; the schema is JSON Schema text, `None` = no arguments.
    Function {
        /// JSON Schema of the arguments, as text.
        schema: Option<Text<'a>>,
        /// Whether the arguments must match the schema; `None` = not specified.
        strict: Option<bool>,
    },
    /// Run by the client on free text; the grammar, if any, is JSON.
    FreeText {
        /// The grammar as its JSON value; `None` = any text.
        format: Option<Json<'a>>,
    },
    /// Run by the vendor.
    WebSearch(Box<WebSearch<'a>>),
}

/// The only vendor-run tool that several vendors have.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WebSearch<'a> {
    /// Domains that results come from; empty = any.
    pub allowed_domains: Vec<Text<'a>>,
    /// Domains that results do not come from.
    pub blocked_domains: Vec<Text<'a>>,
    /// The most searches for one reply; `None` = no limit. Native only.
    pub max_uses: Option<u64>,
    /// `{type: approximate, city, country, region, timezone}` as JSON text.
    pub user_location: Option<Text<'a>>,
    /// The request has fields that only its vendor's search has.
    pub has_more: bool,
}

impl WebSearch<'_> {
    /// Whether the search is bounded in any way.
    pub const fn is_bounded(&self) -> bool {
        !self.allowed_domains.is_empty()
            || !self.blocked_domains.is_empty()
            || self.max_uses.is_some()
            || self.user_location.is_some()
            || self.has_more
    }
}

/// Which tools the model must, may or must not call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice<'a> {
    /// The model decides.
    Auto,
    /// At least one, any.
    Required,
    /// No tool is called.
    None,
    /// This tool must be called.
    Tool(ToolName<'a>),
    /// Only these; `required` = at least one of them.
    Allowed {
        /// The tools among which the model chooses.
        names: Vec<ToolName<'a>>,
        /// Whether at least one of them must be called.
        required: bool,
    },
    /// The vendor's web search must run.
    WebSearch,
}

/// The requested reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reasoning {
    /// Whether the model reasons, and how the amount is set.
    pub mode: ReasoningMode,
    /// The effort word, if the client sent one. It may accompany any mode.
    pub effort: Option<Effort>,
}

/// How the amount of reasoning is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReasoningMode {
    /// Not specified.
    #[default]
    Unset,
    /// Switched off in a form that only repeats the format's default (native `disabled`).
    OffByDefault,
    /// Switched off although it would be on.
    Off,
    /// On; the model decides how much.
    Adaptive,
    /// On, up to this many tokens.
    Budget(u64),
}

impl Reasoning {
    /// As requested by an effort word.
    pub fn of_effort(effort: Option<Effort>) -> Self {
        let mode = match effort {
            None => ReasoningMode::Unset,
            Some(Effort::None) => ReasoningMode::Off,
            Some(effort) => ReasoningMode::Budget(effort.budget()),
        };
        Self { mode, effort }
    }

    /// Whether the client requested none.
    pub fn is_off(&self) -> bool {
        matches!(self.mode, ReasoningMode::Off | ReasoningMode::OffByDefault)
    }

    /// The effort word to send; `None` = send nothing.
    pub fn effort_word(&self) -> Option<Effort> {
        match (self.mode, self.effort) {
            (ReasoningMode::OffByDefault, _) => None,
            (ReasoningMode::Off, _) => Some(Effort::None),
            (_, Some(effort)) => Some(effort),
            (ReasoningMode::Unset, None) => None,
            (ReasoningMode::Adaptive, None) => Some(Effort::High),
            (ReasoningMode::Budget(tokens), None) => Some(Effort::of_budget(tokens)),
        }
    }

    /// The budget to send: `None` = send nothing, `Some(0)` = off.
    pub fn budget(&self) -> Option<u64> {
        match (self.mode, self.effort) {
            (ReasoningMode::Unset, None) | (ReasoningMode::OffByDefault, _) => None,
            (ReasoningMode::Off, _) => Some(0),
            (ReasoningMode::Budget(tokens), _) => Some(tokens),
            (_, Some(effort)) => Some(effort.budget()),
            (ReasoningMode::Adaptive, None) => Some(Effort::High.budget()),
        }
    }
}

/// The required form of the reply's text.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum OutputFormat<'a> {
    /// Any text.
    #[default]
    Text,
    /// Some JSON object.
    Json,
    /// JSON by this schema (JSON Schema text).
    Schema {
        /// Name of the schema, which some formats require.
        name: Option<Text<'a>>,
        /// What the reply is for, for the model.
        description: Option<Text<'a>>,
        /// JSON Schema of the reply, as text.
        schema: Text<'a>,
        /// Whether the reply must match the schema; `None` = not specified.
        strict: Option<bool>,
    },
}
