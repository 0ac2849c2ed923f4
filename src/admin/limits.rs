//! Limit fields, which keys, users and providers share, and how they are applied to a record.

use super::bodies::Patch;
use crate::domain::limits::{Limits, ResetMode, TimeOfDay};
use crate::domain::money::NanoUsd;

/// The limits that a body sets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LimitPatch {
    /// USD in any five hours.
    pub five_hours: Patch<NanoUsd>,
    /// USD a day.
    pub daily: Patch<NanoUsd>,
    /// USD a calendar week.
    pub weekly: Patch<NanoUsd>,
    /// USD a calendar month.
    pub monthly: Patch<NanoUsd>,
    /// USD ever.
    pub total: Patch<NanoUsd>,
    /// Conversations at once.
    pub sessions: Patch<u32>,
    /// How the day of the daily limit ends.
    pub reset_mode: Option<ResetMode>,
    /// When the day of the daily limit ends.
    pub reset_time: Option<TimeOfDay>,
}

impl LimitPatch {
    /// Applies the sent fields to `limits`; the others stay.
    pub(super) fn apply(self, limits: &mut Limits) {
        self.five_hours.apply_option(&mut limits.five_hours);
        self.daily.apply_option(&mut limits.daily);
        self.weekly.apply_option(&mut limits.weekly);
        self.monthly.apply_option(&mut limits.monthly);
        self.total.apply_option(&mut limits.total);
        self.sessions.apply(&mut limits.concurrent_sessions);
        limits.daily_reset.mode = self.reset_mode.unwrap_or(limits.daily_reset.mode);
        limits.daily_reset.time = self.reset_time.unwrap_or(limits.daily_reset.time);
    }

    /// Only the limits that this body sets: an edit is checked for what it changes, not for what
    /// was there before.
    pub(super) fn sent(self) -> Limits {
        let mut limits = Limits::default();
        self.apply(&mut limits);
        limits
    }
}

/// The [`LimitPatch`] of a body that has every limit.
macro_rules! limit_patch {
    ($body:expr) => {
        $crate::admin::limits::LimitPatch {
            five_hours: $body.limit_5h_usd.plain(),
            daily: $body.limit_daily_usd.plain(),
            weekly: $body.limit_weekly_usd.plain(),
            monthly: $body.limit_monthly_usd.plain(),
            total: $body.limit_total_usd.plain(),
            sessions: $body.limit_concurrent_sessions.plain(),
            reset_mode: $body.daily_reset_mode.plain(),
            reset_time: $body.daily_reset_time.plain(),
        }
    };
}
pub(super) use limit_patch;
