//! Which process owns which journal directory.
//!
//! Under the root, every process has its own directory, named by a UUID and held by an exclusive
//! lock on the file `lock` in it. The kernel releases the lock with the process, however it ends. A
//! directory whose lock is free has no owner: the process that gets the lock delivers its content
//! and removes it. Two processes never share a journal, and a new binary need not wait for the old
//! one.
//!
//! A directory is created under a temporary name and renamed when it is locked, so that no other
//! process treats it as abandoned before its owner has the lock.
//!
//! See docs/decisions/28-no-queue.md.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::{checkpoint, segment};
use crate::files;

const LOCK: &str = "lock";
/// The socket of [`super::hand_on`].
pub(super) const HAND_ON: &str = "hand-on";
const UNBORN: &str = "new-";
const CHECKPOINTS: [&str; 2] = [checkpoint::NAME, checkpoint::NEW_NAME];
/// Another process may clean up a directory just before its owner locks it; three times in a row
/// does not happen.
const TRIES: usize = 3;

/// A journal directory that this process holds.
#[derive(Debug)]
pub(super) struct Claim {
    path: PathBuf,
    _lock: File,
}

impl Claim {
    /// A new, empty directory.
    pub(super) fn fresh(root: &Path) -> io::Result<Self> {
        files::make_dir(root)?;
        let mut failed = io::Error::other("no lock on a new journal directory");
        for _ in 0..TRIES {
            match Self::try_fresh(root) {
                Ok(claim) => return Ok(claim),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn try_fresh(root: &Path) -> io::Result<Self> {
        let name = uuid::Uuid::now_v7().to_string();
        let unborn = root.join(format!("{UNBORN}{name}"));
        fs::DirBuilder::new().mode(files::DIR_MODE).create(&unborn)?;
        let lock = files::private().write(true).create_new(true).open(unborn.join(LOCK))?;
        lock.try_lock()?;
        let path = root.join(name);
        files::rename_synced(&unborn, &path)?;
        Ok(Self { path, _lock: lock })
    }

    /// Takes over every directory whose owner has ended.
    pub(super) fn abandoned(root: &Path) -> io::Result<Vec<Self>> {
        let mut claims = Vec::new();
        for path in journals(root)? {
            match Self::take(path) {
                Ok(claim) => claims.extend(claim),
                Err(error) => tracing::warn!(%error, "a journal directory cannot be looked at"),
            }
        }
        Ok(claims)
    }

    /// Directories whose owner has ended, and those that are held by other processes.
    pub(super) fn survey(root: &Path) -> io::Result<(Vec<Self>, Vec<PathBuf>)> {
        let (mut abandoned, mut held) = (Vec::new(), Vec::new());
        for path in journals(root)? {
            match Self::take(path.clone())? {
                Some(claim) => abandoned.push(claim),
                // Else its owner has just removed it.
                None => held.extend(path.exists().then_some(path)),
            }
        }
        Ok((abandoned, held))
    }

    /// The directory, if no process holds it.
    fn take(path: PathBuf) -> io::Result<Option<Self>> {
        // Created if missing: a copy of a journal that was put here by hand is delivered too.
        let opened =
            files::private().create(true).truncate(false).write(true).open(path.join(LOCK));
        let lock = match opened {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Another process may have delivered and removed it between opening and locking.
        Ok(path.join(LOCK).exists().then_some(Self { path, _lock: lock }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory, once nothing in it waits any more. If it contains files that are not
    /// the journal's, they and the directory stay.
    pub(super) fn remove(&self) -> io::Result<()> {
        match self.remove_files().and_then(|()| fs::remove_dir(&self.path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn remove_files(&self) -> io::Result<()> {
        segment::delete_before(&self.path, u64::MAX)?;
        for name in CHECKPOINTS.into_iter().chain([HAND_ON, LOCK]) {
            match fs::remove_file(self.path.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// All journal directories, oldest first: the order of names is the order of age.
pub(super) fn journals(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut dirs = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && is_journal(&entry.file_name()) {
            dirs.push(entry.path());
        }
    }
    dirs.sort();
    Ok(dirs)
}

fn is_journal(name: &OsStr) -> bool {
    let name = name.to_str().unwrap_or_default();
    uuid::Uuid::try_parse(name.strip_prefix(UNBORN).unwrap_or(name)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_taken_over_only_when_its_owner_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let first = Claim::fresh(root.path()).unwrap();
        let second = Claim::fresh(root.path()).unwrap();
        assert!(Claim::abandoned(root.path()).unwrap().is_empty());
        assert_eq!(Claim::survey(root.path()).unwrap().1.len(), 2);
        let path = first.path().to_owned();
        drop(first);
        let (left, held) = Claim::survey(root.path()).unwrap();
        assert_eq!(
            (left.iter().map(Claim::path).collect::<Vec<_>>(), held),
            (vec![path.as_path()], vec![second.path().to_owned()])
        );
        drop(left);
        let taken = Claim::abandoned(root.path()).unwrap();
        assert_eq!(taken.iter().map(Claim::path).collect::<Vec<_>>(), [path.as_path()]);
        assert!(Claim::abandoned(root.path()).unwrap().is_empty(), "held by its new owner");
        taken[0].remove().unwrap();
        taken[0].remove().unwrap();
        drop(taken);
        assert!(Claim::abandoned(root.path()).unwrap().is_empty());
        assert!(second.path().exists());
    }

    #[test]
    fn an_unborn_directory_of_a_dead_process_is_taken_over_too() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(format!("new-{}", uuid::Uuid::now_v7()))).unwrap();
        for other in ["set-aside", "lost+found"] {
            fs::create_dir(root.path().join(other)).unwrap();
        }
        fs::write(root.path().join("a-file"), "").unwrap();
        let taken = Claim::abandoned(root.path()).unwrap();
        assert_eq!(taken.len(), 1);
        fs::write(taken[0].path().join("note.txt"), "not ours").unwrap();
        taken[0].remove().unwrap_err();
        assert!(taken[0].path().join("note.txt").exists());
    }
}
