//! What a holder has used of its limits, as shown.

use schemars::JsonSchema;
use serde::Serialize;

use super::tightest::TightestLimit;
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
    /// Conversations that count now: with a request running, or one that ended a short while ago.
    pub current: u64,
    /// 0 = no limit.
    pub limit: u64,
}

/// Requests per minute.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateUsage {
    /// Requests of the past 60 seconds.
    pub current: u64,
    /// 0 = no limit.
    pub limit: u64,
    /// Always `per_minute`.
    pub window: &'static str,
}

/// What a user has used of their limits.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserLimitUsage {
    /// Requests per minute, against their limit.
    pub rpm: RateUsage,
    /// The same as `costDaily`.
    pub daily_cost: CostUsage,
    /// The spending limit of which most is used up; `null` = no spending limit.
    pub tightest_limit: Option<TightestLimit>,
    /// Of all the user's keys together.
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

macro_rules! usage {
    ([]
    money { $($period:ident $field:ident $api:ident $cost:ident $covers:tt $most:tt $names:tt;)+ }
    $counts:ident $count_rows:tt) => {
        /// What a key or a provider has used of its limits.
        #[derive(Debug, Serialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct LimitUsage {
            $(#[doc = concat!("What is spent ", $covers, ".")] pub $cost: CostUsage,)+
            /// Conversations at once, against their limit.
            pub concurrent_sessions: SessionUsage,
        }

        impl From<&HolderUsage> for LimitUsage {
            fn from(usage: &HolderUsage) -> Self {
                let CountUsage { current, limit } = usage.sessions;
                Self {
                    $($cost: usage.money.$field.into(),)+
                    concurrent_sessions: SessionUsage { current, limit },
                }
            }
        }
    };
}
tollgate_formats::limit_rows! { usage! }

impl From<&HolderUsage> for UserLimitUsage {
    fn from(usage: &HolderUsage) -> Self {
        let CountUsage { current, limit } = usage.rpm;
        Self {
            rpm: RateUsage { current, limit, window: "per_minute" },
            daily_cost: usage.money.daily.into(),
            tightest_limit: TightestLimit::of(usage),
            limits: usage.into(),
        }
    }
}
