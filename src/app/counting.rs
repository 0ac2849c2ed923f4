//! The counters: of this process alone, or with all nodes in Redis; and what is told of the latter.

use std::sync::Arc;
use std::time::Duration;

use super::marker::Marker;
use super::parts::Parts;
use super::rebuild::FromStore;
use crate::config::{Config, OnRedisLoss};
use crate::counters::{CounterSettings, Counters, Keeper, OnLoss, SharedSettings, SharedState};
use crate::state::Peers;
use crate::telemetry::{IntCounter, Metrics, PartState, Readiness};

/// How long a start waits for Redis before it serves without.
pub const START_WAIT: Duration = Duration::from_secs(5);

/// The counters that the configuration asks for; beside shared ones, the mark of a process that counts.
///
/// # Errors
/// When the address of Redis cannot be read, or the mark not be laid.
pub fn build(config: &Config) -> anyhow::Result<(Counters, Option<Marker>)> {
    let settings = CounterSettings {
        time_zone: config.time_zone,
        session_ttl_ms: i64::try_from(config.session.ttl_s.saturating_mul(1000)).unwrap_or(i64::MAX),
        reservation: config.limits.reservation,
    };
    let Some(redis) = &config.redis else { return Ok((Counters::new(settings), None)) };
    let (marker, unclean) = Marker::lay(&config.data_dir)?;
    let shared = SharedSettings {
        url: redis.url.clone(),
        prefix: redis.prefix.clone(),
        timeout: Duration::from_millis(redis.timeout_ms),
        lease: Duration::from_millis(redis.lease_ms),
        on_loss: match config.limits.on_redis_loss {
            OnRedisLoss::Local => OnLoss::Local,
            OnRedisLoss::Open => OnLoss::Open,
            OnRedisLoss::Closed => OnLoss::Closed,
        },
        unclean,
    };
    let counters = Counters::shared(settings, shared).map_err(|e| anyhow::anyhow!("redis.url cannot be used: {e}"))?;
    Ok((counters, Some(marker)))
}

/// The task that keeps shared counters.
pub fn keeper(parts: &Parts) -> Option<Keeper> {
    let (counters, store, zone) = (parts.counters.clone(), parts.store.clone(), parts.config.time_zone);
    parts.counters.keeper(Arc::new(FromStore { counters, store, zone }), Arc::clone(&parts.clock))
}

/// The task that shares providers' health. An address that cannot be read was refused with the counters.
pub fn peers(parts: &Parts) -> Option<Peers> {
    let redis = parts.config.redis.as_ref()?;
    Peers::new(&redis.url, &redis.prefix, Arc::clone(&parts.state), Arc::clone(&parts.health)).ok()
}

/// Waits a while for shared counters.
pub async fn wait(counters: &Counters) {
    if tokio::time::timeout(START_WAIT, counters.connected()).await.is_err() {
        tracing::warn!("Redis does not answer: serving without");
    }
}

/// After the last request: the mark goes if Redis was told everything.
pub fn end(parts: &Parts) {
    if let (Some(marker), Some(SharedState { waiting: 0, .. })) = (&parts.marker, parts.counters.shared_state()) {
        marker.lift();
    }
}

/// Shared counters in `/readyz`: missed where the node can go on without them.
pub fn readiness(readiness: Readiness, counters: &Counters) -> Readiness {
    let Some(SharedState { up, on_loss, .. }) = counters.shared_state() else { return readiness };
    let (needed, what) = match on_loss {
        OnLoss::Local => (false, "is lost: this node counts for itself"),
        OnLoss::Open => (false, "is lost: limits are not held"),
        OnLoss::Closed => (true, "is lost: requests are refused"),
    };
    let state: PartState = if up { Ok(()) } else { Err(what.to_owned()) };
    let ready = readiness.ready && (up || !needed);
    Readiness { ready, ..readiness.with_optional("redis", state) }
}

/// For a scrape.
pub fn measure(counters: &Counters, metrics: &Metrics) {
    let Some(SharedState { up, errors, losses, waiting, .. }) = counters.shared_state() else { return };
    let grow = |counter: &IntCounter, total: u64| counter.inc_by(total.saturating_sub(counter.get()));
    metrics.redis_up("counters", up);
    grow(&metrics.redis.errors, errors);
    grow(&metrics.redis.losses, losses);
    metrics.redis.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
}
