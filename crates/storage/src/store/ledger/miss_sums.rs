//! Hourly sums of cache misses: per hour, user, key, client and cause. Written in the ledger's own
//! transaction.

use std::collections::BTreeMap;

use super::log_row;
use super::sums::hour_of;
use crate::domain::record::Record;
use crate::policy::client_version;
use crate::store::engine::column::{Collect, Values};

/// Columns of `hourly_cache_misses`: the grouping, then the sums.
pub(super) const COLUMNS: &[&str] =
    &["hour", "user_id", "key_id", "client", "cause", "requests", "tokens", "cost"];

/// Adds the new row to the existing one.
pub(super) const ADD: &str = "ON CONFLICT (hour, user_id, key_id, client, cause) DO UPDATE SET \
    requests = hourly_cache_misses.requests + excluded.requests, \
    tokens = hourly_cache_misses.tokens + excluded.tokens, \
    cost = hourly_cache_misses.cost + excluded.cost";

/// The group of a sum, in the order of the primary key, and requests, tokens and cost.
pub(super) type MissSum = ((i64, i64, i64, &'static str, &'static str), [i64; 3]);

/// The sums of the records, in the order of the primary key.
pub(super) fn of(records: &[&Record]) -> Vec<MissSum> {
    let mut groups: BTreeMap<_, [i64; 3]> = BTreeMap::new();
    for record in records {
        let Some(miss) = record.cache_miss.map(log_row::stored_miss) else { continue };
        let known = record.user_agent.as_deref().and_then(client_version::read);
        let group = (
            hour_of(record.counts_at().0),
            record.user_id.map_or(0, |id| id.0),
            record.key_id.map_or(0, |id| id.0),
            known.map_or("", |(client, _)| client.as_str()),
            miss.cause.as_str(),
        );
        let tokens = i64::try_from(miss.tokens).unwrap_or(i64::MAX);
        for (sum, value) in
            groups.entry(group).or_default().iter_mut().zip([1, tokens, miss.cost.0])
        {
            *sum = sum.saturating_add(value);
        }
    }
    groups.into_iter().collect()
}

pub(super) fn bind<A: Collect>(
    values: &mut Values<A>,
    ((hour, user, key, client, cause), sums): &MissSum,
) {
    values.int(*hour).int(*user).int(*key).text(client).text(cause);
    for sum in sums {
        values.int(*sum);
    }
}
