//! Which provider stores a conversation's history: of replies that can be continued by their id
//! (`previous_response_id`, `thread`), the provider that gave them.
//!
//! In memory of each node, bounded. What a node does not know it cannot keep at its provider: the
//! request is then selected like any other.

use std::hash::{BuildHasher as _, RandomState};

use parking_lot::Mutex;

use crate::domain::fast_map::FastMap;
use crate::domain::ids::{KeyId, ProviderId};
use crate::state::credentials::CredentialPlace;

/// Replies of one generation. Two are known: the oldest are forgotten together.
const MAX: usize = 16_384;

/// The providers of replies that can be continued.
#[derive(Debug, Default)]
pub struct StoredHistory {
    hasher: RandomState,
    known: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    now: FastMap<u64, CredentialPlace>,
    before: FastMap<u64, CredentialPlace>,
}

impl StoredHistory {
    /// The provider gave this reply to the key, and stores what led to it in the account of one of
    /// its credentials.
    pub fn note(&self, key: KeyId, reply: &str, holder: CredentialPlace) {
        let name = self.hasher.hash_one((key, reply));
        let mut known = self.known.lock();
        if known.now.len() >= MAX {
            known.before = std::mem::take(&mut known.now);
        }
        known.now.insert(name, holder);
    }

    /// The provider that stores what led to a reply; `None` if it is not known.
    pub fn provider(&self, key: KeyId, reply: &str) -> Option<ProviderId> {
        self.holder(key, reply).map(|(provider, _)| provider)
    }

    /// The same with the credential.
    pub fn holder(&self, key: KeyId, reply: &str) -> Option<CredentialPlace> {
        let name = self.hasher.hash_one((key, reply));
        let known = self.known.lock();
        known.now.get(&name).or_else(|| known.before.get(&name)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::CredentialId;

    #[test]
    fn a_reply_is_known_to_its_own_key_and_old_ones_are_forgotten() {
        let history = StoredHistory::default();
        history.note(KeyId(1), "resp_1", (ProviderId(7), CredentialId(1)));
        assert_eq!(history.provider(KeyId(1), "resp_1"), Some(ProviderId(7)));
        assert_eq!(history.provider(KeyId(2), "resp_1"), None);
        for n in 0..2 * MAX {
            history.note(KeyId(1), &format!("other_{n}"), (ProviderId(8), CredentialId::KEY));
        }
        assert_eq!(history.provider(KeyId(1), "resp_1"), None);
        assert_eq!(history.provider(KeyId(1), "other_20000"), Some(ProviderId(8)));
        let known = history.known.lock();
        assert!(known.now.len() + known.before.len() <= 2 * MAX);
    }
}
