//! Rows in transfer: from SQLite's values to the binary form of PostgreSQL's `COPY`, and the place
//! after a row.
//!
//! Nothing is converted: times and money are integers on both sides, decimals, lists and JSON are
//! text. A place is the row's primary key as a JSON list, bytes in hexadecimal.

use serde_json::Value;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments, Decode, Row, Sqlite, Type};

use super::error::TransferError;
use super::tables::{Column, ColumnKind, Table};

/// The start of a binary copy: signature, flags, length of the extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const END: [u8; 2] = (-1_i16).to_be_bytes();
const NULL: [u8; 4] = (-1_i32).to_be_bytes();
/// A batch is full when it reaches either bound.
const MAX_BYTES: usize = 4 << 20;
const MAX_ROWS: u64 = 10_000;

/// Rows of one table that are written in one transaction.
pub(super) struct RowBatch {
    bytes: Vec<u8>,
    rows: u64,
    last: Option<SqliteRow>,
}

impl RowBatch {
    pub(super) fn new() -> Self {
        Self { bytes: HEADER.to_vec(), rows: 0, last: None }
    }

    pub(super) const fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows >= MAX_ROWS || self.bytes.len() >= MAX_BYTES
    }

    /// The place after the last row; `None`: there is no row.
    pub(super) fn place(&self, table: &Table) -> Result<Option<String>, TransferError> {
        self.last.as_ref().map(|row| place(table, row)).transpose()
    }

    pub(super) fn push(&mut self, table: &Table, row: SqliteRow) -> Result<(), TransferError> {
        let count = i16::try_from(table.columns.len()).unwrap_or(i16::MAX);
        self.bytes.extend(count.to_be_bytes());
        for (at, column) in table.columns.iter().enumerate() {
            self.push_value(table, column, at, &row)?;
        }
        self.rows += 1;
        self.last = Some(row);
        Ok(())
    }

    fn push_value(
        &mut self,
        table: &Table,
        column: &Column,
        at: usize,
        row: &SqliteRow,
    ) -> Result<(), TransferError> {
        let wrong = |why: &str| wrong(table, column, why);
        match column.kind {
            ColumnKind::Int => match get::<i64>(table, column, at, row)? {
                None => self.bytes.extend(NULL),
                Some(value) if column.is_small => {
                    let value =
                        i16::try_from(value).map_err(|_| wrong("a number is out of range"))?;
                    self.field(&value.to_be_bytes())
                }
                Some(value) => self.field(&value.to_be_bytes()),
            },
            ColumnKind::Text => match get::<&str>(table, column, at, row)? {
                None => self.bytes.extend(NULL),
                Some(text) if memchr::memchr(0, text.as_bytes()).is_some() => {
                    return Err(wrong(
                        "a text holds a NUL character, which PostgreSQL cannot hold",
                    ));
                }
                Some(text) => self.field(text.as_bytes()),
            },
            ColumnKind::Bytes => match get::<&[u8]>(table, column, at, row)? {
                None => self.bytes.extend(NULL),
                Some(bytes) => self.field(bytes),
            },
        }
        Ok(())
    }

    fn field(&mut self, bytes: &[u8]) {
        let length = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
        self.bytes.extend(length.to_be_bytes());
        self.bytes.extend_from_slice(bytes);
    }

    /// All bytes to be sent.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.extend(END);
        self.bytes
    }
}

fn wrong(table: &Table, column: &Column, why: &str) -> TransferError {
    TransferError::Value { table: table.name, column: column.name.clone(), why: why.to_owned() }
}

fn get<'r, T: Decode<'r, Sqlite> + Type<Sqlite>>(
    table: &Table,
    column: &Column,
    at: usize,
    row: &'r SqliteRow,
) -> Result<Option<T>, TransferError> {
    row.try_get(at).map_err(|error| wrong(table, column, &error.to_string()))
}

fn place(table: &Table, row: &SqliteRow) -> Result<String, TransferError> {
    let mut key = Vec::with_capacity(table.key.len());
    for (&at, column) in table.key.iter().zip(table.key_columns()) {
        let value = match column.kind {
            ColumnKind::Int => get::<i64>(table, column, at, row)?.map(Value::from),
            ColumnKind::Text => get::<&str>(table, column, at, row)?.map(Value::from),
            ColumnKind::Bytes => {
                get::<&[u8]>(table, column, at, row)?.map(|bytes| hex::encode(bytes).into())
            }
        };
        key.push(value.ok_or_else(|| wrong(table, column, "a key is null"))?);
    }
    Ok(Value::Array(key).to_string())
}

/// The values of a place, for a statement that continues after it.
pub(super) fn arguments(table: &Table, place: &str) -> Result<SqliteArguments, TransferError> {
    let unread = || {
        TransferError::Shape(format!(
            "the place in {} that the move had reached cannot be read",
            table.name
        ))
    };
    let key: Vec<Value> = serde_json::from_str(place).map_err(|_| unread())?;
    if key.len() != table.key.len() {
        return Err(unread());
    }
    let mut arguments = SqliteArguments::default();
    for (value, column) in key.iter().zip(table.key_columns()) {
        let added = match column.kind {
            ColumnKind::Int => Arguments::add(&mut arguments, value.as_i64().ok_or_else(unread)?),
            ColumnKind::Text => {
                Arguments::add(&mut arguments, value.as_str().ok_or_else(unread)?.to_owned())
            }
            ColumnKind::Bytes => Arguments::add(
                &mut arguments,
                value.as_str().and_then(|text| hex::decode(text).ok()).ok_or_else(unread)?,
            ),
        };
        added.map_err(|_| unread())?;
    }
    Ok(arguments)
}
