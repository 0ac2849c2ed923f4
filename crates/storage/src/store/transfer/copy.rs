//! The copy itself: continues after the stored place, and writes batch by batch.

use futures_util::TryStreamExt;
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

use super::batch::{self, RowBatch};
use super::error::TransferError;
use super::source::TransferSource;
use super::state::{self, ADVANCE, Reached};
use super::tables::Table;
use super::target::TransferTarget;
use crate::store::Backend;

/// What is committed so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The table that is being copied.
    pub table: &'static str,
    /// Rows of this table, including those of earlier runs.
    pub copied: i64,
}

impl TransferTarget {
    /// Copies what the target does not have yet. `tell` is called after each batch.
    ///
    /// # Errors
    /// The first failure. Committed rows stay, and the next call continues after them.
    pub async fn copy(
        &mut self,
        source: &TransferSource,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<(), TransferError> {
        self.fit(source).await?;
        let mut at = state::read(&mut *self.store.reader().await?).await?.at;
        let tables = std::mem::take(&mut self.tables);
        let Some(first) = tables.iter().position(|table| table.name == at.table) else {
            return Err(TransferError::Shape(format!(
                "the move had reached {}, which is not a table",
                at.table
            )));
        };
        let refused = |error| Backend::Sqlite.acquire_error(error);
        let pool = source.store.pools.ledger.as_ref().ok_or(TransferError::Interfered)?;
        let mut reader = pool.acquire().await.map_err(refused)?;
        for table in tables.iter().skip(first) {
            let from = if at.table == table.name { at.clone() } else { Reached::default() };
            tell(Progress { table: table.name, copied: from.copied });
            self.copy_table(&mut reader, table, from, &mut at, tell).await?;
        }
        self.tables = tables;
        Ok(())
    }

    /// `from`: where to continue reading. `at`: the stored place, which each batch replaces.
    async fn copy_table(
        &mut self,
        reader: &mut SqliteConnection,
        table: &Table,
        from: Reached,
        at: &mut Reached,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<(), TransferError> {
        let (columns, key) = (table.column_list(), table.key_list());
        let (behind, arguments) = match &from.place {
            None => (String::new(), Default::default()),
            Some(place) => {
                let values = vec!["?"; table.key.len()].join(", ");
                (format!("WHERE ({key}) > ({values})"), batch::arguments(table, place)?)
            }
        };
        let sql = format!("SELECT {columns} FROM {} {behind} ORDER BY {key}", table.name);
        let mut rows = sqlx::query_with(AssertSqlSafe(sql), arguments).fetch(reader);
        let mut copied = from.copied;
        let mut batch = RowBatch::new();
        loop {
            let row = rows.try_next().await?;
            let is_last = row.is_none();
            if let Some(row) = row {
                batch.push(table, row)?;
            }
            if batch.is_full() || (is_last && batch.rows() > 0) {
                copied += i64::try_from(batch.rows()).unwrap_or(i64::MAX);
                let now =
                    Reached { table: table.name.to_owned(), copied, place: batch.place(table)? };
                self.write(table, std::mem::replace(&mut batch, RowBatch::new()), at, &now).await?;
                *at = now;
                tell(Progress { table: table.name, copied });
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Rows and the new place, in one transaction.
    async fn write(
        &mut self,
        table: &Table,
        batch: RowBatch,
        was: &Reached,
        now: &Reached,
    ) -> Result<(), TransferError> {
        let mut tx = self.connection.begin().await?;
        let advance = sqlx::query(ADVANCE).bind(&now.table).bind(now.copied).bind(&now.place);
        let done = advance.bind(&was.table).bind(was.copied).execute(&mut *tx).await?;
        if done.rows_affected() != 1 {
            return Err(TransferError::Interfered);
        }
        let rows = batch.rows();
        let sql =
            format!("COPY {} ({}) FROM STDIN (FORMAT binary)", table.name, table.column_list());
        let mut copy = tx.copy_in_raw(&sql).await?;
        copy.send(batch.into_bytes()).await?;
        if copy.finish().await? != rows {
            return Err(TransferError::Interfered);
        }
        Ok(tx.commit().await?)
    }
}
