//! A provider's health, as shown.

use schemars::JsonSchema;
use serde::Serialize;

use super::Iso;
use crate::domain::clock::Timestamp;
use crate::domain::provider::Provider;
use crate::policy::breaker::BreakerSnapshot;

/// The circuit of a provider, and the rest that it asked for.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderHealth {
    pub provider_id: i64,
    pub provider_name: String,
    /// `CLOSED` or `OPEN` (half open too).
    pub state: &'static str,
    /// The time of an open circuit is over: one request at a time tries the provider.
    pub half_open: bool,
    /// Failures in a row.
    pub failure_count: u32,
    /// Successes in a row.
    pub success_count: u32,
    pub last_failure_time: Option<Iso>,
    /// `null` = none since the gateway started.
    pub last_success_time: Option<Iso>,
    /// When an open circuit is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_until: Option<Iso>,
    /// Milliseconds until then; 0 when half open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovers_in_ms: Option<i64>,
    /// The provider said that it is not to be asked before (`Retry-After`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest_until: Option<Iso>,
}

impl ProviderHealth {
    pub fn new(provider: &Provider, circuit: &BreakerSnapshot, rest_until: Option<Timestamp>) -> Self {
        Self {
            provider_id: provider.id.0,
            provider_name: provider.name.clone(),
            state: if circuit.open { "OPEN" } else { "CLOSED" },
            half_open: circuit.half_open,
            failure_count: circuit.failure_count,
            success_count: circuit.success_count,
            last_failure_time: circuit.last_failure.map(Iso),
            last_success_time: circuit.last_success.map(Iso),
            open_until: circuit.open_until.map(Iso),
            recovers_in_ms: circuit.recovers_in_ms,
            rest_until: rest_until.map(Iso),
        }
    }
}
