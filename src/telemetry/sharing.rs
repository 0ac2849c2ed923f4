//! Figures of the counters that all nodes share.

use prometheus::{Error, IntCounter, IntGauge, IntGaugeVec};

use super::registration::Registration;

/// The shared counters' figures; zero if there are none.
pub struct RedisMetrics {
    up: IntGaugeVec,
    /// Requests whose wait for Redis timed out.
    pub errors: IntCounter,
    /// Times that the connection to Redis was lost.
    pub losses: IntCounter,
    /// Times that Redis answered too late, and this node counted for itself until it was quick
    /// again.
    pub backoffs: IntCounter,
    /// What was counted here and not yet sent to Redis.
    pub waiting: IntGauge,
    /// This node's clock less Redis', whole seconds.
    pub clock_off_seconds: IntGauge,
    /// 1 = `TZ` is not the nodes' shared time zone.
    pub zone_differs: IntGauge,
}

impl RedisMetrics {
    pub(super) fn register(on: &Registration<'_>) -> Result<Self, Error> {
        Ok(Self {
            up: on.gauges(
                "tollgate_redis_up",
                "Whether Redis answers in time; absent where none is set.",
                &["use"],
            )?,
            errors: on.counter(
                "tollgate_redis_errors_total",
                "Calls to Redis that requests waited for in vain.",
            )?,
            losses: on.counter(
                "tollgate_redis_losses_total",
                "Times that the connection to Redis was lost.",
            )?,
            backoffs: on.counter(
                "tollgate_redis_slow_total",
                "Times that Redis answered too late, and this node counted for itself until it was \
                 quick again.",
            )?,
            waiting: on.gauge(
                "tollgate_redis_waiting",
                "Operations counted here and not yet sent to Redis.",
            )?,
            clock_off_seconds: on.gauge(
                "tollgate_redis_clock_off_seconds",
                "This node's clock less Redis', in whole seconds; shared windows go by Redis'.",
            )?,
            zone_differs: on.gauge(
                "tollgate_redis_time_zone_differs",
                "1 if TZ is not the nodes' shared time zone, in which shared windows are.",
            )?,
        })
    }

    /// Whether it answers in time, for one of its uses.
    pub(super) fn up(&self, what: &'static str, up: bool) {
        self.up.with_label_values(&[what]).set(i64::from(up));
    }
}
