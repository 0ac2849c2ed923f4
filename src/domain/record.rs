//! The ledger record of one authenticated request, with its decision chain.

use std::sync::Arc;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::format::WireFormat;
use super::ids::{KeyId, ProviderId, RequestId, SessionId, UserId};
use super::money::NanoUsd;
use super::usage::Usage;

/// One request, as billed and as logged. Every authenticated request leaves exactly one.
///
/// It is written to the local journal (a new field: `ledger::encoding` too), and from there to the
/// database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub request_id: RequestId,
    /// The request's start; a cost belongs to it.
    pub started_at: Timestamp,
    /// `None` for traffic of the admin token.
    pub key_id: Option<KeyId>,
    pub key_name: Option<Arc<str>>,
    pub user_id: Option<UserId>,
    pub user_name: Option<Arc<str>>,
    pub session_id: Option<SessionId>,
    /// The provider that answered, or the last one that was tried.
    pub provider_id: Option<ProviderId>,
    pub provider_name: Option<Arc<str>>,
    pub client_format: WireFormat,
    pub provider_format: Option<WireFormat>,
    /// Path of the request, without its query.
    pub endpoint: Arc<str>,
    /// The model that the client asked for.
    pub model: Arc<str>,
    /// The model that the provider was asked for, if it differs.
    pub upstream_model: Option<Arc<str>>,
    pub streamed: bool,
    pub status_code: u16,
    pub outcome: RequestOutcome,
    pub error_message: Option<String>,
    pub usage: Usage,
    /// `None` = unpriced (no price entry for the model).
    pub cost: Option<NanoUsd>,
    /// The price entry of the cost, if it is not that of `model`.
    #[serde(default)]
    pub price_model: Option<Arc<str>>,
    pub cost_multiplier: Decimal,
    /// Usage (and so cost) was estimated, because the upstream sent no final figures.
    pub estimated: bool,
    pub duration_ms: u64,
    /// Time to the first byte of the reply's body, for the client.
    pub first_byte_ms: Option<u64>,
    /// Time spent in the gateway itself, microseconds.
    pub overhead_us: u64,
    pub attempts: u32,
    pub decisions: Vec<Decision>,
    pub user_agent: Option<Arc<str>>,
    pub client_addr: Option<Arc<str>>,
}

impl Record {
    /// Whether a limit of a key or a user refused it: by the statuses of limits, and before any
    /// provider was tried.
    #[must_use]
    pub const fn is_limit_refusal(&self) -> bool {
        matches!(self.outcome, RequestOutcome::Refused)
            && self.provider_id.is_none()
            && matches!(self.status_code, 402 | 429)
    }

    /// The price entry of the cost; `None` if nothing was charged.
    #[must_use]
    pub fn priced_by(&self) -> Option<&str> {
        // A price may be 0; without usage, no price was looked up.
        self.cost.filter(|cost| *cost != NanoUsd::ZERO || self.usage != Usage::default())?;
        Some(self.price_model.as_deref().unwrap_or(&self.model))
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestOutcome {
    /// The reply is complete.
    Completed,
    /// Refused by the gateway itself before any provider was tried (limits, words, malformed, no
    /// provider).
    Refused,
    /// A client error that the upstream reported; forwarded.
    ClientError,
    /// Every provider failed.
    UpstreamFailed,
    /// The reply had begun, then the upstream broke the connection, stalled or reported an error.
    BrokenOff,
    /// The client closed the connection before the end.
    ClientAborted,
    /// The gateway itself failed.
    Internal,
}

impl RequestOutcome {
    pub const ALL: [Self; 7] = [
        Self::Completed,
        Self::Refused,
        Self::ClientError,
        Self::UpstreamFailed,
        Self::BrokenOff,
        Self::ClientAborted,
        Self::Internal,
    ];

    /// A request without the expected result; a client that closes early is no error.
    #[must_use]
    pub const fn is_error(self) -> bool {
        !matches!(self, Self::Completed | Self::ClientAborted)
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Refused => "refused",
            Self::ClientError => "client_error",
            Self::UpstreamFailed => "upstream_failed",
            Self::BrokenOff => "broken_off",
            Self::ClientAborted => "client_aborted",
            Self::Internal => "internal",
        }
    }
}

/// One step of the decision chain: a provider skipped, chosen, or tried, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    pub provider_id: Option<ProviderId>,
    pub provider_name: Arc<str>,
    pub step: DecisionStep,
    /// Plain words, or a status and class: `"500 server_error"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Arc<str>>,
    /// Upstream status, if one was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Milliseconds since the request's start.
    pub at_ms: u64,
    /// How long the attempt took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// Usage that a failed attempt reported: billed to no one, but visible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionStep {
    OtherGroup,
    Disabled,
    ModelNotSupported,
    FormatNotConvertible,
    CircuitOpen,
    Resting,
    LimitReached,
    SessionCapReached,
    /// Among the candidates, but not first.
    Candidate,
    /// Chosen because the session already uses it.
    ChosenForSession,
    /// Chosen by priority, format and weight.
    Chosen,
    /// Retried at the same provider.
    Retried,
    /// The attempt failed and the next provider was tried.
    AttemptFailed,
    /// The attempt ended the request with a client error.
    ClientError,
    Succeeded,
    /// The gateway itself refused the request; no decision about a provider.
    Refused,
    /// No provider was left: the final answer to the client.
    Exhausted,
}
