//! The ledger record of one authenticated request, with its decision chain.

use std::sync::Arc;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::cache_miss::CacheMiss;
use super::clock::Timestamp;
use super::format::WireFormat;
use super::ids::{KeyId, ProviderId, RequestId, SessionId, UserId};
use super::money::NanoUsd;
use super::part::Part;
use super::usage::Usage;

/// One request, as billed and as logged. Every authenticated request leaves exactly one. An attempt
/// that the gateway made beside it and cancelled has one too, if it cost something (`#hedge`).
///
/// It is written to the local journal (a new field: `ledger::encoding` too), and from there to the
/// database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Names the record in the log, in headers and in error messages.
    pub request_id: RequestId,
    /// The request's start: when its head arrived.
    pub started_at: Timestamp,
    /// From then to its admission, milliseconds; 0 if it was not admitted. Below zero if the clock
    /// was set back meanwhile, or is ahead of Redis'. See [`Self::counts_at`].
    #[serde(default)]
    pub admitted_ms: i64,
    /// `None` for traffic of the admin token.
    pub key_id: Option<KeyId>,
    /// Name of the key at the time of the request; it is not changed by a later renaming.
    pub key_name: Option<Arc<str>>,
    /// The key's owner; `None` for traffic of the admin token.
    pub user_id: Option<UserId>,
    /// Name of the user at the time of the request.
    pub user_name: Option<Arc<str>>,
    /// The conversation; `None` if the request was refused before its body was read.
    pub session_id: Option<SessionId>,
    /// The provider that answered, or the last one that was tried.
    pub provider_id: Option<ProviderId>,
    /// Name of the provider at the time of the request.
    pub provider_name: Option<Arc<str>>,
    /// Format of the client's request and reply.
    pub client_format: WireFormat,
    /// Format of the request to the provider; `None` if no provider was tried.
    pub provider_format: Option<WireFormat>,
    /// Path of the request, without its query, and perhaps with a mark of the gateway's own as its
    /// fragment: `#tool-check`, `#websocket`, `#probe`, `#hedge`.
    pub endpoint: Arc<str>,
    /// The model that the client asked for.
    pub model: Arc<str>,
    /// The model that the provider was asked for, if it differs.
    pub upstream_model: Option<Arc<str>>,
    /// Whether the client requested a stream.
    pub streamed: bool,
    /// HTTP status that the client received.
    pub status_code: u16,
    /// How the request ended.
    pub outcome: RequestOutcome,
    /// Why it ended without the expected result, for operators; `None` for a complete reply.
    pub error_message: Option<String>,
    /// Tokens of the attempt that answered; zero if there was none. See `estimated`.
    pub usage: Usage,
    /// `None` = unpriced (no price entry for the model).
    pub cost: Option<NanoUsd>,
    /// What it would have cost by the price table, where the client's own account paid at the
    /// provider: then `cost` is zero. `None` = it was charged, or has no price.
    #[serde(default)]
    pub notional_cost: Option<NanoUsd>,
    /// The price entry of the cost, if it is not that of `model`.
    #[serde(default)]
    pub price_model: Option<Arc<str>>,
    /// The parts of the cost that have a price of their own; empty for most requests.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// What the provider could not read from its prompt cache, and why; `None` = nothing, or nothing
    /// is known.
    #[serde(default)]
    pub cache_miss: Option<CacheMiss>,
    /// Factor that `cost` contains: that of the provider, or 1 if nothing was charged.
    pub cost_multiplier: Decimal,
    /// Usage (and so cost) was estimated, because the upstream sent no final figures.
    pub estimated: bool,
    /// From the arrival of the request's head to the end of the reply, milliseconds.
    pub duration_ms: u64,
    /// Time to the first byte of the reply's body, for the client.
    pub first_byte_ms: Option<u64>,
    /// Time spent in the gateway itself, microseconds.
    pub overhead_us: u64,
    /// Requests sent to providers, retries at the same provider included. 0 if none was tried.
    pub attempts: u32,
    /// The decision chain, in order of time.
    pub decisions: Vec<Decision>,
    /// The client's `User-Agent`; `None` if it sent none.
    pub user_agent: Option<Arc<str>>,
    /// The client's IP address, behind trusted proxies that of the real client.
    pub client_addr: Option<Arc<str>>,
}

impl Record {
    /// The time of its admission, to which the cost belongs: in limits, sums and statistics. The
    /// start, if it was not admitted.
    pub fn counts_at(&self) -> Timestamp {
        self.started_at.plus_ms(self.admitted_ms)
    }

    /// The path that was asked for, without a mark.
    pub fn path(&self) -> &str {
        self.endpoint.split_once('#').map_or(&self.endpoint, |(path, _)| path)
    }

    /// Whether a limit of a key or a user refused it: by the statuses of limits, and before any
    /// provider was tried.
    pub const fn is_limit_refusal(&self) -> bool {
        matches!(self.outcome, RequestOutcome::Refused)
            && self.provider_id.is_none()
            && matches!(self.status_code, 402 | 429)
    }

    /// The price entry of the cost; `None` if nothing was charged.
    pub fn priced_by(&self) -> Option<&str> {
        // A price may be 0; without usage, no price was looked up.
        self.cost.filter(|cost| *cost != NanoUsd::ZERO || self.usage != Usage::default())?;
        Some(self.price_model.as_deref().unwrap_or(&self.model))
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
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
    /// Every outcome, each once.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// A request without the expected result; a client that closes early is not an error.
    pub const fn is_error(self) -> bool {
        !matches!(self, Self::Completed | Self::ClientAborted)
    }

    /// The name on the wire and in the database, such as `upstream_failed`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One step of the decision chain: a provider skipped, chosen, or tried, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The provider; `None` if the step concerns no single one.
    pub provider_id: Option<ProviderId>,
    /// Name of the provider; a text such as `(others)` if there is no single one.
    pub provider_name: Arc<str>,
    /// What was decided about it.
    pub step: DecisionStep,
    /// Plain words, or a status and class: `"500 server_error"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Arc<str>>,
    /// Upstream status, if one was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Milliseconds since the request's start.
    pub at_ms: u64,
    /// Milliseconds that the attempt took; `None` for a step that is not an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// Usage that a failed attempt reported, or a cancelled one cost: billed to no one, but visible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// What a decision says about its provider. The first eight variants say why it was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionStep {
    /// No group in common with the key.
    OtherGroup,
    /// Disabled, by an administrator or by the gateway itself.
    Disabled,
    /// The model is neither allowed nor redirected at this provider, or it has no price there and
    /// unpriced models are refused.
    ModelNotSupported,
    /// The client's format cannot be converted to the provider's.
    FormatNotConvertible,
    /// Its circuit is open, or half-open with a probe in flight. After the selection: it admits no
    /// request now, because of its circuit or a new cooldown.
    CircuitOpen,
    /// It is in a cooldown, after a `Retry-After`.
    Cooldown,
    /// One of its spending limits is reached.
    LimitReached,
    /// It serves as many sessions as it may.
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
    /// The attempt gave the reply that the client received.
    Succeeded,
    /// The gateway had the reply's tool calls checked.
    Checked,
    /// Asked as well, because the provider before it had sent nothing yet.
    Hedged,
    /// Cancelled, because the other provider's reply began first. What it cost is the gateway's own.
    HedgeLost,
    /// The gateway itself refused the request; no decision about a provider.
    Refused,
    /// No provider was left: the final answer to the client.
    Exhausted,
}
