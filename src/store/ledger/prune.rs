//! Removes old rows from the tables that may be pruned. The ledger and its sums are not among them,
//! and never will be.

use sqlx::AssertSqlSafe;

use crate::domain::clock::Timestamp;
use crate::store::Store;
use crate::store::engine::column::Values;
use crate::store::engine::error::StoreError;

/// The pruned tables, with their time column and the name of a row. A table whose rows may be
/// removed with their requests gets its line here.
const PRUNED: &[Pruned] = &[
    Pruned { table: "request_log", time: "started_at", row: "id" },
    Pruned { table: "session_messages", time: "started_at", row: "request_id" },
];

struct Pruned {
    table: &'static str,
    time: &'static str,
    row: &'static str,
}

impl Store {
    /// Removes at most `max` rows of each such table that are older than `cutoff`, oldest first;
    /// returns their number. 0: none is left.
    ///
    /// # Errors
    /// [`StoreError`] of the write.
    pub async fn prune_requests(&self, cutoff: Timestamp, max: u32) -> Result<u64, StoreError> {
        let mut removed = 0;
        for Pruned { table, time, row } in PRUNED {
            let mut values = Values::default();
            values.time(cutoff).int(i64::from(max));
            let sql = format!(
                "DELETE FROM {table} WHERE {row} IN \
                 (SELECT {row} FROM {table} WHERE {time} < $1 ORDER BY {time} LIMIT $2)"
            );
            let query = sqlx::query_with(AssertSqlSafe(sql), values.into_arguments());
            removed += query.execute(&mut *self.writer().await?).await?.rows_affected();
        }
        Ok(removed)
    }
}
