//! The input of a writer besides the conversation itself.

use std::ops::Deref;

use crate::domain::model_facts::ModelFacts;
use crate::formats::names::NameMap;

/// A provider's model: its name, and what the operator says of it.
#[derive(Debug, Clone, Copy)]
pub struct TargetModel<'t> {
    /// The name for the provider.
    pub name: &'t str,
    /// What its price entry says that it accepts, if that says so.
    pub facts: Option<&'t ModelFacts>,
}

impl Deref for TargetModel<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.name
    }
}

/// The provider that a request is written for.
#[derive(Debug, Clone, Copy)]
pub struct Target<'t> {
    /// The provider's model.
    pub model: &'t TargetModel<'t>,
    /// Approximate size of the request in bytes.
    pub size: usize,
    /// Lifetime of the prompt cache in a native request; `None` = no prompt cache.
    pub cache_ttl: Option<&'t str>,
    /// The limit of a native request if the client set none.
    pub default_max_tokens: u64,
    /// The key of the provider's prompt cache if the client set none.
    pub cache_key: Option<&'t str>,
    /// "Call no tool" is written as no choice at all, for chat-compatible to native
    /// (docs/conversion.md).
    pub unset_no_choice: bool,
    /// The client sends back what a reply has in place of reasoning: steps of a search.
    pub returns_steps: bool,
    /// Temperature and `top_p` are both sent unchanged.
    pub keep_top_p: bool,
}

/// The client that a reply is written for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyContext {
    /// The names that the request was sent with.
    pub names: NameMap,
    /// The model name of the client's request, which the reply repeats.
    pub model: String,
    /// Unique text of letters, digits, `_` and `-`; the base of every id in the reply.
    pub seed: String,
    /// Seconds since the epoch at the reply's start.
    pub created: i64,
    /// chat-compatible streams: send the usage chunk.
    pub include_usage: bool,
    /// alt-cli: wrap each reply in `{"response": …}`.
    pub wrapped: bool,
    /// alt-cli streams: one JSON array in place of server-sent events.
    pub json_array: bool,
    /// The client did not request reasoning: do not show any.
    pub hide_thinking: bool,
    /// Input tokens of the request, estimated: reported to the client if the provider reports none.
    pub estimated_input: u64,
    /// Whether the client allowed several tool calls at once; a responses reply repeats it.
    pub parallel_tools: bool,
}

impl ReplyContext {
    /// An id with a format's usual prefix.
    pub fn id(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.seed)
    }

    /// The id of the `index`th thing of its kind.
    pub fn nth_id(&self, prefix: &str, index: usize) -> String {
        format!("{prefix}{}_{index}", self.seed)
    }
}
