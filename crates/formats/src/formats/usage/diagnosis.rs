//! What a native provider says about its own prompt cache (`diagnostics`), if a request asked.

use super::tag::UsageTag;
use crate::formats::scan::{Found, Kind, MemberKey, Node, key};

/// The object, in a message. Its reason is null if the cache had all, or the service has not
/// finished.
pub(super) const DIAGNOSTICS: Node<UsageTag> = Node::object(&KEYS);
static KEYS: [MemberKey<UsageTag>; 1] = [key("cache_miss_reason", Node::object(&REASON_KEYS))];
static REASON_KEYS: [MemberKey<UsageTag>; 2] = [
    key("type", Node::value(UsageTag::MissReason, 40)),
    key("cache_missed_input_tokens", Node::value(UsageTag::MissTokens, 24)),
];

/// Why the cache did not have all of an earlier request's prompt.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CacheDiagnosis {
    /// The service's word, such as `tools_changed`.
    reason: Box<str>,
    /// Input tokens, about; `None` if the service gives no number.
    tokens: Option<u64>,
}

impl CacheDiagnosis {
    pub(super) fn found(&mut self, found: &Found<'_, UsageTag>) {
        match found.tag {
            UsageTag::MissTokens => self.tokens = found.as_u64(),
            _ if found.kind == Kind::String => {
                self.reason = found.as_str().unwrap_or_default().into();
            }
            _ => {}
        }
    }

    /// A line for the decision chain.
    pub fn describe(&self) -> String {
        let tokens = self.tokens.map(|tokens| format!(", {tokens} tokens")).unwrap_or_default();
        format!("the provider says of its prompt cache: {}{tokens}", self.reason)
    }
}
