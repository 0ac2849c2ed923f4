//! The counters that the configuration selects, and the reports about shared ones: in `/readyz` and
//! in the metrics.

use std::time::Duration;

use crate::config::Config;
use crate::limits::{
    CounterSettings, Counters, CountersError, MOST_WAITING, OnRedisLoss, SharedSettings,
    SharedState, TOLERATED_MS, TimeSource,
};
use crate::telemetry::{IntCounter, Metrics, PartState, Readiness};

/// The counters that the configuration selects, empty: of this process only, or shared with all
/// nodes in Redis.
///
/// # Errors
/// When shared ones cannot be set up.
pub(super) fn of(config: &Config) -> Result<Counters, CountersError> {
    let settings = CounterSettings {
        time_zone: config.time_zone,
        session_ttl_ms: i64::try_from(config.session.ttl_s.saturating_mul(1000))
            .unwrap_or(i64::MAX),
        reservation: config.limits.reservation,
    };
    let Some(redis) = &config.redis else { return Ok(Counters::new(settings)) };
    let shared = SharedSettings {
        server: redis.server()?,
        prefix: redis.prefix.clone(),
        timeout: Duration::from_millis(redis.timeout_ms),
        lease: Duration::from_millis(redis.lease_ms),
        on_loss: config.limits.on_redis_loss,
        most_waiting: MOST_WAITING,
        time: TimeSource::Redis,
        unclean: false,
    };
    Counters::marked(settings, shared, &config.data_dir)
}

/// Adds shared counters to `/readyz`: optional if the node can continue without them.
pub(super) fn readiness(counters: &Counters, readiness: Readiness) -> Readiness {
    let Some(shared) = counters.shared_state() else { return readiness };
    let SharedState { on_loss, clock_off_ms, other_zone, .. } = shared;
    let state: PartState = shared.fault().map_or(Ok(()), Err);
    let ready = readiness.ready && (on_loss != OnRedisLoss::Closed || shared.up);
    // Neither makes the node unready: limits hold by Redis' time and the nodes' shared zone.
    let readiness =
        readiness.with_optional("redis", state).with_optional("clock", clock(clock_off_ms));
    Readiness { ready, ..readiness.with_optional("time_zone", time_zone(other_zone)) }
}

/// Sets the metrics of shared counters, for a scrape.
pub(super) fn measure(counters: &Counters, metrics: &Metrics) {
    let Some(state) = counters.shared_state() else { return };
    let SharedState { up, errors, losses, backoffs, waiting, clock_off_ms, other_zone, .. } = state;
    metrics.redis.clock_off_seconds.set(clock_off_ms / 1_000);
    metrics.redis.zone_differs.set(i64::from(other_zone.is_some()));
    let grow = |counter: &IntCounter, total: u64| {
        counter.inc_by(total.saturating_sub(counter.get()));
    };
    metrics.redis_up("counters", up);
    grow(&metrics.redis.errors, errors);
    grow(&metrics.redis.losses, losses);
    grow(&metrics.redis.backoffs, backoffs);
    metrics.redis.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
}

fn clock(off_ms: i64) -> PartState {
    if off_ms.abs() <= TOLERATED_MS {
        return Ok(());
    }
    let (seconds, way) = (off_ms.abs() / 1_000, if off_ms > 0 { "ahead of" } else { "behind" });
    Err(format!("is {seconds} s {way} Redis': shared windows go by Redis'"))
}

fn time_zone(other: Option<chrono_tz::Tz>) -> PartState {
    other.map_or(Ok(()), |zone| {
        Err(format!("differs from the nodes' shared zone: shared windows are in {}", zone.name()))
    })
}
