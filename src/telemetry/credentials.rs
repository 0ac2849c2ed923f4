//! The credentials of providers that have several, and the windows of all accounts. Set at each
//! scrape.

use prometheus::{Error, IntCounterVec, IntGaugeVec};

use super::forget::forget;
use super::registration::Registration;

/// Attempts and states by provider and key, used shares by window.
pub struct CredentialMetrics {
    attempts: IntCounterVec,
    failures: IntCounterVec,
    usable: IntGaugeVec,
    refused: IntGaugeVec,
    windows: IntGaugeVec,
}

/// What is shown of one of several credentials.
pub struct KeyTotals {
    /// Attempts with it since the start.
    pub attempts: u64,
    /// Those of them that failed.
    pub failures: u64,
    /// It is enabled and has no cooldown.
    pub is_usable: bool,
    /// The gateway disabled it.
    pub is_refused: bool,
}

impl CredentialMetrics {
    pub(super) fn register(on: &Registration<'_>) -> Result<Self, Error> {
        let labels = &["provider", "key"];
        Ok(Self {
            attempts: on.counters(
                "tollgate_upstream_key_attempts_total",
                "Attempts with each key of providers that have several.",
                labels,
            )?,
            failures: on.counters(
                "tollgate_upstream_key_failures_total",
                "Failed attempts with each key of providers that have several.",
                labels,
            )?,
            usable: on.gauges(
                "tollgate_upstream_key_usable",
                "1 while a key of a provider that has several is enabled and has no cooldown.",
                labels,
            )?,
            refused: on.gauges(
                "tollgate_upstream_key_refused",
                "1 while a key is disabled because its provider refused it.",
                labels,
            )?,
            windows: on.gauges(
                "tollgate_upstream_window_used_percent",
                "The used share of a window of a provider's account, as its replies tell it.",
                &["provider", "key", "window"],
            )?,
        })
    }

    /// Forgets the states of keys and windows: those that exist are set again.
    pub fn begin(&self) {
        self.usable.reset();
        self.refused.reset();
        self.windows.reset();
    }

    /// One of several credentials. Counters only grow: the difference is added.
    pub fn key(&self, provider: &str, key: &str, totals: &KeyTotals) {
        let labels = &[provider, key];
        let counted = [(&self.attempts, totals.attempts), (&self.failures, totals.failures)];
        for (counters, total) in counted {
            let counter = counters.with_label_values(labels);
            // A key that was entered again is counted from 0.
            counter.inc_by(total.saturating_sub(counter.get()));
        }
        self.usable.with_label_values(labels).set(i64::from(totals.is_usable));
        self.refused.with_label_values(labels).set(i64::from(totals.is_refused));
    }

    /// A window of an account, in thousandths.
    pub fn window(&self, provider: &str, key: &str, window: &str, used: u32) {
        let percent = i64::from(used.saturating_add(5) / 10);
        self.windows.with_label_values(&[provider, key, window]).set(percent);
    }

    pub(super) fn keep(&self, keep: &impl Fn(&str) -> bool) {
        forget(&self.attempts, keep);
        forget(&self.failures, keep);
    }
}
