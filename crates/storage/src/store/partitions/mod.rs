//! The request log and the ledger on PostgreSQL, in partitions by month (UTC).
//!
//! - The request log is partitioned by the requests' start, the ledger by the request id. Ids are
//!   UUIDs of version 7, which begin with their time. So the id alone stays the ledger's primary
//!   key: a record counts once whatever its time.
//! - The partition of the next month is made a month ahead. Rows of months without a partition
//!   (clock steps, old journals) go to a default partition, from which they move when their month
//!   gets one.
//! - The clean-up drops partitions of the log whose months are over (`drop`). The ledger keeps all.
//! - Partitions of the log have a replica identity, for logical replication (`create`).
//!
//! No step waits longer than 0.3 s for a lock, since writers wait behind it: a long report delays
//! the step, which is tried again.
//!
//! See docs/decisions/30-partitions.md.

mod create;
mod drop;
mod month;

use sqlx::{Any, AnyConnection, AssertSqlSafe, Executor, Transaction};

use super::engine::column::Fields;
use super::engine::error::StoreError;
use super::engine::schema::{LOCK, UNBOUNDED};
use super::{Backend, Store};
use crate::domain::clock::Timestamp;
use month::{Month, PartitionContent};

/// A partitioned table.
struct Partitioned {
    table: &'static str,
    /// The column that decides on the partition.
    key: &'static str,
    kind: PartitionKey,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PartitionKey {
    /// Milliseconds since the epoch.
    Time,
    /// A request id, which begins with such a time in six bytes.
    Id,
}

const LOG: Partitioned =
    Partitioned { table: "request_log", key: "started_at", kind: PartitionKey::Time };
const LEDGER: Partitioned =
    Partitioned { table: "ledger", key: "request_id", kind: PartitionKey::Id };
const PARTITIONED: [&Partitioned; 2] = [&LOG, &LEDGER];

/// A statement that waits longer is given up and tried again later.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '300ms'";

impl Partitioned {
    /// The key of the first row of a month, as a constant in SQL.
    fn bound(&self, month: Month) -> String {
        let start = month.start().0;
        match self.kind {
            PartitionKey::Time => start.to_string(),
            PartitionKey::Id => format!("CAST('\\x{:012x}' AS BYTEA)", start.max(0)),
        }
    }

    /// The present partitions, in order; those that an operator made by hand are left out.
    async fn parts(
        &self,
        connection: &mut AnyConnection,
    ) -> Result<Vec<PartitionContent>, StoreError> {
        let sql = format!(
            "SELECT CAST(relname AS TEXT) AS name FROM pg_inherits JOIN pg_class ON oid = inhrelid \
             WHERE inhparent = CAST('{}' AS REGCLASS)",
            self.table
        );
        let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(connection).await?;
        let mut parts = Vec::with_capacity(rows.len());
        for row in &rows {
            let name = Fields { row, table: "pg_class" }.text("name")?;
            parts.extend(PartitionContent::parse(self.table, &name));
        }
        parts.sort_unstable();
        Ok(parts)
    }
}

impl Store {
    /// Makes the partitions of this month and the next; returns the names of those that were made.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when a lock was not free in time; the next look goes on.
    pub async fn keep_partitions(&self, now: Timestamp) -> Result<Vec<String>, StoreError> {
        let (mut created, mut result) = (Vec::new(), Ok(()));
        if self.backend() != Backend::Postgres {
            return Ok(created);
        }
        // A lock on one table does not keep the other one from its partitions.
        for table in PARTITIONED {
            for month in [Month::of(now), Month::of(now).next()] {
                match self.make_month(table, month).await {
                    Ok(made) => created.extend(made),
                    Err(error) => result = result.and(Err(error)),
                }
            }
        }
        result.map(|()| created)
    }

    /// As [`Store::keep_partitions`], at the start: what fails is left to the jobs. Without the
    /// partition of a month its rows go to the default partition.
    pub(in crate::store) async fn begin_partitions(&self, now: Timestamp) {
        let _ = self.keep_partitions(now).await;
    }

    /// A transaction that changes partitions: one at a time over all nodes, and not beside a
    /// migration.
    async fn alter(&self) -> Result<Transaction<'static, Any>, StoreError> {
        let mut tx = self.write().await?;
        tx.execute(UNBOUNDED).await?;
        tx.execute(LOCK_TIMEOUT).await?;
        tx.execute(LOCK).await?;
        Ok(tx)
    }
}

/// Runs statements that only consist of this module's own names.
async fn run(connection: &mut AnyConnection, sql: String) -> Result<(), StoreError> {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await?;
    Ok(())
}
