//! What a holder has used of its limits, as shown.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Exact, Iso};
use crate::limits::{CountUsage, HolderUsage, MoneyUsage};

/// Spend within one window.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CostUsage {
    /// USD spent; running requests are not in it.
    pub current: Exact,
    /// USD that running requests are expected to cost: counted against the limit beside `current`,
    /// until they end.
    pub reserved: Exact,
    /// USD; `null` = no limit.
    pub limit: Option<Exact>,
    /// When the window ends; for a rolling one, when all that is in it will have aged out; `null` =
    /// never, or nothing is in it.
    pub reset_at: Option<Iso>,
}

/// Conversations at once.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionUsage {
    pub current: u64,
    /// 0 = no limit.
    pub limit: u64,
}

/// Requests per minute.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateUsage {
    pub current: u64,
    /// 0 = no limit.
    pub limit: u64,
    /// Always `per_minute`.
    pub window: &'static str,
}

/// What a key or a provider has used of its limits.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitUsage {
    #[serde(rename = "cost5h")]
    pub cost_5h: CostUsage,
    pub cost_daily: CostUsage,
    pub cost_weekly: CostUsage,
    pub cost_monthly: CostUsage,
    pub cost_total: CostUsage,
    pub concurrent_sessions: SessionUsage,
}

/// What a user has used of their limits.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserLimitUsage {
    pub rpm: RateUsage,
    /// The same as `costDaily`.
    pub daily_cost: CostUsage,
    #[serde(flatten)]
    pub limits: LimitUsage,
}

impl From<MoneyUsage> for CostUsage {
    fn from(usage: MoneyUsage) -> Self {
        let MoneyUsage { current, reserved, limit, reset_at } = usage;
        Self {
            current: Exact::usd(current),
            reserved: Exact::usd(reserved),
            limit: limit.map(Exact::usd),
            reset_at: reset_at.map(Iso),
        }
    }
}

impl From<&HolderUsage> for LimitUsage {
    fn from(usage: &HolderUsage) -> Self {
        let CountUsage { current, limit } = usage.sessions;
        Self {
            cost_5h: usage.five_hours.into(),
            cost_daily: usage.daily.into(),
            cost_weekly: usage.weekly.into(),
            cost_monthly: usage.monthly.into(),
            cost_total: usage.total.into(),
            concurrent_sessions: SessionUsage { current, limit },
        }
    }
}

impl From<&HolderUsage> for UserLimitUsage {
    fn from(usage: &HolderUsage) -> Self {
        let CountUsage { current, limit } = usage.rpm;
        Self {
            rpm: RateUsage { current, limit, window: "per_minute" },
            daily_cost: usage.daily.into(),
            limits: usage.into(),
        }
    }
}
