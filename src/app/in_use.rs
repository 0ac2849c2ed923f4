//! Prevents gateways and `tollgate move` from using the data directory at the same time, by a file
//! lock.
//!
//! Gateways share the lock, because two run at once during an upgrade. A move holds it exclusively.
//! The kernel releases it with the process, however the process ends.

use std::fs::{File, TryLockError};
use std::path::Path;

use anyhow::Context as _;

use crate::files;

const NAME: &str = "lock";

/// The lock on the data directory, held until this is dropped.
#[derive(Debug)]
pub(super) struct InUse {
    _locked: File,
}

impl InUse {
    /// Locks it for a gateway.
    ///
    /// # Errors
    /// When its database is being moved.
    pub(super) fn to_serve(data_dir: &Path) -> anyhow::Result<Self> {
        let file = open(data_dir)?;
        let locked = file.try_lock_shared();
        Self::of(file, locked, data_dir)?.with_context(|| {
            format!(
                "a `tollgate move` is working on the data directory {}: start the gateway when it has ended",
                data_dir.display()
            )
        })
    }

    /// Locks it for a move. `None`: a gateway, or another move, uses it.
    ///
    /// # Errors
    /// When the file cannot be opened or locked.
    pub(super) fn alone(data_dir: &Path) -> anyhow::Result<Option<Self>> {
        let file = open(data_dir)?;
        let locked = file.try_lock();
        Self::of(file, locked, data_dir)
    }

    fn of(file: File, locked: Result<(), TryLockError>, data_dir: &Path) -> anyhow::Result<Option<Self>> {
        match locked {
            Ok(()) => Ok(Some(Self { _locked: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).with_context(|| about(data_dir)),
        }
    }
}

fn open(data_dir: &Path) -> anyhow::Result<File> {
    let mut options = files::private();
    options.write(true).create(true).truncate(false).open(data_dir.join(NAME)).with_context(|| about(data_dir))
}

fn about(data_dir: &Path) -> String {
    format!("locking {}", data_dir.join(NAME).display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_share_a_data_directory_and_a_move_has_it_alone() {
        let dir = tempfile::tempdir().unwrap();
        let gateways = [(); 2].map(|()| InUse::to_serve(dir.path()).unwrap());
        assert!(InUse::alone(dir.path()).unwrap().is_none());
        drop(gateways);
        let moving = InUse::alone(dir.path()).unwrap();
        assert!(moving.is_some());
        assert!(InUse::alone(dir.path()).unwrap().is_none());
        let refused = InUse::to_serve(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("tollgate move"), "{refused}");
        drop(moving);
        InUse::to_serve(dir.path()).unwrap();
    }
}
