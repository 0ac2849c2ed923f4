//! The open replies in the background, which have no record yet (`proxy::pending_replies`).

use std::io::{self, ErrorKind};
use std::path::Path;

use super::BACKGROUND;
use crate::files;

/// Copies their files, with the locks by which a process finds them. The gateway may run: before
/// the journals and the database are copied, so that a reply that is billed meanwhile is in one of
/// them at least. A record that is made twice counts once.
pub(super) fn copy(data_dir: &Path, to: &Path) -> io::Result<()> {
    let root = data_dir.join(BACKGROUND);
    for dir in entries(&root)?.into_iter().filter(|dir| dir.is_dir()) {
        for file in entries(&dir)? {
            let is_part = file.extension().is_some_and(|ending| ending == "json")
                || file.file_name().is_some_and(|name| name == "lock");
            let Some(path) = file.strip_prefix(data_dir).ok().filter(|_| is_part) else { continue };
            match std::fs::read(&file) {
                // Billed meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                read => {
                    let place = to.join(path);
                    files::make_dir(place.parent().unwrap_or(to))?;
                    files::write_synced(&place, &read?)?;
                }
            }
        }
    }
    Ok(())
}

/// What is in a folder, if it is there.
fn entries(dir: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    match std::fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        found => found?.map(|entry| entry.map(|entry| entry.path())).collect(),
    }
}
