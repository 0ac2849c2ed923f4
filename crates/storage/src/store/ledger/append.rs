//! Writes records exactly once: ledger, request log and all sums in one transaction.
//!
//! The ledger's request ids are unique and decide what is new. A batch that is written again,
//! because the writer died before it could note the first success, changes nothing. That is rare.
//! So a batch is first written as if all of it were new (to PostgreSQL by `copy`); if it was not,
//! it is written again row by row.
//!
//! On SQLite the ledger is a view of the request log and of `ledger_archive`, which has the rows of
//! requests that were removed from the log. So a request is one row there, and none in the archive.

use std::collections::BTreeMap;
use std::sync::Arc;

use sqlx::any::AnyQueryResult;
use sqlx::sqlite::SqliteQueryResult;
use sqlx::{Any, AssertSqlSafe, Database, Executor, IntoArguments, Sqlite, SqlitePool};

use super::{days, log_row, miss_sums, sums, totals};
use crate::domain::ids::RequestId;
use crate::domain::record::Record;
use crate::store::engine::column::{Collect, Values};
use crate::store::engine::error::StoreError;
use crate::store::engine::sql;
use crate::store::{Backend, Store};

/// Avoids SQLite's statement journal: a statement that fails ends the transaction here anyway.
const OR_FAIL: &str = "INSERT OR FAIL";
/// Rows per statement, largest first: a few fixed sizes, so that each statement is prepared once.
const CHUNKS: [usize; 3] = [100, 10, 1];

impl Store {
    /// Writes the records whose request id is not stored yet, all or none; returns their number.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was written, unless the connection broke during the commit. In
    /// both cases it is correct to call again with the same records.
    pub async fn append_records(&self, records: &[Record]) -> Result<u64, StoreError> {
        if records.is_empty() {
            return Ok(0);
        }
        // Sorted by id, without duplicates: two nodes that write the same records lock them in the
        // same order.
        let unique: BTreeMap<RequestId, &Record> =
            records.iter().rev().map(|r| (r.request_id, r)).collect();
        let unique: Vec<&Record> = unique.into_values().collect();
        // Nearly always all are new; the number of rows confirms it.
        if let Some(new) = self.append(&unique, Expect::New).await? {
            return Ok(new);
        }
        let new = self.append(&unique, Expect::Any).await?;
        new.ok_or_else(|| StoreError::Corrupt {
            what: "the ledger took rows and did not say how many".to_owned(),
        })
    }

    async fn append(&self, records: &[&Record], expect: Expect) -> Result<Option<u64>, StoreError> {
        match (&self.pools.ledger, &self.pools.copy) {
            (Some(ledger), _) => self.append_to_sqlite(ledger, records, expect).await,
            (None, Some(copier)) if expect == Expect::New => self.copy_new(copier, records).await,
            (None, _) => {
                let mut tx = self.write().await?;
                let written = write::<Any>(&mut tx, self.backend(), records, expect).await?;
                tx.commit().await?;
                Ok(written)
            }
        }
    }

    async fn append_to_sqlite(
        &self,
        ledger: &SqlitePool,
        records: &[&Record],
        expect: Expect,
    ) -> Result<Option<u64>, StoreError> {
        // Holding the only write connection excludes every other writer of this process.
        let _sole = self.writer().await?;
        let begin = self.backend().begin_write();
        let mut tx =
            ledger.begin_with(begin).await.map_err(|error| self.backend().acquire_error(error))?;
        let written = write::<Sqlite>(&mut tx, self.backend(), records, expect).await?;
        match written {
            Some(_) => tx.commit().await?,
            None => tx.rollback().await?,
        }
        Ok(written)
    }
}

/// What is assumed about the records before they are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// None is stored yet; if one is, the whole attempt ends without a result.
    New,
    /// Any may be stored already.
    Any,
}

/// Writes records in a transaction; `None` if one was not new although all were expected to be:
/// roll back.
async fn write<DB: Writes>(
    connection: &mut DB::Connection,
    backend: Backend,
    records: &[&Record],
    expect: Expect,
) -> Result<Option<u64>, StoreError>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    DB::Arguments: Collect + IntoArguments<DB>,
{
    if let Some(lock) = days::lock(backend) {
        connection.execute(lock).await?;
    }
    let not_stored;
    let new = match (expect, backend) {
        (Expect::New, Backend::Sqlite) => {
            if !write_new::<DB>(connection, records).await? {
                return Ok(None);
            }
            records
        }
        (Expect::Any, Backend::Sqlite) => {
            not_stored = write_any_to_log::<DB>(connection, records).await?;
            &not_stored
        }
        (_, Backend::Postgres) => {
            not_stored = write_any::<DB>(connection, records).await?;
            &not_stored
        }
    };
    let hours =
        RowTarget { backend, table: "hourly_sums", columns: sums::COLUMNS, tail: sums::ADD };
    let sums = sums::of(new);
    insert_all::<DB, _>(connection, &hours, &sums, sums::bind).await?;
    let totals =
        RowTarget { backend, table: "usage_totals", columns: totals::COLUMNS, tail: totals::ADD };
    insert_all::<DB, _>(connection, &totals, &totals::of(&sums), totals::bind).await?;
    let (columns, tail) = (totals::USER_COLUMNS, totals::ADD_USER);
    let users = RowTarget { backend, table: "hourly_users", columns, tail };
    insert_all::<DB, _>(connection, &users, &totals::of_users(&sums), totals::bind_user).await?;
    let (columns, tail) = (miss_sums::COLUMNS, miss_sums::ADD);
    let misses = RowTarget { backend, table: "hourly_cache_misses", columns, tail };
    insert_all::<DB, _>(connection, &misses, &miss_sums::of(new), miss_sums::bind).await?;
    for (sql, values) in
        days::take_out::<DB::Arguments>(new.iter().map(|record| record.counts_at()))
    {
        connection.execute(sqlx::query_with(sql, values.into_arguments())).await?;
    }
    Ok(Some(u64::try_from(new.len()).unwrap_or(u64::MAX)))
}

/// An existing row stays as it is, and does not count as written.
const ONCE: &str = "ON CONFLICT (request_id) DO NOTHING";

/// Writes records that should all be new to SQLite; returns whether they were.
///
/// Ids begin with their time. So nearly always all ids of the archive are smaller, which one
/// look-up confirms; else the records are written one by one.
async fn write_new<DB: Writes>(
    connection: &mut DB::Connection,
    records: &[&Record],
) -> Result<bool, StoreError>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    DB::Arguments: Collect + IntoArguments<DB>,
{
    // They are sorted by id.
    let Some(first) = records.first() else { return Ok(true) };
    let mut values = Values::of(DB::Arguments::default());
    values.bytes(first.request_id.0.as_bytes());
    let later = "SELECT 1 FROM ledger_archive WHERE request_id >= ? LIMIT 1";
    let query = sqlx::query_with(later, values.into_arguments());
    if query.fetch_optional(&mut *connection).await?.is_some() {
        return Ok(false);
    }
    let bind =
        |values: &mut Values<DB::Arguments>, record: &&Record| log_row::bind_log(values, record);
    let (backend, table, columns) = (Backend::Sqlite, "request_log", log_row::LOG_COLUMNS);
    let log = RowTarget { backend, table, columns, tail: ONCE };
    Ok(insert_all::<DB, _>(connection, &log, records, bind).await? == records.len() as u64)
}

/// Writes the records that SQLite does not have yet, and returns them.
async fn write_any_to_log<'r, DB: Writes>(
    connection: &mut DB::Connection,
    records: &[&'r Record],
) -> Result<Vec<&'r Record>, StoreError>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    DB::Arguments: Collect + IntoArguments<DB>,
{
    let columns = log_row::LOG_COLUMNS;
    let (list, places) = (columns.join(", "), vec!["?"; columns.len()].join(", "));
    let sql: Arc<str> = format!(
        "{OR_FAIL} INTO request_log ({list}) SELECT {places} WHERE NOT EXISTS \
         (SELECT 1 FROM ledger_archive WHERE request_id = ?) {ONCE}"
    )
    .into();
    let mut new = Vec::with_capacity(records.len());
    for record in records {
        let mut values = Values::of(DB::Arguments::default());
        log_row::bind_log(&mut values, record);
        values.bytes(record.request_id.0.as_bytes());
        let query = sqlx::query_with(AssertSqlSafe(Arc::clone(&sql)), values.into_arguments());
        if DB::affected(&query.execute(&mut *connection).await?) == 1 {
            new.push(*record);
        }
    }
    Ok(new)
}

/// Writes the records that PostgreSQL does not have yet, and returns them.
async fn write_any<'r, DB: Writes>(
    connection: &mut DB::Connection,
    records: &[&'r Record],
) -> Result<Vec<&'r Record>, StoreError>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    DB::Arguments: Collect + IntoArguments<DB>,
{
    let backend = Backend::Postgres;
    let ledger =
        RowTarget { backend, table: "ledger", columns: log_row::LEDGER_COLUMNS, tail: ONCE };
    let mut new = Vec::with_capacity(records.len());
    for record in records.chunks(1) {
        let taken = insert_all::<DB, _>(connection, &ledger, record, |v, record| {
            log_row::bind_ledger(v, record)
        });
        if taken.await? == 1 {
            new.extend_from_slice(record);
        }
    }
    let log = RowTarget { backend, table: "request_log", columns: log_row::LOG_COLUMNS, tail: "" };
    insert_all::<DB, _>(connection, &log, &new, |values, record| log_row::bind_log(values, record))
        .await?;
    Ok(new)
}

/// A database driver that records are written through: `Any`, or SQLite's own, which saves the
/// writer a third of its work. (Any other driver is `copy`'s.)
trait Writes: Database {
    fn affected(result: &Self::QueryResult) -> u64;
}

impl Writes for Any {
    fn affected(result: &AnyQueryResult) -> u64 {
        result.rows_affected()
    }
}

impl Writes for Sqlite {
    fn affected(result: &SqliteQueryResult) -> u64 {
        result.rows_affected()
    }
}

/// Where rows go, and the text after the insert in the statement.
struct RowTarget<'t> {
    backend: Backend,
    table: &'static str,
    columns: &'static [&'static str],
    tail: &'t str,
}

/// Inserts the items in chunks and returns the number of accepted rows.
async fn insert_all<DB: Writes, T>(
    connection: &mut DB::Connection,
    target: &RowTarget<'_>,
    mut items: &[T],
    bind: impl Fn(&mut Values<DB::Arguments>, &T),
) -> Result<u64, StoreError>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    DB::Arguments: Collect + IntoArguments<DB>,
{
    let mut taken = 0;
    for size in CHUNKS {
        if items.len() < size {
            continue;
        }
        let insert = sql::insert(target.backend, target.table, target.columns, size);
        let insert = match target.backend {
            Backend::Sqlite => insert.replacen("INSERT", OR_FAIL, 1),
            Backend::Postgres => insert,
        };
        let sql: Arc<str> = [&insert, target.tail].concat().into();
        while let Some((chunk, rest)) = items.split_at_checked(size) {
            let mut arguments = DB::Arguments::default();
            sqlx::Arguments::reserve(&mut arguments, size * target.columns.len(), 0);
            let mut values = Values::of(arguments);
            for item in chunk {
                bind(&mut values, item);
            }
            let query = sqlx::query_with(AssertSqlSafe(Arc::clone(&sql)), values.into_arguments());
            taken += DB::affected(&query.execute(&mut *connection).await?);
            items = rest;
        }
    }
    Ok(taken)
}
