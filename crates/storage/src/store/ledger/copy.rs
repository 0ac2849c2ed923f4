//! Writes new records to PostgreSQL: a binary `COPY` into the ledger and one into the request log,
//! and the sums as arrays, each table with one statement, however many rows there are.
//!
//! A record that is stored already violates the ledger's primary key and ends the transaction; the
//! caller then writes the batch row by row.

use std::borrow::Cow;
use std::sync::Arc;

use sqlx::postgres::PgArguments;
use sqlx::{AssertSqlSafe, Connection as _, Executor, PgConnection};

use super::{days, log_row, miss_sums, sums, totals};
use crate::domain::record::Record;
use crate::store::engine::column::{Collect, Values};
use crate::store::engine::connect::CopyConnection;
use crate::store::engine::error::StoreError;
use crate::store::{Backend, Store};

impl Store {
    /// Writes records in one transaction; `None`: one was stored already, and nothing was written.
    pub(super) async fn copy_new(
        &self,
        copier: &CopyConnection,
        records: &[&Record],
    ) -> Result<Option<u64>, StoreError> {
        self.hold.check()?;
        let refused = |error| Backend::Postgres.acquire_error(error);
        let mut connection = copier.take().await.map_err(refused)?;
        let written = copy_all(&mut connection, records).await;
        if written.is_ok() {
            copier.keep(connection);
        }
        Ok(written?)
    }
}

/// Writes records in one transaction; `None`: one was stored already, and nothing was written.
async fn copy_all(
    connection: &mut PgConnection,
    records: &[&Record],
) -> Result<Option<u64>, sqlx::Error> {
    let mut tx = connection.begin().await?;
    if let Some(lock) = days::lock(Backend::Postgres) {
        tx.execute(lock).await?;
    }
    let ledger = rows(log_row::LEDGER_COLUMNS, records, log_row::bind_ledger);
    match copy(&mut tx, "ledger", log_row::LEDGER_COLUMNS, ledger).await {
        Err(sqlx::Error::Database(report)) if report.is_unique_violation() => {
            tx.rollback().await?;
            return Ok(None);
        }
        other => other?,
    }
    let log = rows(log_row::LOG_COLUMNS, records, log_row::bind_log);
    copy(&mut tx, "request_log", log_row::LOG_COLUMNS, log).await?;
    let sums = sums::of(records);
    let hours = SumsTable { table: "hourly_sums", columns: sums::COLUMNS, tail: sums::ADD };
    hours.add(&mut tx, &sums, sums::bind).await?;
    let all = SumsTable { table: "usage_totals", columns: totals::COLUMNS, tail: totals::ADD };
    all.add(&mut tx, &totals::of(&sums), totals::bind).await?;
    let (columns, tail) = (totals::USER_COLUMNS, totals::ADD_USER);
    let users = SumsTable { table: "hourly_users", columns, tail };
    users.add(&mut tx, &totals::of_users(&sums), totals::bind_user).await?;
    let (columns, tail) = (miss_sums::COLUMNS, miss_sums::ADD);
    let misses = SumsTable { table: "hourly_cache_misses", columns, tail };
    misses.add(&mut tx, &miss_sums::of(records), miss_sums::bind).await?;
    for (sql, values) in
        days::take_out::<PgArguments>(records.iter().map(|record| record.counts_at()))
    {
        sqlx::query_with(sql, values.into_arguments()).execute(&mut *tx).await?;
    }
    tx.commit().await?;
    Ok(Some(u64::try_from(records.len()).unwrap_or(u64::MAX)))
}

/// The start of a binary copy: signature, flags, length of the extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const END: [u8; 2] = (-1_i16).to_be_bytes();
const NULL: [u8; 4] = (-1_i32).to_be_bytes();
/// A typical row of the request log.
const ROW_BYTES: usize = 1024;

/// Rows in the binary form of a copy.
struct Rows(Vec<u8>);

impl Rows {
    fn field(&mut self, bytes: &[u8]) {
        let length = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
        self.0.extend_from_slice(&length.to_be_bytes());
        self.0.extend_from_slice(bytes);
    }

    fn optional(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.field(bytes),
            None => self.0.extend_from_slice(&NULL),
        }
    }
}

impl Collect for Rows {
    fn int(&mut self, value: Option<i64>) {
        self.optional(value.map(i64::to_be_bytes).as_ref().map(<[u8; 8]>::as_slice));
    }

    fn flag(&mut self, value: bool) {
        self.field(&i16::from(value).to_be_bytes());
    }

    fn text(&mut self, value: Option<Cow<'_, str>>) {
        self.optional(value.as_deref().map(str::as_bytes));
    }

    fn shared(&mut self, value: Option<&Arc<str>>) {
        self.optional(value.map(|text| text.as_bytes()));
    }

    fn bytes(&mut self, value: Vec<u8>) {
        self.field(&value);
    }
}

fn rows(
    columns: &[&str],
    records: &[&Record],
    bind: impl Fn(&mut Values<Rows>, &Record),
) -> Vec<u8> {
    let count = i16::try_from(columns.len()).unwrap_or(i16::MAX).to_be_bytes();
    let mut bytes = Vec::with_capacity(HEADER.len() + records.len() * ROW_BYTES);
    bytes.extend_from_slice(HEADER);
    for record in records {
        bytes.extend_from_slice(&count);
        let mut values = Values::of(Rows(bytes));
        bind(&mut values, record);
        bytes = values.into_arguments().0;
    }
    bytes.extend_from_slice(&END);
    bytes
}

async fn copy(
    connection: &mut PgConnection,
    table: &str,
    columns: &[&str],
    rows: Vec<u8>,
) -> Result<(), sqlx::Error> {
    let sql = format!("COPY {table} ({}) FROM STDIN (FORMAT binary)", columns.join(", "));
    let mut copy = connection.copy_in_raw(&sql).await?;
    copy.send(rows).await?;
    copy.finish().await?;
    Ok(())
}

/// The values of several rows, column by column.
struct Arrays {
    columns: Vec<Array>,
    /// The column of the next value.
    at: usize,
}

/// A column of the sums; none of them has nulls.
enum Array {
    Ints(Vec<i64>),
    Texts(Vec<String>),
}

impl Arrays {
    fn next(&mut self) -> Option<&mut Array> {
        let at = self.at;
        self.at = (at + 1) % self.columns.len().max(1);
        self.columns.get_mut(at)
    }
}

/// A value of a wrong type is left out. Then `UNNEST` fills up with nulls, which no column takes.
impl Collect for Arrays {
    fn int(&mut self, value: Option<i64>) {
        if let (Some(Array::Ints(array)), Some(value)) = (self.next(), value) {
            array.push(value);
        }
    }

    fn text(&mut self, value: Option<Cow<'_, str>>) {
        if let (Some(Array::Texts(array)), Some(value)) = (self.next(), value) {
            array.push(value.into_owned());
        }
    }

    fn shared(&mut self, value: Option<&Arc<str>>) {
        self.text(value.map(|text| Cow::Borrowed(text.as_ref())));
    }

    fn bytes(&mut self, _: Vec<u8>) {
        let _ = self.next();
    }
}

/// The columns of the sums that are text.
const TEXTS: [&str; 4] = ["model", "endpoint", "client", "cause"];

/// A table of sums, and what its statement does with rows that exist.
struct SumsTable {
    table: &'static str,
    columns: &'static [&'static str],
    tail: &'static str,
}

impl SumsTable {
    /// Adds rows, in their order.
    async fn add<T>(
        &self,
        connection: &mut PgConnection,
        rows: &[T],
        bind: impl Fn(&mut Values<Arrays>, &T),
    ) -> Result<(), sqlx::Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let of = |column: &&str| match TEXTS.contains(column) {
            true => Array::Texts(Vec::with_capacity(rows.len())),
            false => Array::Ints(Vec::with_capacity(rows.len())),
        };
        let columns = self.columns.iter().map(of).collect();
        let mut values = Values::of(Arrays { columns, at: 0 });
        for row in rows {
            bind(&mut values, row);
        }
        let arrays = values.into_arguments().columns;
        let types = arrays.iter().zip(1..).map(|(array, at)| match array {
            Array::Ints(_) => format!("CAST(${at} AS BIGINT[])"),
            Array::Texts(_) => format!("CAST(${at} AS TEXT[])"),
        });
        let sql = format!(
            "INSERT INTO {} ({}) SELECT * FROM UNNEST({}) {}",
            self.table,
            self.columns.join(", "),
            types.collect::<Vec<_>>().join(", "),
            self.tail
        );
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for array in arrays {
            query = match array {
                Array::Ints(array) => query.bind(array),
                Array::Texts(array) => query.bind(array),
            };
        }
        query.execute(connection).await?;
        Ok(())
    }
}
