//! The request log and the ledger on PostgreSQL, in partitions by month (UTC).
//!
//! - The request log is partitioned by the requests' start, the ledger by the request id. Ids are
//!   UUIDs of version 7, which begin with their time. So the id alone stays the ledger's primary
//!   key: a record counts once whatever its time, and programs from before the partitions can go on
//!   writing.
//! - The partition of the next month is made a month ahead. Rows of months without a partition
//!   (clock steps, old journals) go to a default partition, from which they move when their month
//!   gets one. While a table is converted, its check may refuse a row from far ahead: the writer
//!   then drops the check.
//! - Tables from before become the first partition, by a check that is validated beside the
//!   writers (`convert`). Only the last step excludes them, for some milliseconds.
//! - The clean-up drops partitions of the log whose months are over (`drop`). The ledger keeps all.
//! - Partitions of the log have a replica identity, for logical replication (`identity`).
//!
//! No step waits longer than 0.3 s for a lock, since writers wait behind it: a long report delays
//! the step, which is tried again.
//!
//! See docs/decisions/30-partitions.md.

mod convert;
mod create;
mod drop;
mod identity;
mod month;

use sqlx::any::AnyRow;
use sqlx::{Any, AnyConnection, AssertSqlSafe, Executor, Transaction};

use super::engine::column::Fields;
use super::engine::error::StoreError;
use super::engine::schema::{LOCK, UNBOUNDED};
use super::{Backend, Store};
use crate::domain::clock::Timestamp;
use month::{Month, Part};

/// What one look at the partitions did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionsKept {
    /// Tables that have partitions since this look.
    pub converted: Vec<&'static str>,
    /// Partitions that were made, by name.
    pub created: Vec<String>,
}

/// A partitioned table.
struct Partitioned {
    table: &'static str,
    /// The column that decides on the partition.
    key: &'static str,
    kind: Key,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    /// Milliseconds since the epoch.
    Time,
    /// A request id, which begins with such a time in six bytes.
    Id,
}

const LOG: Partitioned = Partitioned { table: "request_log", key: "started_at", kind: Key::Time };
const LEDGER: Partitioned = Partitioned { table: "ledger", key: "request_id", kind: Key::Id };
const PARTITIONED: [&Partitioned; 2] = [&LOG, &LEDGER];

/// A statement that waits longer is given up and tried again later.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '300ms'";

impl Partitioned {
    /// The key of the first row of a month, as a constant in SQL.
    fn bound(&self, month: Month) -> String {
        let start = month.start().0;
        match self.kind {
            Key::Time => start.to_string(),
            Key::Id => format!("CAST('\\x{:012x}' AS BYTEA)", start.max(0)),
        }
    }

    /// The month of a row by its key, in the form of [`Partitioned::newest`].
    fn month_of(&self, row: &AnyRow) -> Result<Month, StoreError> {
        let fields = Fields { row, table: self.table };
        let time = match self.kind {
            Key::Time => fields.time("key")?,
            Key::Id => {
                let id = fields.blob("key")?;
                let time = id.iter().take(6).fold(0, |time, byte| time << 8 | i64::from(*byte));
                Timestamp(time)
            }
        };
        Ok(Month::of(time))
    }

    /// The month of the newest row; `None`: there is no row.
    async fn newest(&self, connection: &mut AnyConnection) -> Result<Option<Month>, StoreError> {
        let Self { table, key, .. } = self;
        let sql = format!("SELECT {key} AS key FROM {table} ORDER BY {key} DESC LIMIT 1");
        let row = sqlx::query(AssertSqlSafe(sql)).fetch_optional(connection).await?;
        row.as_ref().map(|row| self.month_of(row)).transpose()
    }

    /// Whether the table has partitions by now.
    async fn is_partitioned(&self, connection: &mut AnyConnection) -> Result<bool, StoreError> {
        let sql = format!(
            "SELECT COUNT(*) AS found FROM pg_class \
             WHERE oid = CAST('{}' AS REGCLASS) AND relkind = 'p'",
            self.table
        );
        let row = sqlx::query(AssertSqlSafe(sql)).fetch_one(connection).await?;
        Ok(Fields { row: &row, table: "pg_class" }.int("found")? > 0)
    }

    /// The present partitions, in order; those that an operator made by hand are left out.
    async fn parts(&self, connection: &mut AnyConnection) -> Result<Vec<Part>, StoreError> {
        let sql = format!(
            "SELECT CAST(relname AS TEXT) AS name FROM pg_inherits JOIN pg_class ON oid = inhrelid \
             WHERE inhparent = CAST('{}' AS REGCLASS)",
            self.table
        );
        let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(connection).await?;
        let mut parts = Vec::with_capacity(rows.len());
        for row in &rows {
            let name = Fields { row, table: "pg_class" }.text("name")?;
            parts.extend(Part::parse(self.table, &name));
        }
        parts.sort_unstable();
        Ok(parts)
    }
}

impl Store {
    /// Gives the tables their partitions, and makes those of this month and the next. Tables with
    /// rows are converted beside the writers, which takes as long as reading them once.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when a lock was not free in time, or another node converts a table;
    /// the next look goes on.
    pub async fn keep_partitions(&self, now: Timestamp) -> Result<PartitionsKept, StoreError> {
        let mut kept = PartitionsKept::default();
        if self.backend() != Backend::Postgres {
            return Ok(kept);
        }
        // A lock on one table does not keep the other one from its partitions.
        let mut result = Ok(());
        for table in PARTITIONED {
            result = result.and(self.keep_of(table, now, &mut kept).await);
        }
        result.and(self.identify_log().await).map(|()| kept)
    }

    async fn keep_of(
        &self,
        table: &Partitioned,
        now: Timestamp,
        kept: &mut PartitionsKept,
    ) -> Result<(), StoreError> {
        if self.convert(table, now).await? {
            kept.converted.push(table.table);
        }
        for month in [Month::of(now), Month::of(now).next()] {
            kept.created.extend(self.make_month(table, month).await?);
        }
        Ok(())
    }

    /// As [`Store::keep_partitions`], at the start: large tables are left to the jobs, and so is
    /// what fails. Without the partition of a month its rows go to the default partition.
    pub(in crate::store) async fn begin_partitions(&self, now: Timestamp) {
        if self.backend() != Backend::Postgres {
            return;
        }
        for table in PARTITIONED {
            let _ = self.convert_small(table, now).await;
            for month in [Month::of(now), Month::of(now).next()] {
                let _ = self.make_month(table, month).await;
            }
        }
        let _ = self.identify_log().await;
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
