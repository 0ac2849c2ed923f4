//! Loads the ledger's sums, at start and when other nodes spent meanwhile, and the requests of the
//! last minutes: live sessions, requests per minute.

use chrono_tz::Tz;

use super::held::HeldAmounts;
use super::memory::Memory;
use super::rpm;
use super::sessions::Slot;
use super::settings::CounterSettings;
use super::spend::{KEEP_MINUTES, Spend, Sums};
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, UserId};
use crate::policy::window::Window;
use crate::store::{RecentRequest, SpendSeen, SpendTotal};

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

impl Memory {
    /// Replays requests in the order of their start: their spending is in [`Self::rebuild`]'s sums.
    pub(super) fn replay(&self, requests: impl IntoIterator<Item = RecentRequest>, now: Timestamp) {
        for request in requests {
            let slot = Slot { key: Some(request.key_id), session: request.session };
            // A clock that was set back must not keep a session for longer.
            let ended = request.ended_at.min(now);
            {
                let mut users = self.users.lock(request.user_id.0);
                let state = users.entry(request.user_id).or_default();
                let pair = state.pair(request.key_id);
                pair.key.sessions +=
                    u64::from(pair.sessions.enter(&slot, request.started_at, None));
                pair.sessions.leave(&slot, ended, request.cost);
                if now.since(request.started_at) < rpm::WINDOW_MS {
                    pair.rpm.add(request.started_at.min(now));
                }
                if let Some(provider) = request.provider_id {
                    state.serve_by(&slot, provider);
                }
            }
            if let Some(provider) = request.provider_id {
                let mut providers = self.providers.lock(provider.0);
                let sessions = &mut providers.entry(provider).or_default().sessions;
                sessions.enter(&slot, request.started_at, None);
                sessions.leave(&slot, ended, request.cost);
            }
        }
    }

    pub(super) fn rebuild(&self, past: &SpendSeen, now: Timestamp) {
        self.users.each().for_each(|mut users| users.clear());
        self.providers.each().for_each(|mut providers| providers.clear());
        for row in past.rows.iter().chain(&past.opening) {
            self.to_each(row.user_id, row.key_id, row.provider_id, now, |spend| {
                spend.add_to_windows(row.minute, HeldAmounts::spent(row.cost))
            });
        }
        let opening = past.opening.iter().map(|row| SpendTotal {
            key_id: row.key_id,
            user_id: row.user_id,
            provider_id: row.provider_id,
            cost: row.cost,
        });
        for total in past.totals.iter().copied().chain(opening) {
            self.to_each(total.user_id, total.key_id, total.provider_id, now, |spend| {
                spend.late = past.late;
                spend.add_to_total(HeldAmounts::spent(total.cost))
            });
        }
    }

    pub(super) fn rebuild_from(now: Timestamp, tz: Tz) -> Timestamp {
        let starts = Window::BY_DATE.map(|window| window.start(now, tz));
        starts.into_iter().fold(now.plus_ms(-KEEP_MINUTES * 60_000), Ord::min)
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
        user: Option<UserId>,
        key: Option<KeyId>,
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

impl Memory {
    /// The state that this node's own counters would have after a start.
    pub(super) fn of_ledger(settings: CounterSettings, past: &SpendSeen, now: Timestamp) -> Self {
        let made = Self::new(settings);
        made.rebuild(past, now);
        made
    }

    /// Takes over the spend of these counters; reservations stay.
    pub(super) fn adopt(&self, made: Self, now: Timestamp) {
        let tz = self.settings.time_zone;
        self.take_over(made, |own, from| own.adopt(from, now, tz));
    }

    /// The same for each holder of whom they have at least as much: they may lack what other nodes
    /// settled last, which this node knows from them.
    pub(super) fn catch_up(&self, made: Self, now: Timestamp) {
        let tz = self.settings.time_zone;
        self.take_over(made, |own, from| {
            if from.total_spent() >= own.total_spent() {
                own.adopt(from, now, tz);
            }
        });
    }

    fn take_over(&self, made: Self, take: impl Fn(&mut Spend, Spend)) {
        for mut users in made.users.each() {
            for (id, state) in users.drain() {
                let mut own = self.users.lock(id.0);
                let own = own.entry(id).or_default();
                take(&mut own.spend, state.spend);
                for (key, state) in state.keys {
                    take(&mut own.keys.entry(key).or_default().spend, state.spend);
                }
            }
        }
        for mut providers in made.providers.each() {
            for (id, state) in providers.drain() {
                take(&mut self.providers.lock(id.0).entry(id).or_default().spend, state.spend);
            }
        }
    }
}
