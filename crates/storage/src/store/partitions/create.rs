//! Makes the partition of a month.

use std::collections::BTreeSet;

use sqlx::{AnyConnection, AssertSqlSafe};

use super::month::{Month, PartitionContent};
use super::{LOG, PARTITIONED, Partitioned, run};
use crate::domain::clock::{Clock, SystemClock, Timestamp};
use crate::store::engine::column::Fields;
use crate::store::engine::error::StoreError;
use crate::store::{Backend, Store};

/// Earlier rows, from wrong clocks, go to the default partition.
const LONGEST_MS: i64 = 10 * 365 * 86_400_000;

impl Store {
    /// Makes the partitions of the months of these times, for rows that are about to be copied: of
    /// those in the last ten years, up to now.
    pub(in crate::store) async fn make_months(
        &self,
        times: &[Timestamp],
    ) -> Result<(), StoreError> {
        if self.backend() != Backend::Postgres {
            return Ok(());
        }
        let now = SystemClock.now();
        let known = times.iter().filter(|&&time| time >= now.plus_ms(-LONGEST_MS) && time <= now);
        for month in known.map(|&time| Month::of(time)).collect::<BTreeSet<_>>() {
            for table in PARTITIONED {
                self.make_month(table, month).await?;
            }
        }
        Ok(())
    }

    /// Makes a month's partition, if the table has none for it. Rows that wait
    /// in the default partition move there. Returns its name if it was made.
    pub(super) async fn make_month(
        &self,
        table: &Partitioned,
        month: Month,
    ) -> Result<Option<String>, StoreError> {
        if !table.lacks(&mut *self.reader().await?, month).await? {
            return Ok(None);
        }
        let mut tx = self.alter().await?;
        if !table.lacks(&mut tx, month).await? {
            return Ok(None);
        }
        table.make(&mut tx, month).await?;
        tx.commit().await?;
        Ok(Some(PartitionContent::Of(month).name(table.table)))
    }
}

impl Partitioned {
    async fn lacks(
        &self,
        connection: &mut AnyConnection,
        month: Month,
    ) -> Result<bool, StoreError> {
        Ok(!self.parts(connection).await?.contains(&PartitionContent::Of(month)))
    }

    /// Within a transaction. A partition that is attached, in place of one that is created as such,
    /// does not lock the whole table.
    pub(super) async fn make(
        &self,
        connection: &mut AnyConnection,
        month: Month,
    ) -> Result<(), StoreError> {
        let Self { table, key, .. } = self;
        let (name, other) =
            (PartitionContent::Of(month).name(table), PartitionContent::Other.name(table));
        let (from, until) = (self.bound(month), self.bound(month.next()));
        run(connection, format!("CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS)")).await?;
        if *table == LOG.table {
            // Of a publication (logical replication), PostgreSQL refuses updates and deletes of a
            // table that has neither a primary key nor another replica identity. The log has no
            // primary key: its partitions have no unique index in common, and one would cost every
            // row. So the old row as a whole is the identity. It is written to the WAL only with
            // `wal_level = logical`, and only by repricing and by the clean-up.
            run(connection, format!("ALTER TABLE {name} REPLICA IDENTITY FULL")).await?;
        }
        let range = format!("{key} >= {from} AND {key} < {until}");
        let sql = format!(
            "SELECT COUNT(*) AS found FROM (SELECT 1 FROM {other} WHERE {range} LIMIT 1) AS one"
        );
        let row = sqlx::query(AssertSqlSafe(sql)).fetch_one(&mut *connection).await?;
        if (Fields { row: &row, table: "pg_class" }).int("found")? > 0 {
            run(
                connection,
                format!(
                    "LOCK TABLE {other} IN ACCESS EXCLUSIVE MODE; \
                     WITH moved AS (DELETE FROM {other} WHERE {range} RETURNING *) \
                     INSERT INTO {name} SELECT * FROM moved"
                ),
            )
            .await?;
        }
        run(
            connection,
            format!(
                "ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({from}) TO ({until})"
            ),
        )
        .await
    }
}
