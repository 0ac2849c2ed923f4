//! Hourly sums of the ledger: per hour, key, user, provider, model, endpoint and status. Written in
//! the ledger's own transaction.

use std::collections::BTreeMap;

use super::log_row;
use crate::domain::record::Record;
use crate::store::engine::column::{Collect, Values};

/// One hour in milliseconds. Hours are counted from the epoch, so in UTC.
pub(in crate::store) const HOUR_MS: i64 = 3_600_000;

/// Columns of `hourly_sums`: the grouping, then the sums.
pub(in crate::store) const COLUMNS: &[&str] = &[
    "hour",
    "key_id",
    "user_id",
    "provider_id",
    "model",
    "endpoint",
    "status_code",
    "requests",
    "errors",
    "unpriced",
    "input_tokens",
    "output_tokens",
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
    "cache_read_tokens",
    "reasoning_tokens",
    "cost",
    "duration_ms",
];

/// Adds the new row to the existing one.
pub(in crate::store) const ADD: &str = "ON CONFLICT (hour, key_id, user_id, provider_id, model, \
    endpoint, status_code) DO UPDATE \
    SET requests = hourly_sums.requests + excluded.requests, errors = hourly_sums.errors + \
    excluded.errors, unpriced = hourly_sums.unpriced + excluded.unpriced, input_tokens = \
    hourly_sums.input_tokens + excluded.input_tokens, output_tokens = hourly_sums.output_tokens + \
    excluded.output_tokens, cache_write_5m_tokens = hourly_sums.cache_write_5m_tokens + \
    excluded.cache_write_5m_tokens, cache_write_1h_tokens = hourly_sums.cache_write_1h_tokens + \
    excluded.cache_write_1h_tokens, cache_read_tokens = hourly_sums.cache_read_tokens + \
    excluded.cache_read_tokens, reasoning_tokens = hourly_sums.reasoning_tokens + \
    excluded.reasoning_tokens, cost = hourly_sums.cost + excluded.cost, duration_ms = \
    hourly_sums.duration_ms + excluded.duration_ms";

/// Number of sum columns.
pub(in crate::store) const SUMS: usize = 11;

/// The group of a sum, in the order of the primary key.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::store) struct Group<'r> {
    pub(in crate::store) hour: i64,
    /// 0 = none, like the other ids: null ids would never be equal in a primary key.
    pub(in crate::store) key: i64,
    pub(in crate::store) user: i64,
    pub(in crate::store) provider: i64,
    pub(in crate::store) model: &'r str,
    endpoint: &'r str,
    pub(in crate::store) status: u16,
}

/// One row to add.
pub(in crate::store) type Sum<'r> = (Group<'r>, [i64; SUMS]);

/// The sums of the records, in the order of the primary key, so that concurrent writers lock rows
/// in one order.
pub(in crate::store) fn of<'r>(records: &[&'r Record]) -> Vec<Sum<'r>> {
    let mut groups: BTreeMap<Group<'r>, [i64; SUMS]> = BTreeMap::new();
    for &record in records {
        let group = Group {
            hour: hour_of(record.counts_at().0),
            key: record.key_id.map_or(0, |id| id.0),
            user: record.user_id.map_or(0, |id| id.0),
            provider: record.provider_id.map_or(0, |id| id.0),
            model: log_row::model(record),
            endpoint: log_row::endpoint(record),
            status: record.status_code,
        };
        for (sum, value) in groups.entry(group).or_default().iter_mut().zip(values_of(record)) {
            *sum = sum.saturating_add(value);
        }
    }
    groups.into_iter().collect()
}

/// The start of the hour that contains a time.
pub(in crate::store) fn hour_of(time: i64) -> i64 {
    time.saturating_sub(time.rem_euclid(HOUR_MS))
}

/// The first whole hour of a range, and the end of its last; equal if it has none.
pub(in crate::store) fn whole_hours(from: i64, until: i64) -> (i64, i64) {
    let first = hour_of(from.saturating_add(HOUR_MS - 1)).min(until);
    (first, hour_of(until).max(first))
}

fn values_of(record: &Record) -> [i64; SUMS] {
    let [input, output, write_5m, write_1h, read, reasoning, ..] = log_row::tokens(&record.usage);
    let cost = log_row::cost(record);
    [
        1,
        i64::from(record.outcome.is_error()),
        i64::from(cost.is_none()),
        input,
        output,
        write_5m,
        write_1h,
        read,
        reasoning,
        cost.unwrap_or(0),
        log_row::duration(record),
    ]
}

pub(in crate::store) fn bind<A: Collect>(values: &mut Values<A>, (group, sums): &Sum<'_>) {
    values.int(group.hour).int(group.key).int(group.user).int(group.provider);
    values.text(group.model).text(group.endpoint).int(i64::from(group.status));
    for sum in sums {
        values.int(*sum);
    }
}

#[cfg(test)]
mod tests {
    use super::{HOUR_MS, hour_of};

    #[test]
    fn hours_start_on_the_hour_before_and_after_the_epoch() {
        let cases = [
            (0, 0),
            (1, 0),
            (HOUR_MS - 1, 0),
            (HOUR_MS, HOUR_MS),
            (-1, -HOUR_MS),
            (-HOUR_MS, -HOUR_MS),
        ];
        for (time, hour) in cases {
            assert_eq!(hour_of(time), hour, "{time}");
        }
    }
}
