//! A file in the data directory that exists while a process counts in Redis. A clean stop, with
//! everything sent, removes it.
//!
//! If a start finds a marker that no process holds, the latest counts may be only in the ledger:
//! then the shared counters are rebuilt from it. Each process has its own file and holds its lock,
//! since two run at once in an upgrade.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::files;

const NAME: &str = "counting-";

/// The file of this process; it remains if the process dies.
#[derive(Debug)]
pub(super) struct Marker {
    path: PathBuf,
    _locked: File,
}

impl Marker {
    /// Writes the file, and removes those of dead processes. Returns whether there were any.
    ///
    /// # Errors
    /// When the data directory cannot be read or written.
    pub(super) fn lay(data_dir: &Path) -> anyhow::Result<(Self, bool)> {
        let about = || format!("in {}", data_dir.display());
        let mut unclean = false;
        for entry in std::fs::read_dir(data_dir).with_context(about)? {
            let path = entry.with_context(about)?.path();
            let named = path
                .file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with(NAME));
            if named && is_left(&path).with_context(|| path.display().to_string())? {
                std::fs::remove_file(&path).with_context(|| path.display().to_string())?;
                unclean = true;
            }
        }
        let path = data_dir.join(format!("{NAME}{}", uuid::Uuid::new_v4().simple()));
        let file = files::private()
            .write(true)
            .create_new(true)
            .open(&path)
            .with_context(|| path.display().to_string())?;
        file.try_lock()
            .map_err(std::io::Error::from)
            .with_context(|| path.display().to_string())?;
        // A missing file means that everything was sent: it must survive a power failure.
        files::sync_dir(data_dir).with_context(about)?;
        Ok((Self { path, _locked: file }, unclean))
    }

    /// Removes the file: everything was sent.
    pub(super) fn lift(&self) {
        if let Err(e) = std::fs::remove_file(&self.path) {
            tracing::warn!(error = %e, path = %self.path.display(), "could not be removed");
        }
    }
}

fn is_left(path: &Path) -> std::io::Result<bool> {
    match File::open(path)?.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_process_left_is_found_once_and_what_a_live_one_holds_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let lay = || Marker::lay(dir.path()).unwrap();
        let (first, unclean) = lay();
        assert!(!unclean);
        let (second, unclean) = lay();
        assert!(!unclean, "the first is alive");
        second.lift();
        drop((first, second));
        let (last, unclean) = lay();
        assert!(unclean, "the first was never lifted");
        last.lift();
        drop(last);
        assert!(!lay().1);
    }
}
