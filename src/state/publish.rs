//! Loads the snapshot from the store and puts it into effect.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use super::events::{Events, NodeEvent};
use super::reseal::{self, RotateError};
use super::snapshot::Snapshot;
use crate::crypto::key_ring::KeyRing;
use crate::crypto::vault::{self, SealedFor, Vault};
use crate::domain::clock::{Clock, SystemClock, Timestamp};
use crate::domain::credentials::Credentials;
use crate::domain::error_rule::ErrorRule;
use crate::domain::word::SensitiveWord;
use crate::policy::error_rules::ErrorRules;
use crate::policy::words::Words;
use crate::store::{Everything, SealedText, Store, StoreError, StoredProvider};

/// Why no snapshot could be made.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The database could not be read.
    #[error("the configuration could not be read: {0}")]
    Store(#[from] StoreError),
    /// There are providers, and this process has the key of none of their credentials; the text
    /// names each.
    #[error("no provider's credential can be opened: {0}")]
    Sealed(String),
}

/// The snapshot in effect, and how to replace it.
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
    /// When the store cannot be read; or when there are providers and this process can open none of
    /// their credentials: then the secret key is wrong, and every request would fail.
    pub async fn open(store: Store, vault: Vault, events: Events) -> Result<Arc<Self>, StateError> {
        let everything = store.load_all().await?;
        Self::of(store, vault, events, everything, SystemClock.now())
    }

    /// With a configuration that was read from the database at `loaded_at`: for a start without the
    /// database.
    ///
    /// # Errors
    /// [`StateError::Sealed`], as [`State::open`].
    pub fn of(
        store: Store,
        vault: Vault,
        events: Events,
        everything: Everything,
        loaded_at: Timestamp,
    ) -> Result<Arc<Self>, StateError> {
        let (mut first, lack_key) = made(everything, &vault, &Snapshot::default());
        first.loaded_at = loaded_at;
        if first.providers.is_empty() && lack_key > 0 && lack_key == first.faults.len() {
            return Err(StateError::Sealed(first.faults.join("; ")));
        }
        tell_faults(&first);
        Ok(Arc::new(Self {
            store,
            vault,
            events,
            current: ArcSwap::from_pointee(first),
            publishing: tokio::sync::Mutex::default(),
        }))
    }

    /// The snapshot in effect, as a cheap guard. Do not hold it across an await: use
    /// [`State::snapshot`] there.
    #[must_use]
    pub fn peek(&self) -> Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// The snapshot in effect, to keep for a whole request.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Opens and seals credentials with the secret keys in effect.
    pub const fn vault(&self) -> &Vault {
        &self.vault
    }

    /// The database that snapshots are read from.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// Puts other secret keys into effect, if they open everything that the present ones open.
    /// Returns whether they differ.
    ///
    /// # Errors
    /// If a stored text opens with the present keys but not with these: the present ones stay in
    /// effect.
    pub async fn rekey(&self, ring: KeyRing) -> Result<bool, RotateError> {
        let present = self.vault.ring();
        if present.ids() == ring.ids() {
            return Ok(false);
        }
        let (texts, _) = self.store.sealed_texts().await?;
        let opens = |text: &SealedText| {
            vault::open(&present, SealedFor::from(&text.owner), &text.cipher).is_ok()
        };
        let opened: Vec<SealedText> = texts.into_iter().filter(opens).collect();
        reseal::check(&ring, &opened)?;
        self.vault.replace(ring);
        Ok(true)
    }

    /// Reads the store again and puts the result into effect. Call it after each committed write,
    /// before answering.
    ///
    /// # Errors
    /// When the store cannot be read; the former snapshot stays in effect.
    pub async fn publish(&self) -> Result<(), StateError> {
        let _one_at_a_time = self.publishing.lock().await;
        let former = self.snapshot();
        let everything = self.store.load_all_after(&former.prices).await?;
        let (next, _) = made(everything, &self.vault, &former);
        tell_faults(&next);
        let version = next.version;
        self.current.store(Arc::new(next));
        self.events.tell(|| NodeEvent::Configuration { version });
        Ok(())
    }
}

fn tell_faults(snapshot: &Snapshot) {
    for fault in &snapshot.faults {
        tracing::error!(fault, "a provider is left out");
    }
}

/// `former`: unchanged parts that are expensive to build are taken from it. Also returns the number
/// of faults caused by a key that this process does not have.
fn made(everything: Everything, vault: &Vault, former: &Snapshot) -> (Snapshot, usize) {
    let Everything { version, users, keys, providers, prices, settings, words, error_rules } =
        everything;
    let mut snapshot = Snapshot::new(version, users, keys);
    let mut lack_key = 0;
    for StoredProvider { mut provider, key_cipher } in providers {
        match vault.open(SealedFor::ProviderKey(provider.id), &key_cipher) {
            Ok(text) => {
                provider.set_credentials(Credentials::read(text));
                snapshot.providers.push(Arc::new(provider));
            }
            Err(e) => {
                lack_key += usize::from(e.lacks_key());
                snapshot.faults.push(format!(
                    "the credential of provider {} ({}) {e}",
                    provider.id, provider.name
                ));
                snapshot.left_out.push(Arc::new(provider));
            }
        }
    }
    snapshot.providers.sort_by_key(|p| p.id);
    snapshot.prices = prices.into_iter().map(|price| (price.model.clone(), price)).collect();
    snapshot.settings = settings;
    snapshot.words = compiled(words, &former.words);
    snapshot.error_rules = compiled_rules(error_rules, &former.error_rules);
    snapshot.loaded_at = SystemClock.now();
    (snapshot, lack_key)
}

fn compiled(words: Vec<SensitiveWord>, former: &Arc<Words>) -> Arc<Words> {
    if former.all() == words {
        return Arc::clone(former);
    }
    let words = Words::compile(words);
    for fault in words.faults() {
        tracing::error!(fault, "not every sensitive word is in effect");
    }
    Arc::new(words)
}

fn compiled_rules(rules: Vec<ErrorRule>, former: &Arc<ErrorRules>) -> Arc<ErrorRules> {
    if former.all() == rules {
        return Arc::clone(former);
    }
    let rules = ErrorRules::compile(rules);
    for fault in rules.faults() {
        tracing::error!(fault, "not every error rule is in effect");
    }
    Arc::new(rules)
}
