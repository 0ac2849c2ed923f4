//! Who can read files: sets the modes of new ones, and finds and tightens old ones.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use nix::sys::stat::{Mode, umask};

/// Group and others.
const OTHERS: u32 = 0o077;

/// From here on no file or directory of this process can be read by others, whatever mode it is
/// made with and whatever umask the process was started with. Libraries make files too.
pub fn keep_private() {
    umask(Mode::from_bits_truncate(0o077));
}

/// The mode of a file or directory that its group or others can use; `None` when it is private,
/// missing, or a symbolic link.
#[must_use]
pub fn exposed(path: &Path) -> Option<u32> {
    let about = fs::symlink_metadata(path).ok()?;
    let mode = about.mode() & 0o7777;
    (!about.is_symlink() && mode & OTHERS != 0).then_some(mode)
}

/// Takes the rights of group and others from a file or directory; the mode before, or `None` when
/// there was nothing to take.
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
