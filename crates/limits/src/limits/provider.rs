//! What a provider was used for: spend and sessions, against its own limits.

use super::charge::Charge;
use super::held::HeldAmounts;
use super::sessions::{Sessions, Slot};
use super::settings::CounterSettings;
use super::spend::Spend;
use crate::domain::clock::Timestamp;
use crate::domain::limits::{Limits, Period};
use crate::domain::money::NanoUsd;
use crate::domain::provider::Provider;
use crate::policy::select::SOON_MS;

/// Which of a provider's limits is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked {
    /// A spending limit.
    Limit {
        /// When it leaves room again; `None`: never, or unknown.
        until: Option<Timestamp>,
    },
    /// It serves the maximum number of sessions, and this is a new one.
    SessionCap {
        /// When to try again: another session may end at any time.
        until: Timestamp,
    },
}

impl Blocked {
    /// The same at a later time.
    pub(super) fn later(self, ms: i64) -> Self {
        match self {
            Self::Limit { until } => Self::Limit { until: until.map(|at| at.plus_ms(ms)) },
            Self::SessionCap { until } => Self::SessionCap { until: until.plus_ms(ms) },
        }
    }
}

/// When spending limits that are reached leave room again: each must. `ends`: of those that what is
/// spent reaches. What requests in flight reserve is soon free.
pub(super) fn room_at(
    now: Timestamp,
    ends: impl Iterator<Item = Option<Timestamp>>,
) -> Option<Timestamp> {
    let soon = Some(now.plus_ms(SOON_MS));
    ends.fold(soon, |until, end| until.zip(end).map(|(until, end)| until.max(end)))
}

#[derive(Debug, Default)]
pub(super) struct ProviderState {
    pub(super) spend: Spend,
    pub(super) sessions: Sessions,
}

impl ProviderState {
    pub(super) fn refresh(&mut self, now: Timestamp, settings: &CounterSettings) {
        self.spend.refresh(now, settings.time_zone);
        self.sessions.refresh(now, settings.session_ttl_ms, |_| ());
    }

    /// The figures must be up to date.
    pub(super) fn blocked(
        &mut self,
        provider: &Provider,
        slot: &Slot,
        now: Timestamp,
        settings: &CounterSettings,
    ) -> Option<Blocked> {
        let (limits, reset) = (&provider.limits, provider.limits.daily_reset);
        let reached = Period::IN_ORDER.map(|period| {
            let limit = period.limit_of(limits)?;
            let held = self.spend.held(period, reset, now, settings.time_zone);
            (held.both() >= limit).then_some((period, limit, held.spent >= limit))
        });
        if reached.iter().any(Option::is_some) {
            let spent = reached.iter().flatten().filter(|(_, _, is_spent)| *is_spent);
            let ends = spent.map(|(period, limit, _)| self.spend.below_at(*period, reset, *limit));
            return Some(Blocked::Limit { until: room_at(now, ends) });
        }
        let cap = limits.concurrent_sessions as usize;
        let full = cap > 0 && self.sessions.len() >= cap && !self.sessions.is_live(slot);
        full.then_some(Blocked::SessionCap { until: now.plus_ms(SOON_MS) })
    }

    pub(super) fn enter(&mut self, charge: &Charge, now: Timestamp) {
        self.sessions.enter(&charge.slot, now, None);
        self.spend.add(charge.admitted, HeldAmounts::reserved(charge.reserved));
    }

    pub(super) fn take_back(&mut self, charge: &Charge) {
        self.sessions.take_back(&charge.slot);
        self.spend.add(charge.admitted, HeldAmounts::reserved(-charge.reserved));
    }

    /// Settles a request that had entered and was served, at this cost.
    pub(super) fn settle(&mut self, charge: &Charge, now: Timestamp, cost: NanoUsd) {
        self.sessions.leave(&charge.slot, now, cost);
        self.spend.add(charge.admitted, HeldAmounts { spent: cost, reserved: -charge.reserved });
    }
}

/// Whether there is any limit to check.
pub(super) fn is_limited(limits: &Limits) -> bool {
    let unlimited = Limits { daily_reset: limits.daily_reset, ..Limits::default() };
    *limits != unlimited
}
