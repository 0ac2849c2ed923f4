//! Puts an unpacked state in the place of the old one, by renaming.
//!
//! Several names change, so it cannot happen at one instant. It begins when the unpacked directory
//! gets the name [`UNFINISHED`]. From then on no gateway starts, and another run goes on from
//! whatever was done, until the directory is gone. The old state is moved aside and never deleted.
//!
//! See docs/decisions/38-restore-by-rename.md.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::archive::Manifest;
use super::{BACKGROUND, DATABASE, JOURNAL, SECRETS};
use crate::domain::clock::{Clock as _, SystemClock};
use crate::files;
use crate::setup::unfinished_restore::{DONE, STAGED, UNFINISHED};

/// In that directory: what is being restored, and where the old state goes.
const STATE: &str = "restore.json";
/// Parts of the old state that have no counterpart in every backup. The first two go with the
/// database.
const OLD_ONLY: [&str; 4] = ["tollgate.db-wal", "tollgate.db-shm", "circuits", BACKGROUND];
/// The file that makes the next start rebuild Redis' counters from the ledger (see `marker`).
const COUNTING: &str = "counting-restored";

#[derive(serde::Serialize, serde::Deserialize)]
struct SwitchState {
    manifest: Manifest,
    before: String,
}

/// A restore that was interrupted.
pub(super) enum Unfinished {
    None,
    Of(Manifest),
}

/// What was begun and not finished.
pub(super) fn unfinished(dir: &Path) -> anyhow::Result<Unfinished> {
    match dir.join(UNFINISHED).exists() {
        true => Ok(Unfinished::Of(state(dir)?.manifest)),
        false => Ok(Unfinished::None),
    }
}

fn state(dir: &Path) -> anyhow::Result<SwitchState> {
    let path = dir.join(UNFINISHED).join(STATE);
    let about = || path.display().to_string();
    serde_json::from_slice(&std::fs::read(&path).with_context(about)?).with_context(about)
}

/// The unpacked state is whole: from here on it replaces the old one.
pub(super) fn commit(dir: &Path, manifest: &Manifest, in_redis: bool) -> anyhow::Result<()> {
    let staged = dir.join(STAGED);
    if in_redis {
        files::write_synced(&staged.join(COUNTING), b"")?;
    }
    let stamp = SystemClock.now().to_iso().replace(['-', ':', '.'], "");
    let state =
        SwitchState { manifest: manifest.clone(), before: format!("before-restore-{stamp}") };
    files::write_synced(&staged.join(STATE), &serde_json::to_vec(&state)?)?;
    files::sync_dir(&staged)?;
    files::rename_synced(&staged, &dir.join(UNFINISHED))
        .context("putting the restored state in place")
}

/// Puts what is unpacked in place; where the old state is, if there was any.
pub(super) fn finish(dir: &Path) -> anyhow::Result<Option<PathBuf>> {
    let from = dir.join(UNFINISHED);
    let before = dir.join(state(dir)?.before);
    // Of the old database, as long as the new one is not in its place.
    if from.join(DATABASE).exists() {
        for name in OLD_ONLY {
            move_aside(dir, name, &before)?;
        }
    }
    // The database first: from then on nothing that is restored is taken for the old state.
    for name in [DATABASE, JOURNAL, BACKGROUND].into_iter().chain(SECRETS).chain([COUNTING]) {
        let (staged, place) = (from.join(name), dir.join(name));
        if staged.exists() {
            move_aside(dir, name, &before)?;
            std::fs::rename(&staged, &place)
                .with_context(|| format!("moving to {}", place.display()))?;
        }
    }
    // Before the directory goes that says that something is left to do.
    files::sync_dir(dir).with_context(|| format!("syncing {}", dir.display()))?;
    // Under another name first: without its state file, the directory could not be gone on with.
    let done = dir.join(DONE);
    let removed = files::remove_dir(&done)
        .and_then(|()| files::rename_synced(&from, &done))
        .and_then(|()| files::remove_dir(&done));
    removed.with_context(|| format!("removing {}", from.display()))?;
    Ok(before.exists().then_some(before))
}

fn move_aside(dir: &Path, name: &str, before: &Path) -> anyhow::Result<()> {
    let place = dir.join(name);
    if place.symlink_metadata().is_err() {
        return Ok(());
    }
    let moved = || -> io::Result<()> {
        files::make_dir(before)?;
        let free = Some(before.join(name)).filter(|to| to.symlink_metadata().is_err());
        // Another program may have created it again between two runs.
        let to = free
            .unwrap_or_else(|| before.join(format!("{name}.{}", uuid::Uuid::new_v4().simple())));
        files::rename_synced(&place, &to)
    };
    moved().with_context(|| format!("moving {} to {}", place.display(), before.display()))
}
