//! A key and its user, for unit tests and fuzzing.

use crate::domain::clock::Timestamp;
use crate::domain::feature_policy::FeaturePolicy;
use crate::domain::group::Groups;
use crate::domain::ids::{KeyId, UserId};
use crate::domain::key::{CacheTtl, Key, KeyHash};
use crate::domain::limits::Limits;
use crate::domain::user::{Role, User};

/// A key with these limits.
pub(super) fn key(limits: Limits) -> Key {
    Key {
        id: KeyId(1),
        user_id: UserId(1),
        name: String::new(),
        hash: KeyHash([0; 32]),
        prefix: String::new(),
        last_four: String::new(),
        is_enabled: true,
        expires_at: None,
        can_login_web_ui: false,
        limits,
        provider_group: Groups::default(),
        cache_ttl: CacheTtl::Inherit,
        allowed_models: Vec::new(),
        features: FeaturePolicy::default(),
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
        deleted_at: None,
    }
}

/// Its user, with these.
pub(super) fn user(limits: Limits) -> User {
    User {
        id: UserId(1),
        name: String::new(),
        note: String::new(),
        role: Role::User,
        is_enabled: true,
        expires_at: None,
        rpm: 5,
        limits,
        provider_group: Groups::default(),
        tags: Vec::new(),
        allowed_models: Vec::new(),
        features: FeaturePolicy::default(),
        allowed_clients: Vec::new(),
        lock_key_limits: false,
        max_keys: None,
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
        deleted_at: None,
    }
}
