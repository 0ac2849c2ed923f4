//! Reads the counters for the administration API: what was spent, and what is reserved for requests
//! in flight.

use super::held::HeldAmounts;
use super::memory::Memory;
use super::spend::Spend;
use crate::domain::clock::Timestamp;
use crate::domain::key::Key;
use crate::domain::limits::{ByPeriod, Limits};
use crate::domain::money::NanoUsd;
use crate::domain::provider::Provider;
use crate::domain::user::User;

/// One holder's use of its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HolderUsage {
    /// Spending; the day is by the holder's own reset.
    pub money: ByPeriod<MoneyUsage>,
    /// Live sessions, and the limit on them.
    pub sessions: CountUsage,
    /// Requests of the past 60 seconds. Users only; zero for keys and providers.
    pub rpm: CountUsage,
}

/// Use of one spending limit, nano-USD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoneyUsage {
    /// Spent within the window.
    pub current: NanoUsd,
    /// The expected cost of requests in flight; other requests are compared with both.
    pub reserved: NanoUsd,
    /// `None` = no limit, 0 = nothing may be spent.
    pub limit: Option<NanoUsd>,
    /// A calendar window's end; for a rolling one, when the present spend has aged out. `None`:
    /// nothing to reset, or never.
    pub reset_at: Option<Timestamp>,
}

/// Use of a limit on sessions or on requests per minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CountUsage {
    /// Live sessions, or requests of the past 60 seconds.
    pub current: u64,
    /// The limit; 0 = no limit.
    pub limit: u64,
}

impl Memory {
    pub(super) fn key_usage(&self, key: &Key, now: Timestamp) -> HolderUsage {
        let mut users = self.users.lock(key.user_id.0);
        let mut unused = Spend::default();
        let state = users.get_mut(&key.user_id).and_then(|user| {
            user.refresh(now, &self.settings);
            user.keys.get_mut(&key.id)
        });
        let (spend, sessions) = match state {
            Some(state) => (&mut state.spend, state.sessions),
            None => (&mut unused, 0),
        };
        self.usage(spend, &key.limits, sessions, now)
    }

    pub(super) fn user_usage(&self, user: &User, now: Timestamp) -> HolderUsage {
        let mut users = self.users.lock(user.id.0);
        let limit = u64::from(user.rpm);
        let Some(state) = users.get_mut(&user.id) else {
            let rpm = CountUsage { current: 0, limit };
            return HolderUsage { rpm, ..self.usage(&mut Spend::default(), &user.limits, 0, now) };
        };
        state.refresh(now, &self.settings);
        let rpm = CountUsage { current: state.rpm.count(), limit };
        let sessions = state.sessions.len() as u64;
        HolderUsage { rpm, ..self.usage(&mut state.spend, &user.limits, sessions, now) }
    }

    pub(super) fn provider_usage(&self, provider: &Provider, now: Timestamp) -> HolderUsage {
        let mut providers = self.providers.lock(provider.id.0);
        let Some(state) = providers.get_mut(&provider.id) else {
            return self.usage(&mut Spend::default(), &provider.limits, 0, now);
        };
        state.refresh(now, &self.settings);
        let sessions = state.sessions.len() as u64;
        self.usage(&mut state.spend, &provider.limits, sessions, now)
    }

    fn usage(
        &self,
        spend: &mut Spend,
        limits: &Limits,
        sessions: u64,
        now: Timestamp,
    ) -> HolderUsage {
        spend.refresh(now, self.settings.time_zone);
        let money = ByPeriod::of(|period| {
            let HeldAmounts { spent, reserved } =
                spend.held(period, limits.daily_reset, now, self.settings.time_zone);
            let reset_at = spend.resets_at(period, limits.daily_reset);
            MoneyUsage { current: spent, reserved, limit: period.limit_of(limits), reset_at }
        });
        HolderUsage {
            money,
            sessions: CountUsage {
                current: sessions,
                limit: u64::from(limits.concurrent_sessions),
            },
            rpm: CountUsage::default(),
        }
    }
}
