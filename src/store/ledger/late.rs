//! The numbers of the transactions that write costs late ([`Store::reprice`]): a snapshot of the
//! database shows by the last one which of them it has.
//!
//! [`Store::reprice`]: crate::store::Store::reprice

use sqlx::AnyConnection;

use super::spend::SpendRow;
use crate::store::engine::column::Fields;
use crate::store::engine::error::StoreError;

/// Costs that one transaction wrote after their requests were settled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LateCosts {
    /// A row for each request.
    pub rows: Vec<SpendRow>,
    /// Transactions are numbered in the order of their commits, from 1; see
    /// [`SpendSeen::late`](super::spend::SpendSeen::late). 0: there is no such transaction.
    pub number: i64,
}

impl LateCosts {
    /// Amounts by which this process's own counters differ from the ledger: for counters that are
    /// not shared, which nothing rebuilds.
    #[must_use]
    pub const fn own(rows: Vec<SpendRow>) -> Self {
        Self { rows, number: 0 }
    }
}

/// The number of this transaction. The row stays locked until it ends, so the next number is that of
/// a later commit.
pub(super) async fn next(connection: &mut AnyConnection) -> Result<i64, StoreError> {
    let sql = "INSERT INTO late_costs (id, number) VALUES (1, 1) ON CONFLICT (id) DO UPDATE \
               SET number = late_costs.number + 1 RETURNING number";
    let row = sqlx::query(sql).fetch_one(connection).await?;
    Fields { row: &row, table: "late_costs" }.int("number")
}

/// The last one that this transaction sees; 0 if there is none.
pub(super) async fn last(connection: &mut AnyConnection) -> Result<i64, StoreError> {
    let row = sqlx::query("SELECT number FROM late_costs").fetch_optional(connection).await?;
    row.map_or(Ok(0), |row| Fields { row: &row, table: "late_costs" }.int("number"))
}
