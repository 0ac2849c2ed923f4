//! A copy of the embedded database as of one moment, made while gateways write to it.
//!
//! `VACUUM INTO` reads in one read transaction, which in WAL mode blocks no writer, and its result
//! is one file without `-wal` and `-shm`. The backup API would begin again with each commit of
//! another process. SQLite does not sync the copy.

use std::path::Path;

use super::engine::column::Values;
use super::{Store, StoreError};

impl Store {
    /// Copies the embedded database to a file that is not there yet. The path must be UTF-8.
    ///
    /// # Errors
    /// [`StoreError`] of the copy: no room, for example.
    pub async fn copy_to(&self, path: &Path) -> Result<(), StoreError> {
        let mut values = Values::default();
        values.text(&path.to_string_lossy());
        // Not on a reader's connection: SQLite takes the new file for a change, too.
        sqlx::query_with("VACUUM INTO $1", values.into_arguments())
            .execute(&mut *self.writer().await?)
            .await?;
        Ok(())
    }
}
