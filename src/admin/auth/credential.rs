//! Identifies the caller from request headers.

use std::net::IpAddr;
use std::sync::Arc;

use super::{Actor, Via, Who, session};
use crate::admin::context::Context;
use crate::admin::envelope::{ApiError, Code, DatabaseTrouble};
use crate::admin::reasons::Reason;
use crate::crypto::{carried, key_text};
use crate::domain::clock::Timestamp;
use crate::domain::key::Key;
use crate::domain::user::User;
use crate::state::TokenCheck;
use axum::http::{HeaderMap, header};

/// The first credential that the headers carry: Bearer, else the cookie. Empty values are none.
pub fn find(headers: &HeaderMap) -> Option<(Via, String)> {
    let bearer = carried::bearers(headers).next();
    bearer
        .map(|text| (Via::Bearer, text.to_owned()))
        .or_else(|| cookie(headers).map(|text| (Via::Cookie, text)))
}

/// Only the headers that may contain a credential.
pub fn headers(from: &HeaderMap) -> HeaderMap {
    let names = [header::AUTHORIZATION, header::COOKIE];
    let pairs = names.into_iter().flat_map(|name| {
        from.get_all(&name).iter().map(move |value| (name.clone(), value.clone()))
    });
    let mut kept = HeaderMap::new();
    for (name, value) in pairs {
        kept.append(name, value);
    }
    kept
}

/// The session cookie's value, if the browser sent one.
pub fn cookie(headers: &HeaderMap) -> Option<String> {
    carried::cookies(headers).next().map(str::to_owned)
}

/// The owner of the request's credential. Failed attempts at the admin token are counted for the
/// client's address; `None` = they are not counted.
///
/// API keys and sessions are looked up first: they keep working from an address that is blocked
/// from trying the token.
///
/// # Errors
/// 401 with the step that failed, never with the credential; 429 for what may be the admin token
/// from an address that has failed too often; 503 if the session store is unreachable.
pub async fn identify(
    ctx: &Context,
    headers: &HeaderMap,
    client: Option<IpAddr>,
    now: Timestamp,
) -> Result<Who, ApiError> {
    let Some((via, text)) = find(headers) else {
        return Err(unauthorized(Reason::NoCredential));
    };
    if let Some(actor) = of_key_text(ctx, &text, now)? {
        return Ok(Who { actor, via });
    }
    if via == Via::Cookie && key_text::is_like_a_session(&text) {
        if ctx.node.admin_token.is_in_cookie(&text, client, now) {
            return Ok(Who { actor: Actor::Token, via });
        }
        return Ok(Who { actor: of_session(ctx, &text, now).await?, via });
    }
    match ctx.node.admin_token.check(&text, client, now) {
        TokenCheck::Right => Ok(Who { actor: Actor::Token, via }),
        TokenCheck::Throttled { seconds } => Err(throttled(seconds)),
        TokenCheck::Wrong | TokenCheck::UnknownKey => Err(unauthorized(match via {
            Via::Bearer => Reason::CredentialUnknown,
            Via::Cookie => Reason::SessionEnded,
        })),
    }
}

/// The holder of an API key. `Ok(None)` = there is no such key.
///
/// # Errors
/// 401: the key exists but may not be used.
pub fn of_key_text(ctx: &Context, text: &str, now: Timestamp) -> Result<Option<Actor>, ApiError> {
    let snapshot = ctx.node.state.snapshot();
    let Some(caller) = snapshot.caller(&key_text::hash(text)) else { return Ok(None) };
    usable(&caller.key, &caller.user, now)?;
    Ok(Some(Actor::Key { key: Arc::clone(&caller.key), user: Arc::clone(&caller.user) }))
}

async fn of_session(ctx: &Context, token: &str, now: Timestamp) -> Result<Actor, ApiError> {
    // No query while the database is known to be unreachable: each would wait for seconds.
    if let Some(fault) = ctx.node.conditions.database() {
        return Err(ApiError::database(DatabaseTrouble::Busy, &fault.text));
    }
    let hash = session::hash(token);
    let found = ctx.node.store.web_session(&hash).await?;
    let Some(found) = found.filter(|session| session.expires_at > now) else {
        return Err(unauthorized(Reason::SessionEnded));
    };
    let Some(key_id) = found.key_id else {
        if found.token_check == Some(ctx.node.admin_token.session_check(token)) {
            return Ok(Actor::Token);
        }
        ctx.node.store.delete_web_session(&hash).await?;
        return Err(unauthorized(Reason::TokenChanged));
    };
    let snapshot = ctx.node.state.snapshot();
    // This node may not know the key yet: the session stays.
    let caller = snapshot.key(key_id).ok_or_else(|| unauthorized(Reason::SessionKeyDeleted))?;
    match usable(&caller.key, &caller.user, now) {
        Ok(()) => Ok(Actor::Key { key: Arc::clone(&caller.key), user: Arc::clone(&caller.user) }),
        Err(refusal) => {
            // Whatever made the key unusable ends the session permanently.
            ctx.node.store.delete_web_session(&hash).await?;
            Err(refusal)
        }
    }
}

fn usable(key: &Key, user: &User, now: Timestamp) -> Result<(), ApiError> {
    let fault = if key.deleted_at.is_some() {
        Reason::KeyDeleted
    } else if !key.is_enabled {
        Reason::KeyDisabled
    } else if key.is_expired(now) {
        Reason::KeyExpired
    } else if !user.is_active(now) {
        Reason::UserInactive
    } else {
        return Ok(());
    };
    Err(unauthorized(fault))
}

/// Too many failed attempts from this address.
pub fn throttled(seconds: u64) -> ApiError {
    let refusal = ApiError::because(Code::TOO_MANY_ATTEMPTS, Reason::TooManyAttempts);
    refusal.with("retryAfter", seconds.into()).header(header::RETRY_AFTER, seconds)
}

/// The caller is not known, or may not log in.
pub fn unauthorized(reason: Reason) -> ApiError {
    let challenge = axum::http::HeaderValue::from_static("Bearer");
    ApiError::because(Code::UNAUTHORIZED, reason).header(header::WWW_AUTHENTICATE, challenge)
}
