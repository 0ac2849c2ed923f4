//! The source database: SQLite's tables and figures, locked while they are read.

use sqlx::{Any, Row, Transaction};

use super::error::TransferError;
use super::figures::DatabaseFigures;
use super::tables::{self, TABLES, Table};
use crate::domain::clock::Timestamp;
use crate::store::engine::column::Fields;
use crate::store::engine::error::StoreError;
use crate::store::{Backend, Store};

const MADE: &str = "SELECT CAST(installed_on AS TEXT) || ' ' || CAST(execution_time AS TEXT) \
    FROM _sqlx_migrations ORDER BY version LIMIT 1";

/// An embedded database that is to be copied.
pub struct TransferSource {
    pub(super) store: Store,
    pub(super) tables: Vec<Table>,
    /// When its schema was created: distinguishes it from other databases.
    pub(super) identity: String,
    /// Tables that are not the program's, which are left out.
    pub strangers: Vec<String>,
    /// Held, so that the database cannot be written to.
    _lock: Option<Transaction<'static, Any>>,
}

impl TransferSource {
    /// Takes the database's write lock, until this is dropped.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another program is writing. An error when the schema is not this
    /// program's.
    pub async fn held(store: &Store) -> Result<Self, TransferError> {
        let lock = store.write().await?;
        Ok(Self { _lock: Some(lock), ..Self::looked_at(store).await? })
    }

    /// Only reads the database, which may be written to meanwhile.
    pub async fn looked_at(store: &Store) -> Result<Self, TransferError> {
        store.check_schema().await?;
        let mut connection = store.reader().await?;
        let found = tables::names(&mut connection, Backend::Sqlite).await?;
        let known = |name: &String| TABLES.contains(&name.as_str()) || name == "_sqlx_migrations";
        let row = sqlx::query(MADE).fetch_one(&mut *connection).await?;
        let made: String = row.try_get(0).map_err(StoreError::from)?;
        Ok(Self {
            store: store.clone(),
            tables: tables::of_source(&mut connection).await?,
            identity: made,
            strangers: found.into_iter().filter(|name| !known(name)).collect(),
            _lock: None,
        })
    }

    /// All figures. Reads the whole database.
    pub async fn figures(&self) -> Result<DatabaseFigures, TransferError> {
        Ok(DatabaseFigures::of(&mut *self.store.reader().await?, &self.tables).await?)
    }

    /// Every table with its number of rows.
    pub async fn rows(&self) -> Result<Vec<(&'static str, i64)>, TransferError> {
        let mut connection = self.store.reader().await?;
        let mut rows = Vec::with_capacity(self.tables.len());
        for table in &self.tables {
            rows.push((table.name, tables::rows_of(&mut connection, table.name).await?));
        }
        Ok(rows)
    }

    /// The days (UTC) on which recorded requests began, in no order.
    pub(super) async fn days(&self) -> Result<Vec<Timestamp>, StoreError> {
        let sql = "SELECT started_at / 86400000 * 86400000 AS day FROM ledger GROUP BY 1 \
            UNION SELECT started_at / 86400000 * 86400000 FROM request_log GROUP BY 1";
        let rows = sqlx::query(sql).fetch_all(&mut *self.store.reader().await?).await?;
        rows.iter().map(|row| Fields { row, table: "ledger" }.time("day")).collect()
    }

    /// The highest number that a table has assigned to a row, including removed ones; `None`: none.
    pub(super) async fn highest_id(&self, table: &Table) -> Result<Option<i64>, StoreError> {
        let sql = format!(
            "SELECT MAX(id) FROM (SELECT MAX(id) AS id FROM {name} UNION ALL \
             SELECT seq FROM sqlite_sequence WHERE name = '{name}')",
            name = table.name
        );
        let row = sqlx::query(sqlx::AssertSqlSafe(sql))
            .fetch_one(&mut *self.store.reader().await?)
            .await?;
        Ok(row.try_get(0)?)
    }
}
