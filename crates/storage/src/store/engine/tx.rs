//! The write transaction of the configuration: one at a time, over all processes on one database.
//!
//! Because writers are serialised, a rule that reads rows and then writes ("never disable a user's
//! last usable key") holds without row locks: nothing that it read can change before it commits.

use sqlx::{Any, AssertSqlSafe, Executor, Transaction};

use super::column::{Fields, Values};
use super::error::StoreError;
use super::sql;
use crate::store::{Backend, Store};

/// A serialised write transaction. Dropping it undoes everything; [`Tx::commit`] makes it visible
/// at once.
pub struct Tx {
    pub(in crate::store) inner: Transaction<'static, Any>,
    pub(in crate::store) backend: Backend,
}

/// A stuck writer must not block the others forever.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '10s'";
/// The configuration writer's lock on PostgreSQL; released by commit or rollback.
const LOCK: &str = "SELECT CAST(pg_advisory_xact_lock(7215836402) AS TEXT)";

impl Store {
    /// Begins a write transaction, waiting for the one before it.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another writer holds the lock for ten seconds.
    pub async fn begin(&self) -> Result<Tx, StoreError> {
        let mut inner = self.write().await?;
        let backend = self.backend();
        if backend == Backend::Postgres {
            inner.execute(LOCK_TIMEOUT).await?;
            inner.execute(LOCK).await?;
        }
        Ok(Tx { inner, backend })
    }
}

impl Tx {
    /// Makes the changes visible, and raises the configuration's version so that every node
    /// notices.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was changed, unless the connection broke during the commit.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        let raise = "UPDATE config_version SET version = version + 1 WHERE id = 1";
        sqlx::query(raise).execute(&mut *self.inner).await?;
        if self.backend == Backend::Postgres {
            self.inner.execute(super::listen::TELL).await?;
        }
        Ok(self.inner.commit().await?)
    }

    /// Makes changes visible that do not concern the configuration (only an audit record): no node
    /// needs to load its snapshot again.
    ///
    /// # Errors
    /// As [`Tx::commit`].
    pub async fn commit_record(self) -> Result<(), StoreError> {
        Ok(self.inner.commit().await?)
    }

    /// Inserts one row and returns its new id.
    pub(in crate::store) async fn insert_row(
        &mut self,
        table: &'static str,
        columns: &[&str],
        values: Values,
    ) -> Result<i64, StoreError> {
        let sql = AssertSqlSafe(sql::insert(self.backend, table, columns, 1) + "RETURNING id");
        let row =
            sqlx::query_with(sql, values.into_arguments()).fetch_one(&mut *self.inner).await?;
        Fields { row: &row, table }.int("id")
    }

    /// Overwrites the columns of one row.
    pub(in crate::store) async fn update_row(
        &mut self,
        table: &'static str,
        columns: &[&str],
        mut values: Values,
        id: i64,
    ) -> Result<(), StoreError> {
        values.int(id);
        let sql = AssertSqlSafe(sql::update_by_id(table, columns));
        let done = sqlx::query_with(sql, values.into_arguments()).execute(&mut *self.inner).await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::Missing { what: format!("row {id} in {table}") });
        }
        Ok(())
    }
}
