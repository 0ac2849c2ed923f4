//! A provider's health, as shown.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Exact, Iso};
use crate::domain::clock::Timestamp;
use crate::domain::provider::{LastError, Provider};
use crate::domain::provider_credential::KEY_NAME;
use crate::policy::breaker::BreakerFigures;
use crate::policy::provider_state::Recent;
use crate::policy::quota::QuotaWindow;
use crate::state::credentials::CredentialSeen;
use crate::state::health::attempts::{AttemptError, Seen};
use crate::store::ProviderLooks;
use rust_decimal::Decimal;

/// How a provider does on the node that answers: its circuit (which nodes share), and how its
/// attempts end.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderHealth {
    /// The provider's id.
    pub provider_id: i64,
    /// The provider's present name.
    pub provider_name: String,
    /// `never_used`, `healthy`, `failing`, `cooldown` or `circuit_open`: every attempt counts,
    /// whether or not it counts for the circuit.
    pub health: &'static str,
    /// `CLOSED` or `OPEN` (half open too).
    pub state: &'static str,
    /// The time of an open circuit is over: one request at a time tries the provider.
    pub half_open: bool,
    /// Failures in a row that count for the circuit.
    pub failure_count: u32,
    /// Successes in a row.
    pub success_count: u32,
    /// Probes of the open circuit that failed in a row, on all nodes together.
    pub failed_probes: u32,
    /// The last failed attempt; `null` = none since the gateway started.
    pub last_failure_time: Option<Iso>,
    /// `null` = none since the gateway started.
    pub last_success_time: Option<Iso>,
    /// When an open circuit is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_until: Option<Iso>,
    /// Milliseconds until then; 0 when half open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovers_in_ms: Option<i64>,
    /// The end of the cooldown that the provider's `Retry-After` caused; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown_until: Option<Iso>,
    /// What opened the circuit; absent while it is closed, and where another node or an earlier
    /// process opened it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_reason: Option<AttemptErrorRecord>,
    /// The last failed attempt, also when others succeeded since; `null` = none since the gateway
    /// started.
    pub last_error: Option<AttemptErrorRecord>,
    /// The first failed attempt since the last success; `null` = the last attempt succeeded, or
    /// there was none.
    pub failing_since: Option<Iso>,
    /// Failed attempts since the last success.
    pub failed_in_a_row: u32,
    /// Attempts of the last five minutes.
    pub recent_attempts: u32,
    /// Those of them that failed.
    pub recent_failures: u32,
    /// The same in percent, with two digits after the point.
    pub recent_failure_rate: Exact,
    /// Its credentials, that in `key` first.
    pub credentials: Vec<CredentialHealth>,
}

/// A failed attempt.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptErrorRecord {
    /// `dns`, `connect`, `tls`, `timeout`, `broken`, `status` (an error reply) or `unusable` (no
    /// usable reply).
    pub kind: Cow<'static, str>,
    /// The provider's status; `null` = there was no reply.
    pub status: Option<u16>,
    /// What it said, or why there was no reply: at most 300 characters, the credential masked.
    pub message: String,
    /// When the attempt failed.
    pub at: Iso,
}

impl From<&AttemptError> for AttemptErrorRecord {
    fn from(error: &AttemptError) -> Self {
        Self {
            kind: error.kind.as_str().into(),
            status: error.status,
            message: error.message.to_string(),
            at: Iso(error.at),
        }
    }
}

impl From<&LastError> for AttemptErrorRecord {
    fn from(error: &LastError) -> Self {
        Self {
            kind: error.kind.clone().into(),
            status: error.status,
            message: error.message.clone(),
            at: Iso(error.at),
        }
    }
}

/// How one of a provider's credentials does.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialHealth {
    /// As in the provider's `credentials`; that of `key` is called `key`.
    pub name: String,
    /// It is enabled, and has no cooldown of its own.
    pub is_usable: bool,
    /// The end of its own cooldown, where the provider has several; `null` = it has none.
    pub cooldown_until: Option<Iso>,
    /// Attempts with it on the node that answers, where the provider has several.
    pub requests: u64,
    /// Those of them that failed.
    pub failures: u64,
    /// When it was used last, on any node: by another one with a delay of at most two minutes. A
    /// probe counts where the provider has one credential. `null` = never since the gateway notes it.
    pub last_used_at: Option<Iso>,
    /// The last failed one.
    pub last_error: Option<AttemptErrorRecord>,
    /// The windows of its account, as the latest replies on any node tell them.
    pub windows: Vec<WindowRecord>,
    /// More of one of them is used than the provider's `quota_guard` allows.
    pub is_nearly_used_up: bool,
}

/// A window of an account.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WindowRecord {
    /// As the provider's headers have it: `5h`, `7d`, `requests`, `input-tokens`, `primary`, …
    pub name: String,
    /// The used share in percent, with one digit after the point.
    pub used_percent: Exact,
    /// Its size; `null` where it is not told.
    pub limit: Option<u64>,
    /// What is left of it; `null` where that is not told.
    pub remaining: Option<u64>,
    /// When it is reset; `null` where that is not told.
    pub resets_at: Option<Iso>,
    /// When the reply with these figures arrived.
    pub seen_at: Iso,
}

impl CredentialHealth {
    /// `provider`: with this credential. `used`: its last use.
    pub fn new(provider: &Provider, seen: CredentialSeen, used: Option<Timestamp>) -> Self {
        let figures = seen.figures;
        let window = |one: QuotaWindow| WindowRecord {
            name: one.name.into(),
            used_percent: Exact(Decimal::new(i64::from(one.used), 1).normalize()),
            limit: one.limit,
            remaining: one.remaining,
            resets_at: one.resets_at.map(Iso),
            seen_at: Iso(one.seen_at),
        };
        Self {
            name: provider.credential.as_ref().map_or(KEY_NAME, |one| &one.name).to_owned(),
            is_usable: seen.is_usable,
            cooldown_until: seen.cooldown_until.map(Iso),
            requests: figures.requests,
            failures: figures.failures,
            last_used_at: used.map(Iso),
            last_error: figures.last_error.map(|error| AttemptErrorRecord::from(&*error)),
            windows: seen.windows.into_iter().map(window).collect(),
            is_nearly_used_up: seen.is_nearly_used_up,
        }
    }
}

impl ProviderHealth {
    /// `circuit`: the state of the provider's circuit. `seen`: how the provider's attempts ended on
    /// this node.
    pub fn new(
        provider: &Provider,
        circuit: &BreakerFigures,
        seen: &Seen,
        credentials: Vec<CredentialHealth>,
    ) -> Self {
        let error = |error: &std::sync::Arc<AttemptError>| AttemptErrorRecord::from(&**error);
        let last_error = seen.last_error.as_ref();
        Self {
            provider_id: provider.id.0,
            provider_name: provider.name.clone(),
            health: seen.state.as_str(),
            state: if circuit.open { "OPEN" } else { "CLOSED" },
            half_open: circuit.half_open,
            failure_count: circuit.failure_count,
            success_count: circuit.success_count,
            failed_probes: circuit.failed_probes,
            last_failure_time: circuit.last_failure.max(last_error.map(|error| error.at)).map(Iso),
            last_success_time: circuit.last_success.map(Iso),
            open_until: circuit.open_until.map(Iso),
            recovers_in_ms: circuit.recovers_in_ms,
            cooldown_until: seen.cooldown_until.map(Iso),
            open_reason: seen.open_reason.as_ref().map(error),
            last_error: last_error.map(error),
            failing_since: seen.failing_since.map(Iso),
            failed_in_a_row: seen.failed_in_a_row,
            recent_attempts: seen.recent.attempts,
            recent_failures: seen.recent.failures,
            recent_failure_rate: rate(seen.recent),
            credentials,
        }
    }
}

fn rate(recent: Recent) -> Exact {
    let percent = Decimal::from(recent.failures) * Decimal::ONE_HUNDRED;
    Exact(
        percent
            .checked_div(Decimal::from(recent.attempts))
            .unwrap_or_default()
            .round_dp(2)
            .normalize(),
    )
}

/// How a provider was over time.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderHistory {
    /// The provider's id.
    pub provider_id: i64,
    /// The looks of the last 24 hours, one every five minutes, the oldest first.
    pub looks: Vec<LooksRecord>,
    /// The looks of each of the last 90 days (UTC) together.
    pub days: Vec<LooksRecord>,
}

/// Looks at a provider.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LooksRecord {
    /// The beginning of the five minutes, or of the day.
    pub starts_at: Iso,
    /// Looks at which a request could be expected to be answered.
    pub up: u64,
    /// Those at which it could not: the provider failed, had a cooldown or an open circuit, or none
    /// of its keys could be used.
    pub down: u64,
}

impl From<&ProviderLooks> for LooksRecord {
    fn from(looks: &ProviderLooks) -> Self {
        Self { starts_at: Iso(looks.starts_at), up: looks.up, down: looks.down }
    }
}
