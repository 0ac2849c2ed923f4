//! What is wrong with the gateway, as shown to administrators.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Iso;

/// One problem. Lists of them are ordered by harm: the first is the worst.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// `journal_full`, `records_lost`, `no_provider_usable`, `database_unreachable`,
    /// `counters_lost`, `records_held`, `provider_circuit_open`, `provider_failing`,
    /// `provider_without_credential`, `provider_switched_off`, `provider_key_refused`,
    /// `provider_certificate_expires`, `reload_refused`, `model_unpriced`, `records_set_aside`,
    /// `credential_unused` or `provider_cooldown`.
    pub kind: &'static str,
    /// `critical` (requests are refused, or records lost), `error` or `warning`.
    pub severity: &'static str,
    /// `null` where it is not known.
    pub since: Option<Iso>,
    /// In English; `/readyz` says the same.
    pub message: String,
    /// What the message names, by kind: `providerId`, `providerName`, `lastError`, `openUntil`,
    /// `heldRecords`, …
    pub params: Map<String, Value>,
}
