//! LiteLLM's budgets: an amount per period of any length. Here it is one of the five limits, in the
//! window of this length or the next longer one, so that never more is allowed than before.

use std::collections::HashMap;

use chrono_tz::Tz;
use rust_decimal::Decimal;

use super::counters::Counter;
use super::model::{MappedLimits, Notes};
use crate::domain::clock::Timestamp;
use crate::domain::limits::{ByPeriod, DailyReset, Period};
use crate::policy::window::Window;
use crate::store::peer::PeerRow;

/// Where and when windows are counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowPlace {
    pub zone: Tz,
    pub now: Timestamp,
}

/// A budget of a key, a user or a team.
#[derive(Debug, Clone, Default)]
pub(super) struct Budget {
    amount: Option<Decimal>,
    duration: Option<String>,
    reset_at: Option<Timestamp>,
}

/// The budgets that keys refer to, by id.
pub(super) fn budgets(rows: &[PeerRow]) -> HashMap<String, Budget> {
    rows.iter()
        .filter_map(|row| Some((row.text("budget_id")?.to_owned(), Budget::of(row))))
        .collect()
}

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

/// The seconds of `30d`, `1mo`, `12h`, `90m`, `30s`; `None` if it is written otherwise.
fn seconds(duration: &str) -> Option<i64> {
    let duration = duration.trim();
    let digits = duration.bytes().take_while(u8::is_ascii_digit).count();
    let count: i64 = duration.get(..digits)?.parse().ok()?;
    let unit = match duration.get(digits..)? {
        "s" => 1,
        "m" => 60,
        "h" => HOUR,
        "d" => DAY,
        "w" => 7 * DAY,
        "mo" => 30 * DAY,
        "y" => 365 * DAY,
        _ => return None,
    };
    count.checked_mul(unit)
}

/// The period of the limit for a length, and whether its window is as long.
fn limit_of(seconds: Option<i64>) -> (Period, bool) {
    match seconds {
        Some(length) if length <= 5 * HOUR => (Period::FiveHours, length == 5 * HOUR),
        Some(length) if length <= DAY => (Period::Daily, length == DAY),
        Some(length) if length <= 7 * DAY => (Period::Weekly, length == 7 * DAY),
        Some(length) if length <= 31 * DAY => (Period::Monthly, length >= 30 * DAY),
        _ => (Period::Total, false),
    }
}

/// One limit alone.
fn limited(period: Period, amount: Decimal) -> MappedLimits {
    let money = ByPeriod::of(|other| (other == period).then_some(amount));
    MappedLimits { money, sessions: 0 }
}

impl Budget {
    /// The budget that a row has itself.
    pub(super) fn of(row: &PeerRow) -> Self {
        Self {
            amount: row.decimal("max_budget"),
            duration: row.text("budget_duration").map(str::to_owned),
            reset_at: row.time("budget_reset_at"),
        }
    }

    /// The budget of a key: its own, else the one that it refers to.
    pub(super) fn of_key(row: &PeerRow, budgets: &HashMap<String, Self>) -> Self {
        let own = Self::of(row);
        let other = row.text("budget_id").and_then(|id| budgets.get(id));
        match other.filter(|_| own.amount.is_none()) {
            Some(other) => Self { reset_at: own.reset_at.or(other.reset_at), ..other.clone() },
            None => own,
        }
    }

    /// The limit, and the counter of the row's holder.
    pub(super) fn map_to(
        &self,
        row: &PeerRow,
        place: WindowPlace,
        label: &str,
        notes: &mut Notes,
    ) -> (MappedLimits, Counter) {
        let spend = row.decimal("spend").unwrap_or_default();
        let forever = Counter { amount: spend, since: None };
        let Some(amount) = self.amount else { return (MappedLimits::default(), forever) };
        let Some(duration) = &self.duration else {
            return (limited(Period::Total, amount), forever);
        };
        let length = seconds(duration);
        let (period, exact) = limit_of(length);
        if !exact {
            let why = "tollgate has no limit for this period: the amount is the limit of the next \
                       longer one";
            let reported = match period {
                Period::FiveHours => "5 hours",
                Period::Daily => "day",
                Period::Weekly => "week",
                Period::Monthly => "month",
                Period::Total => "lifetime",
            };
            notes.add(why, format!("{label}: {amount} USD per {duration}, here per {reported}"));
        }
        let window = Window::of(period, DailyReset::default());
        (limited(period, amount), self.counter(spend, length, window, place))
    }

    /// A period that is over counts nothing, as the peer is about to reset it.
    fn counter(
        &self,
        spend: Decimal,
        length: Option<i64>,
        window: Option<Window>,
        place: WindowPlace,
    ) -> Counter {
        let Some(window) = window else { return Counter { amount: spend, since: None } };
        let over = self.reset_at.filter(|at| *at <= place.now);
        let begun = over.or_else(|| Some(self.reset_at?.plus_ms(-length?.saturating_mul(1_000))));
        let start = window.start(place.now, place.zone);
        // In a rolling window for as long as possible, and the same in another run.
        let rolls = window.rolling_ms().is_some();
        let start =
            if rolls { place.now.plus_ms(-place.now.0.rem_euclid(HOUR * 1_000)) } else { start };
        let begun = begun.filter(|begun| *begun <= place.now);
        let begun = begun.filter(|begun| !rolls || *begun >= window.start(place.now, place.zone));
        let since = begun
            .map_or(start, |begun| if rolls { begun } else { begun.max(start) })
            .min(place.now);
        Counter { amount: if over.is_some() { Decimal::ZERO } else { spend }, since: Some(since) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::from(text.parse::<chrono::DateTime<chrono::Utc>>().unwrap())
    }

    #[test]
    fn a_period_becomes_a_window_that_is_not_shorter() {
        for (duration, limit, exact) in [
            ("5h", Period::FiveHours, true),
            ("1h", Period::FiveHours, false),
            ("24h", Period::Daily, true),
            ("1d", Period::Daily, true),
            ("7d", Period::Weekly, true),
            ("1w", Period::Weekly, true),
            ("14d", Period::Monthly, false),
            ("30d", Period::Monthly, true),
            ("1mo", Period::Monthly, true),
            ("60d", Period::Total, false),
            ("soon", Period::Total, false),
        ] {
            assert_eq!(limit_of(seconds(duration)), (limit, exact), "{duration}");
        }
    }

    #[test]
    fn a_counter_counts_in_the_present_window_and_not_after_its_reset() {
        let place = WindowPlace { zone: Tz::UTC, now: at("2026-11-21T12:00:00Z") };
        let counter = |duration: &str, reset: &str| {
            let row = [("max_budget", "10"), ("spend", "4"), ("budget_duration", duration)];
            let row: PeerRow =
                row.map(|(name, text)| (name, text.to_owned())).into_iter().collect();
            let budget = Budget { reset_at: Some(at(reset)), ..Budget::of(&row) };
            budget.map_to(&row, place, "key", &mut Notes::default()).1
        };
        let reported = |amount: i64, since: &str| Counter {
            amount: Decimal::from(amount),
            since: Some(at(since)),
        };
        assert_eq!(counter("30d", "2026-12-01T00:00:00Z"), reported(4, "2026-11-01T00:00:00Z"));
        assert_eq!(counter("30d", "2026-12-10T00:00:00Z"), reported(4, "2026-11-10T00:00:00Z"));
        assert_eq!(counter("7d", "2026-11-25T00:00:00Z"), reported(4, "2026-11-18T00:00:00Z"));
        assert_eq!(
            counter("1d", "2026-11-21T11:00:00Z"),
            reported(0, "2026-11-21T11:00:00Z"),
            "its reset is due"
        );
        assert_eq!(
            counter("60d", "2026-12-10T00:00:00Z"),
            Counter { amount: Decimal::from(4), since: None }
        );
    }
}
