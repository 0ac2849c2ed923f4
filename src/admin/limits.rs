//! The limit fields of the bodies for keys, users and providers: flattened into them, each with its
//! bound and in the order in which the API's document has it.

use schemars::JsonSchema;
use serde::Deserialize;

use super::bodies::{Clock, OneOf, Patch, Sent, Usd, Whole};
use crate::domain::limits::{ByPeriod, Limits, ResetMode, TimeOfDay};
use crate::domain::money::NanoUsd;

/// The largest spending limits of a key, in USD.
pub const OF_KEY: ByPeriod<i64> = ByPeriod {
    five_hours: 10_000,
    daily: 10_000,
    weekly: 50_000,
    monthly: 200_000,
    total: 10_000_000,
};
/// The largest spending limits of a user, in USD.
pub const OF_USER: ByPeriod<i64> = ByPeriod { daily: 100_000, ..OF_KEY };
/// The largest spending limits of a provider, in USD.
pub const OF_PROVIDER: ByPeriod<i64> = ByPeriod {
    five_hours: 1_000_000,
    daily: 1_000_000,
    weekly: 5_000_000,
    monthly: 20_000_000,
    total: 1_000_000_000,
};

/// Of a key.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct KeyLimits {
    /// USD in any 5 hours; `null` = no limit, 0 = nothing.
    limit_5h_usd: Patch<Usd<{ OF_KEY.five_hours }>>,
    /// USD a day; `null` = no limit, 0 = nothing.
    limit_daily_usd: Patch<Usd<{ OF_KEY.daily }>>,
    /// `fixed`: at `dailyResetTime`; `rolling`: the past 24 hours.
    #[schemars(extend("default" = "fixed"))]
    daily_reset_mode: Sent<OneOf<ResetMode>>,
    /// `HH:MM` in the gateway's time zone.
    #[schemars(extend("default" = "00:00"))]
    daily_reset_time: Sent<Clock>,
    /// USD a calendar week; `null` = no limit, 0 = nothing.
    limit_weekly_usd: Patch<Usd<{ OF_KEY.weekly }>>,
    /// USD a calendar month; `null` = no limit, 0 = nothing.
    limit_monthly_usd: Patch<Usd<{ OF_KEY.monthly }>>,
    /// USD ever; `null` = no limit, 0 = nothing.
    limit_total_usd: Patch<Usd<{ OF_KEY.total }>>,
    /// Conversations at once; 0 or `null` = no limit.
    limit_concurrent_sessions: Patch<Whole<u32, 0, 1000>>,
}

/// Of several keys at once.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct BatchLimits {
    /// USD in any 5 hours; `null` = no limit, 0 = nothing.
    limit_5h_usd: Patch<Usd<{ OF_KEY.five_hours }>>,
    /// USD a day; `null` = no limit, 0 = nothing.
    limit_daily_usd: Patch<Usd<{ OF_KEY.daily }>>,
    /// USD a calendar week; `null` = no limit, 0 = nothing.
    limit_weekly_usd: Patch<Usd<{ OF_KEY.weekly }>>,
    /// USD a calendar month; `null` = no limit, 0 = nothing.
    limit_monthly_usd: Patch<Usd<{ OF_KEY.monthly }>>,
}

/// Of a user. The daily limit, which has two names, is in the body itself.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct UserLimits {
    /// USD in any 5 hours; `null` = no limit, 0 = nothing.
    limit_5h_usd: Patch<Usd<{ OF_USER.five_hours }>>,
    /// USD a calendar week; `null` = no limit, 0 = nothing.
    limit_weekly_usd: Patch<Usd<{ OF_USER.weekly }>>,
    /// USD a calendar month; `null` = no limit, 0 = nothing.
    limit_monthly_usd: Patch<Usd<{ OF_USER.monthly }>>,
    /// USD ever; `null` = no limit, 0 = nothing.
    limit_total_usd: Patch<Usd<{ OF_USER.total }>>,
    /// `fixed`: at `dailyResetTime`; `rolling`: the past 24 hours.
    #[schemars(extend("default" = "fixed"))]
    daily_reset_mode: Sent<OneOf<ResetMode>>,
    /// `HH:MM` in the gateway's time zone.
    #[schemars(extend("default" = "00:00"))]
    daily_reset_time: Sent<Clock>,
    /// Conversations at once; 0 or `null` = no limit.
    limit_concurrent_sessions: Patch<Whole<u32, 0, 1000>>,
}

/// Of a provider.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(default, rename_all = "snake_case")]
pub struct ProviderLimits {
    /// USD in any 5 hours; `null` = no limit, 0 = nothing.
    limit_5h_usd: Patch<Usd<{ OF_PROVIDER.five_hours }>>,
    /// USD a day; `null` = no limit, 0 = nothing.
    limit_daily_usd: Patch<Usd<{ OF_PROVIDER.daily }>>,
    /// USD a calendar week; `null` = no limit, 0 = nothing.
    limit_weekly_usd: Patch<Usd<{ OF_PROVIDER.weekly }>>,
    /// USD a calendar month; `null` = no limit, 0 = nothing.
    limit_monthly_usd: Patch<Usd<{ OF_PROVIDER.monthly }>>,
    /// USD ever; `null` = no limit, 0 = nothing.
    limit_total_usd: Patch<Usd<{ OF_PROVIDER.total }>>,
    /// `fixed`: at `daily_reset_time`; `rolling`: the past 24 hours.
    #[schemars(extend("default" = "fixed"))]
    daily_reset_mode: Sent<OneOf<ResetMode>>,
    /// `HH:MM` in the gateway's time zone.
    #[schemars(extend("default" = "00:00"))]
    daily_reset_time: Sent<Clock>,
    /// Conversations at once; 0 or `null` = no limit.
    limit_concurrent_sessions: Patch<Whole<u32, 0, 100_000>>,
}

/// The limits that a body sets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LimitPatch {
    /// Spending limits.
    money: ByPeriod<Patch<NanoUsd>>,
    /// Live sessions at once.
    sessions: Patch<u32>,
    /// Whether the daily window is fixed or rolling.
    reset_mode: Option<ResetMode>,
    /// When a fixed daily window starts.
    reset_time: Option<TimeOfDay>,
}

impl LimitPatch {
    /// Writes the sent fields into `limits`. The other fields keep their values.
    pub(super) fn apply(self, limits: &mut Limits) {
        *limits = limits.with_money(ByPeriod::of(|period| {
            let mut limit = period.limit_of(limits);
            self.money.get(period).apply_option(&mut limit);
            limit
        }));
        self.sessions.apply(&mut limits.concurrent_sessions);
        limits.daily_reset.mode = self.reset_mode.unwrap_or(limits.daily_reset.mode);
        limits.daily_reset.time = self.reset_time.unwrap_or(limits.daily_reset.time);
    }

    /// The limits that this body sets, and no others: an edit is checked only for the limits that
    /// it sets.
    pub(super) fn sent(self) -> Limits {
        let mut limits = Limits::default();
        self.apply(&mut limits);
        limits
    }
}

/// Makes a [`LimitPatch`] of these fields, and of those of the reset and of sessions.
macro_rules! patch {
    ($fields:ident: $($period:ident = $field:ident),+ $(; $($other:ident = $of:ident),+)?) => {
        impl $fields {
            /// What was sent.
            pub(super) fn patch(&self) -> LimitPatch {
                let mut patch = LimitPatch::default();
                $(patch.money.$period = self.$field.plain();)+
                $($(patch.$other = self.$of.plain();)+)?
                patch
            }
        }
    };
    ($fields:ident and reset: $($money:tt)+) => {
        patch!($fields: $($money)+; sessions = limit_concurrent_sessions,
            reset_mode = daily_reset_mode, reset_time = daily_reset_time);
    };
}
patch!(KeyLimits and reset: five_hours = limit_5h_usd, daily = limit_daily_usd,
    weekly = limit_weekly_usd, monthly = limit_monthly_usd, total = limit_total_usd);
patch!(BatchLimits: five_hours = limit_5h_usd, daily = limit_daily_usd, weekly = limit_weekly_usd,
    monthly = limit_monthly_usd);
patch!(UserLimits and reset: five_hours = limit_5h_usd, weekly = limit_weekly_usd,
    monthly = limit_monthly_usd, total = limit_total_usd);
patch!(ProviderLimits and reset: five_hours = limit_5h_usd, daily = limit_daily_usd,
    weekly = limit_weekly_usd, monthly = limit_monthly_usd, total = limit_total_usd);
