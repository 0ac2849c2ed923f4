//! The live sessions of one holder: those with a request in flight, and those whose last request
//! ended within the TTL.

use std::collections::VecDeque;

use super::admission::Asks;
use crate::domain::clock::{JITTER_MS, Timestamp};
use crate::domain::fast_map::FastMap;
use crate::domain::ids::{KeyId, ProviderId, SessionId};
use crate::domain::money::NanoUsd;

/// Idle sessions kept for one holder. This is above the highest configurable session limit, so
/// dropping the oldest admits no request that would have been refused. It bounds clients whose
/// every request is a new session.
pub(super) const MAX_IDLE: usize = 4_096;

/// A session of a key (of the admin token, without one).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot {
    /// The key that the session belongs to; `None` for the admin token.
    pub key: Option<KeyId>,
    /// The session's id, unique within one key.
    pub session: SessionId,
}

#[derive(Debug, Clone)]
pub(super) struct LiveSessions {
    pub(super) running: u32,
    pub(super) started: Timestamp,
    /// End of its last request; `None` while its first one is in flight.
    pub(super) ended: Option<Timestamp>,
    pub(super) requests: u64,
    pub(super) cost: NanoUsd,
    pub(super) provider: Option<ProviderId>,
    /// Of the latest request; `None` if that is unknown.
    pub(super) asks: Option<Asks>,
    /// Its time in the idle queue; kept so that it is never queued twice.
    queued: Option<Timestamp>,
}

impl LiveSessions {
    fn is_idle_since(&self, ended: Timestamp) -> bool {
        self.running == 0 && self.ended == Some(ended)
    }
}

#[derive(Debug, Default)]
pub(super) struct Sessions {
    live: FastMap<Slot, LiveSessions>,
    /// Sessions by the time they became idle, ascending. A session that became active since is
    /// still in here: its entry is skipped when its turn comes, and removed when such entries are
    /// the majority.
    idle: VecDeque<(Timestamp, Slot)>,
    /// How many of `live` are idle.
    idle_count: usize,
}

impl Sessions {
    /// Drops sessions that ended, and calls `gone` for each.
    pub(super) fn refresh(&mut self, now: Timestamp, ttl_ms: i64, mut gone: impl FnMut(&Slot)) {
        self.clamp_ends(now);
        while let Some((ended, slot)) = self.idle.front() {
            // Before a look-up of the session, because this runs five times per request. A session
            // that is active again may keep its entry here for so long; `rest` drops it.
            if now.since(*ended) < ttl_ms && self.idle_count <= MAX_IDLE {
                break;
            }
            if still_idle(&mut self.live, *ended, slot) {
                self.live.remove(slot);
                self.idle_count -= 1;
                gone(slot);
            }
            self.idle.pop_front();
        }
    }

    pub(super) fn is_live(&self, slot: &Slot) -> bool {
        self.live.contains_key(slot)
    }

    pub(super) fn len(&self) -> usize {
        self.live.len()
    }

    pub(super) fn get(&self, slot: &Slot) -> Option<&LiveSessions> {
        self.live.get(slot)
    }

    pub(super) fn get_mut(&mut self, slot: &Slot) -> Option<&mut LiveSessions> {
        self.live.get_mut(slot)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Slot, &LiveSessions)> {
        self.live.iter()
    }

    /// A request of the session begins. Returns whether the session is new.
    pub(super) fn enter(&mut self, slot: &Slot, now: Timestamp, asks: Option<&Asks>) -> bool {
        if let Some(live) = self.live.get_mut(slot) {
            self.idle_count -= usize::from(live.running == 0);
            live.running += 1;
            live.requests += 1;
            live.asks = asks.cloned();
            return false;
        }
        let (ended, cost, provider, asks, queued) =
            (None, NanoUsd::ZERO, None, asks.cloned(), None);
        let live = LiveSessions {
            running: 1,
            started: now,
            ended,
            requests: 1,
            cost,
            provider,
            asks,
            queued,
        };
        self.live.insert(slot.clone(), live);
        true
    }

    /// A request of the session ends at `now` with the given cost.
    pub(super) fn leave(&mut self, slot: &Slot, now: Timestamp, cost: NanoUsd) {
        let Some(live) = self.live.get_mut(slot).filter(|live| live.running > 0) else { return };
        live.running -= 1;
        live.cost += cost;
        let ended = live.ended.map_or(now, |before| before.max(now));
        live.ended = Some(ended);
        if live.running == 0 {
            self.rest(slot, ended);
        }
    }

    /// Takes a request of the session back. Returns whether this removed the session.
    pub(super) fn take_back(&mut self, slot: &Slot) -> bool {
        let Some(live) = self.live.get_mut(slot).filter(|live| live.running > 0) else {
            return false;
        };
        live.running -= 1;
        live.requests -= 1;
        match (live.running, live.ended) {
            (0, None) => {
                self.live.remove(slot);
                true
            }
            (0, Some(ended)) => {
                self.rest(slot, ended);
                false
            }
            _ => false,
        }
    }

    /// When the first idle session (of `key`, if given) ends if no request follows.
    pub(super) fn next_end(&self, key: Option<KeyId>, ttl_ms: i64) -> Option<Timestamp> {
        let mut idle = self.idle.iter().filter(|(ended, slot)| {
            (key.is_none() || slot.key == key)
                && self.live.get(slot).is_some_and(|live| live.is_idle_since(*ended))
        });
        idle.next().map(|(ended, _)| ended.plus_ms(ttl_ms))
    }

    pub(super) fn shrink(&mut self) {
        if self.live.capacity() > 4 * self.live.len() + 8 {
            self.live.shrink_to_fit();
            self.idle.shrink_to_fit();
        }
    }

    /// After the clock was set back, sessions that ended ahead of `now` end now. Otherwise they
    /// would stay for longer than the TTL, by as much as the clock was set.
    fn clamp_ends(&mut self, now: Timestamp) {
        let ahead = |ended: Timestamp| ended.since(now) > JITTER_MS;
        for (ended, slot) in self.idle.iter_mut().rev().take_while(|(ended, _)| ahead(*ended)) {
            if let Some(live) = self.live.get_mut(slot) {
                live.ended = live.ended.map(|at| if at == *ended { now } else { at });
                live.queued = live.queued.map(|at| if at == *ended { now } else { at });
            }
            *ended = now;
        }
    }

    fn rest(&mut self, slot: &Slot, ended: Timestamp) {
        self.idle_count += 1;
        if let Some(live) = self.live.get_mut(slot)
            && live.queued.replace(ended) == Some(ended)
        {
            return;
        }
        // Of sessions that became active since.
        while let Some((since, slot)) = self.idle.front()
            && !still_idle(&mut self.live, *since, slot)
        {
            self.idle.pop_front();
        }
        if self.idle.len() > 2 * self.live.len() + 64 {
            let live = &mut self.live;
            self.idle.retain(|(since, slot)| still_idle(live, *since, slot));
        }
        // Nearly always at the end: only requests that are taken back ended earlier.
        let place = match self.idle.back() {
            Some((last, _)) if *last > ended => {
                self.idle.partition_point(|(since, _)| *since <= ended)
            }
            _ => self.idle.len(),
        };
        self.idle.insert(place, (ended, slot.clone()));
    }
}

/// Whether an idle entry is still correct; an incorrect one is about to be dropped.
fn still_idle(live: &mut FastMap<Slot, LiveSessions>, since: Timestamp, slot: &Slot) -> bool {
    let Some(live) = live.get_mut(slot) else { return false };
    let idle = live.is_idle_since(since);
    if !idle && live.queued == Some(since) {
        live.queued = None;
    }
    idle
}
