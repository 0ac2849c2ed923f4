//! The counters: of this process only, or shared with all nodes in Redis; and the reports about the
//! latter.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use super::marker::Marker;
use super::parts::Parts;
use super::rebuild::FromStore;
use crate::config::{Config, OnRedisLoss, Redis};
use crate::domain::secret::Secret;
use crate::limits::{
    CounterSettings, Counters, Keeper, MOST_WAITING, OnLoss, SharedSettings, SharedState,
    TOLERATED_MS, TimeSource,
};
use crate::redis::Server;
use crate::state::{HealthFile, Peers};
use crate::telemetry::{IntCounter, Metrics, PartState, Readiness};

/// How long a start waits for Redis before it serves without it.
pub(super) const START_WAIT: Duration = Duration::from_secs(5);

/// The counters that the configuration selects; with shared ones, the marker of a process that
/// counts.
///
/// # Errors
/// When the address of Redis is invalid, or the marker cannot be written.
pub(super) fn build(config: &Config) -> anyhow::Result<(Counters, Option<Marker>)> {
    let settings = CounterSettings {
        time_zone: config.time_zone,
        session_ttl_ms: i64::try_from(config.session.ttl_s.saturating_mul(1000))
            .unwrap_or(i64::MAX),
        reservation: config.limits.reservation,
    };
    let Some(redis) = &config.redis else { return Ok((Counters::new(settings), None)) };
    let (marker, unclean) = Marker::lay(&config.data_dir)?;
    let shared = SharedSettings {
        servers: servers(redis)?,
        prefix: redis.prefix.clone(),
        timeout: Duration::from_millis(redis.timeout_ms),
        lease: Duration::from_millis(redis.lease_ms),
        on_loss: match config.limits.on_redis_loss {
            OnRedisLoss::Local => OnLoss::Local,
            OnRedisLoss::Open => OnLoss::Open,
            OnRedisLoss::Closed => OnLoss::Closed,
        },
        most_waiting: MOST_WAITING,
        time: TimeSource::Redis,
        unclean,
    };
    let counters = Counters::shared(settings, shared)
        .map_err(|e| anyhow::anyhow!("{} cannot be used: {e}", redis.setting()))?;
    Ok((counters, Some(marker)))
}

/// The configured Redis servers, with their certificates. At least one.
///
/// # Errors
/// Names the file that cannot be read.
pub(super) fn servers(redis: &Redis) -> anyhow::Result<Vec<Server>> {
    let read =
        |path: &Path| std::fs::read_to_string(path).with_context(|| path.display().to_string());
    let authorities = redis.ca.as_deref().map(read).transpose()?.map(String::into_bytes);
    let identity = match &redis.tls {
        Some(files) => Some((read(&files.cert)?.into_bytes(), Secret::new(read(&files.key)?))),
        None => None,
    };
    let server = |url: &Secret| Server {
        url: url.clone(),
        sentinel_password: redis.sentinel_password.clone(),
        authorities: authorities.clone(),
        identity: identity.clone(),
    };
    Ok(redis.urls.iter().map(server).collect())
}

/// The task that maintains shared counters.
pub(super) fn keeper(parts: &Parts) -> Option<Keeper> {
    let (counters, store) = (parts.counters.clone(), parts.store.clone());
    let journal = Arc::clone(&parts.ledger);
    let ledger = FromStore { counters, store, journal };
    parts.counters.keeper(Arc::new(ledger), Arc::clone(&parts.clock))
}

/// The task that shares providers' health, over the first server. An invalid address was refused with
/// the counters.
pub(super) fn peers(parts: &Parts) -> Option<Peers> {
    let redis = parts.config.redis.as_ref()?;
    Peers::new(
        servers(redis).ok()?.first()?,
        &redis.prefix,
        Arc::clone(&parts.state),
        Arc::clone(&parts.health),
    )
    .ok()
}

/// The providers' state when the previous process ended; and the task that stores it, if Redis does
/// not.
pub(super) fn health_file(parts: &Parts) -> Option<HealthFile> {
    if parts.config.redis.is_some() {
        return None;
    }
    let (state, health, clock) =
        (Arc::clone(&parts.state), Arc::clone(&parts.health), Arc::clone(&parts.clock));
    Some(HealthFile::open(&parts.config.data_dir, state, health, clock))
}

/// Waits for shared counters, for a limited time.
pub(super) async fn wait(counters: &Counters) {
    if tokio::time::timeout(START_WAIT, counters.connected()).await.is_err() {
        tracing::warn!("Redis does not answer: serving without");
    }
}

/// After the last request: removes the marker if Redis has everything.
pub(super) fn end(parts: &Parts) {
    if let (Some(marker), Some(SharedState { waiting: 0, .. })) =
        (&parts.marker, parts.counters.shared_state())
    {
        marker.lift();
    }
}

/// Shared counters in `/readyz`: optional if the node can continue without them.
pub(super) fn readiness(readiness: Readiness, counters: &Counters) -> Readiness {
    let Some(shared) = counters.shared_state() else { return readiness };
    let SharedState { on_loss, clock_off_ms, other_zone, .. } = shared;
    let state: PartState = counters.shared_fault().map_or(Ok(()), Err);
    // With several servers, the users of the others are served.
    let serves = || counters.server_states().iter().any(|server| server.up);
    let ready = readiness.ready && (on_loss != OnLoss::Closed || serves());
    // Neither makes the node unready: limits hold by the cluster's time and zone.
    let readiness =
        readiness.with_optional("redis", state).with_optional("clock", clock(clock_off_ms));
    Readiness { ready, ..readiness.with_optional("time_zone", time_zone(other_zone)) }
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
        Err(format!("differs from the cluster's: shared windows are in {}", zone.name()))
    })
}

/// For a scrape of the metrics.
pub(super) fn measure(counters: &Counters, metrics: &Metrics) {
    let Some(state) = counters.shared_state() else { return };
    let SharedState { up, errors, losses, spells, waiting, clock_off_ms, other_zone, .. } = state;
    metrics.redis.clock_off_seconds.set(clock_off_ms / 1_000);
    metrics.redis.zone_differs.set(i64::from(other_zone.is_some()));
    let grow =
        |counter: &IntCounter, total: u64| counter.inc_by(total.saturating_sub(counter.get()));
    metrics.redis_up("counters", up);
    let servers = counters.server_states();
    if servers.len() > 1 {
        servers.iter().enumerate().for_each(|(at, server)| {
            metrics.redis.server_up(at + 1, server.up);
        });
    }
    grow(&metrics.redis.errors, errors);
    grow(&metrics.redis.losses, losses);
    grow(&metrics.redis.spells, spells);
    metrics.redis.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
}
