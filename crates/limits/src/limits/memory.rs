//! The counters of one process.

use std::sync::Arc;

use super::admission::{Admission, Denied};
use super::charge::{Charge, CountedRequest, Settlement};
use super::checks;
use super::expectation::Expectations;
use super::held::HeldAmounts;
use super::holder::UserState;
use super::provider::{Blocked, ProviderState, is_limited};
use super::sessions::Slot;
use super::settings::CounterSettings;
use super::shards::Shards;
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, RequestId, SessionId, UserId};
use crate::domain::money::NanoUsd;
use crate::domain::provider::Provider;
use crate::policy::reservation::Reservation;

/// Three maps; no code holds the locks of two at once.
pub(super) struct Memory {
    pub(super) settings: CounterSettings,
    pub(super) users: Shards<UserId, Box<UserState>>,
    pub(super) providers: Shards<ProviderId, Box<ProviderState>>,
    pub(super) expectations: Expectations,
}

impl Memory {
    pub(super) fn new(settings: CounterSettings) -> Self {
        Self {
            settings,
            users: Shards::new(),
            providers: Shards::new(),
            expectations: Expectations::new(),
        }
    }

    pub(super) fn charge(
        &self,
        request: RequestId,
        session: &SessionId,
        estimate: NanoUsd,
        admitted: Timestamp,
    ) -> Charge {
        let off = self.settings.reservation == Reservation::Off;
        let reserved = if off { NanoUsd::ZERO } else { estimate.max(NanoUsd::ZERO) };
        let slot = Slot { key: None, session: session.clone() };
        Charge { request, user: None, slot, reserved, admitted, minute: None, asks: None }
    }

    /// What an admission will count.
    pub(super) fn charge_of(&self, ask: &Admission<'_>) -> Charge {
        let mut charge = self.charge(ask.request, ask.session, ask.estimate, ask.now);
        (charge.user, charge.slot.key) = (Some(ask.user.id), Some(ask.key.id));
        Charge { asks: Some(ask.asks.clone()), ..charge }
    }

    pub(super) fn admit(&self, ask: &Admission<'_>) -> Result<CountedRequest, Denied> {
        let (user_id, key) = (ask.user.id, ask.key.id);
        let mut users = self.users.lock(user_id.0);
        let user = users.entry(user_id).or_default();
        let ask = &Admission { now: user.present(key, ask.now), ..*ask };
        let mut charge = self.charge_of(ask);
        let mut pair = user.with_key(key, ask.now, &self.settings);
        let standing = checks::all(&mut pair, ask, &charge.slot, &self.settings)?;
        let served_before = pair.sessions.get(&charge.slot).and_then(|live| live.provider);
        pair.count(&mut charge);
        Ok(CountedRequest { charge, served_before, standing, at: None })
    }

    /// Counts a request without checks. Returns the provider that served the session before, if it
    /// was live.
    pub(super) fn count(&self, charge: &mut Charge) -> Option<ProviderId> {
        let (user, key) = charge.holder()?;
        let mut users = self.users.lock(user.0);
        let state = users.entry(user).or_default();
        let mut pair = state.with_key(key, charge.admitted, &self.settings);
        let served_before = pair.sessions.get(&charge.slot).and_then(|live| live.provider);
        pair.count(charge);
        served_before
    }

    pub(super) fn blocked(
        &self,
        providers: &[Arc<Provider>],
        slot: &Slot,
        now: Timestamp,
    ) -> Vec<(ProviderId, Blocked)> {
        let limited = providers.iter().filter(|provider| is_limited(&provider.limits));
        let look = |provider: &Arc<Provider>| {
            let why = self.at_provider(provider.id, now, |state| {
                state.blocked(provider, slot, now, &self.settings)
            })?;
            Some((provider.id, why))
        };
        limited.filter_map(look).collect()
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

    fn at_provider<R>(
        &self,
        id: ProviderId,
        now: Timestamp,
        work: impl FnOnce(&mut ProviderState) -> R,
    ) -> R {
        let mut providers = self.providers.lock(id.0);
        let state = providers.entry(id).or_default();
        state.refresh(now, &self.settings);
        work(state)
    }

    /// Notes the provider of a request's session.
    fn serve_by(&self, charge: &Charge, provider: ProviderId) {
        let Some(user) = charge.user else { return };
        if let Some(state) = self.users.lock(user.0).get_mut(&user) {
            state.serve_by(&charge.slot, provider);
        }
    }
}

impl Memory {
    /// Moves the request to a provider: counts it there unless one of the provider's limits is
    /// reached. Returns whether it was counted.
    pub(super) fn enter(&self, charge: &Charge, provider: &Provider, now: Timestamp) -> bool {
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

    /// As [`Self::enter`], without the check.
    pub(super) fn enter_unchecked(&self, charge: &Charge, provider: ProviderId, now: Timestamp) {
        self.at_provider(provider, now, |state| state.enter(charge, now));
        self.serve_by(charge, provider);
    }

    /// Takes back what [`Self::enter`] did: the attempt failed.
    pub(super) fn withdraw(&self, charge: &Charge, provider: ProviderId, now: Timestamp) {
        self.at_provider(provider, now, |state| state.take_back(charge));
    }

    /// The request ended.
    pub(super) fn settle(&self, charge: &Charge, end: &Settlement) {
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
                    self.at_provider(served, now, |state| {
                        state.spend.add(charge.admitted, HeldAmounts::spent(cost))
                    });
                }
            }
        }
    }

    /// Takes the request back as if it had never been counted.
    pub(super) fn give_back(&self, charge: &Charge, at: Option<ProviderId>) {
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
