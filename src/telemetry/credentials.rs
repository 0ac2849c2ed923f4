//! The credentials of providers that have several, and the windows of all accounts. Set at each
//! scrape.

use std::collections::HashMap;

use parking_lot::Mutex;
use prometheus::{Error, IntCounterVec, IntGaugeVec};

use super::registration::Registration;
use crate::domain::ids::CredentialId;

/// Attempts and states by provider and key, used shares by window.
pub struct CredentialMetrics {
    attempts: IntCounterVec,
    failures: IntCounterVec,
    usable: IntGaugeVec,
    refused: IntGaugeVec,
    windows: IntGaugeVec,
    /// What the counters have of each key, by provider and name.
    counted: Mutex<HashMap<(String, String), Counted>>,
}

/// The totals of a credential at the last scrape.
struct Counted {
    id: CredentialId,
    attempts: u64,
    failures: u64,
}

/// What is shown of one of several credentials.
pub struct KeyTotals {
    /// Another one is counted from 0.
    pub id: CredentialId,
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
            counted: Mutex::default(),
        })
    }

    /// Forgets the states of keys and windows: those that exist are set again. `exists`: whether a
    /// provider has several keys, and one of this name.
    pub fn begin(&self, exists: impl Fn(&str, &str) -> bool) {
        self.counted.lock().retain(|(provider, key), _| {
            let stays = exists(provider, key);
            if !stays {
                let _ = self.attempts.remove_label_values(&[provider, key]);
                let _ = self.failures.remove_label_values(&[provider, key]);
            }
            stays
        });
        self.usable.reset();
        self.refused.reset();
        self.windows.reset();
    }

    /// One of several credentials. Counters only grow: the difference to the last scrape is added.
    pub fn key(&self, provider: &str, key: &str, totals: &KeyTotals) {
        let labels = &[provider, key];
        let KeyTotals { id, attempts, failures, .. } = *totals;
        let now = Counted { id, attempts, failures };
        let before = self.counted.lock().insert((provider.to_owned(), key.to_owned()), now);
        let before = before.filter(|before| before.id == id);
        let (was, failed) = before.map_or((0, 0), |before| (before.attempts, before.failures));
        self.attempts.with_label_values(labels).inc_by(attempts.saturating_sub(was));
        self.failures.with_label_values(labels).inc_by(failures.saturating_sub(failed));
        self.usable.with_label_values(labels).set(i64::from(totals.is_usable));
        self.refused.with_label_values(labels).set(i64::from(totals.is_refused));
    }

    /// A window of an account, in thousandths.
    pub fn window(&self, provider: &str, key: &str, window: &str, used: u32) {
        let percent = i64::from(used.saturating_add(5) / 10);
        self.windows.with_label_values(&[provider, key, window]).set(percent);
    }
}
