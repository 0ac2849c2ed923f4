//! Which provider each live conversation uses, so that its next request goes to the same one.
//!
//! Bounded by time: an entry that was not used for the session's lifetime is dropped by [`Affinity::evict`].

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use parking_lot::Mutex;

use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, SessionId};

const SHARDS: usize = 64;

/// A conversation of one key; `None` is the admin token.
type Conversation = (Option<KeyId>, SessionId);

/// Conversation → provider, for `ttl_ms` after its last request.
pub struct Affinity {
    ttl_ms: i64,
    hasher: RandomState,
    shards: Vec<Mutex<HashMap<Conversation, (ProviderId, Timestamp)>>>,
}

impl Affinity {
    #[must_use]
    pub fn new(ttl_ms: i64) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { ttl_ms, hasher: RandomState::new(), shards }
    }

    /// The provider that last answered this conversation, if that was recent enough.
    #[must_use]
    pub fn provider(&self, key: Option<KeyId>, session: &SessionId, now: Timestamp) -> Option<ProviderId> {
        let conversation = (key, session.clone());
        let shard = self.shard(&conversation).lock();
        shard.get(&conversation).filter(|(_, used)| now.since(*used) <= self.ttl_ms).map(|(provider, _)| *provider)
    }

    /// Remembers who answered.
    pub fn remember(&self, key: Option<KeyId>, session: &SessionId, provider: ProviderId, now: Timestamp) {
        let conversation = (key, session.clone());
        self.shard(&conversation).lock().insert(conversation, (provider, now));
    }

    /// Drops what is older than the lifetime; returns how many are left.
    pub fn evict(&self, now: Timestamp) -> usize {
        let keep = |(_, used): &mut (ProviderId, Timestamp)| now.since(*used) <= self.ttl_ms;
        self.shards
            .iter()
            .map(|shard| {
                let mut shard = shard.lock();
                shard.retain(|_, entry| keep(entry));
                shard.len()
            })
            .sum()
    }

    fn shard(&self, conversation: &Conversation) -> &Mutex<HashMap<Conversation, (ProviderId, Timestamp)>> {
        let at = usize::try_from(self.hasher.hash_one(conversation)).unwrap_or(0) % SHARDS;
        &self.shards[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_remembered_for_its_lifetime_and_per_key() {
        let affinity = Affinity::new(1_000);
        let (session, at) = (SessionId::from("s"), Timestamp(10_000));
        affinity.remember(Some(KeyId(1)), &session, ProviderId(7), at);
        assert_eq!(affinity.provider(Some(KeyId(1)), &session, at.plus_ms(1_000)), Some(ProviderId(7)));
        assert_eq!(affinity.provider(Some(KeyId(2)), &session, at), None);
        assert_eq!(affinity.provider(Some(KeyId(1)), &session, at.plus_ms(1_001)), None);
        assert_eq!(affinity.evict(at.plus_ms(1_001)), 0);
    }
}
