//! Why a provider read less of a request from its prompt cache than it had there.

use serde::{Deserialize, Serialize};

use super::money::NanoUsd;

/// Input that was not read from the prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheMiss {
    /// Why.
    pub cause: CacheMissCause,
    /// The first message that changed, counted from 1; 0 for other causes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub message: u32,
    /// Tokens that were charged as new input, or written to the cache again.
    pub tokens: u64,
    /// The part of the request's cost that reading them from the cache would have saved; 0 without
    /// a price.
    pub cost: NanoUsd,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The cause of a cache miss. If there are several, the first in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum CacheMissCause {
    /// Another provider, and so another account, served the session's request before.
    Account,
    /// Another model.
    Model,
    /// The tools changed.
    Tools,
    /// The system text or the instructions changed.
    System,
    /// A message changed that the cache had.
    Message,
    /// The cache's lifetime was over.
    Lifetime,
    /// Nothing in the request explains it.
    Unexplained,
    /// The conversation begins: the provider had nothing of it.
    FirstUse,
    /// The conversation is older than what this node remembers of it.
    Unknown,
}

impl CacheMissCause {
    /// Every cause, each once.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The name on the wire and in the database, such as `first_use`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether the provider had had the tokens in its cache, by its own report.
    pub const fn is_loss(self) -> bool {
        !matches!(self, Self::FirstUse | Self::Unknown)
    }

    /// In words, for the decision chain.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Account => "another provider served the session before",
            Self::Model => "the model changed",
            Self::Tools => "the tools changed",
            Self::System => "the system text changed",
            Self::Message => "a message changed",
            Self::Lifetime => "its lifetime was over",
            Self::Unexplained => "nothing in the request explains it",
            Self::FirstUse => "first use",
            Self::Unknown => "the conversation began before this node knew it",
        }
    }
}
