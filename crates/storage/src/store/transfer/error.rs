//! Why a database could not be copied.

use thiserror::Error;

use crate::store::engine::error::{SchemaError, StoreError};

/// A step of a move that failed. Committed rows stay; the next run continues from there.
#[derive(Debug, Error)]
pub enum TransferError {
    /// A database could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A table or column exists on one side only.
    #[error("the two databases differ in their tables: {0}")]
    Shape(String),
    /// A stored value that PostgreSQL cannot hold.
    #[error("{table}.{column} cannot be copied: {why}")]
    Value {
        /// The table of the value.
        table: &'static str,
        /// The column of the value.
        column: String,
        /// What PostgreSQL cannot hold.
        why: String,
    },
    /// The progress that is stored in the target is not this run's.
    #[error("another `tollgate move` writes to the same target")]
    Interfered,
}

impl From<sqlx::Error> for TransferError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<SchemaError> for TransferError {
    fn from(error: SchemaError) -> Self {
        Self::Store(error.into())
    }
}
