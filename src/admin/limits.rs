//! Limit fields, which keys, users and providers share: their declaration, and how they are applied
//! to a record.

use super::fields::Values;
use crate::domain::limits::{Limits, ResetMode, TimeOfDay};

/// The names of the limits in a body.
pub(super) struct Names {
    pub five_hours: &'static str,
    pub daily: &'static str,
    pub weekly: &'static str,
    pub monthly: &'static str,
    pub total: &'static str,
    pub sessions: &'static str,
    pub reset_mode: &'static str,
    pub reset_time: &'static str,
}

pub(super) const CAMEL: Names = Names {
    five_hours: "limit5hUsd",
    daily: "limitDailyUsd",
    weekly: "limitWeeklyUsd",
    monthly: "limitMonthlyUsd",
    total: "limitTotalUsd",
    sessions: "limitConcurrentSessions",
    reset_mode: "dailyResetMode",
    reset_time: "dailyResetTime",
};

pub(super) const SNAKE: Names = Names {
    five_hours: "limit_5h_usd",
    daily: "limit_daily_usd",
    weekly: "limit_weekly_usd",
    monthly: "limit_monthly_usd",
    total: "limit_total_usd",
    sessions: "limit_concurrent_sessions",
    reset_mode: "daily_reset_mode",
    reset_time: "daily_reset_time",
};

/// Applies the sent fields to `limits`; the others stay.
pub(super) fn apply(values: &Values, names: &Names, limits: &mut Limits) {
    values.usd(names.five_hours).apply_option(&mut limits.five_hours);
    values.usd(names.daily).apply_option(&mut limits.daily);
    values.usd(names.weekly).apply_option(&mut limits.weekly);
    values.usd(names.monthly).apply_option(&mut limits.monthly);
    values.usd(names.total).apply_option(&mut limits.total);
    values.count(names.sessions).apply(&mut limits.concurrent_sessions);
    values.word(names.reset_mode, ResetMode::parse).apply_set(&mut limits.daily_reset.mode);
    values.word(names.reset_time, TimeOfDay::parse).apply_set(&mut limits.daily_reset.time);
}

/// Only the limits that this body sets: an edit is checked for what it changes, not for what was
/// there before.
pub(super) fn sent(values: &Values, names: &Names) -> Limits {
    let mut limits = Limits::default();
    apply(values, names, &mut limits);
    limits
}
