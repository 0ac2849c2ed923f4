//! A user record (docs/reference/records.md).

use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::group::Groups;
use super::ids::UserId;
use super::limits::Limits;

/// What a logged-in person may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Admin,
    User,
}

impl Role {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::User => "user",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Admin, Self::User].into_iter().find(|r| r.as_str() == text)
    }
}

/// One user. `limits.daily` is the wire's `dailyQuota`.
#[derive(Debug, Clone)]
pub struct User {
    pub id: UserId,
    pub name: String,
    pub note: String,
    pub role: Role,
    pub is_enabled: bool,
    pub expires_at: Option<Timestamp>,
    /// Requests per minute; 0 = no limit.
    pub rpm: u32,
    pub limits: Limits,
    /// Union of the groups of the user's keys, recomputed whenever one changes.
    pub provider_group: Groups,
    pub tags: Vec<String>,
    /// Model names, a trailing `*` matches any suffix; empty = every model.
    pub allowed_models: Vec<String>,
    /// Substrings of the client's `User-Agent`, case-insensitive; empty = every client.
    pub allowed_clients: Vec<String>,
    /// Only administrators change the limits of the user's keys.
    pub lock_key_limits: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

impl User {
    #[must_use]
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.is_enabled && self.deleted_at.is_none() && self.expires_at.is_none_or(|at| at > now)
    }
}
