//! `tollgate secret forget`: removes the stored credentials that no secret key here opens, after a
//! key was lost for good. Then the gateway starts, and the credentials can be entered again.

use anyhow::Context as _;

use super::runtime::runtime;
use super::{database, secrets};
use crate::config::Config;
use crate::domain::clock::{Clock as _, SystemClock};
use crate::state::reseal;
use crate::store::AuditEntry;

/// The texts that none of the keys opens.
#[derive(Debug)]
pub struct Forgotten {
    /// Their names, for messages.
    pub texts: Vec<String>,
    /// They were removed.
    pub removed: bool,
}

/// Finds the texts that none of the keys opens; removes them if `remove` is set. Makes no key.
///
/// # Errors
/// The database or the keys cannot be read, or the database cannot be written: then nothing was
/// changed.
pub fn forget(config: &Config, remove: bool) -> anyhow::Result<Forgotten> {
    runtime()?.block_on(async {
        database::ensure_exists(config)?;
        let store = database::store(config).await?;
        store.check_schema().await.context("the database")?;
        let mut tx = store.begin().await?;
        let stored = tx.sealed_texts().await?;
        let vault = match secrets::kept_vault(config)? {
            Some(vault) => vault,
            None => secrets::fleeting_vault()?,
        };
        let mut texts = Vec::new();
        for (text, examined) in stored.iter().zip(reseal::examine(&vault.ring(), &stored)) {
            if examined.fault.is_some() {
                tx.forget_sealed(&text.owner).await?;
                texts.push(examined.name);
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
        Ok(Forgotten { texts, removed })
    })
}
