//! The caller: from the credential to the key and its owner, in the specification's order of
//! checks.
//!
//! The snapshot answers; an unknown key costs a hash and a look-up, and no SQL.

use std::sync::Arc;

use pingora::proxy::Session;

use super::context::{Caller, RequestContext};
use super::credentials::{self, Presented};
use super::record::OpenRecord;
use super::refusal::Refusal;
use crate::formats::route::Route;
use crate::state::{Snapshot, key_text};

/// A known caller, and the snapshot that the whole request works on.
pub struct Identified {
    pub caller: Caller,
    pub snapshot: Arc<Snapshot>,
}

/// Finds the caller and opens the request's record.
///
/// # Errors
/// The step that failed.
pub fn identify(session: &Session, ctx: &mut RequestContext, route: &Route) -> Result<Identified, Refusal> {
    let head = session.req_header();
    let (fixed, admin_token) = (&ctx.gateway.fixed, &ctx.gateway.admin_token);
    let is_admin = |text: &str| admin_token.is(text);
    let text = match credentials::presented(&head.headers, head.uri.query(), &fixed.alt_key_headers, is_admin) {
        Presented::None => return Err(Refusal::MissingCredential),
        Presented::Conflicting => return Err(Refusal::ConflictingCredentials),
        Presented::One(text) => text,
    };
    let hash = key_text::hash(&text);
    let snapshot = ctx.gateway.state.snapshot();
    let caller = if admin_token.has_hash(&hash) {
        Caller::Admin
    } else {
        let found = snapshot.caller(&hash).ok_or(Refusal::UnknownKey)?;
        Caller::Key { key: Arc::clone(&found.key), user: Arc::clone(&found.user) }
    };
    if let Caller::Key { key, user } = &caller {
        if !key.is_enabled {
            return Err(Refusal::KeyDisabled);
        }
        if key.is_expired(ctx.started_at) {
            return Err(Refusal::KeyExpired);
        }
        if !user.is_active(ctx.started_at) {
            return Err(Refusal::UserDisabled);
        }
    }
    let record = OpenRecord::new(caller.clone(), Arc::clone(&snapshot), route.operation.clone());
    ctx.record = Some(Box::new(record));
    Ok(Identified { caller, snapshot })
}
