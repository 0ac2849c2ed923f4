//! The errors between the gateway and its database, as a few cases that callers can act on.
//!
//! Of the database URL, no message contains more than the database's own name: the URL carries a
//! password.

use thiserror::Error;

/// A failed call of the store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The database is unreachable now, or refuses the connection. Worth retrying later.
    #[error("the database cannot be reached: {what}")]
    Unreachable {
        /// Why, for the log. It holds no part of the database URL but the database's name.
        what: String,
    },
    /// The database answers, but a lock or a connection was not free in time. Worth retrying.
    #[error("the database is busy: {what}")]
    Busy {
        /// What was not free, for the log.
        what: String,
    },
    /// A report's statement took longer than it may.
    #[error("the report takes too long")]
    Slow,
    /// A constraint of the schema refused the write; `what` is the constraint, or the columns, as
    /// the back end names them.
    #[error("the database refused the change: {what}")]
    Constraint {
        /// The constraint's name, or else the back end's message.
        what: String,
    },
    /// The row to change does not exist.
    #[error("there is no {what}")]
    Missing {
        /// What was looked for, without an article: the message reads "there is no …".
        what: String,
    },
    /// The database's schema is not this program's version.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A stored value cannot be read as its type.
    #[error("the database holds a value that cannot be read: {what}")]
    Corrupt {
        /// The table and column of the value, or the back end's message.
        what: String,
    },
    /// Any other error of the back end.
    #[error("the database failed: {what}")]
    Database {
        /// The back end's message.
        what: String,
    },
}

/// Why the database's schema is not this program's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SchemaError {
    /// A newer version of the program migrated the database.
    #[error(
        "the database was migrated by a newer version of tollgate (its schema is at {found}, this \
         program knows up to {known}): run that version, or restore a backup from before the \
         upgrade"
    )]
    Newer {
        /// The newest migration that was applied to the database.
        found: i64,
        /// The newest migration that this program has.
        known: i64,
    },
    /// The database has not got all of this program's migrations yet.
    #[error("the database lacks {} migration(s) ({}): run `tollgate \
             migrate`", missing.len(), missing.join(", "))]
    Behind {
        /// Names of the migrations to apply, in order; never empty.
        missing: Vec<String>,
    },
    /// The record of migrations does not agree with the tables, or with this program's migrations.
    #[error(
        "the database is half migrated: {why} ({name}). Do not start on it: restore a backup, or \
         repair the schema by hand"
    )]
    HalfMigrated {
        /// The migration, or the table, that shows it.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// The database is the target of a `tollgate move` that has not finished.
    #[error(
        "a `tollgate move` into this database was begun and not finished: start the same move \
         again, and it goes on. To give it up, drop the database"
    )]
    HalfMoved,
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(report) => from_report(report.as_ref()),
            sqlx::Error::PoolTimedOut => {
                Self::Busy { what: "no connection became free in time".to_owned() }
            }
            sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => {
                Self::Unreachable { what: "the connection is closed".to_owned() }
            }
            sqlx::Error::Io(cause) => Self::Unreachable { what: cause.to_string() },
            sqlx::Error::Tls(cause) => Self::Unreachable { what: format!("TLS: {cause}") },
            // The parser's own message may quote the URL.
            sqlx::Error::Configuration(_) => {
                Self::Unreachable { what: "the database URL is not valid".to_owned() }
            }
            sqlx::Error::RowNotFound => Self::Missing { what: "such row".to_owned() },
            sqlx::Error::ColumnDecode { index, source } => {
                Self::Corrupt { what: format!("column {index}: {source}") }
            }
            sqlx::Error::ColumnNotFound(name) => {
                Self::Corrupt { what: format!("column {name} is missing") }
            }
            sqlx::Error::Decode(cause) => Self::Corrupt { what: cause.to_string() },
            other => Self::Database { what: other.to_string() },
        }
    }
}

/// Classifies an error by its code: SQLSTATE on PostgreSQL (five characters), the extended result
/// code on SQLite.
fn from_report(report: &dyn sqlx::error::DatabaseError) -> StoreError {
    let code = report.code().unwrap_or_default();
    let message = report.message();
    if report.is_unique_violation()
        || report.is_foreign_key_violation()
        || report.is_check_violation()
    {
        let what = report.constraint().map_or_else(|| message.to_owned(), str::to_owned);
        return StoreError::Constraint { what };
    }
    match code.as_ref() {
        // The server's text contains the user name from the URL.
        "28000" | "28P01" => {
            StoreError::Unreachable { what: "it refused the credentials".to_owned() }
        }
        "3D000" | "57P01" | "57P02" | "57P03" | "53300" => {
            StoreError::Unreachable { what: message.to_owned() }
        }
        // query_canceled
        "57014" => StoreError::Slow,
        "40001" | "40P01" | "55P03" => StoreError::Busy { what: message.to_owned() },
        "23502" => StoreError::Constraint { what: message.to_owned() },
        state if state.len() == 5 && state.starts_with("08") => {
            StoreError::Unreachable { what: message.to_owned() }
        }
        number if number.len() < 5 => from_sqlite(number.parse().unwrap_or_default(), message),
        _ => StoreError::Database { what: message.to_owned() },
    }
}

/// The low byte of an extended result code is its primary code.
fn from_sqlite(code: i32, message: &str) -> StoreError {
    let what = message.to_owned();
    match code & 0xff {
        // SQLITE_BUSY, SQLITE_LOCKED
        5 | 6 => StoreError::Busy { what },
        // SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL, SQLITE_CANTOPEN
        8 | 10 | 13 | 14 => StoreError::Unreachable { what },
        // SQLITE_CONSTRAINT
        19 => StoreError::Constraint { what },
        // SQLITE_CORRUPT, SQLITE_NOTADB
        11 | 26 => StoreError::Corrupt { what },
        _ => StoreError::Database { what },
    }
}
