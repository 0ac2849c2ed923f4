//! The progress of a move, in the target itself: one row of a table that exists only until the move
//! is finished.
//!
//! See docs/decisions/35-move-progress-in-target.md.

use sqlx::{AnyConnection, Row};

use crate::store::engine::column::Values;
use crate::store::engine::error::StoreError;

pub(super) const NAME: &str = "move_state";

/// `source` and `digest` identify the database and its content; the rest is the place after the
/// last row.
pub(super) const CREATE: &str = "CREATE TABLE move_state (id SMALLINT PRIMARY KEY CHECK (id = 1), \
    source TEXT NOT NULL, path TEXT NOT NULL, digest TEXT NOT NULL, table_name TEXT NOT NULL, \
    copied BIGINT NOT NULL, place TEXT)";

/// `$1` to `$3`: the new place. `$4` and `$5`: the old one.
pub(super) const ADVANCE: &str = "UPDATE move_state SET table_name = $1, copied = $2, place = $3 \
     WHERE id = 1 AND table_name = $4 AND copied = $5";

/// A move that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TransferState {
    /// Distinguishes the source from other databases.
    pub(super) source: String,
    /// The source's path, for messages.
    pub(super) path: String,
    /// The source's figures when the move began.
    pub(super) digest: String,
    pub(super) at: Reached,
}

/// The table that is being copied, its rows so far, and the place after the last of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Reached {
    pub(super) table: String,
    pub(super) copied: i64,
    pub(super) place: Option<String>,
}

pub(super) async fn read(connection: &mut AnyConnection) -> Result<TransferState, StoreError> {
    let sql = "SELECT source, path, digest, table_name, copied, place FROM move_state WHERE id = 1";
    let row = sqlx::query(sql).fetch_one(connection).await?;
    Ok(TransferState {
        source: row.try_get(0)?,
        path: row.try_get(1)?,
        digest: row.try_get(2)?,
        at: Reached { table: row.try_get(3)?, copied: row.try_get(4)?, place: row.try_get(5)? },
    })
}

pub(super) async fn insert(
    connection: &mut AnyConnection,
    state: &TransferState,
) -> Result<(), StoreError> {
    let mut values = Values::default();
    values.text(&state.source).text(&state.path).text(&state.digest).text(&state.at.table);
    let sql = "INSERT INTO move_state (id, source, path, digest, table_name, copied) \
               VALUES (1, $1, $2, $3, $4, 0)";
    sqlx::query_with(sql, values.into_arguments()).execute(connection).await?;
    Ok(())
}
