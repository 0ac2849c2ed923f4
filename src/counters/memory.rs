//! The counters of one process.

use super::CounterSettings;
use super::admission::{Admission, Denied};
use super::checks;
use super::expectation::Expectations;
use super::held::Held;
use super::holder::UserState;
use super::permit::{Books, Charge, Settlement};
use super::provider::{Blocked, ProviderState, is_limited};
use super::sessions::Slot;
use super::shards::Shards;
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, SessionId, UserId};
use crate::domain::money::NanoUsd;
use crate::domain::provider::Provider;

/// Three maps; no code holds locks of two at once.
pub(super) struct Memory {
    pub(super) settings: CounterSettings,
    pub(super) users: Shards<UserId, Box<UserState>>,
    pub(super) providers: Shards<ProviderId, Box<ProviderState>>,
    pub(super) expectations: Expectations,
}

impl Memory {
    pub(super) fn new(settings: CounterSettings) -> Self {
        Self { settings, users: Shards::new(), providers: Shards::new(), expectations: Expectations::new() }
    }

    pub(super) fn charge(
        &self,
        holder: Option<(UserId, KeyId)>,
        session: &SessionId,
        estimate: NanoUsd,
        started: Timestamp,
    ) -> Charge {
        let reserved = if self.settings.reservation { estimate.max(NanoUsd::ZERO) } else { NanoUsd::ZERO };
        let slot = Slot { key: holder.map(|(_, key)| key), session: session.clone() };
        Charge { user: holder.map(|(user, _)| user), slot, reserved, started }
    }

    pub(super) fn admit(&self, ask: &Admission<'_>) -> Result<Charge, Denied> {
        let (user_id, key) = (ask.user.id, ask.key.id);
        let charge = self.charge(Some((user_id, key)), ask.session, ask.estimate, ask.now);
        let mut users = self.users.lock(user_id.0);
        let user = users.entry(user_id).or_default();
        let mut pair = user.with_key(key, ask.now, &self.settings);
        checks::all(&mut pair, ask, &charge.slot, &self.settings)?;
        pair.count(&charge);
        Ok(charge)
    }

    pub(super) fn provider_blocked(
        &self,
        provider: &Provider,
        key: Option<KeyId>,
        session: &SessionId,
        now: Timestamp,
    ) -> Option<Blocked> {
        if !is_limited(&provider.limits) {
            return None;
        }
        let slot = Slot { key, session: session.clone() };
        self.at_provider(provider.id, now, |state| state.blocked(provider, &slot, now, &self.settings))
    }

    pub(super) fn session_provider(
        &self,
        user: UserId,
        key: KeyId,
        session: &SessionId,
        now: Timestamp,
    ) -> Option<ProviderId> {
        let mut users = self.users.lock(user.0);
        let state = users.get_mut(&user)?;
        state.refresh(now, &self.settings);
        state.sessions.get(&Slot { key: Some(key), session: session.clone() })?.provider
    }

    fn at_provider<R>(&self, id: ProviderId, now: Timestamp, work: impl FnOnce(&mut ProviderState) -> R) -> R {
        let mut providers = self.providers.lock(id.0);
        let state = providers.entry(id).or_default();
        state.refresh(now, &self.settings);
        work(state)
    }

    fn serve_by(&self, charge: &Charge, provider: ProviderId) {
        if let Some(user) = charge.user
            && let Some(state) = self.users.lock(user.0).get_mut(&user)
        {
            state.serve_by(&charge.slot, provider);
        }
    }
}

impl Books for Memory {
    fn enter(&self, charge: &Charge, provider: &Provider, now: Timestamp) -> bool {
        let entered = self.at_provider(provider.id, now, |state| {
            let free = state.blocked(provider, &charge.slot, now, &self.settings).is_none();
            if free {
                state.enter(charge, now);
            }
            free
        });
        if entered {
            self.serve_by(charge, provider.id);
        }
        entered
    }

    fn withdraw(&self, charge: &Charge, provider: ProviderId, now: Timestamp) {
        self.at_provider(provider, now, |state| state.take_back(charge));
    }

    fn settle(&self, charge: &Charge, end: &Settlement) {
        let Settlement { now, cost, at, served } = *end;
        if let Some((user, key)) = charge.holder() {
            let mut users = self.users.lock(user.0);
            let state = users.entry(user).or_default();
            state.with_key(key, now, &self.settings).settle(charge, now, cost);
            if let Some(provider) = served {
                state.serve_by(&charge.slot, provider);
            }
        }
        match (at, served) {
            (Some(at), Some(served)) if at == served => {
                self.at_provider(at, now, |state| state.settle(charge, now, cost));
            }
            (at, served) => {
                if let Some(at) = at {
                    self.withdraw(charge, at, now);
                }
                if let Some(served) = served {
                    self.at_provider(served, now, |state| state.spend.add(charge.started, Held::spent(cost)));
                }
            }
        }
    }

    fn give_back(&self, charge: &Charge, at: Option<ProviderId>) {
        if let Some((user, key)) = charge.holder()
            && let Some(state) = self.users.lock(user.0).get_mut(&user)
        {
            state.pair(key).take_back(charge);
        }
        if let Some(at) = at
            && let Some(state) = self.providers.lock(at.0).get_mut(&at)
        {
            state.take_back(charge);
        }
    }
}
