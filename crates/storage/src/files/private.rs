//! File permissions: sets the modes of new files, and finds and tightens old ones.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use nix::sys::stat::{Mode, umask};

/// Group and others.
const OTHERS: u32 = 0o077;

/// From now on others cannot read any file or directory that this process creates, whatever its
/// mode and the process's umask. Libraries create files too.
pub fn keep_private() {
    umask(Mode::from_bits_truncate(0o077));
}

/// The mode of a file or directory that its group or others can use; `None` if it is private,
/// missing, or a symbolic link.
pub fn exposed(path: &Path) -> Option<u32> {
    let about = fs::symlink_metadata(path).ok()?;
    let mode = about.mode() & 0o7777;
    (!about.is_symlink() && mode & OTHERS != 0).then_some(mode)
}

/// Removes the rights of group and others from a file or directory. Returns the mode before, or
/// `None` if there was nothing to remove.
///
/// # Errors
/// When the file system refuses: the file belongs to another user, or is on a read-only disk.
pub fn tighten(path: &Path) -> io::Result<Option<u32>> {
    let Some(mode) = exposed(path) else { return Ok(None) };
    fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS))?;
    Ok(Some(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_rights_of_others_are_taken_and_links_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!((exposed(&file), exposed(&link)), (Some(0o644), None));
        assert_eq!(tighten(&link).unwrap(), None);
        assert_eq!(tighten(&file).unwrap(), Some(0o644));
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(tighten(&file).unwrap(), None);
        assert_eq!(exposed(&dir.path().join("missing")), None);
    }
}
