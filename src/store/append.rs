//! Writes records exactly once: ledger, request log and hourly sums in one transaction.
//!
//! The ledger's primary key decides what is new. A batch that is written again, because the writer died before it could note
//! that the first time succeeded, changes nothing.

use std::collections::{BTreeMap, HashSet};

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};

use super::column::{Fields, Values};
use super::error::StoreError;
use super::{Backend, Store, log_row, sql, sums};
use crate::domain::ids::RequestId;
use crate::domain::record::Record;

/// Rows per statement, largest first: a fixed few, so that each is prepared once and found again.
const CHUNKS: [usize; 3] = [100, 10, 1];

impl Store {
    /// Writes those of the records whose request id is not stored yet, all or none; gives their number.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was written, unless the connection broke while committing: in both cases calling again with
    /// the same records is right.
    pub async fn append_records(&self, records: &[Record]) -> Result<u64, StoreError> {
        if records.is_empty() {
            return Ok(0);
        }
        // Sorted by id, each once: two nodes that write the same records lock them in the same order.
        let unique: BTreeMap<RequestId, &Record> = records.iter().rev().map(|r| (r.request_id, r)).collect();
        let unique: Vec<&Record> = unique.into_values().collect();
        let mut tx = self.write().await?;
        let backend = self.backend();
        let ledger = Target {
            backend,
            table: "ledger",
            columns: log_row::LEDGER_COLUMNS,
            tail: "ON CONFLICT (request_id) DO NOTHING RETURNING request_id",
        };
        let returned =
            insert_all(&mut tx, &ledger, &unique, |values, record| log_row::bind_ledger(values, record)).await?;
        let new: HashSet<[u8; 16]> =
            returned.iter().map(|row| Fields { row, table: "ledger" }.bytes("request_id")).collect::<Result<_, _>>()?;
        let new: Vec<&Record> = unique.into_iter().filter(|r| new.contains(r.request_id.0.as_bytes())).collect();
        let log = Target { backend, table: "request_log", columns: log_row::LOG_COLUMNS, tail: "" };
        insert_all(&mut tx, &log, &new, |values, record| log_row::bind_log(values, record)).await?;
        let hours = Target { backend, table: "hourly_sums", columns: sums::COLUMNS, tail: sums::ADD };
        insert_all(&mut tx, &hours, &sums::of(&new), sums::bind).await?;
        tx.commit().await?;
        Ok(u64::try_from(new.len()).unwrap_or(u64::MAX))
    }
}

/// Where rows go, and what follows their values in the statement.
struct Target {
    backend: Backend,
    table: &'static str,
    columns: &'static [&'static str],
    tail: &'static str,
}

/// Inserts the items in chunks and gives what the statements return.
async fn insert_all<T>(
    connection: &mut AnyConnection,
    target: &Target,
    mut items: &[T],
    bind: impl Fn(&mut Values, &T),
) -> Result<Vec<AnyRow>, StoreError> {
    let mut returned = Vec::new();
    for size in CHUNKS {
        if items.len() < size {
            continue;
        }
        let sql: std::sync::Arc<str> =
            (sql::insert(target.backend, target.table, target.columns, size) + target.tail).into();
        while let Some((chunk, rest)) = items.split_at_checked(size) {
            let mut values = Values::default();
            for item in chunk {
                bind(&mut values, item);
            }
            let query = sqlx::query_with(AssertSqlSafe(std::sync::Arc::clone(&sql)), values.into_arguments());
            returned.append(&mut query.fetch_all(&mut *connection).await?);
            items = rest;
        }
    }
    Ok(returned)
}
