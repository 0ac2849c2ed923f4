//! The caller of a request.

use std::sync::Arc;
use std::time::Duration;

use crate::domain::ids::{KeyId, UserId};
use crate::domain::key::Key;
use crate::domain::settings::SystemSettings;
use crate::domain::strategy::Strategy;
use crate::domain::user::User;

/// The caller of a request.
#[derive(Debug, Clone)]
pub enum Principal {
    Key {
        key: Arc<Key>,
        user: Arc<User>,
    },
    /// The admin token: every group, no limits.
    Admin,
}

impl Principal {
    /// The id of the key; `None` for the admin token.
    pub fn key_id(&self) -> Option<KeyId> {
        match self {
            Self::Key { key, .. } => Some(key.id),
            Self::Admin => None,
        }
    }

    /// How providers of the same priority are ordered.
    pub fn strategy(&self, settings: &SystemSettings) -> Strategy {
        match self {
            Self::Key { key, .. } => settings.strategy_of(&key.provider_group),
            Self::Admin => Strategy::Weighted,
        }
    }

    /// How long the first provider of a stream may send nothing until a second one is asked.
    pub fn hedge_after(&self, settings: &SystemSettings) -> Option<Duration> {
        match self {
            Self::Key { key, .. } => settings.hedge_after_of(&key.provider_group),
            Self::Admin => None,
        }
    }

    /// Whether the key or its owner has a limit of money.
    pub fn has_money_limit(&self) -> bool {
        matches!(self, Self::Key { key, user } if key.limits.of_money() || user.limits.of_money())
    }

    /// The id of the key's owner; `None` for the admin token.
    pub fn user_id(&self) -> Option<UserId> {
        match self {
            Self::Key { user, .. } => Some(user.id),
            Self::Admin => None,
        }
    }
}
