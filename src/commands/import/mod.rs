//! `tollgate import`: another gateway's users, keys, limits, providers, prices and spending, in one
//! transaction.
//!
//! [`crate::store::peer`] reads the peer. A mapping for each peer makes of it what `tollgate apply`
//! reads from a file (`document.rs`), so checks, plan and audit are the same, and rows of opening
//! balances (`balances.rs`). What has no place here is listed with the reason.
//!
//! See docs/decisions/36-import-as-document.md.

mod accepted;
mod balances;
mod channels;
mod claude_code_hub;
mod counters;
mod document;
mod hub_providers;
mod litellm;
mod litellm_budget;
mod litellm_config;
mod model;
mod new_api;
mod source;

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::{Value, json};

use self::litellm_budget::WindowPlace;
use self::model::Mapped;
pub use self::source::BadSource;
use self::source::From;
use super::declarative::{Objection, database};
use super::runtime::runtime;
use crate::admin::declarative::{self, Applied, By, Desk, FieldChange, Order, Plan, PlannedChange};
use crate::config::{self, Config};
use crate::domain::clock::{Clock as _, SystemClock, Timestamp};
use crate::domain::ids::KeyId;
use crate::domain::key::{Key, KeyHash};
use crate::http_client::Webhooks;
use crate::limits;
use crate::policy::builtin_rules::BUILTIN_RULES;
use crate::setup::{secrets, seed};
use crate::state::builtin;
use crate::store::{AuditEntry, Store, Tx};

/// A gateway that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Peer {
    /// claude-code-hub.
    ClaudeCodeHub,
    /// LiteLLM's proxy.
    Litellm,
    /// new-api of QuantumNous.
    NewApi,
    /// one-api of songquanpeng.
    OneApi,
}

impl Peer {
    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What is to be imported, and how.
#[derive(Debug)]
pub struct Importing<'a> {
    /// Which gateway.
    pub peer: Peer,
    /// `postgres://…` or a file's path.
    pub from: &'a str,
    /// Nothing is changed.
    pub dry_run: bool,
}

/// What an import changed, or would change.
#[derive(Debug)]
pub struct Imported {
    /// The changes, opening balances among them.
    pub plan: Plan,
    /// What was not carried over: each reason with its subjects.
    pub notes: Vec<(String, Vec<String>)>,
    /// The database is done; running gateways have to be restarted for the reason given.
    pub restart: Option<String>,
}

/// The address in a file, without the line end.
pub fn import_address(file: &PathBuf) -> anyhow::Result<String> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    Ok(text.trim().to_owned())
}

/// Imports a peer.
///
/// # Errors
/// [`BadSource`] if it is not the peer's data; or a database cannot be reached. Nothing was changed
/// then.
pub fn import(config: &Config, importing: &Importing<'_>) -> anyhow::Result<Imported> {
    let from = From::of(importing.from, importing.peer)?;
    runtime()?.block_on(run(config, importing, &from))
}

async fn run(config: &Config, importing: &Importing<'_>, from: &From) -> anyhow::Result<Imported> {
    let now = SystemClock.now();
    let grain = balances::Grain::at(now, config.time_zone);
    let place = WindowPlace { zone: config.time_zone, now };
    let mut mapped = source::mapped(importing.peer, from, place, grain.oldest).await?;
    let (_in_use, store) = database(config).await?;
    let mut tx = store.begin().await.context("the database")?;
    seed::prices_into(config, &mut tx, now).await.context("loading the seed price table")?;
    builtin::install_into(&mut tx, BUILTIN_RULES, now).await.context("the database")?;
    let by = format!("command line (import {})", importing.peer.as_str());
    let mut work = Work { config, tx: &mut tx, now, by, mapped: &mut mapped, ended: Vec::new() };
    let (mut applied, has_balances) = work.apply(importing, grain).await?;
    let ended = work.ended;
    let mut restart = None;
    if !importing.dry_run && !applied.plan.changes.is_empty() {
        tx.commit().await.context("the database")?;
        applied.end_logins(&store).await.context("the database")?;
        end_logins(&store, &ended).await?;
        applied.plan.applied = true;
        if has_balances {
            restart = recount(config).await;
        }
    }
    Ok(Imported { plan: applied.plan, notes: mapped.notes.into_lines(), restart })
}

async fn end_logins(store: &Store, ended: &[KeyId]) -> anyhow::Result<()> {
    for key in ended {
        store.delete_web_sessions_of_key(*key).await.context("the database")?;
    }
    Ok(())
}

/// Makes the nodes rebuild shared counters from the database. A single process reads the database
/// itself.
async fn recount(config: &Config) -> Option<String> {
    let redis = config.redis.as_ref()?;
    let done = match redis.server() {
        Ok(server) => limits::rebuild_shared(&server, &redis.prefix).await,
        Err(error) => Err(error.to_string()),
    };
    done.err().map(|why| {
        format!("Redis cannot be reached ({why}): its counters lack the opening balances")
    })
}

/// One import within its transaction.
struct Work<'a> {
    config: &'a Config,
    tx: &'a mut Tx,
    now: Timestamp,
    /// For the audit log.
    by: String,
    mapped: &'a mut Mapped,
    /// Keys that no longer work.
    ended: Vec<KeyId>,
}

impl Work<'_> {
    /// Applies the document, disables keys that the peer has deleted, and writes the balances.
    /// Returns whether balances changed.
    async fn apply(
        &mut self,
        importing: &Importing<'_>,
        grain: balances::Grain,
    ) -> anyhow::Result<(Applied, bool)> {
        let before = self.tx.whole().await.context("the database")?.everything;
        self.find_deleted(&before.keys).await?;
        let document = document::build(self.mapped, &before);
        let stored = self.tx.sealed_texts().await.context("the database")?;
        let vault = secrets::vault(self.config, &stored)?;
        let webhooks = Webhooks::new(self.config.webhooks.allow_private.as_ref().to_vec());
        let (time_zone, now) = (self.config.time_zone, self.now);
        let desk = Desk { vault: &vault, webhooks: &webhooks, time_zone, now };
        let (dry_run, prune) = (importing.dry_run, false);
        let order =
            Order { document: document.document.clone(), prune, dry_run, may_take_last_key: true };
        let by = By { actor: self.by.clone(), client: None };
        let applied = declarative::apply(desk, self.tx, order, by).await;
        let mut applied =
            applied.map_err(|refusal| refused(Objection::from(refusal), &document))?;
        let after = self.tx.whole().await.context("the database")?.everything;
        self.disable_gone(&after.keys, &mut applied.plan).await?;
        let ids = document::ids(&document, self.mapped, &after);
        let wanted = balances::wanted(self.mapped, &ids, grain);
        let peer = importing.peer.as_str();
        let stored = self.tx.opening_balances(peer).await.context("the database")?;
        let replaced = balances::replaced(&stored, &wanted, &ids, grain);
        for of in &replaced {
            self.tx
                .replace_opening_balances(peer, of.user, &of.after)
                .await
                .context("the database")?;
        }
        for change in balances::planned(&replaced, self.mapped, &ids, &document.users) {
            self.audit(&change).await?;
            applied.plan.count(change);
        }
        Ok((applied, !replaced.is_empty()))
    }

    /// Keys that were deleted here stay deleted, whatever the peer has.
    async fn find_deleted(&mut self, stored: &[Key]) -> anyhow::Result<()> {
        let stored: HashSet<KeyHash> = stored.iter().map(|key| key.hash).collect();
        let Mapped { users, deleted, .. } = &mut *self.mapped;
        for key in users.iter().flat_map(|user| &user.keys) {
            if !stored.contains(&key.hash)
                && let Some(found) = self.tx.removed_key(&key.hash).await.context("the database")?
            {
                deleted.insert(key.hash, found.id);
            }
        }
        Ok(())
    }

    /// A key that the peer has deleted since an earlier import works no longer here.
    async fn disable_gone(&mut self, keys: &[Key], plan: &mut Plan) -> anyhow::Result<()> {
        let wanted: HashSet<KeyHash> =
            self.mapped.users.iter().flat_map(|user| &user.keys).map(|key| key.hash).collect();
        let gone: HashSet<KeyHash> =
            self.mapped.gone.iter().copied().filter(|hash| !wanted.contains(hash)).collect();
        for key in keys.iter().filter(|key| key.is_enabled && gone.contains(&key.hash)) {
            let disabled = Key { is_enabled: false, updated_at: self.now, ..key.clone() };
            self.tx.update_key(&disabled).await.context("the database")?;
            self.ended.push(key.id);
            let field = FieldChange {
                field: "is_enabled".to_owned(),
                before: true.into(),
                after: false.into(),
            };
            let change = PlannedChange {
                action: "change".to_owned(),
                kind: "key".to_owned(),
                name: format!("{} (id {}, deleted at the peer)", key.name, key.id),
                fields: vec![field],
            };
            self.audit(&change).await?;
            plan.count(change);
        }
        Ok(())
    }

    async fn audit(&mut self, change: &PlannedChange) -> anyhow::Result<()> {
        let values = |value: fn(&FieldChange) -> &Value| -> Value {
            change.fields.iter().map(|field| (field.field.clone(), value(field).clone())).collect()
        };
        let entry = AuditEntry {
            at: self.now,
            actor: self.by.clone(),
            action: "configuration.import".to_owned(),
            target: format!("{} {}", change.kind, change.name),
            before: (change.action != "add").then(|| json!(values(|field| &field.before))),
            after: Some(values(|field| &field.after)),
            client_addr: None,
        };
        self.tx.audit(&entry).await.context("the database")
    }
}

/// What the checks have against the peer's data, by the names of records.
fn refused(failure: Objection, document: &document::Document) -> anyhow::Error {
    let faults = match failure {
        Objection::Other(error) => return error,
        Objection::Document(faults) => faults,
    };
    let line = |(pointer, message): (String, String)| {
        let steps: Vec<&str> = pointer.split('/').skip(1).collect();
        let record = match steps.as_slice() {
            [section, at, ..] => {
                document.document.get(*section).map(|list| list[at.parse().unwrap_or(0)].clone())
            }
            _ => None,
        }
        .unwrap_or_default();
        let name = record["name"].as_str().unwrap_or_default().to_owned();
        let key = match steps.as_slice() {
            [_, _, "keys", at, ..] => {
                record["keys"][at.parse().unwrap_or(0)]["name"].as_str().map(str::to_owned)
            }
            _ => None,
        };
        let key = key.map(|key| format!("/{key}")).unwrap_or_default();
        format!("{name}{key}: {message}")
    };
    BadSource(format!(
        "the peer's data cannot be imported; nothing was changed\n{}",
        faults.into_iter().map(line).collect::<Vec<_>>().join("\n")
    ))
    .into()
}

/// Reads an environment variable, for references in LiteLLM's file.
fn variable(name: &str) -> Option<String> {
    config::process_env(name)
}
