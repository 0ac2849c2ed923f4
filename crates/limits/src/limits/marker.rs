//! A file in the data directory that exists while a process counts in Redis. A clean stop, with
//! everything sent to Redis and delivered to the ledger, removes it.
//!
//! If a start finds a marker that no process holds, Redis may lack the latest counts: they are only
//! in the ledger, or another node rebuilt the counters before the journal was delivered. Then the
//! shared counters are rebuilt from the ledger. Each process has its own file and holds its lock,
//! since two run at once in an upgrade.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

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
    /// When the data directory cannot be read or written; the error names the path.
    pub(super) fn lay(data_dir: &Path) -> io::Result<(Self, bool)> {
        let unclean = remove_left(data_dir).map_err(files::naming(data_dir))?;
        let path = data_dir.join(format!("{NAME}{}", uuid::Uuid::new_v4().simple()));
        let file = create(&path).map_err(files::naming(&path))?;
        // A missing file means a clean stop: the file must survive a power failure.
        files::sync_dir(data_dir).map_err(files::naming(data_dir))?;
        Ok((Self { path, _locked: file }, unclean))
    }

    /// Removes the file: everything was sent and delivered.
    pub(super) fn lift(&self) {
        if let Err(e) = std::fs::remove_file(&self.path) {
            tracing::warn!(error = %e, path = %self.path.display(), "could not be removed");
        }
    }
}

/// Removes the files of dead processes; returns whether there were any.
fn remove_left(data_dir: &Path) -> io::Result<bool> {
    let mut found = false;
    for entry in std::fs::read_dir(data_dir)? {
        let entry = entry?;
        let named = entry.file_name().to_str().is_some_and(|name| name.starts_with(NAME));
        let path = entry.path();
        if named && is_left(&path).map_err(files::naming(&path))? {
            std::fs::remove_file(&path).map_err(files::naming(&path))?;
            found = true;
        }
    }
    Ok(found)
}

fn create(path: &Path) -> io::Result<File> {
    let file = files::private().write(true).create_new(true).open(path)?;
    file.try_lock()?;
    Ok(file)
}

fn is_left(path: &Path) -> io::Result<bool> {
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

    #[test]
    fn an_error_names_the_directory() {
        let error = Marker::lay(Path::new("/nowhere/at/all")).unwrap_err();
        assert!(error.to_string().starts_with("/nowhere/at/all: "), "{error}");
    }
}
