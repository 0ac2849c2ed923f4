//! What this node remembers of sessions' prompts, to say why a provider's cache was cold.
//!
//! Bounded in bytes: the sessions are in two maps. If the younger one is full, the older one is
//! dropped, with every session that was not used since. It is in memory only, so a node knows
//! nothing of requests before its start or at other nodes.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::domain::fast_map::FastMap;
use crate::domain::ids::{KeyId, ProviderId, SessionId};
use crate::domain::prompt_print::PromptPrint;
use crate::formats::prompt_print::PrintKey;
use crate::policy::cache_lines::{CacheLines, Missed, Turn};

/// Bytes of one of the two maps: some 20 000 sessions of 50 messages.
const MAX_BYTES: usize = 16 << 20;
/// Bytes of a session beside its lines.
const SESSION_BYTES: usize = 256;

type Sessions = FastMap<(Option<KeyId>, SessionId), CacheLines>;

/// The last requests of the latest sessions.
#[derive(Debug, Default)]
pub struct CacheSessions {
    /// Makes the fingerprints.
    pub key: Arc<PrintKey>,
    generations: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    young: Sessions,
    young_bytes: usize,
    old: Sessions,
}

impl CacheSessions {
    /// Takes the next request of a session; returns what it missed.
    pub fn next(&self, key: Option<KeyId>, session: &SessionId, turn: Turn) -> Option<Missed> {
        let name = (key, session.clone());
        let mut generations = self.generations.lock();
        let Generations { young, young_bytes, old } = &mut *generations;
        let (lines, before) = match young.entry(name) {
            Entry::Occupied(known) => {
                let lines = known.into_mut();
                let size = lines.size() + SESSION_BYTES;
                (lines, size)
            }
            Entry::Vacant(new) => {
                let lines = old.remove(new.key()).unwrap_or_default();
                (new.insert(lines), 0)
            }
        };
        let missed = lines.next(turn);
        *young_bytes = (*young_bytes + lines.size() + SESSION_BYTES).saturating_sub(before);
        if *young_bytes > MAX_BYTES {
            (*old, *young_bytes) = (std::mem::take(young), 0);
        }
        missed
    }

    /// The id of the reply that a request of the session goes on from, if this provider gave it to
    /// a request for which it was noted.
    pub fn last_reply(
        &self,
        key: Option<KeyId>,
        session: &SessionId,
        print: &PromptPrint,
        model: &str,
        provider: ProviderId,
    ) -> Option<Arc<str>> {
        let name = (key, session.clone());
        let generations = self.generations.lock();
        let lines = generations.young.get(&name).or_else(|| generations.old.get(&name))?;
        lines.last_reply(print, model, provider).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::cache_miss::CacheMissCause;
    use crate::domain::clock::Timestamp;
    use crate::domain::format::WireFormat;
    use crate::domain::usage::Usage;

    fn turn(read: u64, at: i64) -> Turn {
        Turn {
            print: PromptPrint { messages: vec![1; 1000].into(), ..PromptPrint::default() },
            model: "m".into(),
            reply: None,
            provider: ProviderId(1),
            format: WireFormat::Native,
            usage: Usage { cache_read: read, cache_write_5m: 5000 - read, ..Usage::default() },
            started: Timestamp(at),
            ended: Timestamp(at + 1),
        }
    }

    fn session(number: usize) -> SessionId {
        SessionId(format!("session-{number}").into())
    }

    #[test]
    fn sessions_of_keys_are_told_apart() {
        let sessions = CacheSessions::default();
        for key in [Some(KeyId(1)), Some(KeyId(2)), None] {
            let first = sessions.next(key, &session(1), turn(0, 0)).unwrap();
            assert_eq!(first.cause, CacheMissCause::FirstUse, "{key:?}");
            assert_eq!(sessions.next(key, &session(1), turn(5000, 10)), None);
        }
    }

    #[test]
    fn memory_is_bounded_and_sessions_in_use_stay() {
        let sessions = CacheSessions::default();
        let bytes = |sessions: &CacheSessions| {
            let generations = sessions.generations.lock();
            let lines = generations.young.values().chain(generations.old.values());
            lines.map(|lines| lines.size() + SESSION_BYTES).sum::<usize>()
        };
        for number in 0..20_000 {
            let at = i64::try_from(number).unwrap() * 10;
            sessions.next(None, &session(number), turn(0, at));
            let cause = sessions.next(None, &session(0), turn(5000, at + 5));
            assert_eq!(cause, None, "it is known: {number}");
        }
        assert!(bytes(&sessions) <= 2 * MAX_BYTES + 10_000, "{}", bytes(&sessions));
        assert!(bytes(&sessions) > MAX_BYTES / 2);
        let forgotten = sessions.next(None, &session(1), turn(0, 1 << 30)).unwrap();
        assert_eq!(forgotten.cause, CacheMissCause::FirstUse);
    }
}
