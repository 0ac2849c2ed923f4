//! Keeps gateways from running beside `tollgate move` and `tollgate restore`: a lock on a file in
//! the data directory.
//!
//! Gateways share the lock, because two run at once during an upgrade. A move and a restore have it
//! alone. The kernel drops it with the process, however that ends.

use std::fs::{File, TryLockError};
use std::path::Path;

use anyhow::Context as _;

use super::unfinished_restore;
use crate::files;

const NAME: &str = "lock";

/// The lock on the data directory, held until this is dropped.
#[derive(Debug)]
pub(crate) struct InUse {
    _locked: File,
}

impl InUse {
    /// By a gateway, or a command that may run beside one.
    ///
    /// # Errors
    /// When its database is being moved or restored, or a restore was interrupted.
    pub(crate) fn to_serve(data_dir: &Path) -> anyhow::Result<Self> {
        unfinished_restore::refuse(data_dir)?;
        let file = open(data_dir)?;
        let locked = file.try_lock_shared();
        let in_use = Self::of(file, locked, data_dir)?.with_context(|| {
            format!(
                "`tollgate restore` or a `tollgate move` is working on the data directory {}: try \
                 again when it has ended",
                data_dir.display()
            )
        })?;
        unfinished_restore::remove_remains(data_dir);
        Ok(in_use)
    }

    /// By a move or a restore. `None`: a gateway, or another of these, uses it.
    pub(crate) fn alone(data_dir: &Path) -> anyhow::Result<Option<Self>> {
        let file = open(data_dir)?;
        let locked = file.try_lock();
        Self::of(file, locked, data_dir)
    }

    fn of(
        file: File,
        locked: Result<(), TryLockError>,
        data_dir: &Path,
    ) -> anyhow::Result<Option<Self>> {
        match locked {
            Ok(()) => Ok(Some(Self { _locked: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).with_context(|| about(data_dir)),
        }
    }
}

fn open(data_dir: &Path) -> anyhow::Result<File> {
    let mut options = files::private();
    options
        .write(true)
        .create(true)
        .truncate(false)
        .open(data_dir.join(NAME))
        .with_context(|| about(data_dir))
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
