//! A user record (docs/reference/records.md).

use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::feature_policy::FeaturePolicy;
use super::group::Groups;
use super::ids::UserId;
use super::limits::Limits;

/// What a logged-in person may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Role {
    /// May use every operation, for every user.
    Admin,
    /// May use only the operations for the user's own keys, logs, statistics and limits.
    User,
}

impl Role {
    /// The name on the wire and in the database: `admin` or `user`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Reads what [`Self::as_str`] writes; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// One user. `limits.daily` is the wire's `dailyQuota`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct User {
    /// Serial number in the database.
    pub id: UserId,
    /// Name in records, statistics and messages.
    pub name: String,
    /// The administrator's remark, at most 200 characters; may be empty.
    pub note: String,
    /// What the user may do in the administration.
    pub role: Role,
    /// If false, each request with one of the user's keys gets 401.
    pub is_enabled: bool,
    /// When the user's keys stop working; `None` = never.
    pub expires_at: Option<Timestamp>,
    /// Requests per minute; 0 = no limit.
    pub rpm: u32,
    /// Limits over all of the user's keys together. Each key's own limits apply as well.
    pub limits: Limits,
    /// Union of the groups of the user's keys, recomputed whenever one changes.
    pub provider_group: Groups,
    /// Free labels for lists and filters of the administration, at most 20.
    pub tags: Vec<String>,
    /// Model names, a trailing `*` matches any suffix; empty = every model.
    pub allowed_models: Vec<String>,
    /// Substrings of the client's `User-Agent`, case-insensitive; empty = every client.
    pub allowed_clients: Vec<String>,
    /// What the requests of the user's keys may use.
    #[serde(default)]
    pub features: FeaturePolicy,
    /// Only administrators change the limits of the user's keys.
    pub lock_key_limits: bool,
    /// How many keys the user may have had, deleted ones included, to add one. `None`: none with
    /// `lock_key_limits`, else any number.
    pub max_keys: Option<u32>,
    /// When the user was created.
    pub created_at: Timestamp,
    /// When the record was last changed.
    pub updated_at: Timestamp,
    /// When the user was deleted; `None` while the user exists.
    pub deleted_at: Option<Timestamp>,
}

impl User {
    /// A user before any field is set.
    pub fn blank(now: Timestamp) -> Self {
        Self {
            id: UserId(0),
            name: String::new(),
            note: String::new(),
            role: Role::User,
            is_enabled: true,
            expires_at: None,
            rpm: 0,
            limits: Limits::default(),
            provider_group: Groups::default(),
            tags: Vec::new(),
            allowed_models: Vec::new(),
            allowed_clients: Vec::new(),
            features: FeaturePolicy::default(),
            lock_key_limits: false,
            max_keys: None,
            created_at: now,
            updated_at: now,
            deleted_at: None,
        }
    }

    /// Enabled, not deleted and not expired at `now`.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.is_enabled && self.deleted_at.is_none() && !self.is_expired(now)
    }

    /// Whether `expires_at` has been reached at `now`.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}
