//! The spending limit of which most is used up, as lists of users and keys show it.

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Exact, Iso};
use crate::domain::money::NanoUsd;
use crate::limits::{HolderUsage, MoneyUsage};

/// Spend against a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TightestLimit {
    /// `5h`, `daily`, `weekly`, `monthly` or `total`.
    pub window: &'static str,
    /// USD spent; running requests are not in it.
    pub current: Exact,
    /// USD.
    pub limit: Exact,
    /// `current` in percent of `limit`, with one digit after the point; 100 for a limit of 0.
    pub percent: Exact,
    /// As in `getKeyLimitUsage`.
    pub reset_at: Option<Iso>,
}

impl TightestLimit {
    /// `None` without any spending limit.
    pub fn of(usage: &HolderUsage) -> Option<Self> {
        let limited = usage
            .money
            .each()
            .into_iter()
            .filter_map(|(window, money)| Some((percent(money)?, window, money)));
        // Of equal shares the shorter window: it refuses first.
        let (percent, window, money) = limited.rev().max_by_key(|(percent, ..)| *percent)?;
        Some(Self {
            window: window.as_str(),
            current: Exact::usd(money.current),
            limit: Exact::usd(money.limit?),
            percent: Exact(percent),
            reset_at: money.reset_at.map(Iso),
        })
    }
}

fn percent(money: MoneyUsage) -> Option<Decimal> {
    let limit = money.limit?;
    if limit <= NanoUsd::ZERO {
        return Some(Decimal::ONE_HUNDRED);
    }
    let share = money.current.to_decimal().checked_div(limit.to_decimal())?;
    Some((share * Decimal::ONE_HUNDRED).round_dp(1).normalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::limits::ByPeriod;
    use crate::limits::CountUsage;

    fn usage(windows: [(i64, Option<i64>); 5]) -> HolderUsage {
        let money = |(current, limit): (i64, Option<i64>)| MoneyUsage {
            current: NanoUsd(current),
            reserved: NanoUsd::ZERO,
            limit: limit.map(NanoUsd),
            reset_at: None,
        };
        let named = ["5h", "daily", "weekly", "monthly", "total"];
        let money = ByPeriod::of(|period| {
            let place = named.iter().position(|name| *name == period.as_str());
            money(place.map_or((0, None), |place| windows[place]))
        });
        let (sessions, rpm) = (CountUsage::default(), CountUsage::default());
        HolderUsage { money, sessions, rpm }
    }

    #[test]
    fn the_largest_share_is_the_tightest_and_of_equal_ones_the_shorter_window() {
        let none = (7, None);
        let found = |windows| {
            TightestLimit::of(&usage(windows)).map(|tightest| (tightest.window, tightest.percent.0))
        };
        assert_eq!(found([none; 5]), None);
        assert_eq!(
            found([none, (1, Some(8)), none, (1, Some(3)), none]),
            Some(("monthly", Decimal::new(333, 1)))
        );
        assert_eq!(
            found([none, (4, Some(8)), (3, Some(6)), none, none]),
            Some(("daily", Decimal::new(50, 0)))
        );
        assert_eq!(
            found([none, (0, Some(0)), (9, Some(10)), none, none]),
            Some(("daily", Decimal::ONE_HUNDRED))
        );
    }
}
