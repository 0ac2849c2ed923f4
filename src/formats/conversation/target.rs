//! What a writer must know besides the conversation itself.

use crate::formats::names::NameMap;

/// About the provider that a request is written for.
#[derive(Debug, Clone, Copy)]
pub struct Target<'t> {
    /// The model that the provider is asked for.
    pub model: &'t str,
    /// Bytes that the request will have, about.
    pub size: usize,
    /// Lifetime of the prompt cache that a native request asks for; `None` = it asks for none.
    pub cache_ttl: Option<&'t str>,
    /// What a native request is given when the client set no limit.
    pub default_max_tokens: u64,
    /// What the provider's prompt cache may be keyed by, when the client did not say.
    pub cache_key: Option<&'t str>,
    /// "Call no tool" is written as no choice at all, as chat-compatible maps to native
    /// (docs/reference/formats.md).
    pub unset_no_choice: bool,
    /// Temperature and `top_p` are both sent, as the client wrote them.
    pub keep_top_p: bool,
}

/// About the client that a reply is written for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyContext {
    /// The names that the request was sent with.
    pub names: NameMap,
    /// The model as the client asked for it: the reply names it so.
    pub model: String,
    /// Unique text of letters, digits, `_` and `-`; every id in the reply is made of it.
    pub seed: String,
    /// Seconds since the epoch at the reply's start.
    pub created: i64,
    /// chat-compatible streams: send the usage chunk.
    pub include_usage: bool,
    /// alt-cli: put each reply into `{"response": …}`.
    pub wrapped: bool,
    /// alt-cli streams: one JSON array in place of server-sent events.
    pub json_array: bool,
    /// The client asked for no reasoning: do not show any.
    pub hide_thinking: bool,
    /// Whether the client allowed several tool calls at once; a responses reply repeats it.
    pub parallel_tools: bool,
}

impl ReplyContext {
    /// An id with a format's usual prefix.
    #[must_use]
    pub fn id(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.seed)
    }

    /// The id of the `index`th thing of its kind.
    #[must_use]
    pub fn nth_id(&self, prefix: &str, index: usize) -> String {
        format!("{prefix}{}_{index}", self.seed)
    }
}
