//! Loads the ledger's sums at start, and the requests of the last minutes: live sessions, requests
//! per minute.

use chrono_tz::Tz;

use super::held::Held;
use super::memory::Memory;
use super::rpm;
use super::sessions::Slot;
use super::spend::{KEEP_MINUTES, Spend, Sums};
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, SessionId, UserId};
use crate::domain::money::NanoUsd;
use crate::policy::window::Window;

/// What one key spent at one provider in one minute; before the last 26 hours, in one minute or one
/// hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpendRow {
    /// Any time within the minute (or the hour) of the requests' start.
    pub minute: Timestamp,
    /// `None` with a user: spending that counts for the user alone (an opening balance).
    pub key: Option<KeyId>,
    /// The key's owner; `None` for traffic of the admin token.
    pub user: Option<UserId>,
    /// The provider that served the requests; `None` if none did.
    pub provider: Option<ProviderId>,
    /// The sum of the costs, nano-USD. Unpriced requests add nothing.
    pub cost: NanoUsd,
}

/// The lifetime spend of one key at one provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpendTotal {
    /// `None` (with `user`) for traffic of the admin token.
    pub key: Option<KeyId>,
    /// The key's owner; `None` for traffic of the admin token.
    pub user: Option<UserId>,
    /// The provider that served the requests; `None` if none did.
    pub provider: Option<ProviderId>,
    /// The sum of the costs, nano-USD. Unpriced requests add nothing.
    pub cost: NanoUsd,
}

/// A holder of shared counters, and the user that has them: a key's are with its user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owned {
    /// A user, over all keys.
    User(UserId),
    /// A key of a user.
    Key(UserId, KeyId),
    /// A provider.
    Provider(ProviderId),
}

/// A request of the last minutes that was admitted and has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentRequest {
    /// The key that sent it. Requests of the admin token are not listed.
    pub key: KeyId,
    /// The key's owner.
    pub user: UserId,
    /// The provider that was tried last.
    pub provider: Option<ProviderId>,
    /// The conversation.
    pub session: SessionId,
    /// The request's start. It also stands for the time of admission, which the ledger does not
    /// have.
    pub started: Timestamp,
    /// The end of the reply. The session is live for the TTL from here.
    pub ended: Timestamp,
    /// The actual cost; zero if unpriced.
    pub cost: NanoUsd,
}

impl Memory {
    /// Replays requests in the order of their start: their spending is in [`Self::rebuild`]'s sums.
    pub(super) fn replay(&self, requests: impl IntoIterator<Item = RecentRequest>, now: Timestamp) {
        for request in requests {
            let slot = Slot { key: Some(request.key), session: request.session };
            // A clock that was set back must not keep a session for longer.
            let ended = request.ended.min(now);
            {
                let mut users = self.users.lock(request.user.0);
                let state = users.entry(request.user).or_default();
                let pair = state.pair(request.key);
                pair.key.sessions += u64::from(pair.sessions.enter(&slot, request.started, None));
                pair.sessions.leave(&slot, ended, request.cost);
                if now.since(request.started) < rpm::WINDOW_MS {
                    pair.rpm.add(request.started.min(now));
                }
                if let Some(provider) = request.provider {
                    state.serve_by(&slot, provider);
                }
            }
            if let Some(provider) = request.provider {
                let mut providers = self.providers.lock(provider.0);
                let sessions = &mut providers.entry(provider).or_default().sessions;
                sessions.enter(&slot, request.started, None);
                sessions.leave(&slot, ended, request.cost);
            }
        }
    }

    pub(super) fn rebuild(
        &self,
        rows: impl IntoIterator<Item = SpendRow>,
        totals: impl IntoIterator<Item = SpendTotal>,
        now: Timestamp,
    ) {
        self.users.each().for_each(|mut users| users.clear());
        self.providers.each().for_each(|mut providers| providers.clear());
        for row in rows {
            let holder = (row.user, row.key);
            self.to_each(holder, row.provider, now, |spend| {
                spend.add_to_windows(row.minute, Held::spent(row.cost))
            });
        }
        for total in totals {
            let holder = (total.user, total.key);
            self.to_each(holder, total.provider, now, |spend| {
                spend.add_to_total(Held::spent(total.cost))
            });
        }
    }

    pub(super) fn rebuild_from(now: Timestamp, tz: Tz) -> Timestamp {
        let calendar = Window::Monthly.start(now, tz).min(Window::Weekly.start(now, tz));
        calendar.min(now.plus_ms(-KEEP_MINUTES * 60_000))
    }

    /// Every holder, with what it spent.
    pub(super) fn holders(&self) -> Vec<(Owned, Sums)> {
        let mut found = Vec::new();
        for users in self.users.each() {
            for (user, state) in users.iter() {
                found.push((Owned::User(*user), state.spend.sums()));
                found.extend(
                    state
                        .keys
                        .iter()
                        .map(|(key, state)| (Owned::Key(*user, *key), state.spend.sums())),
                );
            }
        }
        for providers in self.providers.each() {
            found.extend(
                providers
                    .iter()
                    .map(|(provider, state)| (Owned::Provider(*provider), state.spend.sums())),
            );
        }
        found
    }

    /// Applies `add` to the spending of each holder. A key without its user has none.
    pub(super) fn to_each(
        &self,
        (user, key): (Option<UserId>, Option<KeyId>),
        provider: Option<ProviderId>,
        now: Timestamp,
        add: impl Fn(&mut Spend),
    ) {
        if let Some(user) = user {
            let mut users = self.users.lock(user.0);
            let state = users.entry(user).or_default();
            state.refresh(now, &self.settings);
            add(&mut state.spend);
            if let Some(key) = key {
                let pair = state.with_key(key, now, &self.settings);
                add(&mut pair.key.spend);
            }
        }
        if let Some(provider) = provider {
            let mut providers = self.providers.lock(provider.0);
            let state = providers.entry(provider).or_default();
            state.refresh(now, &self.settings);
            add(&mut state.spend);
        }
    }
}
