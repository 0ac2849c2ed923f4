//! Counts cache misses by their cause.

use prometheus::{CounterVec, Error, IntCounterVec};
use rust_decimal::prelude::ToPrimitive as _;

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
        let usd = miss.cost.to_decimal().to_f64().unwrap_or_default();
        self.cost.with_label_values(&cause).inc_by(usd.max(0.0));
    }
}
