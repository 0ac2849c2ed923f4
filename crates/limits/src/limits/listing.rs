//! The live sessions, for the list of active sessions.

use super::admission::Asks;
use super::memory::Memory;
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, SessionId, UserId};
use crate::domain::money::NanoUsd;

/// One live session of one key. Its text is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSession {
    /// The key's owner.
    pub user: UserId,
    /// The key that holds the session.
    pub key: KeyId,
    /// The session's id. Two keys may use the same one.
    pub session: SessionId,
    /// The provider that serves it, once a request was sent to one.
    pub provider: Option<ProviderId>,
    /// Of the latest request, in flight or not; `None` if no node knows it any more.
    pub asks: Option<Asks>,
    /// Requests in flight.
    pub running: u32,
    /// Start of its first request.
    pub started_at: Timestamp,
    /// End of its last request.
    pub last_end: Option<Timestamp>,
    /// Requests since `started_at`, those in flight included.
    pub requests: u64,
    /// Of its requests that have ended.
    pub cost: NanoUsd,
}

impl Memory {
    pub(super) fn sessions_here(&self, now: Timestamp) -> usize {
        let of_users = self.users.each().map(|mut users| {
            let counted = users.values_mut().map(|state| {
                state.refresh(now, &self.settings);
                state.sessions.len()
            });
            counted.sum::<usize>()
        });
        of_users.sum()
    }

    pub(super) fn live_sessions(&self, now: Timestamp) -> Vec<LiveSession> {
        let mut listed = Vec::new();
        for mut users in self.users.each() {
            for (user, state) in users.iter_mut() {
                state.refresh(now, &self.settings);
                listed.extend(state.sessions.iter().filter_map(|(slot, live)| {
                    Some(LiveSession {
                        user: *user,
                        key: slot.key?,
                        session: slot.session.clone(),
                        provider: live.provider,
                        asks: live.asks.clone(),
                        running: live.running,
                        started_at: live.started,
                        last_end: live.ended,
                        requests: live.requests,
                        cost: live.cost,
                    })
                }));
            }
        }
        listed
    }
}
