//! A key as shown.

use schemars::JsonSchema;
use serde::Serialize;

use super::limits::LimitsRecord;
use super::tightest::TightestLimit;
use super::{ENABLED, Iso, groups_text, status};
use crate::domain::clock::Timestamp;
use crate::domain::key::Key;
use crate::domain::user::User;

/// An API key; its text is masked.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyRecord {
    /// Identifies the key: the `keyId` that other operations take.
    pub id: i64,
    /// The user who owns the key.
    pub user_id: i64,
    /// 1–64 characters, unique among the user's keys.
    pub name: String,
    /// Masked: the full text is shown once, at creation.
    pub key: String,
    /// `enabled`, `disabled` or `expired`.
    pub status: &'static str,
    /// The state in which requests find the key: `status`, or the user's status if that is
    /// `enabled`. Outside of lists the same as `status`.
    pub effective_status: &'static str,
    /// A disabled key is refused, whatever its other fields say.
    pub is_enabled: bool,
    /// `null` = never.
    pub expires_at: Option<Iso>,
    /// Whether the key opens the whole web UI and API; if not, it reads its own usage only.
    pub can_login_web_ui: bool,
    /// What the key may use.
    #[serde(flatten)]
    pub limits: LimitsRecord,
    /// Comma-separated group names.
    pub provider_group: String,
    /// `inherit`, `5m` or `1h`.
    pub cache_ttl_preference: &'static str,
    /// Model names, a trailing `*` matches any suffix; empty = every model. The user's list applies
    /// as well.
    pub allowed_models: Vec<String>,
    /// Features that the key may use though its user or a group denies them.
    pub allowed_features: Vec<String>,
    /// Features that the key may not use.
    pub denied_features: Vec<String>,
    /// Spend against the limit of which most is used up; `null` = no spending limit, and outside of
    /// lists.
    pub tightest_limit: Option<TightestLimit>,
    /// The start of the latest request that is recorded; `null` = never, and outside of lists.
    pub last_used_at: Option<Iso>,
    /// When the key was made.
    pub created_at: Iso,
    /// When the record was last changed.
    pub updated_at: Iso,
    /// When the key was removed; `null` = it was not. Lists hold no removed keys.
    pub deleted_at: Option<Iso>,
}

impl KeyRecord {
    /// `now` decides whether the key is expired. `tightest_limit` and `last_used_at` are left
    /// empty: lists fill them in. So does [`Self::of`] with the user's status.
    pub fn new(key: &Key, now: Timestamp) -> Self {
        let status = status(key.is_enabled, key.is_expired(now));
        Self {
            id: key.id.0,
            user_id: key.user_id.0,
            name: key.name.clone(),
            key: key.masked(),
            status,
            effective_status: status,
            is_enabled: key.is_enabled,
            expires_at: key.expires_at.map(Iso),
            can_login_web_ui: key.can_login_web_ui,
            limits: (&key.limits).into(),
            provider_group: groups_text(&key.provider_group),
            cache_ttl_preference: key.cache_ttl.as_str(),
            allowed_models: key.allowed_models.clone(),
            allowed_features: key.features.allowed.names(),
            denied_features: key.features.denied.names(),
            tightest_limit: None,
            last_used_at: None,
            created_at: Iso(key.created_at),
            updated_at: Iso(key.updated_at),
            deleted_at: key.deleted_at.map(Iso),
        }
    }

    /// As a key of this user: it is usable only if the user is.
    #[must_use]
    pub fn of(mut self, user: &User, now: Timestamp) -> Self {
        if self.status == ENABLED {
            self.effective_status = status(user.is_enabled, user.is_expired(now));
        }
        self
    }
}

/// A new key, in full this once.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GeneratedKey {
    /// Identifies the key: the `keyId` that other operations take.
    pub id: i64,
    /// The key's whole text. It is not kept and cannot be shown again.
    pub generated_key: String,
    /// The name that was given to the key.
    pub name: String,
}
