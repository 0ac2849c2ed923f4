//! Prices parts of stored requests that had a cost, but no price for the part: ledger, request log
//! and all sums in one transaction.
//!
//! A row is changed only if its parts are still those that were read: however often it runs, on any
//! number of nodes at once, a part is priced once.

use std::collections::BTreeMap;

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Executor};

use super::late::{self, LateCosts};
use super::log_row::Used;
use super::reprice::{Group, Repriced, add, group};
use super::spend::{SpendRow, spend_row};
use super::{days, log_row};
use crate::domain::money::NanoUsd;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::{Backend, Store};
use rust_decimal::Decimal;

/// A request with a cost, a part of which has no price.
#[derive(Debug, Clone)]
pub struct UnpricedParts {
    /// Its usage and parts.
    pub used: Used,
    /// The requested model.
    pub model: String,
    /// The entry that priced it, if it is not the model's own.
    pub price_model: Option<String>,
    /// The provider's multiplier at its time.
    pub multiplier: Decimal,
    /// The cost that it has.
    pub cost: NanoUsd,
    /// `cost`: what its parts add.
    row: Repriced,
    /// The column `usage_extra` as it was read.
    stored: String,
}

impl UnpricedParts {
    /// The order of requests, for [`Store::unpriced_parts_after`].
    pub const fn id(&self) -> [u8; 16] {
        self.row.request_id
    }

    /// Adds the cost of parts that have their price now, in `used`.
    #[must_use]
    pub fn with(mut self, added: NanoUsd) -> Self {
        self.row.spend.cost = added;
        self.row.extra = log_row::extra(&self.used);
        self
    }
}

const COLUMNS: &str = "SELECT request_id, started_at, key_id, user_id, provider_id, endpoint, \
    status_code, cost, cost_multiplier, input_tokens, output_tokens, cache_write_5m_tokens, \
    cache_write_1h_tokens, cache_read_tokens, reasoning_tokens, image_input_tokens, \
    image_output_tokens, usage_extra, model, upstream_model, price_model FROM ledger WHERE";
/// The condition of the index of such rows.
const fn marked(backend: Backend) -> &'static str {
    match backend {
        Backend::Postgres => "strpos(usage_extra, '\"unpriced\":true') > 0",
        Backend::Sqlite => {
            "usage_extra >= '{\"unpriced\":true' AND usage_extra < '{\"unpriced\":true~'"
        }
    }
}

const LEDGER: &str = "UPDATE ledger SET cost = cost + $1, usage_extra = $2 WHERE request_id = $3 \
    AND usage_extra = $4 AND cost IS NOT NULL";
const LOG: &str = "UPDATE request_log SET cost = cost + $1, usage_extra = $2 WHERE started_at = \
    (SELECT started_at FROM ledger WHERE request_id = $3) AND request_id = $3 AND usage_extra = $4 \
    AND cost IS NOT NULL";
const SQLITE_LOG: &str = "UPDATE request_log SET cost = cost + $1, usage_extra = $2 WHERE \
    request_id = $3 AND usage_extra = $4 AND cost IS NOT NULL";
const SQLITE_ARCHIVE: &str = "UPDATE ledger_archive SET cost = cost + $1, usage_extra = $2 WHERE \
    request_id = $3 AND usage_extra = $4 AND cost IS NOT NULL";

impl Store {
    /// At most `max` requests with a cost, a part of which has no price, in the order of their ids
    /// and after this one.
    pub async fn unpriced_parts_after(
        &self,
        after: &[u8; 16],
        max: u32,
    ) -> Result<Vec<UnpricedParts>, StoreError> {
        let mut values = Values::default();
        values.bytes(after).int(i64::from(max));
        let marked = marked(self.backend());
        let sql = AssertSqlSafe(format!(
            "{COLUMNS} {marked} AND cost IS NOT NULL AND request_id > $1 ORDER BY request_id LIMIT $2"
        ));
        let rows = sqlx::query_with(sql, values.into_arguments())
            .fetch_all(&mut *self.reader().await?)
            .await?;
        rows.iter().map(read).collect()
    }

    /// Writes the costs of such requests, in the order of their ids, all or none. Returns what was
    /// added to each.
    pub async fn reprice_parts(&self, priced: &[UnpricedParts]) -> Result<LateCosts, StoreError> {
        let mut tx = self.write().await?;
        if let Some(lock) = days::lock(self.backend()) {
            tx.execute(lock).await?;
        }
        let (mut rows, mut first): (Vec<SpendRow>, _) = (Vec::new(), None);
        let mut sums: BTreeMap<&str, BTreeMap<Group, _>> = BTreeMap::new();
        for request in priced {
            if !put(&mut tx, self.backend(), request).await? {
                continue;
            }
            first.get_or_insert(&request.row);
            let of_model = sums.entry(&request.model).or_default();
            // It had a cost before: the number of requests without one is the same.
            let sum: &mut (i64, i64) = of_model.entry(group(&request.row)).or_default();
            sum.0 = sum.0.saturating_add(request.row.spend.cost.0);
            rows.push(request.row.spend);
        }
        for (model, sums) in &sums {
            add(&mut tx, model, sums).await?;
        }
        for (sql, values) in days::take_out(rows.iter().map(|spend: &SpendRow| spend.minute)) {
            sqlx::query_with::<_, sqlx::any::AnyArguments>(sql, values.into_arguments())
                .execute(&mut *tx)
                .await?;
        }
        let Some(first) = first else {
            tx.commit().await?;
            return Ok(LateCosts::default());
        };
        let transaction = late::next(&mut tx, self.backend()).await?;
        if let Err(error) = tx.commit().await
            && !self.took_effect(transaction, first).await
        {
            return Err(error.into());
        }
        Ok(LateCosts { rows, number: transaction.number })
    }
}

fn read(row: &AnyRow) -> Result<UnpricedParts, StoreError> {
    let fields = Fields { row, table: "ledger" };
    Ok(UnpricedParts {
        used: log_row::read_usage(fields)?,
        model: fields.text("model")?,
        price_model: fields.opt_text("price_model")?,
        multiplier: fields.parsed("cost_multiplier")?,
        cost: NanoUsd(fields.int("cost")?),
        row: Repriced {
            request_id: fields.bytes("request_id")?,
            extra: None,
            spend: spend_row(fields, fields.time("started_at")?, NanoUsd::ZERO)?,
            endpoint: fields.text("endpoint")?,
            status_code: fields.int("status_code")?,
        },
        stored: fields.text("usage_extra")?,
    })
}

/// Writes to the ledger and the log. Returns whether the ledger's row was as it had been read.
async fn put(
    connection: &mut AnyConnection,
    backend: Backend,
    request: &UnpricedParts,
) -> Result<bool, StoreError> {
    match backend {
        Backend::Postgres => {
            let is_same = set(connection, LEDGER, request).await?;
            if is_same {
                set(connection, LOG, request).await?;
            }
            Ok(is_same)
        }
        Backend::Sqlite => Ok(set(connection, SQLITE_LOG, request).await?
            || set(connection, SQLITE_ARCHIVE, request).await?),
    }
}

async fn set(
    connection: &mut AnyConnection,
    sql: &'static str,
    request: &UnpricedParts,
) -> Result<bool, StoreError> {
    let mut values = Values::default();
    values.int(request.row.spend.cost.0).opt_text(request.row.extra.as_deref());
    values.bytes(&request.row.request_id).text(&request.stored);
    let done = sqlx::query_with(sql, values.into_arguments()).execute(connection).await?;
    Ok(done.rows_affected() > 0)
}
