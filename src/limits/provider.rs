//! What a provider was used for: spend and sessions, against its own limits.

use super::charge::Charge;
use super::held::Held;
use super::sessions::{Sessions, Slot};
use super::settings::CounterSettings;
use super::spend::{Period, Spend};
use crate::domain::clock::Timestamp;
use crate::domain::limits::Limits;
use crate::domain::money::NanoUsd;
use crate::domain::provider::Provider;

/// Which of a provider's limits is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked {
    /// A spending limit.
    Limit,
    /// It serves the maximum number of sessions, and this is a new one.
    SessionCap,
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
        const PERIODS: [Period; 5] =
            [Period::Total, Period::FiveHours, Period::Daily, Period::Weekly, Period::Monthly];
        let limits = &provider.limits;
        for period in PERIODS {
            if let Some(limit) = period.limit_of(limits)
                && self.spend.held(period, limits.daily_reset, now, settings.time_zone).both()
                    >= limit
            {
                return Some(Blocked::Limit);
            }
        }
        let cap = limits.concurrent_sessions as usize;
        let full = cap > 0 && self.sessions.len() >= cap && !self.sessions.is_live(slot);
        full.then_some(Blocked::SessionCap)
    }

    pub(super) fn enter(&mut self, charge: &Charge, now: Timestamp) {
        self.sessions.enter(&charge.slot, now, None);
        self.spend.add(charge.started, Held::reserved(charge.reserved));
    }

    pub(super) fn take_back(&mut self, charge: &Charge) {
        self.sessions.take_back(&charge.slot);
        self.spend.add(charge.started, Held::reserved(-charge.reserved));
    }

    /// Settles a request that had entered and was served, at this cost.
    pub(super) fn settle(&mut self, charge: &Charge, now: Timestamp, cost: NanoUsd) {
        self.sessions.leave(&charge.slot, now, cost);
        self.spend.add(charge.started, Held { spent: cost, reserved: -charge.reserved });
    }
}

/// Whether there is any limit to check.
pub(super) fn is_limited(limits: &Limits) -> bool {
    let unlimited = Limits { daily_reset: limits.daily_reset, ..Limits::default() };
    *limits != unlimited
}
