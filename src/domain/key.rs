//! An API key record (docs/reference/records.md).

use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::group::Groups;
use super::ids::{KeyId, UserId};
use super::limits::Limits;

/// SHA-256 of the key text. The text itself is never stored: 128 random bits need no slow hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash(pub [u8; 32]);

impl KeyHash {
    /// Whether both are equal, in constant time.
    #[must_use]
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
#[derive(Debug, Clone)]
pub struct Key {
    pub id: KeyId,
    pub user_id: UserId,
    pub name: String,
    pub hash: KeyHash,
    /// First seven characters (`sk-ab12`), for display.
    pub prefix: String,
    /// Last four characters, for display.
    pub last_four: String,
    pub is_enabled: bool,
    /// `None` = never expires.
    pub expires_at: Option<Timestamp>,
    pub can_login_web_ui: bool,
    pub limits: Limits,
    pub provider_group: Groups,
    pub cache_ttl: CacheTtl,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

impl Key {
    /// Enabled, unexpired and not deleted.
    #[must_use]
    pub fn is_usable(&self, now: Timestamp) -> bool {
        self.is_enabled && self.deleted_at.is_none() && !self.is_expired(now)
    }

    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// `sk-ab12…wxyz`
    #[must_use]
    pub fn masked(&self) -> String {
        format!("{}…{}", self.prefix, self.last_four)
    }
}

/// The prompt-cache lifetime of a native request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum CacheTtl {
    /// Keep the provider's or the client's setting.
    #[default]
    #[serde(rename = "inherit")]
    Inherit,
    #[serde(rename = "5m")]
    FiveMinutes,
    #[serde(rename = "1h")]
    OneHour,
}

impl CacheTtl {
    pub const ALL: [Self; 3] = [Self::Inherit, Self::FiveMinutes, Self::OneHour];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inherit => "inherit",
            Self::FiveMinutes => "5m",
            Self::OneHour => "1h",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.as_str() == text)
    }
}
