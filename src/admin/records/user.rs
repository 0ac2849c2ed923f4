//! A user as shown.

use schemars::JsonSchema;
use serde::Serialize;

use super::key::KeyRecord;
use super::limits::LimitsRecord;
use super::tightest::TightestLimit;
use super::{Exact, Iso, groups_text, status};
use crate::domain::clock::Timestamp;
use crate::domain::user::User;
use crate::state::Snapshot;

/// A user with their keys.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserRecord {
    /// Identifies the user: the `userId` that other operations take.
    pub id: i64,
    /// 1–64 characters.
    pub name: String,
    /// A note for administrators, at most 200 characters; may be empty.
    pub note: String,
    /// `admin` or `user`.
    pub role: &'static str,
    /// `enabled`, `disabled` or `expired`.
    pub status: &'static str,
    /// A disabled user's keys are refused.
    pub is_enabled: bool,
    /// `null` = never.
    pub expires_at: Option<Iso>,
    /// Comma-separated: the union of the groups of the user's keys.
    pub provider_group: String,
    /// Labels for administrators, at most 20; they have no effect on requests.
    pub tags: Vec<String>,
    /// Requests per minute; 0 = no limit.
    pub rpm: u32,
    /// USD a day; `null` = no limit. The same as `limitDailyUsd`.
    pub daily_quota: Option<Exact>,
    /// What the user may use.
    #[serde(flatten)]
    pub limits: LimitsRecord,
    /// Model names, a trailing `*` matches any suffix; empty = every model.
    pub allowed_models: Vec<String>,
    /// Parts of `User-Agent`; empty = every client.
    pub allowed_clients: Vec<String>,
    /// Features that the user's keys may use though a group denies them.
    pub allowed_features: Vec<String>,
    /// Features that the user's keys may not use, unless the key allows them.
    pub denied_features: Vec<String>,
    /// Only administrators change the limits of the user's keys.
    pub lock_key_limits: bool,
    /// How many keys the user may have had, deleted ones included, to add one; `null` = none with
    /// `lockKeyLimits`, else any number.
    pub max_keys: Option<u32>,
    /// Spend against the limit of which most is used up; `null` = no spending limit, and outside of
    /// lists.
    pub tightest_limit: Option<TightestLimit>,
    /// The start of the latest request that is recorded; `null` = never, and outside of lists.
    pub last_used_at: Option<Iso>,
    /// The user's keys, in the order in which they were made.
    pub keys: Vec<KeyRecord>,
    /// When the user was made.
    pub created_at: Iso,
    /// When the record was last changed.
    pub updated_at: Iso,
}

impl UserRecord {
    /// One user with all their keys.
    pub fn of(user: &User, snapshot: &Snapshot, now: Timestamp) -> Self {
        let callers = snapshot.callers().filter(|caller| caller.user.id == user.id);
        let mut keys: Vec<_> = callers.map(|caller| KeyRecord::new(&caller.key, now)).collect();
        keys.sort_by_key(|key| key.id);
        Self::new(user, keys, now)
    }

    /// `keys` are those of the user. `tightest_limit` and `last_used_at` are left empty: lists fill
    /// them in.
    pub fn new(user: &User, keys: Vec<KeyRecord>, now: Timestamp) -> Self {
        let keys = keys.into_iter().map(|key| key.of(user, now)).collect();
        Self {
            id: user.id.0,
            name: user.name.clone(),
            note: user.note.clone(),
            role: user.role.as_str(),
            status: status(user.is_enabled, user.is_expired(now)),
            is_enabled: user.is_enabled,
            expires_at: user.expires_at.map(Iso),
            provider_group: groups_text(&user.provider_group),
            tags: user.tags.clone(),
            rpm: user.rpm,
            daily_quota: user.limits.daily.map(Exact::usd),
            limits: (&user.limits).into(),
            allowed_models: user.allowed_models.clone(),
            allowed_clients: user.allowed_clients.clone(),
            allowed_features: user.features.allowed.names(),
            denied_features: user.features.denied.names(),
            lock_key_limits: user.lock_key_limits,
            max_keys: user.max_keys,
            tightest_limit: None,
            last_used_at: None,
            keys,
            created_at: Iso(user.created_at),
            updated_at: Iso(user.updated_at),
        }
    }
}

/// A new user, and the key that was made with them.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewUser {
    /// The user as stored, with the new key.
    pub user: UserRecord,
    /// The key named `default`, which every new user gets.
    pub default_key: DefaultKey,
}

/// A new user's first key, in full this once.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultKey {
    /// Identifies the key: the `keyId` that other operations take.
    pub id: i64,
    /// The key's name: `default`.
    pub name: String,
    /// The key's whole text. It is not kept and cannot be shown again.
    pub key: String,
}
