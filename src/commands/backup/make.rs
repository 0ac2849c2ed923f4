//! `tollgate backup`: replies in the background first, then the journals, then the database, then
//! all of it as one file.
//!
//! In this order no record from before the command can be missing: the journal deletes a record
//! only when the database has it (see `ledger::copy_journals`).
//!
//! See docs/decisions/37-journals-before-database.md.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use super::archive::{self, Manifest};
use super::{DATABASE, JOURNAL, SECRETS, Scratch, background, embedded};
use crate::commands::runtime::runtime;
use crate::config::Config;
use crate::crypto::vault;
use crate::files;
use crate::ledger;
use crate::setup::in_use::InUse;
use crate::setup::{database, journal, unfinished_restore};
use crate::store::Store;

/// A backup that was made.
#[derive(Debug)]
pub struct BackedUp {
    /// Bytes of the backup file.
    pub bytes: u64,
    /// Bytes of the database in it.
    pub database_bytes: u64,
    /// Of the journals: they are delivered after a restore.
    pub waiting_bytes: u64,
    /// The ids of the keys that are needed to open what is sealed in it.
    pub secret_keys: Vec<String>,
    /// The key comes from the settings.
    pub key_in_settings: bool,
    /// The secret files that are in it.
    pub secrets: Vec<&'static str>,
}

/// Writes the state of the gateway to a new file. The gateway may run.
///
/// # Errors
/// Why it cannot be made. There is no file then.
pub fn backup(config: &Config, file: &Path, with_secrets: bool) -> anyhow::Result<BackedUp> {
    let dir = embedded(config)?;
    unfinished_restore::refuse(dir)?;
    ensure!(
        database::exists_in(dir)?,
        "there is no database to back up: {} is missing",
        dir.join(DATABASE).display()
    );
    let is_new = || ensure_new(file);
    is_new()?;
    let (folder, name) = place(file)?;
    let _in_use = InUse::to_serve(&config.data_dir)?;
    let scratch = folder.join(format!(".{name}.{}.new", uuid::Uuid::new_v4().simple()));
    let scratch =
        Scratch::make(scratch).with_context(|| format!("writing into {}", folder.display()))?;
    let contents = scratch.0.join("contents");
    files::make_dir(&contents)?;

    let kept = if with_secrets { secret_files(dir)? } else { Vec::new() };
    background::copy(&config.data_dir, &contents).context("copying replies in the background")?;
    let copied = ledger::copy_journals(&journal::root(config), &contents.join(JOURNAL));
    let waiting_bytes = copied.context("copying the journal")?.waiting_bytes;
    let (schema, secret_keys) = runtime()?.block_on(copy_database(config, &contents))?;
    if with_secrets {
        let same = secret_files(dir)? == kept;
        ensure!(
            same,
            "the secret key or the admin token was replaced meanwhile: make the backup again"
        );
    }
    for (name, bytes) in &kept {
        files::write_synced(&contents.join(name), bytes)
            .with_context(|| format!("copying {name}"))?;
    }
    let manifest = Manifest::of(&contents, schema, secret_keys)?;
    let unnamed = scratch.0.join("archive");
    let writing = || format!("writing {}", file.display());
    archive::write(&manifest, &contents, &unnamed).with_context(writing)?;
    is_new()?;
    std::fs::rename(&unnamed, file)
        .and_then(|()| files::sync_dir(&folder))
        .with_context(writing)?;
    Ok(BackedUp {
        bytes: std::fs::metadata(file).with_context(writing)?.len(),
        database_bytes: manifest
            .files
            .iter()
            .find(|file| file.path == DATABASE)
            .map_or(0, |file| file.bytes),
        waiting_bytes,
        secret_keys: manifest.secret_keys,
        key_in_settings: config.auth.secret_key.is_some(),
        secrets: kept.into_iter().map(|(name, _)| name).collect(),
    })
}

/// Never over an older backup.
fn ensure_new(file: &Path) -> anyhow::Result<()> {
    ensure!(
        file.symlink_metadata().is_err(),
        "{} is there already: name a new file",
        file.display()
    );
    Ok(())
}

/// The folder and the name of the file.
fn place(file: &Path) -> anyhow::Result<(PathBuf, String)> {
    let name = file.file_name().with_context(|| format!("{} names no file", file.display()))?;
    let folder =
        file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let full = folder.canonicalize().with_context(|| format!("the folder {}", folder.display()))?;
    ensure!(full.is_dir(), "the folder {} is not a folder", folder.display());
    // SQLite is given the path as text.
    ensure!(full.to_str().is_some(), "{} is not valid UTF-8", full.display());
    Ok((full, name.to_string_lossy().into_owned()))
}

/// The database as of one moment; its newest migration, and the keys that are needed for it.
async fn copy_database(config: &Config, to: &Path) -> anyhow::Result<(i64, Vec<String>)> {
    let store = database::store(config).await?;
    store.copy_to(&to.join(DATABASE)).await.context("copying the database")?;
    store.close().await;
    let copy = Store::open_sqlite(to).await.context("opening the copy of the database")?;
    let schema = copy.schema_version().await.context("the copy of the database")?;
    ensure!(
        schema > 0,
        "the database in {} has no tables: is data_dir the gateway's?",
        config.data_dir.display()
    );
    // An older schema may lack the columns.
    let mut keys: Vec<String> = match copy.check_schema().await {
        Ok(()) => {
            let (texts, sealing) = copy.sealed_texts().await.context("the copy of the database")?;
            texts
                .iter()
                .filter_map(|text| vault::key_id(&text.cipher).map(str::to_owned))
                .chain(sealing)
                .collect()
        }
        Err(_) => Vec::new(),
    };
    copy.close().await;
    keys.sort();
    keys.dedup();
    Ok((schema, keys))
}

/// What the data directory has of the secret files.
fn secret_files(dir: &Path) -> anyhow::Result<Vec<(&'static str, Vec<u8>)>> {
    let mut found = Vec::new();
    for name in SECRETS {
        match std::fs::read(dir.join(name)) {
            Ok(bytes) => found.push((name, bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("reading {}", dir.join(name).display()));
            }
        }
    }
    Ok(found)
}
