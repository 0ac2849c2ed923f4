//! The neutral request.

use serde_json::Number;
use serde_json::value::RawValue;

use super::rules::Rules;
use super::{Effort, Text, ToolName, Turn};

/// A request for one reply. Members that exist only in its own format are listed in `dropped`, not
/// kept.
#[derive(Debug, Clone, Default)]
pub struct Request<'a> {
    /// The client's name for it; empty if the format has it in the path.
    pub model: Text<'a>,
    /// Instructions before the conversation, in order.
    pub system: Vec<Text<'a>>,
    pub turns: Vec<Turn<'a>>,
    pub tools: Vec<Tool<'a>>,
    pub tool_choice: Option<ToolChoice<'a>>,
    /// Whether several tools may be called at once; `None` = the format's default, which is yes in
    /// all of them.
    pub parallel_tools: Option<bool>,
    pub max_tokens: Option<u64>,
    pub sampling: Sampling,
    pub stop: Vec<Text<'a>>,
    pub reasoning: Reasoning,
    pub output: OutputFormat<'a>,
    /// `low`, `medium`, `high`.
    pub verbosity: Option<Text<'a>>,
    /// An opaque id of the end user.
    pub user: Option<Text<'a>>,
    /// The key of the vendor's prompt cache.
    pub cache_key: Option<Text<'a>>,
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

/// Sampling fields, as the client's numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampling {
    pub temperature: Option<Number>,
    pub top_p: Option<Number>,
    pub top_k: Option<Number>,
    pub frequency_penalty: Option<Number>,
    pub presence_penalty: Option<Number>,
    pub seed: Option<Number>,
}

/// One tool.
#[derive(Debug, Clone)]
pub struct Tool<'a> {
    pub name: ToolName<'a>,
    pub description: Option<Text<'a>>,
    pub kind: ToolKind<'a>,
}

/// What kind of tool.
#[derive(Debug, Clone)]
pub enum ToolKind<'a> {
    /// Run by the client; the schema is JSON Schema text, `None` = no arguments.
    Function { schema: Option<Text<'a>>, strict: Option<bool> },
    /// Run by the client on free text; the grammar, if any, is JSON.
    FreeText { format: Option<&'a RawValue> },
    /// Run by the vendor.
    WebSearch(WebSearch<'a>),
}

/// The only vendor-run tool that several vendors have.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WebSearch<'a> {
    pub allowed_domains: Vec<Text<'a>>,
    pub blocked_domains: Vec<Text<'a>>,
    pub max_uses: Option<u64>,
    /// `{type: approximate, city, country, region, timezone}` as JSON text.
    pub user_location: Option<Text<'a>>,
}

/// Which tools the model must, may or must not call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice<'a> {
    Auto,
    /// At least one, any.
    Required,
    None,
    Tool(ToolName<'a>),
    /// Only these; `required` = at least one of them.
    Allowed {
        names: Vec<ToolName<'a>>,
        required: bool,
    },
    /// The vendor's web search must run.
    WebSearch,
}

/// The requested reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reasoning {
    pub mode: ReasoningMode,
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
    #[must_use]
    pub fn of_effort(effort: Option<Effort>) -> Self {
        let mode = match effort {
            None => ReasoningMode::Unset,
            Some(Effort::None) => ReasoningMode::Off,
            Some(effort) => ReasoningMode::Budget(effort.budget()),
        };
        Self { mode, effort }
    }

    /// Whether the client requested none.
    #[must_use]
    pub fn is_off(&self) -> bool {
        matches!(self.mode, ReasoningMode::Off | ReasoningMode::OffByDefault)
    }

    /// The effort word to send; `None` = send nothing.
    #[must_use]
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
    #[must_use]
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
    #[default]
    Text,
    /// Some JSON object.
    Json,
    /// JSON by this schema (JSON Schema text).
    Schema { name: Option<Text<'a>>, description: Option<Text<'a>>, schema: Text<'a>, strict: Option<bool> },
}
