//! The replica identity of the request log.
//!
//! PostgreSQL refuses updates and deletes of a published table that has neither a primary key nor
//! another replica identity. The log has no primary key: its partitions have no unique index in
//! common, and one would cost every row. So the old row as a whole is the identity. It is written
//! to the WAL only with `wal_level = logical`, and only by repricing and by the clean-up.

use sqlx::{AnyConnection, AssertSqlSafe};

use super::{LOG, run};
use crate::store::Store;
use crate::store::engine::column::Fields;
use crate::store::engine::error::StoreError;

impl Store {
    /// Gives the log and its partitions a replica identity where they have the default one, each in
    /// its own short transaction. An identity that an operator chose stays.
    pub(super) async fn identify_log(&self) -> Result<(), StoreError> {
        let mut result = Ok(());
        for table in lacking(&mut *self.reader().await?).await? {
            result = result.and(self.identify(&table).await);
        }
        result
    }

    async fn identify(&self, table: &str) -> Result<(), StoreError> {
        let mut tx = self.alter().await?;
        // Another node may have dropped it.
        if lacking(&mut tx).await?.iter().any(|lacking| lacking == table) {
            run(&mut tx, identity(table)).await?;
        }
        Ok(tx.commit().await?)
    }
}

/// The statement that gives a table its replica identity.
pub(super) fn identity(table: &str) -> String {
    format!("ALTER TABLE {table} REPLICA IDENTITY FULL")
}

/// The log and its partitions, as statements name them, where they have the default identity. None
/// before the log has partitions: then it has a primary key.
async fn lacking(connection: &mut AnyConnection) -> Result<Vec<String>, StoreError> {
    let sql = format!(
        "SELECT CAST(CAST(part.oid AS REGCLASS) AS TEXT) AS name FROM pg_class AS part \
         WHERE part.relreplident = 'd' AND (part.oid = (SELECT oid FROM pg_class \
         WHERE oid = CAST('{log}' AS REGCLASS) AND relkind = 'p') OR part.oid IN \
         (SELECT inhrelid FROM pg_inherits WHERE inhparent = CAST('{log}' AS REGCLASS))) \
         ORDER BY 1",
        log = LOG.table
    );
    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(connection).await?;
    rows.iter().map(|row| Fields { row, table: "pg_class" }.text("name")).collect()
}
