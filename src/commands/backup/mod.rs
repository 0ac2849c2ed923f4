//! `tollgate backup` and `tollgate restore`: the state of a gateway on SQLite as one file.
//!
//! `make` writes it beside a running gateway, `restore` puts it into a data directory that no
//! gateway uses, `archive` is the file's format, `switch` the step that an interruption must not
//! leave half done.

mod archive;
mod background;
mod make;
mod restore;
mod switch;

pub use make::{BackedUp, backup};
pub use restore::{Restored, Restoring, restore};

use std::path::{Path, PathBuf};

use super::not_embedded::NotEmbedded;
use crate::config::{Config, DatabaseTarget};
use crate::crypto::key_ring;

/// The embedded database's file.
const DATABASE: &str = "tollgate.db";
const JOURNAL: &str = "journal";
const BACKGROUND: &str = "background";
/// The files that only `--with-secrets` puts into a backup.
const SECRETS: [&str; 2] = [key_ring::FILE, "admin.token"];

/// The data directory, if the database is in it.
fn embedded(config: &Config) -> Result<&Path, NotEmbedded> {
    match config.database_target() {
        DatabaseTarget::Sqlite { dir } => Ok(dir),
        DatabaseTarget::Postgres(_) => Err(NotEmbedded(
            "(database.url): `tollgate backup` and `tollgate restore` are for the embedded SQLite \
             database. docs/backup.md says how PostgreSQL is backed up",
        )),
    }
}

/// A directory for files that are not finished; it goes when this does.
struct Scratch(PathBuf);

impl Scratch {
    /// Creates it empty, for its user alone.
    fn make(path: PathBuf) -> std::io::Result<Self> {
        crate::files::remove_dir(&path)?;
        crate::files::make_dir(&path)?;
        Ok(Self(path))
    }

    /// It is no longer unfinished, or no longer there.
    fn keep(mut self) {
        self.0 = PathBuf::new();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            // What cannot be removed takes room and harms nothing.
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
