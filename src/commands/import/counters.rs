//! Opening balances of peers that keep a counter per holder (LiteLLM, new-api, one-api): the rows
//! that say when, and one row for the rest of the counter.

use rust_decimal::Decimal;

use super::model::{Spent, nanos};
use crate::domain::clock::Timestamp;
use crate::domain::money::NanoUsd;

/// What a peer's counter of a holder says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counter {
    /// What the peer has counted, in USD.
    pub amount: Decimal,
    /// Since when it counts towards the limit; `None` = ever.
    pub since: Option<Timestamp>,
}

/// What a holder spent, as a row of the peer says.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpentAt {
    /// When; `None`: unknown.
    pub at: Option<Timestamp>,
    /// USD.
    pub amount: Decimal,
}

/// The rows of a holder: those that count, and the rest of the counter. `given` is what other rows
/// already count for the holder since then. A rest has the time `since`, where every window that
/// the counter is for counts it.
pub(super) fn rows(counter: Counter, given: NanoUsd, found: &[SpentAt], of: Spent) -> Vec<Spent> {
    let counts = |at: &Option<Timestamp>| match (counter.since, at) {
        (None, at) => at.is_some(),
        (Some(since), Some(at)) => *at >= since,
        (Some(_), None) => false,
    };
    let mut rows: Vec<Spent> = found
        .iter()
        .filter(|row| counts(&row.at))
        .map(|row| Spent { at: row.at, cost: nanos(row.amount), ..of })
        .filter(|row| row.cost.0 != 0)
        .collect();
    let itemised: NanoUsd = rows.iter().map(|row| row.cost).sum();
    let rest = nanos(counter.amount) - itemised - given;
    if rest.0 > 0 {
        rows.push(Spent { at: counter.since, cost: rest, ..of });
    }
    rows
}

/// The sum of rows since a time; `None` = of all.
pub(super) fn since(rows: &[Spent], since: Option<Timestamp>) -> NanoUsd {
    let counts = |row: &&Spent| match since {
        None => true,
        Some(since) => row.at.is_some_and(|at| at >= since),
    };
    rows.iter().filter(counts).map(|row| row.cost).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: Spent =
        Spent { user: Some(0), key: Some(0), provider: None, at: None, cost: NanoUsd::ZERO };

    fn at(minute: i64) -> Option<Timestamp> {
        Some(Timestamp(minute * 60_000))
    }

    #[test]
    fn rows_and_rest_are_the_counter() {
        let spent = |at, amount: i64| SpentAt { at, amount: Decimal::from(amount) };
        let found = [spent(None, 5), spent(at(1), 2), spent(at(9), 1)];
        let counter = |amount: i64, since| Counter { amount: Decimal::from(amount), since };
        let reported = |counter, given| {
            let rows = rows(counter, NanoUsd::usd(given), &found, OF);
            rows.iter().map(|row| (row.at, row.cost.0 / NanoUsd::PER_USD)).collect::<Vec<_>>()
        };
        assert_eq!(
            reported(counter(10, None), 0),
            [(at(1), 2), (at(9), 1), (None, 7)],
            "the rest is older than any row"
        );
        assert_eq!(
            reported(counter(4, at(5)), 0),
            [(at(9), 1), (at(5), 3)],
            "the rest is within the period"
        );
        assert_eq!(
            reported(counter(4, at(5)), 3),
            [(at(9), 1)],
            "what is counted already is not counted again"
        );
        assert_eq!(
            reported(counter(1, None), 0),
            [(at(1), 2), (at(9), 1)],
            "more was logged than counted"
        );
        let all = rows(counter(10, None), NanoUsd::ZERO, &found, OF);
        assert_eq!((since(&all, None), since(&all, at(9))), (NanoUsd::usd(10), NanoUsd::usd(1)));
    }
}
