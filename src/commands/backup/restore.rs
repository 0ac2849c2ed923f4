//! `tollgate restore`: unpacks a backup beside the state of the data directory, compares its
//! checksums, and only then puts it in place.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use super::archive::{self, Manifest};
use super::switch::{self, Unfinished};
use super::{BACKGROUND, DATABASE, JOURNAL, SECRETS, Scratch, embedded};
use crate::config::Config;
use crate::crypto::key_ring::KeyFile;
use crate::files;
use crate::setup::in_use::InUse;
use crate::setup::secrets;
use crate::setup::unfinished_restore::STAGED;
use crate::store::Store;

/// What `tollgate restore` is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Restoring<'a> {
    /// The backup file.
    pub file: &'a Path,
    /// The data directory may hold another state.
    pub replace: bool,
}

/// A restore that is finished.
#[derive(Debug)]
pub struct Restored {
    /// When the backup was made, ISO 8601 in UTC.
    pub made_at: String,
    /// The version of the program that made the backup.
    pub program: String,
    /// The data directory that has the state now.
    pub dir: PathBuf,
    /// Where the state from before it is.
    pub before: Option<PathBuf>,
    /// An earlier run had unpacked it.
    pub went_on: bool,
    /// The ids of the keys that are needed and not there.
    pub missing_keys: Vec<String>,
    /// The key comes from the settings.
    pub key_in_settings: bool,
}

/// Puts the state of a backup into the data directory.
///
/// # Errors
/// Why it cannot be done. Nothing was changed then, or the message says to run it again.
pub fn restore(config: &Config, restoring: &Restoring<'_>) -> anyhow::Result<Restored> {
    let dir = embedded(config)?;
    // All that can be said without touching anything.
    let manifest = archive::manifest(restoring.file)?;
    let known = Store::known_schema();
    ensure!(
        manifest.schema <= known,
        "{} was made by a newer tollgate ({}): its database has schema {}, and this program knows \
         {known}. Restore with that version or a newer one",
        restoring.file.display(),
        manifest.program,
        manifest.schema
    );
    secrets::data_dir(config)?;
    let _alone = alone(config)?;
    let went_on = match switch::unfinished(dir)? {
        Unfinished::None => false,
        Unfinished::Of(begun) if begun == manifest => true,
        Unfinished::Of(begun) => anyhow::bail!(
            "the restore of another backup, made at {}, was interrupted in {}. Run `tollgate \
             restore` with that file first: it goes on where it stopped",
            begun.made_at,
            dir.display()
        ),
    };
    if !went_on {
        let held = held(dir, &manifest)?;
        ensure!(
            restoring.replace || held.is_empty(),
            "the data directory {} is not empty ({}). To replace its state, add --replace: the old \
             one is kept beside it. Nothing was changed",
            dir.display(),
            held.join(", ")
        );
        stage(config, restoring.file, &manifest).context("nothing was changed")?;
    }
    let before = switch::finish(dir).context(
        "the restore is not finished, and no gateway starts on this data directory: run it again, \
         and it goes on where it stopped",
    )?;
    Ok(Restored {
        missing_keys: missing_keys(config, &manifest)?,
        key_in_settings: config.auth.secret_key.is_some(),
        made_at: manifest.made_at,
        program: manifest.program,
        dir: dir.to_owned(),
        before,
        went_on,
    })
}

/// Keeps gateways out.
fn alone(config: &Config) -> anyhow::Result<InUse> {
    let in_use = InUse::alone(&config.data_dir)?;
    in_use.with_context(|| {
        format!(
            "a gateway, or another command, is working on the data directory {}. Stop the gateway \
             (SIGTERM), wait until it has ended, and restore then. Nothing was changed",
            config.data_dir.display()
        )
    })
}

/// What a restore would replace.
fn held(dir: &Path, manifest: &Manifest) -> anyhow::Result<Vec<String>> {
    let mut held = Vec::new();
    if dir.join(DATABASE).symlink_metadata().is_ok() {
        held.push(DATABASE.to_owned());
    }
    for name in [JOURNAL, BACKGROUND] {
        if std::fs::read_dir(dir.join(name)).is_ok_and(|mut entries| entries.next().is_some()) {
            held.push(name.to_owned());
        }
    }
    for name in SECRETS.into_iter().filter(|name| manifest.has(name)) {
        if dir.join(name).symlink_metadata().is_ok() {
            held.push(name.to_owned());
        }
    }
    Ok(held)
}

/// Unpacks the backup beside the state.
fn stage(config: &Config, file: &Path, manifest: &Manifest) -> anyhow::Result<()> {
    let dir = &config.data_dir;
    let scratch = Scratch::make(dir.join(STAGED))
        .with_context(|| format!("writing into {}", dir.display()))?;
    // An empty journal too: the old one is not part of the restored state.
    files::make_dir(&scratch.0.join(JOURNAL))?;
    archive::unpack(file, manifest, &scratch.0)?;
    let in_redis = config.redis.is_some();
    switch::commit(dir, manifest, in_redis)?;
    scratch.keep();
    Ok(())
}

/// The ids of the keys that the backup's texts are sealed with and that are not here.
fn missing_keys(config: &Config, manifest: &Manifest) -> anyhow::Result<Vec<String>> {
    let ring = match secrets::key_ring(config) {
        Some(ring) => Some(ring),
        None => KeyFile::kept(&config.data_dir)?.map(|file| file.ring()),
    };
    let is_there = |id: &String| ring.as_ref().is_some_and(|ring| ring.key(id).is_some());
    Ok(manifest.secret_keys.iter().filter(|id| !is_there(id)).cloned().collect())
}
