//! Storage of what cannot be delivered: damaged stretches of the journal, and records that the
//! database refuses.
//!
//! They are kept for the operator in `set-aside/` beside the journals, one file each, named after
//! their origin: so a batch that is read twice leaves one file. Nothing is ever deleted there.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::domain::record::Record;
use crate::files;

use super::segment::Position;
use super::stats::{JournalTally, add};

pub(super) const DIR: &str = "set-aside";

pub(super) struct SetAside {
    dir: PathBuf,
    tally: Arc<JournalTally>,
}

impl SetAside {
    pub(super) fn beside(root: &Path, tally: Arc<JournalTally>) -> Self {
        Self { dir: root.join(DIR), tally }
    }

    /// Stores bytes of a segment that are not frames, or no record that this program can read.
    pub(super) fn damage(
        &self,
        journal: &Path,
        at: Position,
        bytes: &[u8],
        what: &str,
    ) -> io::Result<()> {
        let name = format!("{}-{:010}-{}.corrupt", name_of(journal), at.segment, at.offset);
        if self.keep(&name, bytes)? {
            add(&self.tally.damaged_ranges, 1);
            tracing::error!(
                journal = %journal.display(), segment = at.segment, offset = at.offset, bytes = bytes.len(),
                kept = %self.dir.join(&name).display(), "{what}"
            );
        }
        Ok(())
    }

    /// Stores a record that the database refuses, with its reason.
    pub(super) fn refused(&self, record: &Record, reason: &str) -> io::Result<()> {
        let name = format!("{}.refused.json", record.request_id);
        let body = serde_json::json!({ "reason": reason, "record": record });
        if self.keep(&name, body.to_string().as_bytes())? {
            add(&self.tally.refused_records, 1);
            tracing::error!(
                request_id = %record.request_id, reason, kept = %self.dir.join(&name).display(),
                "the database refuses a ledger record: it is set aside"
            );
        }
        Ok(())
    }

    /// Returns whether the file is new.
    fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let path = self.dir.join(name);
        if path.exists() {
            // The process that wrote it may have been killed before it synced the name.
            return files::sync_dir(&self.dir).map(|()| false);
        }
        // The journal deletes these bytes next, so they and their name must be on the disk.
        files::make_dir(&self.dir)?;
        let half = self.dir.join(format!("{name}.new"));
        files::replace_synced(&path, &half, bytes)?;
        Ok(true)
    }
}

fn name_of(dir: &Path) -> std::borrow::Cow<'_, str> {
    dir.file_name().map_or("journal".into(), |name| name.to_string_lossy())
}
