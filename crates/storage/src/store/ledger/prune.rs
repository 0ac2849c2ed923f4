//! Removes old rows from the tables that may be pruned. The ledger and its sums are not among them,
//! and never will be: on SQLite, where the ledger is a view of the request log, its part of a row
//! moves to `ledger_archive`.

use sqlx::AssertSqlSafe;

use super::log_row::LEDGER_COLUMNS;
use crate::domain::clock::Timestamp;
use crate::store::engine::column::Values;
use crate::store::engine::error::StoreError;
use crate::store::{Backend, Store};

/// The table whose rows the ledger of SQLite keeps.
const LOG: &str = "request_log";
/// The pruned tables. A table whose rows may be removed with their requests gets its line here.
const PRUNED: &[&str] = &[LOG, "session_messages"];

impl Store {
    /// Removes rows that are older than `cutoff` from each such table, oldest first, and returns
    /// their number; 0: none is left. Some `max` of each table at most (rows of one millisecond go
    /// together), and on PostgreSQL all partitions of the log that hold nothing else.
    pub async fn prune_requests(&self, cutoff: Timestamp, max: u32) -> Result<u64, StoreError> {
        // A reader that keeps a partition does not keep other rows from being removed.
        let dropped = self.drop_expired(cutoff).await;
        let mut removed = *dropped.as_ref().unwrap_or(&0);
        for table in PRUNED {
            removed += self.prune(table, cutoff, max).await?;
        }
        if removed == 0 {
            dropped?;
        }
        Ok(removed)
    }

    async fn prune(
        &self,
        table: &'static str,
        cutoff: Timestamp,
        max: u32,
    ) -> Result<u64, StoreError> {
        let old = format!(
            "FROM {table} WHERE started_at < $1 AND started_at <= COALESCE(\
             (SELECT started_at FROM {table} WHERE started_at < $1 ORDER BY started_at \
             LIMIT 1 OFFSET $2), $1)"
        );
        let values = || {
            let mut values = Values::default();
            values.time(cutoff).int(i64::from(max.max(1)) - 1);
            values.into_arguments()
        };
        let mut tx = self.write().await?;
        if table == LOG && self.backend() == Backend::Sqlite {
            let columns = LEDGER_COLUMNS.join(", ");
            let keep = format!("INSERT INTO ledger_archive ({columns}) SELECT {columns} {old}");
            sqlx::query_with(AssertSqlSafe(keep), values()).execute(&mut *tx).await?;
        }
        let delete = AssertSqlSafe(format!("DELETE {old}"));
        let removed = sqlx::query_with(delete, values()).execute(&mut *tx).await?.rows_affected();
        tx.commit().await?;
        Ok(removed)
    }
}
