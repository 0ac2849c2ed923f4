//! The parts of a reply that have a price of their own: passes over other models, and the tools
//! that the provider ran.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::money::NanoUsd;
use super::usage::Usage;

/// One part of a reply's bill. A reply of one model without such parts has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// What it is.
    pub kind: PartKind,
    /// The model, as the provider names it; `None` = the one that the request asked for. For
    /// containers of another size than the usual one, the entry that they are charged by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The tokens that it is charged for, and its tier.
    #[serde(default, skip_serializing_if = "is_default")]
    pub usage: Usage,
    /// Calls of a tool, or its containers; results of a batch; 0 for other tokens.
    #[serde(default, skip_serializing_if = "is_default")]
    pub quantity: u64,
    /// The provider does not charge for it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub free: bool,
    /// Its part of the request's cost, rounded; `None` = there was no price for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<NanoUsd>,
    /// The price entry of the cost, if it is not the one of the requested model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_model: Option<Arc<str>>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum PartKind {
    /// A pass over a model: the requested one, one that declined, or the one that served.
    Message,
    /// The pass of the model that served after another one had declined.
    FallbackMessage,
    /// The advice of another model.
    AdvisorMessage,
    /// A pass that shortened the conversation.
    Compaction,
    /// A pass of another kind, over another model.
    OtherPass,
    /// Images that a tool of the provider made: the tokens of its model.
    ImageGeneration,
    /// Containers in which the provider ran code of the model.
    CodeInterpreter,
    /// Searches in files that the provider stores.
    FileSearch,
    /// Web searches that the entry has no fee for.
    WebSearch,
    /// Searches for images.
    ImageSearch,
    /// Answers that are based on a map.
    Maps,
    /// Code that the provider ran, at a rate by the hour.
    CodeExecution,
    /// Pages that the provider fetched, for nothing but their tokens.
    WebFetch,
    /// Searches by Exa, Parallel or an enterprise's index.
    PartnerSearch,
    /// Images that an endpoint for images made.
    Image,
    /// Seconds of sound that were read.
    Second,
    /// Characters that were spoken.
    Character,
    /// Searches of a reranker.
    Query,
}

impl PartKind {
    /// Every kind, each once.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The name in records and on the wire, such as `advisor_message`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether it is a pass over a model. If a reply has one, its tokens are charged by its passes.
    pub const fn is_pass(self) -> bool {
        self.is_reply() || matches!(self, Self::AdvisorMessage | Self::Compaction | Self::OtherPass)
    }

    /// Whether it is a pass that made the reply itself, or declined to.
    pub const fn is_reply(self) -> bool {
        matches!(self, Self::Message | Self::FallbackMessage)
    }
}

impl Part {
    /// For logs and traces: kind, model, tokens in and out, calls, and the cost in USD.
    pub fn summary(&self) -> String {
        let (kind, model) = (self.kind.as_str(), self.model.as_deref().unwrap_or("-"));
        let (input, output) = (self.usage.total_input(), self.usage.output);
        let cost = self.cost.map_or_else(|| "unpriced".to_owned(), |cost| cost.to_string());
        format!("{kind} {model} {input}/{output} {} {cost}", self.quantity)
    }

    /// Calls of a tool, without a cost yet.
    pub fn calls(kind: PartKind, quantity: u64) -> Self {
        Self { quantity, ..Self::new(kind, None, Usage::default()) }
    }

    /// A part without a cost yet.
    pub fn new(kind: PartKind, model: Option<Arc<str>>, usage: Usage) -> Self {
        Self { kind, model, usage, quantity: 0, free: false, cost: None, price_model: None }
    }
}
