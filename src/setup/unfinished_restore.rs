//! What an interrupted `tollgate restore` leaves in a data directory, and what follows for the
//! other programs that use it. `commands::backup` makes these directories.

use std::path::Path;

use anyhow::ensure;

use crate::files;

/// Where a backup is unpacked, in the data directory.
pub(crate) const STAGED: &str = "restore.new";
/// The same directory once its contents are to be put in place.
pub(crate) const UNFINISHED: &str = "restore.unfinished";
/// The same again while it is removed. What an interruption leaves of it takes no part in anything,
/// until the next start removes it.
pub(crate) const DONE: &str = "restore.done";

/// Keeps programs from a state that is half old and half new.
///
/// # Errors
/// When a restore was interrupted.
pub(crate) fn refuse(dir: &Path) -> anyhow::Result<()> {
    ensure!(
        !dir.join(UNFINISHED).exists(),
        "a restore into the data directory {} was interrupted: run `tollgate restore` with the \
         same file again, and it goes on where it stopped",
        dir.display()
    );
    Ok(())
}

/// Removes what an interrupted restore left and no restore goes on with. Only with the lock on the
/// directory, which a restore has alone.
pub(crate) fn remove_remains(dir: &Path) {
    for name in [STAGED, DONE] {
        let left = dir.join(name);
        if let Err(error) = files::remove_dir(&left) {
            let left = left.display();
            tracing::warn!(%left, %error, "what a restore left takes room and cannot be removed");
        }
    }
}
