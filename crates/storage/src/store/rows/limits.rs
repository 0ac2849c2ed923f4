//! The eight limit columns that users, keys and providers share.

use crate::domain::limits::{DailyReset, Limits, ResetMode, TimeOfDay};
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;

/// The columns of a table, between whose own are those of the limits.
macro_rules! columns {
    ([$($before:literal),*], [$($after:literal),*]) => {
        &[
            $($before,)*
            "limit_five_hours",
            "limit_daily",
            "limit_weekly",
            "limit_monthly",
            "limit_total",
            "limit_concurrent_sessions",
            "daily_reset_mode",
            "daily_reset_time",
            $($after),*
        ]
    };
}
pub(super) use columns;

/// Binds [`Limits`] in the order of the columns.
pub(super) fn bind(values: &mut Values, limits: &Limits) {
    for (_, limit) in limits.money().each() {
        values.opt_money(limit);
    }
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
