//! The state of a provider's attempts, besides its circuit: whether it fails, since when, and how
//! often in the last five minutes.
//!
//! The circuit decides whether requests are sent; this state is for display. It counts every failed
//! attempt, also those that the circuit ignores.

use crate::domain::clock::Timestamp;

/// The time range of the rates.
pub const RECENT_MS: i64 = 300_000;
const BUCKETS: usize = 30;
const BUCKET_MS: i64 = RECENT_MS / BUCKETS as i64;
/// From this many attempts in the last minute on, a failure rate of one half makes a provider
/// failing, although its last attempt succeeded.
const ENOUGH: u32 = 10;
const MINUTE: i64 = 60_000 / BUCKET_MS;

/// The state of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ProviderState {
    /// No attempt has ended since the process started.
    NeverUsed,
    /// The last attempt succeeded, and fewer than half of those in the last minute failed.
    Healthy,
    /// The last attempt failed, or half of those in the last minute did.
    Failing,
    /// The provider asked for a pause (`Retry-After`).
    Cooldown,
    /// No requests are sent, or only probes.
    CircuitOpen,
}

impl ProviderState {
    /// Every state, each once.
    pub const ALL: [Self; 5] =
        [Self::NeverUsed, Self::Healthy, Self::Failing, Self::Cooldown, Self::CircuitOpen];

    /// The name in records and metrics, such as `circuit_open`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Counts of the last five minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recent {
    /// Attempts that ended, with any result.
    pub attempts: u32,
    /// Those of them that failed.
    pub failures: u32,
}

/// One provider's attempts since the process started.
#[derive(Debug, Clone, Default)]
pub struct Attempts {
    /// A ring: each bucket is tagged with the time range that it was last used for.
    buckets: [StateBucket; BUCKETS],
    in_a_row: u32,
    failing_since: Option<Timestamp>,
    has_succeeded: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct StateBucket {
    number: i64,
    succeeded: u32,
    failed: u32,
}

impl Attempts {
    /// An attempt succeeded. Returns whether the ones before it failed.
    pub fn succeeded(&mut self, now: Timestamp) -> bool {
        let bucket = self.bucket(now);
        bucket.succeeded = bucket.succeeded.saturating_add(1);
        self.has_succeeded = true;
        self.in_a_row = 0;
        self.failing_since.take().is_some()
    }

    /// An attempt failed. Returns how many have failed in a row now.
    pub fn failed(&mut self, now: Timestamp) -> u32 {
        let bucket = self.bucket(now);
        bucket.failed = bucket.failed.saturating_add(1);
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.failing_since.get_or_insert(now);
        self.in_a_row
    }

    /// Whether no attempt has ended.
    pub const fn is_unused(&self) -> bool {
        !self.has_succeeded && self.failing_since.is_none()
    }

    /// Failed attempts since the last success.
    pub const fn in_a_row(&self) -> u32 {
        self.in_a_row
    }

    /// When the first of them failed.
    pub const fn failing_since(&self) -> Option<Timestamp> {
        self.failing_since
    }

    /// The counts of the five minutes before `now`.
    pub fn recent(&self, now: Timestamp) -> Recent {
        self.within(now, BUCKETS as i64)
    }

    fn within(&self, now: Timestamp, buckets: i64) -> Recent {
        let newest = number_of(now);
        let oldest = newest - buckets;
        let recent =
            self.buckets.iter().filter(|bucket| bucket.number > oldest && bucket.number <= newest);
        recent.fold(Recent::default(), |sum, bucket| Recent {
            attempts: sum.attempts.saturating_add(bucket.succeeded).saturating_add(bucket.failed),
            failures: sum.failures.saturating_add(bucket.failed),
        })
    }

    /// The state, given those of the circuit and the cooldown.
    pub fn state(&self, circuit_open: bool, cooling_down: bool, now: Timestamp) -> ProviderState {
        let recent = self.within(now, MINUTE);
        let often = recent.attempts >= ENOUGH && recent.failures >= recent.attempts.div_ceil(2);
        if circuit_open {
            ProviderState::CircuitOpen
        } else if cooling_down {
            ProviderState::Cooldown
        } else if self.failing_since.is_some() || often {
            ProviderState::Failing
        } else if self.has_succeeded {
            ProviderState::Healthy
        } else {
            ProviderState::NeverUsed
        }
    }

    fn bucket(&mut self, now: Timestamp) -> &mut StateBucket {
        let number = number_of(now);
        let at = usize::try_from(number.rem_euclid(BUCKETS as i64)).unwrap_or(0);
        let bucket = &mut self.buckets[at];
        if bucket.number != number {
            *bucket = StateBucket { number, ..StateBucket::default() };
        }
        bucket
    }
}

const fn number_of(now: Timestamp) -> i64 {
    now.0.div_euclid(BUCKET_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_700_000_000_000);

    #[test]
    fn one_failure_shows_and_one_success_ends_it() {
        let mut attempts = Attempts::default();
        assert_eq!(attempts.state(false, false, START), ProviderState::NeverUsed);
        assert_eq!((attempts.failed(START), attempts.failed(START.plus_ms(5))), (1, 2));
        assert_eq!(attempts.state(false, false, START), ProviderState::Failing);
        assert_eq!(attempts.failing_since(), Some(START));
        assert!(attempts.succeeded(START.plus_ms(9)));
        assert!(!attempts.succeeded(START.plus_ms(9)));
        assert_eq!(attempts.state(false, false, START.plus_ms(9)), ProviderState::Healthy);
        assert_eq!((attempts.in_a_row(), attempts.failing_since()), (0, None));
    }

    #[test]
    fn a_high_rate_is_failing_although_the_last_attempt_succeeded() {
        let mut attempts = Attempts::default();
        for _ in 0..5 {
            attempts.failed(START);
            attempts.succeeded(START);
        }
        assert_eq!(attempts.recent(START), Recent { attempts: 10, failures: 5 });
        assert_eq!(attempts.state(false, false, START), ProviderState::Failing);
        assert_eq!(
            attempts.state(false, false, START.plus_ms(60_000)),
            ProviderState::Healthy,
            "a minute later"
        );
        attempts.succeeded(START);
        assert_eq!(attempts.state(false, false, START), ProviderState::Healthy);
    }

    #[test]
    fn counts_age_out_after_five_minutes_and_come_from_one_round_of_the_ring() {
        let mut attempts = Attempts::default();
        attempts.failed(START);
        assert_eq!(attempts.recent(START.plus_ms(RECENT_MS - BUCKET_MS)).failures, 1);
        assert_eq!(attempts.recent(START.plus_ms(RECENT_MS)).failures, 0);
        attempts.succeeded(START.plus_ms(RECENT_MS));
        assert_eq!(attempts.recent(START.plus_ms(RECENT_MS)), Recent { attempts: 1, failures: 0 });
    }

    #[test]
    fn circuit_and_cooldown_come_first() {
        let mut attempts = Attempts::default();
        attempts.failed(START);
        assert_eq!(attempts.state(true, true, START), ProviderState::CircuitOpen);
        assert_eq!(attempts.state(false, true, START), ProviderState::Cooldown);
    }
}
