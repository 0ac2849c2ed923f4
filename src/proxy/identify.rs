//! Who asks: from the credential to the key and its owner, in the specification's order of validation.
//!
//! The snapshot answers; an unknown key costs a hash and a look-up, and no SQL.

use std::sync::Arc;

use pingora::protocols::http::ServerSession as Session;

use super::credentials::{self, Presented};
use super::exchange::{Caller, Exchange};
use super::gateway::Fixed;
use super::refusal::Refusal;
use crate::domain::key::KeyHash;
use crate::state::key_text;

/// Finds the caller and takes the snapshot that the whole request will work on.
///
/// # Errors
/// The step that failed.
pub fn identify(session: &Session, x: &mut Exchange) -> Result<(), Refusal> {
    let head = session.req_header();
    let fixed = &x.gateway.fixed;
    let is_admin = |text: &str| is_admin_token(fixed, &key_text::hash(text));
    let text = match credentials::presented(&head.headers, head.uri.query(), &fixed.alt_key_headers, is_admin) {
        Presented::None => return Err(Refusal::MissingCredential),
        Presented::Conflicting => return Err(Refusal::ConflictingCredentials),
        Presented::One(text) => text,
    };
    let hash = key_text::hash(&text);
    let snapshot = x.gateway.state.snapshot();
    let caller = if is_admin_token(fixed, &hash) {
        Caller::Admin
    } else {
        let found = snapshot.caller(&hash).ok_or(Refusal::UnknownKey)?;
        Caller::Key { key: Arc::clone(&found.key), user: Arc::clone(&found.user) }
    };
    if let Caller::Key { key, user } = &caller {
        if !key.is_enabled {
            return Err(Refusal::KeyDisabled);
        }
        if key.is_expired(x.started_at) {
            return Err(Refusal::KeyExpired);
        }
        if !user.is_active(x.started_at) {
            return Err(Refusal::UserDisabled);
        }
    }
    x.caller = Some(caller);
    x.snapshot = Some(snapshot);
    Ok(())
}

fn is_admin_token(fixed: &Fixed, hash: &KeyHash) -> bool {
    fixed.admin_token.matches(hash)
}
