//! `tollgate secret`: replaces the key that seals stored credentials, and reports its progress.
//!
//! All texts are sealed again in one transaction, with gateways running or not. An interrupted run
//! is finished by the next. Keys from settings belong to the operator: the new one is
//! `auth.secret_key`, the old one `auth.secret_key_previous`. A key in the data directory is
//! generated here.

use std::collections::BTreeMap;

use anyhow::Context;

use super::runtime::runtime;
use crate::config::Config;
use crate::crypto::key_ring::{KeyFile, KeyRing};
use crate::crypto::vault::{self, Vault};
use crate::domain::clock::{Clock, SystemClock};
use crate::setup::{database, secrets};
use crate::state::reseal::{self, Rotated};
use crate::store::{AuditEntry, Backend, SealedText, Tx};

/// The result of `tollgate secret rotate`.
#[derive(Debug)]
pub enum Rotation {
    /// Every text is sealed with this key.
    Done {
        /// The key's id.
        key: String,
        /// How many texts there are, and how many were sealed again.
        rotated: Rotated,
    },
    /// The gateways may need the new key first: it was added to this file.
    Distribute {
        /// The key file in the data directory.
        file: String,
    },
}

/// Seals every stored text with the newest key. `distributed`: every gateway has that key.
///
/// # Errors
/// A text that none of the keys opens: then nothing was changed.
pub fn rotate(config: &Config, distributed: bool) -> anyhow::Result<Rotation> {
    runtime()?.block_on(async {
        database::ensure_exists(config)?;
        let store = database::store(config).await?;
        store.check_schema().await.context("the database")?;
        // Held to the end: only one rotation at a time on one database.
        let mut tx = store.begin().await?;
        match secrets::key_ring(config) {
            Some(ring) => done(tx, &ring).await,
            None => {
                secrets::not_lost(config, &tx.sealed_texts().await?)?;
                let mut file = KeyFile::open(&config.data_dir)?;
                let ready = ready_file(&mut tx, &mut file, store.backend(), distributed).await?;
                if !ready {
                    return Ok(Rotation::Distribute { file: file.path().display().to_string() });
                }
                let rotation = done(tx, &file.ring()).await?;
                file.keep_newest().context(
                    "the texts are sealed again; the old key is in the file still: run this again",
                )?;
                Ok(rotation)
            }
        }
    })
}

/// Ensures that the file has a newer key than the one in use. Returns whether everything may be
/// sealed with it.
async fn ready_file(
    tx: &mut Tx,
    file: &mut KeyFile,
    backend: Backend,
    distributed: bool,
) -> anyhow::Result<bool> {
    let added = file.ring().keys().len() == 1;
    if added {
        // Before anything is changed.
        reseal::check(&file.ring(), &tx.sealed_texts().await?)?;
        file.add_key()?;
    }
    Ok(backend == Backend::Sqlite || (distributed && !added))
}

async fn done(mut tx: Tx, ring: &KeyRing) -> anyhow::Result<Rotation> {
    let key = ring.newest().context("there is no secret key")?;
    let rotated = reseal::rotate(&mut tx, ring, key).await?;
    let after =
        serde_json::json!({ "key": key.id, "texts": rotated.texts, "resealed": rotated.resealed });
    tx.audit(&AuditEntry {
        at: SystemClock.now(),
        actor: "command line".to_owned(),
        action: "secret.rotate".to_owned(),
        target: "stored credentials".to_owned(),
        before: None,
        after: Some(after),
        client_addr: None,
    })
    .await?;
    tx.commit().await?;
    Ok(Rotation::Done { key: key.id.clone(), rotated })
}

/// Lines about the keys, and how many texts are sealed with each.
pub fn secret_status(config: &Config) -> anyhow::Result<Vec<String>> {
    runtime()?.block_on(async {
        if !database::exists(config)? {
            return Ok(vec!["there is no database yet: the first start makes it".to_owned()]);
        }
        let store = database::store(config).await?;
        store
            .check_schema()
            .await
            .context("the database (tollgate migrate brings it up to date)")?;
        let (texts, sealing) = store.sealed_texts().await?;
        secrets::not_lost(config, &texts)?;
        let Some(vault) = secrets::kept_vault(config)? else {
            return Ok(vec!["there is no secret key yet: the first start makes it".to_owned()]);
        };
        let ring = vault.ring();
        let mut lines: Vec<String> = ring
            .keys()
            .iter()
            .enumerate()
            .map(|(at, key)| {
                format!(
                    "key {}: {}",
                    key.id,
                    if at == 0 { "the newest here" } else { "opens only" }
                )
            })
            .collect();
        lines.push(format!(
            "new texts are sealed with: {}",
            sealing.as_deref().unwrap_or("(none yet)")
        ));
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let examined = reseal::examine(&ring, &texts);
        for text in &examined {
            let form =
                text.key.as_ref().map_or_else(|| "no key".to_owned(), |id| format!("key {id}"));
            *counts.entry(form).or_default() += 1;
        }
        lines.extend(
            counts.into_iter().map(|(form, count)| format!("texts sealed with {form}: {count}")),
        );
        lines.extend(
            examined.into_iter().filter_map(|t| t.fault.map(|fault| format!("{} {fault}", t.name))),
        );
        Ok(lines)
    })
}

/// Tries to open every stored text, for `tollgate check`. Returns what is not an error but worth
/// knowing.
pub(super) fn check(texts: &[SealedText], vault: &Vault) -> anyhow::Result<Vec<String>> {
    let ring = vault.ring();
    let named = |text: reseal::Examined| text.fault.map(|fault| format!("{} {fault}", text.name));
    let faults: Vec<String> = reseal::examine(&ring, texts).into_iter().filter_map(named).collect();
    anyhow::ensure!(faults.is_empty(), faults.join("; "));
    let newest = ring.newest().map(|key| key.id.clone());
    let is_old = |text: &&SealedText| vault::key_id(&text.cipher) != newest.as_deref();
    let old = texts.iter().filter(is_old).count();
    let warning = || {
        format!(
            "{old} stored credentials are sealed with an older secret key than the newest one \
             here: run `tollgate secret rotate`"
        )
    };
    Ok((old > 0).then(warning).into_iter().collect())
}
