//! Files of the data directory: private to the gateway's user, and complete after a power failure.
//!
//! A file survives a power failure if two things were synced: its content, and the directory that
//! contains its name. The functions here do both. They block, so they are not for the request path.

mod private;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub use private::{exposed, keep_private, tighten};

/// Readable and writable by the owner alone.
pub const FILE_MODE: u32 = 0o600;
/// The same of a directory.
pub const DIR_MODE: u32 = 0o700;

/// Syncs a directory: new, renamed and removed names in it survive a power failure.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Creates a directory and its missing parents, mode 0700, and syncs the directory that contains
/// its name.
///
/// The name is synced even if the directory exists: the process that created it may have been
/// killed before it could.
///
/// # Errors
/// When it cannot be created or synced. A parent that this user may not open is not synced.
pub fn make_dir(dir: &Path) -> io::Result<()> {
    let parent = parent(dir);
    match DirBuilder::new().mode(DIR_MODE).create(dir) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists && dir.is_dir() => {}
        Err(e) if e.kind() == ErrorKind::NotFound && parent != dir => {
            make_dir(&parent)?;
            DirBuilder::new().mode(DIR_MODE).create(dir)?;
        }
        made => made?,
    }
    match sync_dir(&parent) {
        Err(e) if e.kind() == ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

/// The options of a file that only the owner can read, if it is created.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Creates or overwrites a private file and syncs its content, but not its name.
pub fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = private().write(true).create(true).truncate(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Replaces a file by a private one with this content, or creates it. A crash leaves the old
/// content or the new one; `beside` is the name that the new one has meanwhile.
///
/// # Errors
/// Those of the file system: then the old content is unchanged.
pub fn replace_synced(path: &Path, beside: &Path, bytes: &[u8]) -> io::Result<()> {
    let replaced = write_synced(beside, bytes).and_then(|()| rename_synced(beside, path));
    if replaced.is_err() {
        let _ = fs::remove_file(beside);
    }
    replaced
}

/// Removes a directory with its content, if there is one.
pub fn remove_dir(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Renames a file within its directory, and syncs the directory.
pub fn rename_synced(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_dir(&parent(to))
}

/// Creates a private file with this content, unless it exists. Returns whether it was created.
///
/// The name appears only when the content is on the disk. On a file system without hard links, a
/// crash can leave a partial file under it.
pub fn place_new(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let beside = path.with_extension(format!("{}.new", uuid::Uuid::new_v4().simple()));
    write_synced(&beside, bytes)?;
    // Unlike a rename, a link never replaces the file of a process that starts at the same time.
    let linked = fs::hard_link(&beside, path);
    fs::remove_file(&beside)?;
    match linked {
        Ok(()) => sync_dir(&parent(path)).map(|()| true),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(_) => place_without_links(path, bytes),
    }
}

/// For file systems without hard links.
fn place_without_links(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let mut file = match private().write(true).create_new(true).open(path) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => return Ok(false),
        opened => opened?,
    };
    file.write_all(bytes)?;
    file.sync_all()?;
    sync_dir(&parent(path)).map(|()| true)
}

/// For `map_err`: an error whose text begins with the path.
pub fn naming(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests;
