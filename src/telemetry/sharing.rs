//! Figures of the counters that all nodes share.

use prometheus::{Error, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

use super::registration::Registration;

/// The shared counters' figures; zero if there are none.
pub struct RedisMetrics {
    up: IntGaugeVec,
    servers: IntGaugeVec,
    server_errors: IntCounterVec,
    server_losses: IntCounterVec,
    server_spells: IntCounterVec,
    /// Requests whose wait for Redis timed out.
    pub errors: IntCounter,
    /// Times that the connection to Redis was lost.
    pub losses: IntCounter,
    /// Times that Redis answered too late, and this node counted for itself until it was quick
    /// again.
    pub spells: IntCounter,
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
            servers: on.gauges(
                "tollgate_redis_server_up",
                "Whether a server of redis.urls, or a part of a cluster, answers in time, by its \
                 place in the list, from 1; absent with a single one.",
                &["server"],
            )?,
            server_errors: on.counters(
                "tollgate_redis_server_errors_total",
                "tollgate_redis_errors_total of one server of redis.urls, or part of a cluster.",
                &["server"],
            )?,
            server_losses: on.counters(
                "tollgate_redis_server_losses_total",
                "tollgate_redis_losses_total of one server of redis.urls, or part of a cluster.",
                &["server"],
            )?,
            server_spells: on.counters(
                "tollgate_redis_server_slow_total",
                "tollgate_redis_slow_total of one server of redis.urls, or part of a cluster.",
                &["server"],
            )?,
            errors: on.counter(
                "tollgate_redis_errors_total",
                "Calls to Redis that requests waited for in vain.",
            )?,
            losses: on.counter(
                "tollgate_redis_losses_total",
                "Times that the connection to Redis was lost.",
            )?,
            spells: on.counter(
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

    /// Whether one of several servers answers in time. `place`: in the list, from 1.
    pub fn server_up(&self, place: usize, up: bool) {
        self.servers.with_label_values(&[place.to_string()]).set(i64::from(up));
    }

    /// What [`Self::errors`], [`Self::losses`] and [`Self::spells`] count, of one of several
    /// servers since the start. `place`: in the list, from 1.
    pub fn server_faults(&self, place: usize, [errors, losses, spells]: [u64; 3]) {
        let each = [
            (&self.server_errors, errors),
            (&self.server_losses, losses),
            (&self.server_spells, spells),
        ];
        for (counters, total) in each {
            let counter = counters.with_label_values(&[place.to_string()]);
            counter.inc_by(total.saturating_sub(counter.get()));
        }
    }

    /// Whether it answers in time, for one of its uses.
    pub(super) fn up(&self, what: &'static str, up: bool) {
        self.up.with_label_values(&[what]).set(i64::from(up));
    }
}
