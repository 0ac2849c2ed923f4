//! Removes old rows from the tables that may be pruned. The ledger and its sums are not among them,
//! and never will be.

use sqlx::AssertSqlSafe;

use crate::domain::clock::Timestamp;
use crate::store::Store;
use crate::store::engine::column::Values;
use crate::store::engine::error::StoreError;

/// The pruned tables. A table whose rows may be removed with their requests gets its line here.
const PRUNED: &[&str] = &["request_log", "session_messages"];

impl Store {
    /// Removes rows that are older than `cutoff` from each such table, oldest first, and returns
    /// their number; 0: none is left. Some `max` of each table at most (rows of one millisecond go
    /// together), and on PostgreSQL all partitions of the log that hold nothing else.
    ///
    /// # Errors
    /// [`StoreError`] of the write.
    pub async fn prune_requests(&self, cutoff: Timestamp, max: u32) -> Result<u64, StoreError> {
        // A reader that keeps a partition does not keep other rows from being removed.
        let dropped = self.drop_expired(cutoff).await;
        let mut removed = *dropped.as_ref().unwrap_or(&0);
        for table in PRUNED {
            let mut values = Values::default();
            values.time(cutoff).int(i64::from(max.max(1)) - 1);
            let sql = format!(
                "DELETE FROM {table} WHERE started_at < $1 AND started_at <= COALESCE(\
                 (SELECT started_at FROM {table} WHERE started_at < $1 ORDER BY started_at \
                 LIMIT 1 OFFSET $2), $1)"
            );
            let query = sqlx::query_with(AssertSqlSafe(sql), values.into_arguments());
            removed += query.execute(&mut *self.writer().await?).await?.rows_affected();
        }
        if removed == 0 {
            dropped?;
        }
        Ok(removed)
    }
}
