//! An API key record (docs/reference/records.md).

use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::feature_policy::FeaturePolicy;
use super::group::Groups;
use super::ids::{KeyId, UserId};
use super::limits::Limits;

/// SHA-256 of the key text. The text itself is never stored: 128 random bits need no slow hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyHash(pub [u8; 32]);

impl KeyHash {
    /// Whether both are equal, in constant time.
    pub fn matches(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
    }
}

impl std::fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyHash(***)")
    }
}

/// One API key of one user.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Key {
    /// Serial number in the database.
    pub id: KeyId,
    /// The owner. A key is usable only while its owner is active.
    pub user_id: UserId,
    /// Unique among the undeleted keys of its user, 1–64 characters.
    pub name: String,
    /// Hash of the key's text, by which requests are identified.
    pub hash: KeyHash,
    /// First seven characters (`sk-ab12`), for display.
    pub prefix: String,
    /// Last four characters, for display.
    pub last_four: String,
    /// If false, each request with the key gets 401.
    pub is_enabled: bool,
    /// `None` = never expires.
    pub expires_at: Option<Timestamp>,
    /// Whether the key can log in to the complete web UI. If false, it reaches only the page of its
    /// own use.
    pub can_login_web_ui: bool,
    /// The key's own limits. Those of its user apply as well.
    pub limits: Limits,
    /// The groups of providers that the key reaches. Empty means `default`.
    pub provider_group: Groups,
    /// The prompt-cache lifetime of the key's native requests. It takes precedence over a
    /// provider's.
    pub cache_ttl: CacheTtl,
    /// Model names, a trailing `*` matches any suffix; empty = every model. The user's list applies
    /// as well.
    #[serde(default)]
    pub allowed_models: Vec<String>,
    /// What the key's requests may use.
    #[serde(default)]
    pub features: FeaturePolicy,
    /// When the key was created.
    pub created_at: Timestamp,
    /// When the record was last changed.
    pub updated_at: Timestamp,
    /// When the key was deleted; `None` while it exists. Deleted records stay; only a declarative
    /// file with the key's hash or text restores one.
    pub deleted_at: Option<Timestamp>,
}

impl Key {
    /// A key before any field is set, without a text.
    pub fn blank(user_id: UserId, now: Timestamp) -> Self {
        Self {
            id: KeyId(0),
            user_id,
            name: "default".to_owned(),
            hash: KeyHash([0; 32]),
            prefix: String::new(),
            last_four: String::new(),
            is_enabled: true,
            expires_at: None,
            can_login_web_ui: true,
            limits: Limits::default(),
            provider_group: Groups::default(),
            cache_ttl: CacheTtl::Inherit,
            allowed_models: Vec::new(),
            features: FeaturePolicy::default(),
            created_at: now,
            updated_at: now,
            deleted_at: None,
        }
    }

    /// Enabled, unexpired and not deleted.
    pub fn is_usable(&self, now: Timestamp) -> bool {
        self.is_enabled && self.deleted_at.is_none() && !self.is_expired(now)
    }

    /// Whether `expires_at` has been reached at `now`.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// `sk-ab12…wxyz`
    pub fn masked(&self) -> String {
        format!("{}…{}", self.prefix, self.last_four)
    }
}

/// The prompt-cache lifetime of a native request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[derive(strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum CacheTtl {
    /// Keep the provider's or the client's setting.
    #[default]
    #[serde(rename = "inherit")]
    Inherit,
    /// Cache marks ask for a lifetime of five minutes.
    #[serde(rename = "5m")]
    #[strum(serialize = "5m")]
    FiveMinutes,
    /// Cache marks ask for a lifetime of one hour.
    #[serde(rename = "1h")]
    #[strum(serialize = "1h")]
    OneHour,
}

impl CacheTtl {
    /// The name on the wire and in the database: `inherit`, `5m` or `1h`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Reads what [`Self::as_str`] writes; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}
