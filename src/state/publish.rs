//! Loads the snapshot from the store and puts it in force.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use super::events::{Event, Events};
use super::snapshot::Snapshot;
use super::vault::Vault;
use crate::domain::clock::{Clock, SystemClock};
use crate::domain::error_rule::ErrorRule;
use crate::domain::price::Price;
use crate::domain::provider::Provider;
use crate::domain::word::SensitiveWord;
use crate::policy::error_rules::ErrorRules;
use crate::policy::words::Words;
use crate::store::{Everything, Store, StoreError, StoredProvider};

#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("the configuration could not be read: {0}")]
    Store(#[from] StoreError),
    #[error("no provider's credential can be opened: {0}")]
    Sealed(String),
}

/// The snapshot in force, and how to replace it.
pub struct State {
    store: Store,
    vault: Vault,
    events: Events,
    current: ArcSwap<Snapshot>,
    /// One load at a time, so that an older one never replaces a newer.
    publishing: tokio::sync::Mutex<()>,
}

impl State {
    /// Loads the first snapshot.
    ///
    /// # Errors
    /// When the store cannot be read, or when there are providers and none of their credentials can be opened: then
    /// the secret key is the wrong one, and serving would only produce failures.
    pub async fn open(store: Store, vault: Vault, events: Events) -> Result<Arc<Self>, StateError> {
        let first = load(&store, &vault, &Snapshot::default()).await?;
        if first.providers.is_empty() && !first.faults.is_empty() {
            return Err(StateError::Sealed(first.faults.join("; ")));
        }
        Ok(Arc::new(Self {
            store,
            vault,
            events,
            current: ArcSwap::from_pointee(first),
            publishing: tokio::sync::Mutex::default(),
        }))
    }

    /// The snapshot in force, as a cheap guard: do not hold it across an await, take [`State::snapshot`] there.
    #[must_use]
    pub fn peek(&self) -> Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// The snapshot in force, to keep for a whole request.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    #[must_use]
    pub const fn vault(&self) -> &Vault {
        &self.vault
    }

    #[must_use]
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// Reads the store anew and puts the result in force. Call it after each committed write, before answering.
    ///
    /// # Errors
    /// When the store cannot be read; the former snapshot stays in force.
    pub async fn publish(&self) -> Result<(), StateError> {
        let _one_at_a_time = self.publishing.lock().await;
        let next = load(&self.store, &self.vault, &self.snapshot()).await?;
        for fault in &next.faults {
            tracing::error!(fault, "a provider is left out");
        }
        let version = next.version;
        self.current.store(Arc::new(next));
        self.events.tell(|| Event::Configuration { version });
        Ok(())
    }
}

/// `former`: what has not changed since is taken over where making it anew would cost.
async fn load(store: &Store, vault: &Vault, former: &Snapshot) -> Result<Snapshot, StoreError> {
    let Everything { version, users, keys, providers, prices, settings, words, error_rules } = store.load_all().await?;
    let mut snapshot = Snapshot::new(version, users, keys);
    for stored in providers {
        match unseal(stored, vault) {
            Ok(provider) => snapshot.providers.push(Arc::new(provider)),
            Err(fault) => snapshot.faults.push(fault),
        }
    }
    snapshot.providers.sort_by_key(|p| p.id);
    snapshot.prices = prices.into_iter().map(|price| (price.model.clone(), kept(price, former))).collect();
    snapshot.settings = settings;
    snapshot.words = compiled(words, &former.words);
    snapshot.error_rules = compiled_rules(error_rules, &former.error_rules);
    snapshot.loaded_at = SystemClock.now();
    Ok(snapshot)
}

/// The former snapshot's price where nothing of it has changed: two tables at once are memory that the
/// allocator keeps.
fn kept(price: Price, former: &Snapshot) -> Arc<Price> {
    let same = former.prices.get(&price.model).filter(|before| ***before == price);
    same.map_or_else(|| Arc::new(price), Arc::clone)
}

fn compiled(words: Vec<SensitiveWord>, former: &Arc<Words>) -> Arc<Words> {
    if former.all() == words {
        return Arc::clone(former);
    }
    let words = Words::compile(words);
    for fault in words.faults() {
        tracing::error!(fault, "not every sensitive word is in force");
    }
    Arc::new(words)
}

fn compiled_rules(rules: Vec<ErrorRule>, former: &Arc<ErrorRules>) -> Arc<ErrorRules> {
    if former.all() == rules {
        return Arc::clone(former);
    }
    let rules = ErrorRules::compile(rules);
    for fault in rules.faults() {
        tracing::error!(fault, "not every error rule is in force");
    }
    Arc::new(rules)
}

fn unseal(stored: StoredProvider, vault: &Vault) -> Result<Provider, String> {
    let StoredProvider { mut provider, key_cipher } = stored;
    match vault.open(&key_cipher) {
        Ok(key) => {
            provider.key = key;
            Ok(provider)
        }
        Err(e) => Err(format!("the credential of provider {} ({}) {e}", provider.id, provider.name)),
    }
}
