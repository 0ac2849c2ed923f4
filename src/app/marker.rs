//! A file that lies in the data directory while a process counts in Redis, and is gone when it
//! stopped with everything told.
//!
//! A start that finds one which no process holds knows that what was counted last may be in the
//! ledger alone: then the shared counters are made again from it. Each process has its own file and
//! holds its lock, since at an upgrade two run at once.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::files;

const NAME: &str = "counting-";

/// The file of this process; it stays when the process dies.
#[derive(Debug)]
pub(super) struct Marker {
    path: PathBuf,
    _locked: File,
}

impl Marker {
    /// Lays the file, and takes away those that dead processes left. Whether there were any.
    ///
    /// # Errors
    /// When the data directory cannot be read or written.
    pub(super) fn lay(data_dir: &Path) -> anyhow::Result<(Self, bool)> {
        let about = || format!("in {}", data_dir.display());
        let mut unclean = false;
        for entry in std::fs::read_dir(data_dir).with_context(about)? {
            let path = entry.with_context(about)?.path();
            let named = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(NAME));
            if named && is_left(&path).with_context(|| path.display().to_string())? {
                std::fs::remove_file(&path).with_context(|| path.display().to_string())?;
                unclean = true;
            }
        }
        let path = data_dir.join(format!("{NAME}{}", uuid::Uuid::new_v4().simple()));
        let file =
            files::private().write(true).create_new(true).open(&path).with_context(|| path.display().to_string())?;
        file.try_lock().map_err(std::io::Error::from).with_context(|| path.display().to_string())?;
        // Its absence says that everything was told: it must not vanish with the power.
        files::sync_dir(data_dir).with_context(about)?;
        Ok((Self { path, _locked: file }, unclean))
    }

    /// Everything was told.
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
