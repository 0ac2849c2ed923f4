//! The allowed changes of keys: the rules of docs/reference/keys.md, and their codes.
//!
//! Pure functions over the user's undeleted keys as the write transaction reads them. That
//! transaction is serialised, so rules that count keys hold under concurrency. The caller checks
//! the shape and bounds of single fields.

use crate::domain::clock::Timestamp;
use crate::domain::feature_policy::FeaturePolicy;
use crate::domain::group::{self, Groups};
use crate::domain::ids::KeyId;
use crate::domain::key::Key;
use crate::domain::limits::{Limits, SharedLimit};
use crate::domain::user::User;

/// A violated rule. `Display` is the message for people, [`Self::code`] the one for programs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyRuleError {
    /// The user has another undeleted key of this name.
    #[error("this user already has a key named {name:?}")]
    DuplicateName {
        /// The name that is taken.
        name: String,
    },
    /// A limit of the key is above the same limit of its user.
    #[error(
        "the {} limit ({key}) of the key{} is above the user's ({user})",
        limit.adjective(),
        quoted(name)
    )]
    ExceedsUserLimit {
        /// Which limit.
        limit: SharedLimit,
        /// The key's name; empty for the key that is being changed.
        name: String,
        /// The key's limit: USD, or a number of sessions.
        key: String,
        /// The user's limit, in the same unit.
        user: String,
    },
    /// The key is the user's only usable one.
    #[error("a user's last usable key cannot be deleted")]
    CannotDeleteLastKey,
    /// The key is the user's only usable one, or a batch would leave the user without one.
    #[error("a user's last usable key cannot be disabled")]
    CannotDisableLastKey,
    /// A user (not an administrator) deletes the only key, so that no provider group remains.
    #[error("deleting this key would leave you without any provider group")]
    CannotDeleteLastGroupKey,
    /// A user (not an administrator) without a key of the group `default` adds a key to it.
    #[error("you hold no key of the default provider group, so you cannot create one in it")]
    NoDefaultGroupPermission,
    /// A user (not an administrator) adds a key to groups that none of the user's keys has.
    #[error("you hold no key of these provider groups: {}", groups.join(", "))]
    NoGroupPermission {
        /// The groups at fault, at least one.
        groups: Vec<String>,
    },
    /// The user's key limits are locked, and a user (not an administrator) changes them.
    #[error("only an administrator changes the limits of this user's keys")]
    KeyLimitsLocked,
}

/// A name in a message, after a blank; nothing for an empty one.
fn quoted(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" {name:?}") }
}

impl KeyRuleError {
    /// The wire's `errorCode`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::DuplicateName { .. } => "DUPLICATE_NAME",
            Self::ExceedsUserLimit { limit, .. } => limit.above_users(),
            Self::CannotDeleteLastKey => "CANNOT_DELETE_LAST_KEY",
            Self::CannotDisableLastKey => "CANNOT_DISABLE_LAST_KEY",
            Self::CannotDeleteLastGroupKey => "CANNOT_DELETE_LAST_GROUP_KEY",
            Self::NoDefaultGroupPermission => "NO_DEFAULT_GROUP_PERMISSION",
            Self::NoGroupPermission { .. } => "NO_GROUP_PERMISSION",
            Self::KeyLimitsLocked => "KEY_LIMITS_LOCKED",
        }
    }

    /// Names the key whose limit is above the user's, where others are changed beside it.
    #[must_use]
    pub fn of_key(self, key_name: &str) -> Self {
        match self {
            Self::ExceedsUserLimit { limit, key, user, .. } => {
                Self::ExceedsUserLimit { limit, name: key_name.to_owned(), key, user }
            }
            other => other,
        }
    }

    /// The message's values by name, for the wire's `errorParams`.
    pub fn params(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::DuplicateName { name } => vec![("name", name.clone())],
            Self::ExceedsUserLimit { name, key, user, .. } => {
                let named = (!name.is_empty()).then(|| ("name", name.clone()));
                let limits = [("keyLimit", key.clone()), ("userLimit", user.clone())];
                limits.into_iter().chain(named).collect()
            }
            Self::NoGroupPermission { groups } => vec![("groups", groups.join(","))],
            _ => Vec::new(),
        }
    }
}

/// A name is unique among a user's undeleted keys. `except` is the key being renamed.
///
/// # Errors
/// [`KeyRuleError::DuplicateName`].
pub fn name_is_free(keys: &[Key], name: &str, except: Option<KeyId>) -> Result<(), KeyRuleError> {
    let taken = undeleted(keys).any(|key| Some(key.id) != except && key.name == name);
    if taken { Err(KeyRuleError::DuplicateName { name: name.to_owned() }) } else { Ok(()) }
}

/// If a user's key limits are locked, the user cannot change a key's limits.
///
/// # Errors
/// [`KeyRuleError::KeyLimitsLocked`].
pub fn may_change_limits(user: &User, before: &Limits, after: &Limits) -> Result<(), KeyRuleError> {
    if user.lock_key_limits && before != after {
        Err(KeyRuleError::KeyLimitsLocked)
    } else {
        Ok(())
    }
}

/// Whether the user, who has had `ever` keys, may add one: each gets the limits of the others anew,
/// so it takes a number that an administrator allows.
pub fn may_add_key(user: &User, ever: u64) -> bool {
    user.max_keys.map_or(!user.lock_key_limits, |most| ever < u64::from(most))
}

/// The limits of a key that such a user adds: for each limit the tightest of their keys. A key
/// without limits would bypass those that an administrator has set.
pub fn tightest_limits(keys: &[Key]) -> Limits {
    let mut limits = Limits::default();
    for limit in SharedLimit::ALL {
        let tightest = undeleted(keys).filter_map(|key| limit.get(&key.limits)).min();
        limit.set(&mut limits, tightest);
    }
    let daily =
        undeleted(keys).filter(|key| key.limits.daily.is_some()).min_by_key(|key| key.limits.daily);
    limits.daily_reset = daily.map(|key| key.limits.daily_reset).unwrap_or_default();
    limits
}

/// The models that lists of the undeleted keys name, and what any of them denies: what a key gets
/// that must not get around them.
pub fn tightest_lists(keys: &[Key]) -> (Vec<String>, FeaturePolicy) {
    let mut models: Vec<String> =
        undeleted(keys).flat_map(|key| &key.allowed_models).cloned().collect();
    models.sort();
    models.dedup();
    let all = undeleted(keys).fold(FeaturePolicy::default(), |all, key| all.and(key.features));
    (models, FeaturePolicy { denied: all.denied, ..FeaturePolicy::default() })
}

/// No limit of a key is above its user's limit of the same type. A limit that the key or the user
/// lacks never conflicts: a key without one is still bound by its user's.
///
/// # Errors
/// [`KeyRuleError::ExceedsUserLimit`] for the first that is above.
pub fn limits_within(key: &Limits, user: &Limits) -> Result<(), KeyRuleError> {
    for limit in SharedLimit::ALL {
        if let (Some(key), Some(user)) = (limit.get(key), limit.get(user))
            && key > user
        {
            let (limit, name) = (*limit, String::new());
            let (key, user) = (limit.text(key), limit.text(user));
            return Err(KeyRuleError::ExceedsUserLimit { limit, name, key, user });
        }
    }
    Ok(())
}

/// A user's limit is not set below the same limit of one of their keys. A limit that does not
/// change is not checked.
///
/// # Errors
/// [`KeyRuleError::ExceedsUserLimit`] for the first key that is above, with its name.
pub fn keys_stay_within<'k>(
    mut keys: impl Iterator<Item = &'k Key>,
    before: &Limits,
    after: &Limits,
) -> Result<(), KeyRuleError> {
    let mut changed = Limits::default();
    for limit in SharedLimit::ALL {
        let now = limit.get(after);
        limit.set(&mut changed, now.filter(|_| now != limit.get(before)));
    }
    keys.try_for_each(|found| {
        limits_within(&found.limits, &changed).map_err(|error| error.of_key(&found.name))
    })
}

/// A user's last usable key stays enabled. A key that is not usable anyway may always be disabled.
///
/// # Errors
/// [`KeyRuleError::CannotDisableLastKey`].
pub fn may_disable(keys: &[Key], id: KeyId, now: Timestamp) -> Result<(), KeyRuleError> {
    if is_last_usable(keys, id, now) { Err(KeyRuleError::CannotDisableLastKey) } else { Ok(()) }
}

/// For batches: a user's keys after the change must include a usable one.
///
/// # Errors
/// [`KeyRuleError::CannotDisableLastKey`].
pub fn leaves_usable_key(after: &[Key], now: Timestamp) -> Result<(), KeyRuleError> {
    if after.iter().any(|key| key.is_usable(now)) {
        Ok(())
    } else {
        Err(KeyRuleError::CannotDisableLastKey)
    }
}

/// A user's last usable key stays, and a user (not an administrator) keeps a key of at least one
/// provider group.
///
/// # Errors
/// [`KeyRuleError::CannotDeleteLastKey`], then [`KeyRuleError::CannotDeleteLastGroupKey`].
pub fn may_delete(
    keys: &[Key],
    id: KeyId,
    by_admin: bool,
    now: Timestamp,
) -> Result<(), KeyRuleError> {
    if is_last_usable(keys, id, now) {
        return Err(KeyRuleError::CannotDeleteLastKey);
    }
    // Every key reaches at least the default group, so a group remains exactly if a key remains.
    let key_left = undeleted(keys).any(|key| key.id != id);
    if by_admin || key_left { Ok(()) } else { Err(KeyRuleError::CannotDeleteLastGroupKey) }
}

/// A user (not an administrator) can give a new key only groups that their keys already have; `*`
/// among them allows all. An empty request means the default group.
///
/// # Errors
/// [`KeyRuleError::NoDefaultGroupPermission`], then [`KeyRuleError::NoGroupPermission`] with the
/// groups at fault.
pub fn may_assign_groups(keys: &[Key], wanted: &Groups) -> Result<(), KeyRuleError> {
    let holds = |name: &str| undeleted(keys).any(|key| key.provider_group.has(name));
    if holds(group::ALL) {
        return Ok(());
    }
    if wanted.has(group::DEFAULT) && !holds(group::DEFAULT) {
        return Err(KeyRuleError::NoDefaultGroupPermission);
    }
    let groups: Vec<String> =
        wanted.effective().filter(|name| !holds(name)).map(str::to_owned).collect();
    if groups.is_empty() { Ok(()) } else { Err(KeyRuleError::NoGroupPermission { groups }) }
}

/// A user's effective groups: the union over the undeleted keys, `default` spelled out. Without
/// keys: empty.
pub fn effective_groups(keys: &[Key]) -> Groups {
    undeleted(keys).flat_map(|key| key.provider_group.effective()).collect()
}

/// A user's groups after keys were added or deleted: what an administrator has granted to the user
/// beyond the keys that there were, and the union over those that there are.
pub fn groups_after(stored: &Groups, before: &[Key], after: &[Key]) -> Groups {
    let (held, now) = (effective_groups(before), effective_groups(after));
    let granted = stored.names().iter().filter(|name| !held.names().contains(name));
    granted.chain(now.names()).map(String::as_str).collect()
}

fn undeleted(keys: &[Key]) -> impl Iterator<Item = &Key> {
    keys.iter().filter(|key| key.deleted_at.is_none())
}

fn is_last_usable(keys: &[Key], id: KeyId, now: Timestamp) -> bool {
    let mut usable = keys.iter().filter(|key| key.is_usable(now));
    usable.next().is_some_and(|key| key.id == id) && usable.next().is_none()
}

#[cfg(test)]
#[path = "key_rules_tests.rs"]
mod tests;
