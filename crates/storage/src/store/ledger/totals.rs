//! The coarser sums: all time by user, key, provider, model and status; and by hour and user.
//! Written in the ledger's own transaction, from the hourly sums of the same records.
//!
//! They serve queries that would otherwise read a year of hourly sums, or a month of all users':
//! lifetime figures, the usage log's totals, the lists of models and statuses, charts by user.

use std::collections::BTreeMap;

use sqlx::AssertSqlSafe;

use super::sums::{SUMS, Sum};
use crate::domain::ids::{KeyId, UserId};
use crate::domain::money::NanoUsd;
use crate::store::Store;
use crate::store::engine::column::{Collect, Fields, Values};
use crate::store::engine::error::StoreError;

/// Columns of `usage_totals`: the grouping, then the sums.
pub(in crate::store) const COLUMNS: &[&str] = &[
    "user_id",
    "key_id",
    "provider_id",
    "model",
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
pub(in crate::store) const ADD: &str = "ON CONFLICT (user_id, key_id, provider_id, model, \
    status_code) DO UPDATE \
    SET requests = usage_totals.requests + excluded.requests, errors = usage_totals.errors + \
    excluded.errors, unpriced = usage_totals.unpriced + excluded.unpriced, input_tokens = \
    usage_totals.input_tokens + excluded.input_tokens, output_tokens = usage_totals.output_tokens \
    + excluded.output_tokens, cache_write_5m_tokens = usage_totals.cache_write_5m_tokens + \
    excluded.cache_write_5m_tokens, cache_write_1h_tokens = usage_totals.cache_write_1h_tokens + \
    excluded.cache_write_1h_tokens, cache_read_tokens = usage_totals.cache_read_tokens + \
    excluded.cache_read_tokens, reasoning_tokens = usage_totals.reasoning_tokens + \
    excluded.reasoning_tokens, cost = usage_totals.cost + excluded.cost, duration_ms = \
    usage_totals.duration_ms + excluded.duration_ms";

/// Columns of `hourly_users`, in the same way.
pub(in crate::store) const USER_COLUMNS: &[&str] =
    &["hour", "user_id", "requests", "errors", "cost", "duration_ms"];

pub(in crate::store) const ADD_USER: &str = "ON CONFLICT (hour, user_id) DO UPDATE SET \
    requests = hourly_users.requests + excluded.requests, \
    errors = hourly_users.errors + excluded.errors, \
    cost = hourly_users.cost + excluded.cost, \
    duration_ms = hourly_users.duration_ms + excluded.duration_ms";

/// The group of a lifetime sum, in the order of the primary key: user, key, provider, model,
/// status.
type Group<'r> = (i64, i64, i64, &'r str, u16);
/// The lifetime sums of some requests, in the order of the primary key, in which concurrent writers
/// must lock them.
pub(in crate::store) type Total<'r> = (Group<'r>, [i64; SUMS]);
/// Hour and user, with requests, errors, cost and duration.
pub(in crate::store) type UserHour = ((i64, i64), [i64; 4]);

fn add<const N: usize>(to: &mut [i64; N], more: [i64; N]) {
    for (sum, value) in to.iter_mut().zip(more) {
        *sum = sum.saturating_add(value);
    }
}

/// Groups hourly sums by lifetime.
pub(in crate::store) fn of<'r>(sums: &[Sum<'r>]) -> Vec<Total<'r>> {
    let mut totals: BTreeMap<Group<'r>, [i64; SUMS]> = BTreeMap::new();
    for (group, sums) in sums {
        let key = (group.user, group.key, group.provider, group.model, group.status);
        add(totals.entry(key).or_default(), *sums);
    }
    totals.into_iter().collect()
}

/// Groups hourly sums by hour and user.
pub(in crate::store) fn of_users(sums: &[Sum<'_>]) -> Vec<UserHour> {
    let mut hours: BTreeMap<(i64, i64), [i64; 4]> = BTreeMap::new();
    for (group, sums) in sums {
        let [requests, errors, .., cost, duration] = *sums;
        add(hours.entry((group.hour, group.user)).or_default(), [requests, errors, cost, duration]);
    }
    hours.into_iter().collect()
}

pub(in crate::store) fn bind<A: Collect>(
    values: &mut Values<A>,
    ((user, key, provider, model, status), sums): &Total<'_>,
) {
    values.int(*user).int(*key).int(*provider).text(model).int(i64::from(*status));
    for sum in sums {
        values.int(*sum);
    }
}

pub(in crate::store) fn bind_user<A: Collect>(
    values: &mut Values<A>,
    ((hour, user), sums): &UserHour,
) {
    values.int(*hour).int(*user);
    for sum in sums {
        values.int(*sum);
    }
}

/// All use of one model by one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageTotal {
    /// The model that the client asked for.
    pub model: String,
    /// Requests of every outcome.
    pub requests: u64,
    /// Failed or refused.
    pub errors: u64,
    /// Input that was neither read from nor written to a cache.
    pub input_tokens: u64,
    /// All output, including reasoning.
    pub output_tokens: u64,
    /// Input written to prompt caches of any lifetime.
    pub cache_write_tokens: u64,
    /// Input read from a prompt cache.
    pub cache_read_tokens: u64,
    /// Nano-USD; unpriced requests count as zero.
    pub cost: NanoUsd,
}

/// Maximum names in a list; longer lists are of no use.
const MOST: i64 = 1_000;

impl Store {
    /// All models that were ever requested, sorted; of one user, if given. At most 1000. Requests
    /// that named none have an empty name, which is left out.
    pub async fn models_asked_for(&self, scope: Option<UserId>) -> Result<Vec<String>, StoreError> {
        let rows = self.distinct("model", scope).await?;
        let names = rows.iter().map(|row| Fields { row, table: "usage_totals" }.text("model"));
        names.filter(|name| name.as_ref().map_or(true, |name| !name.is_empty())).collect()
    }

    /// All statuses that requests ever ended with, sorted; of one user, if given.
    pub async fn statuses_answered(&self, scope: Option<UserId>) -> Result<Vec<u16>, StoreError> {
        let rows = self.distinct("status_code", scope).await?;
        rows.iter().map(|row| Fields { row, table: "usage_totals" }.number("status_code")).collect()
    }

    /// The models of requests that have no cost, and the number of these requests; the most
    /// requests first. At most 1000.
    pub async fn unpriced_requests(&self) -> Result<Vec<(String, u64)>, StoreError> {
        let mut values = Values::default();
        values.int(MOST);
        let sql = "SELECT model, CAST(SUM(unpriced) AS BIGINT) AS requests FROM usage_totals \
                   WHERE unpriced > 0 AND model <> '' GROUP BY model \
                   ORDER BY requests DESC, model LIMIT $1";
        let query = sqlx::query_with(sql, values.into_arguments());
        let rows = query.fetch_all(&mut *self.report().await?).await?;
        let read = |row| {
            let fields = Fields { row, table: "usage_totals" };
            Ok((fields.text("model")?, fields.number("requests")?))
        };
        rows.iter().map(read).collect()
    }

    async fn distinct(
        &self,
        column: &str,
        scope: Option<UserId>,
    ) -> Result<Vec<sqlx::any::AnyRow>, StoreError> {
        let mut values = Values::default();
        values.int(MOST);
        let condition = match scope {
            None => "",
            Some(user) => {
                values.int(user.0);
                " WHERE user_id = $2"
            }
        };
        let sql = format!(
            "SELECT {column} FROM usage_totals{condition} GROUP BY {column} ORDER BY {column} \
             LIMIT $1"
        );
        let query = sqlx::query_with(AssertSqlSafe(sql), values.into_arguments());
        Ok(query.fetch_all(&mut *self.report().await?).await?)
    }

    /// All use by one key of one user, by model, most expensive first.
    pub async fn key_totals(
        &self,
        user: UserId,
        key: KeyId,
    ) -> Result<Vec<UsageTotal>, StoreError> {
        let mut values = Values::default();
        values.int(user.0).int(key.0);
        let sql = "SELECT model, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(errors) AS \
                   BIGINT) AS errors, CAST(SUM(input_tokens) AS BIGINT) AS input_tokens, \
                   CAST(SUM(output_tokens) AS BIGINT) AS output_tokens, \
                   CAST(SUM(cache_write_5m_tokens + cache_write_1h_tokens) AS BIGINT) AS \
                   cache_write_tokens, CAST(SUM(cache_read_tokens) AS BIGINT) AS \
                   cache_read_tokens, CAST(SUM(cost) AS BIGINT) AS cost FROM usage_totals \
                   WHERE user_id = $1 AND key_id = $2 GROUP BY model \
                   ORDER BY SUM(cost) DESC, model";
        let query = sqlx::query_with(sql, values.into_arguments());
        let rows = query.fetch_all(&mut *self.report().await?).await?;
        let read = |row| {
            let fields = Fields { row, table: "usage_totals" };
            Ok(UsageTotal {
                model: fields.text("model")?,
                requests: fields.number("requests")?,
                errors: fields.number("errors")?,
                input_tokens: fields.number("input_tokens")?,
                output_tokens: fields.number("output_tokens")?,
                cache_write_tokens: fields.number("cache_write_tokens")?,
                cache_read_tokens: fields.number("cache_read_tokens")?,
                cost: NanoUsd(fields.int("cost")?),
            })
        };
        rows.iter().map(read).collect()
    }
}
