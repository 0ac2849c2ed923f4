//! The providers' health: failed attempts by kind, and each provider's state.

use prometheus::{Error, IntCounterVec, IntGaugeVec};

use super::forget::forget;
use super::registration::Registration;

/// Failed attempts and states, by provider.
pub struct ProviderHealthMetrics {
    failures: IntCounterVec,
    states: IntGaugeVec,
    switched_off: IntGaugeVec,
    probes: IntCounterVec,
}

impl ProviderHealthMetrics {
    pub(super) fn register(on: &Registration<'_>) -> Result<Self, Error> {
        Ok(Self {
            failures: on.counters(
                "tollgate_upstream_failures_total",
                "Failed attempts at providers, by kind: dns, connect, tls, timeout, broken, \
                 status, unusable.",
                &["provider", "kind"],
            )?,
            states: on.gauges(
                "tollgate_provider_state",
                "1 for the state that an enabled provider is in: never_used, healthy, failing, \
                 cooldown, circuit_open.",
                &["provider", "state"],
            )?,
            switched_off: on.gauges(
                "tollgate_provider_switched_off",
                "1 while a provider is disabled because the gateway itself disabled it for its \
                 failures.",
                &["provider"],
            )?,
            probes: on.counters(
                "tollgate_provider_probes_total",
                "Requests that the gateway itself made to a provider (`probe_interval`), by result: \
                 ok, failed, or refused: the request was.",
                &["provider", "result"],
            )?,
        })
    }

    /// An attempt at a provider failed.
    pub fn failed(&self, provider: &str, kind: &'static str) {
        self.failures.with_label_values(&[provider, kind]).inc();
    }

    /// Whether a provider is in a state. Set it for every state, so that the others become 0.
    pub fn state(&self, provider: &str, state: &'static str, is_in: bool) {
        self.states.with_label_values(&[provider, state]).set(i64::from(is_in));
    }

    /// Whether the gateway itself has disabled a provider.
    pub fn switched_off(&self, provider: &str, is_off: bool) {
        self.switched_off.with_label_values(&[provider]).set(i64::from(is_off));
    }

    /// A probe ended.
    pub fn probed(&self, provider: &str, result: &str) {
        self.probes.with_label_values(&[provider, result]).inc();
    }

    pub(super) fn keep(&self, keep: &impl Fn(&str) -> bool) {
        forget(&self.failures, keep);
        forget(&self.states, keep);
        forget(&self.switched_off, keep);
        forget(&self.probes, keep);
    }
}
