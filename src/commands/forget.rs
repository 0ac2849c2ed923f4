//! `tollgate secret forget`: removes the stored credentials that no secret key here opens, after a
//! key was lost for good. Then the gateway starts, and the credentials can be entered again.

use anyhow::Context as _;

use super::runtime::runtime;
use crate::config::Config;
use crate::domain::clock::{Clock as _, SystemClock};
use crate::setup::{database, in_use, secrets};
use crate::state::reseal;
use crate::store::AuditEntry;

/// The texts that none of the keys opens.
#[derive(Debug)]
pub struct Forgotten {
    /// Their names, and the keys that sealed them, for messages.
    pub texts: Vec<String>,
    /// The keys that were tried; empty if there is none.
    pub keys: String,
    /// They were removed.
    pub removed: bool,
}

/// Finds the texts that none of the keys opens; removes them if `remove` is set. Makes no key.
///
/// # Errors
/// To remove them, while a gateway runs on the data directory: it has a key in memory. The database
/// or the keys cannot be read, or the database cannot be written: then nothing was changed.
pub fn forget(config: &Config, remove: bool) -> anyhow::Result<Forgotten> {
    runtime()?.block_on(async {
        database::ensure_exists(config)?;
        let _alone = if remove { Some(alone(config)?) } else { None };
        let store = database::store(config).await?;
        store.check_schema().await.context("the database")?;
        let mut tx = store.begin().await?;
        let stored = tx.sealed_texts().await?;
        let kept = secrets::kept_vault(config)?;
        let keys = kept.as_ref().map(|vault| vault.ring().ids()).unwrap_or_default();
        let vault = kept.map_or_else(secrets::fleeting_vault, Ok)?;
        let mut texts = Vec::new();
        for (text, examined) in stored.iter().zip(reseal::examine(&vault.ring(), &stored)) {
            if examined.fault.is_some() {
                if remove {
                    tx.forget_sealed(&text.owner).await?;
                }
                let key = examined.key.map(|id| format!(" (key {id})")).unwrap_or_default();
                texts.push(examined.name + &key);
            }
        }
        let removed = remove && !texts.is_empty();
        if removed {
            tx.audit(&AuditEntry {
                at: SystemClock.now(),
                actor: "command line".to_owned(),
                action: "secret.forget".to_owned(),
                target: "stored credentials".to_owned(),
                before: None,
                after: Some(serde_json::json!({ "removed": texts })),
                client_addr: None,
            })
            .await?;
            tx.commit().await?;
        }
        Ok(Forgotten { texts, keys, removed })
    })
}

/// Keeps gateways out meanwhile.
fn alone(config: &Config) -> anyhow::Result<in_use::InUse> {
    secrets::data_dir(config)?;
    in_use::InUse::alone(&config.data_dir)?.with_context(|| {
        format!(
            "a gateway works on the data directory {}, so the secret key is not lost: `tollgate \
             secret status` with the gateway's own settings shows it. Nothing was changed",
            config.data_dir.display()
        )
    })
}
