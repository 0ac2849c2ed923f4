//! The immutable view that one request uses from its first stage to its last.

use std::sync::Arc;

use crate::domain::clock::Timestamp;
use crate::domain::fast_map::FastMap;
use crate::domain::ids::{KeyId, ProviderId, UserId};
use crate::domain::key::{Key, KeyHash};
use crate::domain::price::Price;
use crate::domain::provider::Provider;
use crate::domain::settings::SystemSettings;
use crate::domain::user::User;
use crate::policy::error_rules::ErrorRules;
use crate::policy::price_name;
use crate::policy::words::Words;

/// A key and its owner. A key whose owner is missing is not in the snapshot.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The key, enabled or not, expired or not.
    pub key: Arc<Key>,
    /// The owner of the key, active or not.
    pub user: Arc<User>,
}

/// Everything the data plane needs, at one configuration version.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Counts committed configuration changes.
    pub version: i64,
    callers: FastMap<KeyHash, Caller>,
    key_hashes: FastMap<KeyId, KeyHash>,
    /// Undeleted users by id, disabled ones too.
    pub users: FastMap<UserId, Arc<User>>,
    /// Undeleted providers whose credential could be opened, by id.
    pub providers: Vec<Arc<Provider>>,
    /// Price entries by model name.
    pub prices: FastMap<String, Arc<Price>>,
    /// The system settings that administrators change at run time.
    pub settings: SystemSettings,
    /// The words that no text of a client may contain.
    pub words: Arc<Words>,
    /// The meaning of upstream errors.
    pub error_rules: Arc<ErrorRules>,
    /// When this was read from the database.
    pub loaded_at: Timestamp,
    /// Undeleted providers whose credential could not be opened, without it. No request is sent to
    /// them.
    pub left_out: Vec<Arc<Provider>>,
    /// Why, for each of them.
    pub faults: Vec<String>,
}

impl Snapshot {
    /// Builds the look-up tables from undeleted records.
    pub fn new(version: i64, users: Vec<User>, keys: Vec<Key>) -> Self {
        let users: FastMap<UserId, Arc<User>> =
            users.into_iter().map(|u| (u.id, Arc::new(u))).collect();
        let mut snapshot = Self { version, users, ..Self::default() };
        for key in keys {
            if let Some(user) = snapshot.users.get(&key.user_id) {
                let user = Arc::clone(user);
                snapshot.key_hashes.insert(key.id, key.hash);
                snapshot.callers.insert(key.hash, Caller { key: Arc::new(key), user });
            }
        }
        snapshot
    }

    /// How many users have a key that they can use now; `most` at most.
    pub fn active_users(&self, now: Timestamp, most: usize) -> usize {
        let mut users: Vec<UserId> = Vec::with_capacity(most);
        for Caller { key, user } in self.callers.values() {
            if users.len() == most {
                break;
            }
            if key.is_usable(now) && user.is_active(now) && !users.contains(&user.id) {
                users.push(user.id);
            }
        }
        users.len()
    }

    /// The key with this hash, enabled or not, and its owner.
    pub fn caller(&self, hash: &KeyHash) -> Option<&Caller> {
        self.callers.get(hash)
    }

    /// The key with this id and its owner; `None` for a deleted key.
    pub fn key(&self, id: KeyId) -> Option<&Caller> {
        self.key_hashes.get(&id).and_then(|hash| self.callers.get(hash))
    }

    /// The user with this id; `None` for a deleted one.
    pub fn user(&self, id: UserId) -> Option<&Arc<User>> {
        self.users.get(&id)
    }

    /// The provider with this id; `None` for a deleted one, and for one whose credential cannot be
    /// opened.
    pub fn provider(&self, id: ProviderId) -> Option<&Arc<Provider>> {
        let at = self.providers.binary_search_by_key(&id, |p| p.id).ok()?;
        self.providers.get(at)
    }

    /// Every key with its owner, in no order.
    pub fn callers(&self) -> impl Iterator<Item = &Caller> {
        self.callers.values()
    }

    /// The price of the requested model, else of the one that the provider was asked for;
    /// `policy::price_name` defines the names to look up.
    pub fn price_for(&self, requested: &str, upstream: &str) -> Option<&Arc<Price>> {
        price_name::find(requested, upstream, |name| self.prices.get(name))
    }
}
