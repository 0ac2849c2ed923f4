//! File modes in the data directory: finds files that other users can access, left by older
//! versions or copied by hand.
//!
//! At its start the gateway removes the permissions of other users from the files that it creates
//! itself. For the data directory it only warns, since an orchestrator or an operator may have
//! chosen its mode.

use std::path::{Path, PathBuf};

use nix::unistd::AccessFlags;

use crate::config::Config;
use crate::files;

/// The files that the gateway itself creates in its data directory.
const OWN: [&str; 11] = [
    "secret.key",
    "admin.token",
    "tollgate.db",
    "tollgate.db-wal",
    "tollgate.db-shm",
    "circuits",
    "snapshot.configuration",
    "snapshot.spending",
    "journal",
    "background",
    "lock",
];
/// Name prefixes of the `.new` files that a killed write leaves behind.
const UNFINISHED: [&str; 4] = ["secret.", "admin.", "circuits.", "snapshot."];

/// Removes the permissions of other users from the gateway's own files, and logs each change.
pub(crate) fn tighten(config: &Config) {
    if let Some(warning) = directory_warning(&config.data_dir) {
        tracing::warn!("{warning}");
    }
    for path in own_files(&config.data_dir) {
        match files::tighten(&path) {
            Ok(None) => {}
            Ok(Some(mode)) => tracing::warn!(
                path = %path.display(), mode = %octal(mode),
                "other users of this machine could use this file: they no longer can"
            ),
            Err(error) => tracing::warn!(
                %error, path = %path.display(),
                "other users of this machine can use this file, and that cannot be changed"
            ),
        }
    }
}

/// One warning for each file that other users can access. Changes nothing.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let own = own_files(&config.data_dir).into_iter().filter_map(|path| {
        let mode = octal(files::exposed(&path)?);
        Some(format!(
            "other users can use {} (mode {mode}): a start takes their rights away",
            path.display()
        ))
    });
    directory_warning(&config.data_dir).into_iter().chain(own).collect()
}

fn directory_warning(dir: &Path) -> Option<String> {
    let mode = octal(files::exposed(dir)?);
    Some(format!(
        "other users can look into the data directory {} (mode {mode}): chmod 700 it, unless that \
         is meant",
        dir.display()
    ))
}

/// Why this user cannot write into the data directory, or create it; `None` if that is possible.
pub(crate) fn not_writable(dir: &Path) -> Option<String> {
    let there = dir.ancestors().find(|path| path.as_os_str().is_empty() || path.exists())?;
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    let refused = if there.is_dir() {
        nix::unistd::access(there, AccessFlags::W_OK | AccessFlags::X_OK).err()?.desc()
    } else {
        "it is not a directory"
    };
    Some(format!(
        "this user cannot write into {}: {refused}. Change its owner or data_dir \
         (TOLLGATE_DATA_DIR), or run this as the user of the gateway",
        there.display()
    ))
}

fn octal(mode: u32) -> String {
    format!("{mode:04o}")
}

/// The gateway's own files and directories in the data directory, at any depth. A directory that
/// this user cannot list is left out.
fn own_files(dir: &Path) -> Vec<PathBuf> {
    let entries = |dir: &Path| {
        std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
    };
    let own = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // A process that was killed while it replaced a file leaves the new one beside it.
        let is_unfinished =
            name.ends_with(".new") && UNFINISHED.iter().any(|start| name.starts_with(start));
        // `counting-…` are the files of `marker.rs`.
        OWN.contains(&name) || is_unfinished || name.starts_with("counting-")
    };
    let mut found: Vec<PathBuf> = entries(dir).filter(own).collect();
    let mut next = 0;
    while let Some(path) = found.get(next).cloned() {
        if path.is_dir() && !path.is_symlink() {
            found.extend(entries(&path));
        }
        next += 1;
    }
    found
}
