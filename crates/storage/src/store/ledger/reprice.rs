//! Prices stored requests whose model had no price at their time: ledger, request log and all sums
//! in one transaction.
//!
//! Only rows without a cost are changed, and the condition is part of the write itself: however
//! often it runs, on any number of nodes at once, a request is priced once.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::any::{AnyArguments, AnyRow};
use sqlx::{AnyConnection, Executor};

use super::late::{self, LateCosts, Numbered};
use super::log_row::Used;
use super::spend::{SpendRow, spend_row};
use super::sums::hour_of;
use super::{days, log_row};
use crate::domain::money::NanoUsd;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::{Backend, Store};
use rust_decimal::Decimal;

/// Which requests without a price to change.
#[derive(Debug, Clone, Copy)]
pub struct UnpricedOf<'a> {
    /// The requested model.
    pub model: &'a str,
    /// Only those for which the provider was asked for this name.
    pub upstream_model: Option<&'a str>,
    /// The entry that prices them.
    pub price_model: &'a str,
}

/// Prices what a request used, times its multiplier.
type Pricing<'a> = &'a (dyn Fn(&mut Used, Decimal) -> NanoUsd + Sync);

/// A request with its late cost.
#[derive(Debug, Clone)]
pub(super) struct Repriced {
    pub(super) request_id: [u8; 16],
    /// The column `usage_extra`, if it has changed.
    pub(super) extra: Option<String>,
    pub(super) spend: SpendRow,
    pub(super) endpoint: String,
    pub(super) status_code: i64,
}

const LEDGER: &str = "UPDATE ledger SET cost = $1, price_model = $2, \
    usage_extra = COALESCE($4, usage_extra) WHERE request_id = $3 AND cost IS NULL";
/// By the time from the ledger, as the log has no index of ids.
const LOG: &str = "UPDATE request_log SET cost = $1, price_model = $2, \
    usage_extra = COALESCE($4, usage_extra) WHERE started_at = \
    (SELECT started_at FROM ledger WHERE request_id = $3) AND request_id = $3 AND cost IS NULL";
/// The two tables of SQLite's ledger.
const SQLITE_LOG: &str = "UPDATE request_log SET cost = $1, price_model = $2, \
    usage_extra = COALESCE($4, usage_extra) WHERE request_id = $3 AND cost IS NULL";
const SQLITE_ARCHIVE: &str = "UPDATE ledger_archive SET cost = $1, price_model = $2, \
    usage_extra = COALESCE($4, usage_extra) WHERE request_id = $3 AND cost IS NULL";

/// Pause between two questions what became of a commit.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// The group of a sum: hour, key, user, provider, endpoint and status; an id of 0 means none.
pub(super) type Group = (i64, i64, i64, i64, String, i64);

/// Cost, and the number of requests that have one now.
pub(super) type Amount = (i64, i64);

impl Store {
    /// The first model name after `after` with requests that have no price. One index look-up.
    pub async fn unpriced_model_after(&self, after: &str) -> Result<Option<String>, StoreError> {
        let mut values = Values::default();
        values.text(after);
        let sql = "SELECT MIN(model) AS model FROM \
                   (SELECT model FROM ledger WHERE cost IS NULL AND model > $1 \
                   ORDER BY model LIMIT 1) AS first";
        let row = sqlx::query_with(sql, values.into_arguments())
            .fetch_one(&mut *self.reader().await?)
            .await?;
        Fields { row: &row, table: "ledger" }.opt_text("model")
    }

    /// The upstream names of requests for a model without a price, if they differ from the model's
    /// name.
    pub async fn unpriced_upstream_models(&self, model: &str) -> Result<Vec<String>, StoreError> {
        let mut values = Values::default();
        values.text(model);
        let sql = "SELECT DISTINCT upstream_model FROM ledger \
                   WHERE cost IS NULL AND model = $1 AND upstream_model IS NOT NULL";
        let rows = sqlx::query_with(sql, values.into_arguments())
            .fetch_all(&mut *self.reader().await?)
            .await?;
        rows.iter().map(|row| Fields { row, table: "ledger" }.text("upstream_model")).collect()
    }

    /// Prices at most `max` such requests, all or none of them, by `price` of usage and multiplier.
    /// Returns the cost of each; fewer than `max`: none is left.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was changed. If the connection breaks during the commit, this
    /// asks PostgreSQL what became of it, as soon as it answers.
    pub async fn reprice(
        &self,
        of: UnpricedOf<'_>,
        max: u32,
        price: Pricing<'_>,
    ) -> Result<LateCosts, StoreError> {
        let mut tx = self.write().await?;
        if let Some(lock) = days::lock(self.backend()) {
            tx.execute(lock).await?;
        }
        let (mut priced, mut first) = (Vec::new(), None);
        let mut sums: BTreeMap<Group, Amount> = BTreeMap::new();
        for found in unpriced(&mut tx, of, max, price).await? {
            let cost = found.spend.cost.0;
            if !put(&mut tx, self.backend(), of, &found).await? {
                continue;
            }
            let sum = sums.entry(group(&found)).or_default();
            *sum = (sum.0.saturating_add(cost), sum.1 + 1);
            priced.push(found.spend);
            first.get_or_insert(found);
        }
        add(&mut tx, of.model, &sums).await?;
        for (sql, values) in
            days::take_out::<AnyArguments>(priced.iter().map(|spend: &SpendRow| spend.minute))
        {
            sqlx::query_with(sql, values.into_arguments()).execute(&mut *tx).await?;
        }
        let Some(first) = first else {
            tx.commit().await?;
            return Ok(LateCosts::default());
        };
        let transaction = late::next(&mut tx, self.backend()).await?;
        if let Err(error) = tx.commit().await
            && !self.took_effect(transaction, &first).await
        {
            return Err(error.into());
        }
        Ok(LateCosts { rows: priced, number: transaction.number })
    }

    /// Whether a commit without an answer took effect. Waits until the database says so.
    pub(super) async fn took_effect(&self, transaction: Numbered, request: &Repriced) -> bool {
        // The embedded database answers, or has not committed.
        while self.backend() == Backend::Postgres {
            match self.has_late(transaction, request).await {
                Ok(is_there) => return is_there,
                Err(StoreError::Unreachable { .. } | StoreError::Busy { .. }) => {
                    tokio::time::sleep(ASK_AGAIN).await;
                }
                // It does not know the transaction.
                Err(_) => break,
            }
        }
        false
    }
}

async fn unpriced(
    connection: &mut AnyConnection,
    of: UnpricedOf<'_>,
    max: u32,
    price: Pricing<'_>,
) -> Result<Vec<Repriced>, StoreError> {
    const COLUMNS: &str = "SELECT request_id, started_at, key_id, user_id, provider_id, endpoint, \
        status_code, cost_multiplier, input_tokens, output_tokens, cache_write_5m_tokens, \
        cache_write_1h_tokens, cache_read_tokens, reasoning_tokens, image_input_tokens, \
        image_output_tokens, usage_extra, upstream_model FROM ledger WHERE cost IS NULL AND model = $1";
    let mut values = Values::default();
    values.text(of.model).int(i64::from(max));
    let and = if let Some(upstream) = of.upstream_model {
        values.text(upstream);
        " AND upstream_model = $3"
    } else {
        ""
    };
    let sql = sqlx::AssertSqlSafe(format!("{COLUMNS}{and} LIMIT $2"));
    let rows = sqlx::query_with(sql, values.into_arguments()).fetch_all(connection).await?;
    let mut found = rows.iter().map(|row| read(row, price)).collect::<Result<Vec<_>, _>>()?;
    // Two nodes that price the same rows lock them in the same order.
    found.sort_by_key(|unpriced| unpriced.request_id);
    Ok(found)
}

fn read(row: &AnyRow, price: Pricing<'_>) -> Result<Repriced, StoreError> {
    let fields = Fields { row, table: "ledger" };
    let mut used = log_row::read_usage(fields)?;
    let cost = price(&mut used, fields.parsed("cost_multiplier")?);
    let has_parts = !used.parts.is_empty();
    Ok(Repriced {
        request_id: fields.bytes("request_id")?,
        extra: has_parts.then(|| log_row::extra(&used)).flatten(),
        spend: spend_row(fields, fields.time("started_at")?, NanoUsd(log_row::bounded(cost)))?,
        endpoint: fields.text("endpoint")?,
        status_code: fields.int("status_code")?,
    })
}

/// Writes a request's cost, and its price entry if that is not its model's own, to the ledger and
/// the log. Returns whether the ledger had none.
async fn put(
    connection: &mut AnyConnection,
    backend: Backend,
    of: UnpricedOf<'_>,
    row: &Repriced,
) -> Result<bool, StoreError> {
    match backend {
        Backend::Postgres => {
            let is_new = set(connection, LEDGER, of, row).await?;
            if is_new {
                set(connection, LOG, of, row).await?;
            }
            Ok(is_new)
        }
        Backend::Sqlite => Ok(set(connection, SQLITE_LOG, of, row).await?
            || set(connection, SQLITE_ARCHIVE, of, row).await?),
    }
}

async fn set(
    connection: &mut AnyConnection,
    sql: &'static str,
    of: UnpricedOf<'_>,
    row: &Repriced,
) -> Result<bool, StoreError> {
    let mut values = Values::default();
    values.int(row.spend.cost.0).opt_text((of.price_model != of.model).then_some(of.price_model));
    values.bytes(&row.request_id).opt_text(row.extra.as_deref());
    let done = sqlx::query_with(sql, values.into_arguments()).execute(connection).await?;
    Ok(done.rows_affected() > 0)
}

pub(super) fn group(row: &Repriced) -> Group {
    let id = |id: Option<i64>| id.unwrap_or(0);
    let spend = &row.spend;
    let (key, user) = (id(spend.key_id.map(|k| k.0)), id(spend.user_id.map(|u| u.0)));
    let provider = id(spend.provider_id.map(|p| p.0));
    (hour_of(spend.minute.0), key, user, provider, row.endpoint.clone(), row.status_code)
}

/// Adds to the sums of every granularity, table by table and row by row in the order in which the
/// ledger's writer locks them.
pub(super) async fn add(
    connection: &mut AnyConnection,
    model: &str,
    sums: &BTreeMap<Group, Amount>,
) -> Result<(), StoreError> {
    const HOURS: &str = "UPDATE hourly_sums SET cost = cost + $1, unpriced = unpriced - $2 \
                         WHERE hour = $3 AND key_id = $4 AND user_id = $5 AND provider_id = $6 \
                         AND model = $7 AND endpoint = $8 AND status_code = $9";
    const TOTALS: &str = "UPDATE usage_totals SET cost = cost + $1, unpriced = unpriced - $2 \
        WHERE user_id = $3 AND key_id = $4 AND provider_id = $5 AND model = $6 \
        AND status_code = $7";
    const USERS: &str = "UPDATE hourly_users SET cost = cost + $1 WHERE hour = $2 AND user_id = $3";
    let (mut totals, mut users): (BTreeMap<_, Amount>, BTreeMap<_, i64>) = Default::default();
    for ((hour, key, user, provider, endpoint, status), (cost, count)) in sums {
        let mut values = Values::default();
        values.int(*cost).int(*count).int(*hour).int(*key).int(*user).int(*provider);
        values.text(model).text(endpoint).int(*status);
        sqlx::query_with(HOURS, values.into_arguments()).execute(&mut *connection).await?;
        let total = totals.entry((*user, *key, *provider, *status)).or_default();
        *total = (total.0.saturating_add(*cost), total.1 + count);
        let sum: &mut i64 = users.entry((*hour, *user)).or_default();
        *sum = sum.saturating_add(*cost);
    }
    for ((user, key, provider, status), (cost, count)) in totals {
        let mut values = Values::default();
        values.int(cost).int(count).int(user).int(key).int(provider).text(model).int(status);
        sqlx::query_with(TOTALS, values.into_arguments()).execute(&mut *connection).await?;
    }
    for ((hour, user), cost) in users {
        let mut values = Values::default();
        values.int(cost).int(hour).int(user);
        sqlx::query_with(USERS, values.into_arguments()).execute(&mut *connection).await?;
    }
    Ok(())
}
