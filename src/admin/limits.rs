//! The limit fields that the bodies for keys, users and providers share.

use super::bodies::Patch;
use crate::domain::limits::{Limits, ResetMode, TimeOfDay};
use crate::domain::money::NanoUsd;

/// The limits that a body sets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LimitPatch {
    /// USD in the past five hours.
    pub five_hours: Patch<NanoUsd>,
    /// USD per day.
    pub daily: Patch<NanoUsd>,
    /// USD per calendar week.
    pub weekly: Patch<NanoUsd>,
    /// USD per calendar month.
    pub monthly: Patch<NanoUsd>,
    /// USD since the first record.
    pub total: Patch<NanoUsd>,
    /// Live sessions at once.
    pub sessions: Patch<u32>,
    /// Whether the daily window is fixed or rolling.
    pub reset_mode: Option<ResetMode>,
    /// When a fixed daily window starts.
    pub reset_time: Option<TimeOfDay>,
}

impl LimitPatch {
    /// Writes the sent fields into `limits`. The other fields keep their values.
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

    /// The limits that this body sets, and no others: an edit is checked only for the limits that
    /// it sets.
    pub(super) fn sent(self) -> Limits {
        let mut limits = Limits::default();
        self.apply(&mut limits);
        limits
    }
}

/// Makes a [`LimitPatch`] from a body that has all limit fields.
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
