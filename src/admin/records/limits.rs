//! Limits as shown, in the records of users, keys and providers.

use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::Exact;
use crate::domain::limits::Limits;

/// The limits of one holder.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitsRecord {
    /// USD in any 5 hours; `null` = no limit.
    pub limit_5h_usd: Option<Exact>,
    /// USD a day, see `dailyResetMode`; `null` = no limit.
    pub limit_daily_usd: Option<Exact>,
    /// `fixed` or `rolling`.
    pub daily_reset_mode: &'static str,
    /// `HH:MM` in the gateway's time zone.
    pub daily_reset_time: String,
    /// USD a calendar week in the gateway's time zone; `null` = no limit.
    pub limit_weekly_usd: Option<Exact>,
    /// USD a calendar month in the gateway's time zone; `null` = no limit.
    pub limit_monthly_usd: Option<Exact>,
    /// USD over the holder's lifetime; `null` = no limit.
    pub limit_total_usd: Option<Exact>,
    /// 0 = no limit.
    pub limit_concurrent_sessions: u32,
}

impl From<&Limits> for LimitsRecord {
    fn from(limits: &Limits) -> Self {
        Self {
            limit_5h_usd: limits.five_hours.map(Exact::usd),
            limit_daily_usd: limits.daily.map(Exact::usd),
            daily_reset_mode: limits.daily_reset.mode.as_str(),
            daily_reset_time: limits.daily_reset.time.to_string(),
            limit_weekly_usd: limits.weekly.map(Exact::usd),
            limit_monthly_usd: limits.monthly.map(Exact::usd),
            limit_total_usd: limits.total.map(Exact::usd),
            limit_concurrent_sessions: limits.concurrent_sessions,
        }
    }
}

/// Describes a property in the words of the record that has it.
pub fn described(property: &'static str, text: &'static str) -> impl FnMut(&mut Schema) {
    move |schema| schema.ensure_object()["properties"][property]["description"] = text.into()
}
