//! Figures of the counters that all nodes share.

use prometheus::{Error, IntCounter, IntGauge, IntGaugeVec};

use super::registration::Registration;

/// The shared counters' figures; zero where there are none.
pub struct RedisMetrics {
    up: IntGaugeVec,
    /// Requests that waited in vain for Redis.
    pub errors: IntCounter,
    /// Times that the connection to Redis was lost.
    pub losses: IntCounter,
    /// Times that Redis answered too late, and this node counted for itself until it was quick again.
    pub spells: IntCounter,
    /// What was counted here and not yet told to Redis.
    pub waiting: IntGauge,
}

impl RedisMetrics {
    pub(super) fn register(on: &Registration<'_>) -> Result<Self, Error> {
        Ok(Self {
            up: on.gauges("tollgate_redis_up", "Whether Redis answers in time; absent where none is set.", &["use"])?,
            errors: on.counter("tollgate_redis_errors_total", "Calls to Redis that requests waited for in vain.")?,
            losses: on.counter("tollgate_redis_losses_total", "Times that the connection to Redis was lost.")?,
            spells: on.counter(
                "tollgate_redis_slow_total",
                "Times that Redis answered too late, and this node counted for itself until it was quick again.",
            )?,
            waiting: on.gauge("tollgate_redis_waiting", "Operations counted here and not yet told to Redis.")?,
        })
    }

    /// Whether it answers in time, for one of its uses.
    pub(super) fn up(&self, what: &'static str, up: bool) {
        self.up.with_label_values(&[what]).set(i64::from(up));
    }
}
