//! Drops partitions of the request log that hold nothing but expired rows.

use sqlx::{AnyConnection, AssertSqlSafe};

use super::month::PartitionContent;
use super::{LOG, run};
use crate::domain::clock::Timestamp;
use crate::store::engine::column::Fields;
use crate::store::engine::error::StoreError;
use crate::store::{Backend, Store};

/// The rows of a larger partition are not counted: the server's estimate is reported.
const COUNTED_BYTES: i64 = 256 << 20;

impl Store {
    /// Drops the partitions whose months ended by `cutoff`; returns how many rows they had (an
    /// estimate for large ones).
    ///
    /// # Errors
    /// [`StoreError::Busy`] when a reader keeps the log and nothing was dropped; what was dropped
    /// before stays dropped.
    pub(in crate::store) async fn drop_expired(
        &self,
        cutoff: Timestamp,
    ) -> Result<u64, StoreError> {
        if self.backend() != Backend::Postgres {
            return Ok(0);
        }
        let parts = LOG.parts(&mut *self.reader().await?).await?;
        let expired = |part: &PartitionContent| part.end().is_some_and(|end| end <= cutoff);
        let mut removed = 0;
        for part in parts.into_iter().filter(expired) {
            removed += match self.drop_part(part).await {
                // The next call finds the same, and has nothing else to report.
                Err(_) if removed > 0 => break,
                dropped => dropped?,
            };
        }
        Ok(removed)
    }

    async fn drop_part(&self, part: PartitionContent) -> Result<u64, StoreError> {
        let mut tx = self.alter().await?;
        // Another node may have dropped it.
        if !LOG.parts(&mut tx).await?.contains(&part) {
            return Ok(0);
        }
        let name = part.name(LOG.table);
        let rows = rows_in(&mut tx, &name).await?;
        run(&mut tx, format!("DROP TABLE {name}")).await?;
        tx.commit().await?;
        Ok(rows)
    }
}

async fn rows_in(connection: &mut AnyConnection, name: &str) -> Result<u64, StoreError> {
    let sql = format!(
        "SELECT pg_relation_size(oid) AS bytes, CAST(reltuples AS BIGINT) AS rows FROM pg_class \
         WHERE oid = CAST('{name}' AS REGCLASS)"
    );
    let row = sqlx::query(AssertSqlSafe(sql)).fetch_one(&mut *connection).await?;
    let fields = Fields { row: &row, table: "pg_class" };
    if fields.int("bytes")? > COUNTED_BYTES {
        return Ok(u64::try_from(fields.int("rows")?).unwrap_or(0));
    }
    let sql = AssertSqlSafe(format!("SELECT COUNT(*) AS rows FROM {name}"));
    let row = sqlx::query(sql).fetch_one(connection).await?;
    Fields { row: &row, table: "request_log" }.number("rows")
}
