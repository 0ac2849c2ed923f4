//! The time and the time zone of shared windows: Redis' time and the nodes' shared zone, not this
//! node's own.
//!
//! The connection task compares this node's clock with Redis' when it connects and with every
//! heartbeat. From then on, everything that is counted in Redis carries the time by Redis' clock.
//! The scripts take the present from Redis itself, and refuse a call whose time is off. Then the
//! clock of this node was set since the last heartbeat, and is compared again.
//!
//! The calendar windows of all nodes use one time zone: that of the first node. A node with another
//! `TZ` uses the shared zone. If no node of that zone has sent a heartbeat for the lease, the next
//! node puts its own into effect, and the counters are rebuilt from the ledger.

use std::sync::atomic::{AtomicI64, Ordering};

use chrono_tz::Tz;
use parking_lot::RwLock;
use redis::AsyncCommands as _;
use redis::aio::MultiplexedConnection;

use super::Shared;
use super::link::{LinkFault, TIME_LIMIT, within};
use crate::domain::clock::{Clock, Timestamp};

/// Above this difference the node reports that its clock is off.
pub const TOLERATED_MS: i64 = 5_000;
/// Smaller differences may come from the network: they are not corrected.
const NOISE_MS: i64 = 50;
/// The answer to a call that was refused for its time takes no longer.
const IN_FLIGHT_MS: i64 = 1_000;

/// Which clock the scripts use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeSource {
    /// Redis' own clock. Each call also has the node's time, and is refused if that is off.
    Redis,
    /// The time in each call: for tests, whose clock moves only when set.
    Caller,
}

/// How far this node's clock differs from Redis', and its time zone from the shared one.
pub(super) struct Agreement {
    source: TimeSource,
    /// This node's clock minus Redis', as last measured.
    off_ms: AtomicI64,
    /// The milliseconds that are added to this node's time.
    added_ms: AtomicI64,
    own_zone: Tz,
    zone: RwLock<Tz>,
}

impl Agreement {
    pub(super) const fn new(source: TimeSource, own_zone: Tz) -> Self {
        let (off_ms, added_ms) = (AtomicI64::new(0), AtomicI64::new(0));
        Self { source, off_ms, added_ms, own_zone, zone: RwLock::new(own_zone) }
    }

    /// A time of this node by Redis' clock.
    pub(super) fn time(&self, own: Timestamp) -> Timestamp {
        own.plus_ms(self.added_ms.load(Ordering::Relaxed))
    }

    /// Whether scripts take the time of a call as the present.
    pub(super) fn is_callers(&self) -> bool {
        self.source == TimeSource::Caller
    }

    /// Redis reported its time when it was `own` here, give or take `unsure_ms`.
    fn compare(&self, redis: Timestamp, own: Timestamp, unsure_ms: i64) {
        if self.source == TimeSource::Caller {
            return;
        }
        let off = own.since(redis);
        let off_before = self.off_ms.swap(off, Ordering::Relaxed);
        if (off + self.added_ms.load(Ordering::Relaxed)).abs() > unsure_ms.max(NOISE_MS) {
            self.added_ms.store(off.saturating_neg(), Ordering::Relaxed);
        }
        match (off_before.abs() > TOLERATED_MS, off.abs() > TOLERATED_MS) {
            (false, true) => tracing::error!(
                off_ms = off,
                "this node's clock is not Redis': shared windows go by Redis'; set this one (NTP)"
            ),
            (true, false) => {
                tracing::info!(off_ms = off, "this node's clock agrees with Redis' again")
            }
            _ => {}
        }
    }

    /// Redis refused a call because of its time, which was `redis`; it is `own` here now. Several
    /// calls are refused at once when a clock is set: the first one corrects the difference.
    pub(super) fn correct(&self, redis: Timestamp, own: Timestamp) {
        let off = own.since(redis);
        if (off + self.added_ms()).abs() > IN_FLIGHT_MS {
            self.compare(redis, own, 0);
        }
    }

    /// What is added to this node's time.
    pub(super) fn added_ms(&self) -> i64 {
        self.added_ms.load(Ordering::Relaxed)
    }

    pub(super) fn off_ms(&self) -> i64 {
        self.off_ms.load(Ordering::Relaxed)
    }

    /// The time zone of the shared windows.
    pub(super) fn zone(&self) -> Tz {
        *self.zone.read()
    }

    /// The shared zone, if this node has another.
    pub(super) fn other_zone(&self) -> Option<Tz> {
        Some(self.zone()).filter(|zone| *zone != self.own_zone)
    }

    /// Puts a zone into effect.
    fn follow(&self, zone: Tz) {
        if std::mem::replace(&mut *self.zone.write(), zone) != zone {
            let (own, shared) = (self.own_zone.name(), zone.name());
            match self.other_zone() {
                Some(_) => tracing::error!(
                    own,
                    shared,
                    "TZ is not the other nodes': shared windows are in theirs"
                ),
                None => tracing::info!(own, "shared windows are in this node's time zone again"),
            }
        }
    }
}

impl Shared {
    /// Compares the clocks.
    pub(super) async fn compare_clocks(
        &self,
        connection: &mut MultiplexedConnection,
        clock: &dyn Clock,
    ) -> Result<(), LinkFault> {
        let before = clock.now();
        let (seconds, micros): (i64, i64) =
            within(TIME_LIMIT, redis::cmd("TIME").query_async(connection)).await?;
        let after = clock.now();
        let redis = Timestamp(seconds.saturating_mul(1_000).saturating_add(micros / 1_000));
        let half = after.since(before) / 2;
        self.agreement.compare(redis, before.plus_ms(half), half);
        Ok(())
    }

    /// Finds the shared zone, or makes this node's the shared one. `true`: the existing counters
    /// were made for a zone other than the one in effect now.
    pub(super) async fn agree_on_zone(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<bool, LinkFault> {
        let prefix = &self.settings.prefix;
        let (name, held) = (format!("{prefix}:zone"), format!("{prefix}:zone_held"));
        let own = self.agreement.own_zone;
        let mut first = redis::cmd("SET");
        first.arg(&name).arg(own.name()).arg("NX");
        let _: Option<String> = within(TIME_LIMIT, first.query_async(connection)).await?;
        let found: Option<String> = within(TIME_LIMIT, connection.get(&name)).await?;
        let shared = found.and_then(|name| name.parse::<Tz>().ok());
        if let Some(zone) = shared.filter(|zone| *zone != own) {
            let is_held: bool = within(TIME_LIMIT, connection.exists(&held)).await?;
            if is_held {
                self.agreement.follow(zone);
                *self.spans.lock() = None;
                return Ok(false);
            }
            let () = within(TIME_LIMIT, connection.set(&name, own.name())).await?;
            tracing::warn!(
                before = zone.name(),
                own = own.name(),
                "no node has the shared time zone any more"
            );
        }
        let lease = u64::try_from(self.settings.lease.as_millis()).unwrap_or(u64::MAX);
        let mut hold = redis::cmd("SET");
        hold.arg(&held).arg("1").arg("PX").arg(lease.max(1));
        let _: Option<String> = within(TIME_LIMIT, hold.query_async(connection)).await?;
        self.agreement.follow(own);
        *self.spans.lock() = None;
        Ok(shared.is_some_and(|zone| zone != own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_redis_and_noise_is_not_corrected() {
        let agreement = Agreement::new(TimeSource::Redis, Tz::UTC);
        let at = Timestamp;
        agreement.compare(at(1_000_000), at(1_000_040), 1);
        assert_eq!((agreement.time(at(2_000)), agreement.off_ms()), (at(2_000), 40));
        // The clock is an hour ahead; then it is set.
        agreement.compare(at(1_000_000), at(4_600_000), 1);
        // A slow answer is less precise than what is already known.
        agreement.compare(at(1_000_000), at(4_600_400), 500);
        assert_eq!((agreement.time(at(4_600_010)), agreement.off_ms()), (at(1_000_010), 3_600_400));
        agreement.compare(at(1_010_000), at(1_010_001), 1);
        assert_eq!((agreement.time(at(1_010_001)), agreement.off_ms()), (at(1_010_000), 1));
        assert!(!agreement.is_callers());
        let tested = Agreement::new(TimeSource::Caller, Tz::UTC);
        tested.compare(at(1_000_000), at(4_600_000), 1);
        assert_eq!((tested.time(at(5)), tested.is_callers()), (at(5), true));
    }

    #[test]
    fn a_clock_that_is_set_is_corrected_once_however_many_calls_are_refused() {
        let agreement = Agreement::new(TimeSource::Redis, Tz::UTC);
        let redis = Timestamp(1_000_000);
        let near = |off: i64| {
            assert!((off..off + 1_000).contains(&agreement.off_ms()), "{}", agreement.off_ms());
        };
        // The clock was set ahead. Four calls were made before the first was refused.
        let own = Timestamp(1_141_000);
        for _ in 0..4 {
            agreement.correct(redis, own);
            near(141_000);
        }
        // It is set back, and ahead at once.
        // Two steps of the same size are two steps.
        let twice = [(Timestamp(1_282_000), 282_000), (Timestamp(9_000_000), 8_000_000)];
        for (own, off) in [(redis, 0), (own, 141_000)].into_iter().chain(twice) {
            for later in [0, 3, 200, 90] {
                agreement.correct(redis, own.plus_ms(later));
                near(off);
            }
        }
    }
}
