//! The numbers of the transactions that write costs late ([`Store::reprice`]): a snapshot of the
//! database shows by the last one which of them it has.
//!
//! A number is the database's time in milliseconds, or one more than the last one. So a database
//! that was restored from a backup gives no number again that it had before: counters that know
//! both histories do not mistake one cost for another.

use sqlx::AnyConnection;

use super::reprice::Repriced;
use super::spend::SpendRow;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::{Backend, Store};

/// Costs that one transaction wrote after their requests were settled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LateCosts {
    /// A row for each request.
    pub rows: Vec<SpendRow>,
    /// Transactions are numbered in the order of their commits; see
    /// [`SpendSeen::late`](super::spend::SpendSeen::late). 0: there is no such transaction.
    pub number: i64,
}

impl LateCosts {
    /// Amounts by which this process's own counters differ from the ledger: for counters that are
    /// not shared, which nothing rebuilds.
    pub const fn own(rows: Vec<SpendRow>) -> Self {
        Self { rows, number: 0 }
    }
}

/// A transaction that has a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbered {
    pub(super) number: i64,
    /// Its id on PostgreSQL.
    xid: i64,
}

const POSTGRES: &str = "INSERT INTO late_costs (id, number) \
    VALUES (1, CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)) \
    ON CONFLICT (id) DO UPDATE SET number = GREATEST(late_costs.number + 1, excluded.number) \
    RETURNING number, txid_current() AS xid";
const SQLITE: &str = "INSERT INTO late_costs (id, number) \
    VALUES (1, CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)) \
    ON CONFLICT (id) DO UPDATE SET number = MAX(late_costs.number + 1, excluded.number) \
    RETURNING number, 0 AS xid";

/// Numbers this transaction. The row stays locked until it ends, so the next number is that of a
/// later commit.
pub(super) async fn next(
    connection: &mut AnyConnection,
    backend: Backend,
) -> Result<Numbered, StoreError> {
    let sql = if backend == Backend::Postgres { POSTGRES } else { SQLITE };
    let row = sqlx::query(sql).fetch_one(connection).await?;
    let fields = Fields { row: &row, table: "late_costs" };
    Ok(Numbered { number: fields.int("number")?, xid: fields.int("xid")? })
}

/// The last one that this transaction sees; 0 if there is none.
pub(super) async fn last(connection: &mut AnyConnection) -> Result<i64, StoreError> {
    let row = sqlx::query("SELECT number FROM late_costs").fetch_optional(connection).await?;
    row.map_or(Ok(0), |row| Fields { row: &row, table: "late_costs" }.int("number"))
}

impl Store {
    /// Has later reads of [`SpendSeen::late`](super::spend::SpendSeen::late) cover every late cost
    /// that was ever written until now, also those that a database lost when it was restored.
    pub async fn mark_late_costs(&self) -> Result<(), StoreError> {
        next(&mut *self.writer().await?, self.backend()).await.map(|_| ())
    }

    /// Whether the database has a transaction whose commit was not answered, and which priced this
    /// request. The request is needed too: a standby that lost the transaction uses its id again.
    ///
    /// # Errors
    /// [`StoreError::Busy`] while the transaction has not ended, or that of the read.
    pub(super) async fn has_late(
        &self,
        transaction: Numbered,
        request: &Repriced,
    ) -> Result<bool, StoreError> {
        let mut values = Values::default();
        values.int(transaction.xid).bytes(&request.request_id).opt_text(request.extra.as_deref());
        let sql = "SELECT txid_status($1) AS status, (SELECT COUNT(*) FROM ledger \
                   WHERE request_id = $2 AND cost IS NOT NULL \
                   AND ($3 IS NULL OR usage_extra = $3)) AS priced";
        let row = sqlx::query_with(sql, values.into_arguments())
            .fetch_one(&mut *self.reader().await?)
            .await?;
        let fields = Fields { row: &row, table: "ledger" };
        let status = fields.opt_text("status")?;
        if status.as_deref() == Some("in progress") {
            return Err(StoreError::Busy { what: "its commit".to_owned() });
        }
        Ok(status.as_deref() == Some("committed") && fields.int("priced")? > 0)
    }
}
