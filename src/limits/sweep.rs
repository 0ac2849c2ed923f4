//! Frees idle entries, so that memory follows the holders in use, not those of the past.

use super::memory::Memory;
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, UserId};

/// A key, user or provider with counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// One API key.
    Key(KeyId),
    /// One user, over all of the user's keys.
    User(UserId),
    /// One upstream provider.
    Provider(ProviderId),
}

impl Memory {
    pub(super) fn sweep(&self, now: Timestamp, keep: &dyn Fn(Holder) -> bool) {
        let tz = self.settings.time_zone;
        for mut users in self.users.each() {
            users.retain(|id, user| {
                user.refresh(now, &self.settings);
                user.keys.retain(|key, state| {
                    state.spend.refresh(now, tz);
                    state.spend.shrink();
                    let busy = state.running > 0 || state.sessions > 0;
                    busy || (!state.spend.is_empty() && keep(Holder::Key(*key)))
                });
                user.spend.shrink();
                user.rpm.shrink();
                user.sessions.shrink();
                let busy = !user.keys.is_empty() || user.rpm.count() > 0;
                busy || (!user.spend.is_empty() && keep(Holder::User(*id)))
            });
            users.shrink_to_fit();
        }
        self.expectations.retain(|key| keep(Holder::Key(key)));
        for mut providers in self.providers.each() {
            providers.retain(|id, state| {
                state.refresh(now, &self.settings);
                state.spend.shrink();
                state.sessions.shrink();
                state.sessions.len() > 0 || (!state.spend.is_empty() && keep(Holder::Provider(*id)))
            });
            providers.shrink_to_fit();
        }
    }
}
