//! Counts cache misses by their cause.

use prometheus::{CounterVec, Error, IntCounterVec};

use super::metrics::usd;
use super::registration::Registration;
use crate::domain::cache_miss::CacheMiss;

pub(super) struct CacheMissMetrics {
    requests: IntCounterVec,
    tokens: IntCounterVec,
    cost: CounterVec,
}

impl CacheMissMetrics {
    pub(super) fn register(on: &Registration<'_>) -> Result<Self, Error> {
        Ok(Self {
            requests: on.counters(
                "tollgate_cache_misses_total",
                "Requests whose input the provider could not read from its prompt cache, by cause.",
                &["cause"],
            )?,
            tokens: on.counters(
                "tollgate_cache_miss_tokens_total",
                "Tokens of this input.",
                &["cause"],
            )?,
            cost: on.sums(
                "tollgate_cache_miss_usd_total",
                "What reading it from the cache would have saved.",
                &["cause"],
            )?,
        })
    }

    pub(super) fn count(&self, miss: &CacheMiss) {
        let cause = [miss.cause.as_str()];
        self.requests.with_label_values(&cause).inc();
        self.tokens.with_label_values(&cause).inc_by(miss.tokens);
        self.cost.with_label_values(&cause).inc_by(usd(Some(miss.cost)).unwrap_or_default());
    }
}
