//! The caller: credentials of the administration API, and the rights that they give.
//!
//! The admin token and API keys are accepted in `Authorization: Bearer` and in the cookie; the
//! cookie usually contains a session token instead (see [`login`]). Bearer wins over the cookie.
//! The proxy has separate rules.

pub mod credential;
pub mod login;
pub mod session;
pub mod whoami;

use std::sync::Arc;

use crate::admin::envelope::ApiError;
use crate::admin::reasons::Reason;
use crate::domain::ids::UserId;
use crate::domain::key::Key;
use crate::domain::user::{Role, User};

/// An authenticated caller.
#[derive(Debug, Clone)]
pub struct Who {
    /// Whose rights the credential gives.
    pub actor: Actor,
    /// Where the credential was sent.
    pub via: Via,
}

/// Whose rights a credential gives.
#[derive(Debug, Clone)]
pub enum Actor {
    /// The administrator token.
    Token,
    /// An API key, or a login with one.
    Key {
        /// The key; enabled and not expired.
        key: Arc<Key>,
        /// Its owner; enabled and not expired.
        user: Arc<User>,
    },
}

/// The source of the credential: for one that browsers send automatically, the request's origin is
/// checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// The header `Authorization: Bearer`.
    Bearer,
    /// The session cookie.
    Cookie,
}

impl Who {
    /// Full rights: the token, or a key that may use the web UI of a user with the role `admin`.
    pub fn is_admin(&self) -> bool {
        self.role() == Role::Admin && !self.is_read_only()
    }

    /// The role: `Admin` for the token, else that of the key's owner.
    pub fn role(&self) -> Role {
        match &self.actor {
            Actor::Token => Role::Admin,
            Actor::Key { user, .. } => user.role,
        }
    }

    /// A key without `canLoginWebUi` may only use the read-only actions about itself, whoever owns
    /// it.
    pub fn is_read_only(&self) -> bool {
        matches!(&self.actor, Actor::Key { key, .. } if !key.can_login_web_ui)
    }

    /// `None` for the token, which is not a user.
    pub fn user_id(&self) -> Option<UserId> {
        match &self.actor {
            Actor::Token => None,
            Actor::Key { user, .. } => Some(user.id),
        }
    }

    /// Refuses access to another user's record, unless the caller is an administrator.
    ///
    /// # Errors
    /// 403.
    pub fn must_own(&self, owner: UserId) -> Result<(), ApiError> {
        if self.is_admin() || self.user_id() == Some(owner) {
            return Ok(());
        }
        Err(ApiError::denied(Reason::BelongsToAnother))
    }

    /// The caller's name in the audit record.
    pub fn label(&self) -> String {
        match &self.actor {
            Actor::Token => "admin token".to_owned(),
            Actor::Key { key, user } => {
                format!("user {} ({}), key {} ({})", user.id, user.name, key.id, key.name)
            }
        }
    }
}
