//! The eight limit columns that users, keys and providers share.

use crate::domain::limits::{DailyReset, Limits, ResetMode, TimeOfDay};
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;

/// Binds [`Limits`] in the order of the columns: five hours, daily, weekly, monthly, total,
/// sessions, reset mode, reset time.
pub(super) fn bind(values: &mut Values, limits: &Limits) {
    values.opt_money(limits.five_hours).opt_money(limits.daily).opt_money(limits.weekly);
    values.opt_money(limits.monthly).opt_money(limits.total);
    values.int(i64::from(limits.concurrent_sessions));
    values.text(limits.daily_reset.mode.as_str()).text(&limits.daily_reset.time.to_string());
}

pub(super) fn read(fields: Fields<'_>) -> Result<Limits, StoreError> {
    Ok(Limits {
        five_hours: fields.opt_money("limit_five_hours")?,
        daily: fields.opt_money("limit_daily")?,
        weekly: fields.opt_money("limit_weekly")?,
        monthly: fields.opt_money("limit_monthly")?,
        total: fields.opt_money("limit_total")?,
        concurrent_sessions: fields.number("limit_concurrent_sessions")?,
        daily_reset: DailyReset {
            mode: fields.named("daily_reset_mode", ResetMode::parse)?,
            time: fields.named("daily_reset_time", TimeOfDay::parse)?,
        },
    })
}
