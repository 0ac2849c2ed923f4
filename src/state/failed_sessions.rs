//! The sessions whose last request failed, each with the provider that failed it last.
//!
//! A session is bound to its provider when an attempt there begins. After a failure that binding is
//! worth nothing: the next request goes by priority and weight, to another provider if there is one
//! of the same rank. Each node knows its own failures. They are few and soon forgotten, so they are
//! in memory, bounded in number.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::domain::fast_map::FastMap;
use crate::domain::ids::{KeyId, ProviderId, SessionId};

/// Maximum sessions. Beyond that all are forgotten, and stay bound as if nothing had failed.
const MAX: usize = 4096;

/// The sessions whose last request failed.
#[derive(Debug, Default)]
pub struct FailedSessions {
    failed: Mutex<FastMap<(KeyId, SessionId), ProviderId>>,
    /// How many there are. Usually none: then a request takes no lock.
    count: AtomicUsize,
}

impl FailedSessions {
    /// A request of the session failed, at this provider last.
    pub fn failed(&self, key: KeyId, session: &SessionId, provider: ProviderId) {
        let mut failed = self.failed.lock();
        if failed.len() >= MAX {
            failed.clear();
        }
        failed.insert((key, session.clone()), provider);
        self.count.store(failed.len(), Ordering::Relaxed);
    }

    /// A provider answered a request of the session.
    pub fn answered(&self, key: KeyId, session: &SessionId) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut failed = self.failed.lock();
        failed.remove(&(key, session.clone()));
        self.count.store(failed.len(), Ordering::Relaxed);
    }

    /// The provider that failed the session's last request; `None` if it did not fail.
    #[must_use]
    pub fn provider(&self, key: KeyId, session: &SessionId) -> Option<ProviderId> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.failed.lock().get(&(key, session.clone())).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_keys_are_told_apart_and_bounded_in_number() {
        let failed = FailedSessions::default();
        let session = |name: &str| SessionId(name.into());
        failed.failed(KeyId(1), &session("a"), ProviderId(7));
        failed.failed(KeyId(1), &session("a"), ProviderId(8));
        assert_eq!(failed.provider(KeyId(1), &session("a")), Some(ProviderId(8)));
        assert_eq!(failed.provider(KeyId(2), &session("a")), None);
        failed.answered(KeyId(2), &session("a"));
        assert_eq!(failed.provider(KeyId(1), &session("a")), Some(ProviderId(8)));
        failed.answered(KeyId(1), &session("a"));
        assert_eq!(failed.provider(KeyId(1), &session("a")), None);
        for n in 0..2 * MAX {
            failed.failed(KeyId(1), &session(&n.to_string()), ProviderId(7));
        }
        assert!(failed.failed.lock().len() <= MAX);
        let last = session(&(2 * MAX - 1).to_string());
        assert_eq!(failed.provider(KeyId(1), &last), Some(ProviderId(7)));
    }
}
