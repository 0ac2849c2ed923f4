//! The sessions whose last request failed, each with the provider that failed it last.
//!
//! A session is bound to its provider when an attempt there begins. After a failure that binding is
//! worth nothing: the next request goes by priority and weight, to another provider if there is one
//! of the same rank. Each node knows its own failures, in memory, bounded in number and in time: a
//! provider that failed a while ago may have answered the session since, on another node.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::domain::clock::Timestamp;
use crate::domain::fast_map::FastMap;
use crate::domain::ids::{KeyId, ProviderId, SessionId};

/// Maximum sessions. Beyond that all are forgotten, and stay bound as if nothing had failed.
const MAX: usize = 4096;
/// How long a failure counts, in milliseconds: long enough for a client's next attempts.
const COUNTS_MS: i64 = 60_000;

#[derive(Debug, Clone, Copy)]
struct SessionFailure {
    provider: ProviderId,
    at: Timestamp,
}

impl SessionFailure {
    fn counts(self, now: Timestamp) -> bool {
        now.is_within(COUNTS_MS, self.at)
    }
}

/// The sessions whose last request failed.
#[derive(Debug, Default)]
pub struct FailedSessions {
    failed: Mutex<FastMap<(KeyId, SessionId), SessionFailure>>,
    /// How many there are. Usually none: then a request takes no lock.
    count: AtomicUsize,
}

impl FailedSessions {
    /// A request of the session failed, at this provider last.
    pub fn failed(&self, key: KeyId, session: &SessionId, provider: ProviderId, at: Timestamp) {
        let mut failed = self.failed.lock();
        if failed.len() >= MAX {
            failed.retain(|_, failure| failure.counts(at));
        }
        if failed.len() >= MAX {
            failed.clear();
        }
        failed.insert((key, session.clone()), SessionFailure { provider, at });
        self.count.store(failed.len(), Ordering::Relaxed);
    }

    /// The provider answered a request of the session.
    pub fn answered(&self, key: KeyId, session: &SessionId, provider: ProviderId) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut failed = self.failed.lock();
        let session = (key, session.clone());
        if failed.get(&session).is_some_and(|failure| failure.provider == provider) {
            failed.remove(&session);
        }
        self.count.store(failed.len(), Ordering::Relaxed);
    }

    /// The provider that failed the session's last request; `None` if it did not fail, or long ago.
    pub fn provider(&self, key: KeyId, session: &SessionId, now: Timestamp) -> Option<ProviderId> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut failed = self.failed.lock();
        let session = (key, session.clone());
        let failure = *failed.get(&session)?;
        if failure.counts(now) {
            return Some(failure.provider);
        }
        failed.remove(&session);
        self.count.store(failed.len(), Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn session(name: &str) -> SessionId {
        SessionId(name.into())
    }

    #[test]
    fn sessions_of_keys_are_told_apart_and_bounded_in_number() {
        let failed = FailedSessions::default();
        failed.failed(KeyId(1), &session("a"), ProviderId(7), NOW);
        failed.failed(KeyId(1), &session("a"), ProviderId(8), NOW);
        assert_eq!(failed.provider(KeyId(1), &session("a"), NOW), Some(ProviderId(8)));
        assert_eq!(failed.provider(KeyId(2), &session("a"), NOW), None);
        failed.answered(KeyId(2), &session("a"), ProviderId(8));
        failed.answered(KeyId(1), &session("a"), ProviderId(7));
        assert_eq!(failed.provider(KeyId(1), &session("a"), NOW), Some(ProviderId(8)));
        failed.answered(KeyId(1), &session("a"), ProviderId(8));
        assert_eq!(failed.provider(KeyId(1), &session("a"), NOW), None);
        for n in 0..2 * MAX {
            failed.failed(KeyId(1), &session(&n.to_string()), ProviderId(7), NOW);
        }
        assert!(failed.failed.lock().len() <= MAX);
        let last = session(&(2 * MAX - 1).to_string());
        assert_eq!(failed.provider(KeyId(1), &last, NOW), Some(ProviderId(7)));
    }

    #[test]
    fn a_failure_counts_for_a_minute_and_old_ones_make_room() {
        let failed = FailedSessions::default();
        failed.failed(KeyId(1), &session("a"), ProviderId(7), NOW);
        let before = NOW.plus_ms(COUNTS_MS - 1);
        assert_eq!(failed.provider(KeyId(1), &session("a"), before), Some(ProviderId(7)));
        assert_eq!(failed.provider(KeyId(1), &session("a"), NOW.plus_ms(COUNTS_MS)), None);
        assert_eq!(failed.count.load(Ordering::Relaxed), 0);
        for n in 0..MAX - 1 {
            failed.failed(KeyId(1), &session(&n.to_string()), ProviderId(7), NOW);
        }
        let later = NOW.plus_ms(COUNTS_MS);
        for name in ["x", "y"] {
            failed.failed(KeyId(1), &session(name), ProviderId(7), later);
        }
        assert_eq!(failed.count.load(Ordering::Relaxed), 2);
    }
}
