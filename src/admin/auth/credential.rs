//! From request headers to a caller.

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use sha2::{Digest, Sha256};

use super::{Actor, Via, Who, session};
use crate::admin::context::Context;
use crate::admin::envelope::{Code, DatabaseTrouble, Refusal};
use crate::domain::clock::Timestamp;
use crate::domain::ids::KeyId;
use crate::domain::key::Key;
use crate::domain::secret::Secret;
use crate::domain::user::User;
use crate::state::key_text;

/// The first credential that the headers carry: Bearer, else the cookie. Empty values are none.
pub fn find(headers: &HeaderMap) -> Option<(Via, String)> {
    bearer(headers).map(|text| (Via::Bearer, text)).or_else(|| cookie(headers).map(|text| (Via::Cookie, text)))
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.to_owned())
}

/// The headers that a credential can be in, and no others.
pub fn headers(from: &HeaderMap) -> HeaderMap {
    let names = [header::AUTHORIZATION, header::COOKIE];
    let pairs =
        names.into_iter().flat_map(|name| from.get_all(&name).iter().map(move |value| (name.clone(), value.clone())));
    let mut kept = HeaderMap::new();
    for (name, value) in pairs {
        kept.append(name, value);
    }
    kept
}

/// The session cookie's value, if the browser sent one.
pub fn cookie(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(name, _)| *name == session::COOKIE).map(|(_, value)| value.trim_matches('"'));
    values.find(|value| !value.is_empty()).map(str::to_owned)
}

/// Who the request's credential belongs to.
///
/// # Errors
/// 401 saying which step failed, never echoing the credential; 503 when the session store cannot be asked.
pub async fn identify(ctx: &Context, headers: &HeaderMap, now: Timestamp) -> Result<Who, Refusal> {
    let Some((via, text)) = find(headers) else {
        return Err(unauthorized("not logged in: no credential was sent"));
    };
    if let Some(actor) = of_secret(ctx, &text, now)? {
        return Ok(Who { actor, via });
    }
    match via {
        Via::Bearer => Err(unauthorized("the credential is not known")),
        Via::Cookie => Ok(Who { actor: of_session(ctx, &text, now).await?, via }),
    }
}

/// The holder of a raw admin token or API key. `Ok(None)` = it is neither.
///
/// # Errors
/// 401: an API key that exists but may not be used.
pub fn of_secret(ctx: &Context, text: &str, now: Timestamp) -> Result<Option<Actor>, Refusal> {
    if is_admin_token(&ctx.admin_token, text) {
        return Ok(Some(Actor::Token));
    }
    let snapshot = ctx.state.snapshot();
    let Some(caller) = snapshot.caller(&key_text::hash(text)) else { return Ok(None) };
    usable(&caller.key, &caller.user, now)?;
    Ok(Some(Actor::Key { key: Arc::clone(&caller.key), user: Arc::clone(&caller.user) }))
}

async fn of_session(ctx: &Context, token: &str, now: Timestamp) -> Result<Actor, Refusal> {
    // Not asked while it is known to be away: each question waits for seconds.
    if let Some(fault) = ctx.conditions.database() {
        return Err(Refusal::database(DatabaseTrouble::Busy, &fault.text));
    }
    let hash = session::hash(token);
    let found = ctx.store.web_session(&hash).await?;
    let Some(found) = found.filter(|session| session.expires_at > now) else {
        return Err(unauthorized("the session is not known or has ended"));
    };
    let Some(key_id) = found.key_id else { return Ok(Actor::Token) };
    match of_key(ctx, key_id, now) {
        Ok(actor) => Ok(actor),
        Err(refusal) => {
            // Whatever made the key unusable ends the session for good.
            ctx.store.delete_web_session(&hash).await?;
            Err(refusal)
        }
    }
}

fn of_key(ctx: &Context, key_id: KeyId, now: Timestamp) -> Result<Actor, Refusal> {
    let snapshot = ctx.state.snapshot();
    let caller = snapshot.key(key_id).ok_or_else(|| unauthorized("the session's key was deleted"))?;
    usable(&caller.key, &caller.user, now)?;
    Ok(Actor::Key { key: Arc::clone(&caller.key), user: Arc::clone(&caller.user) })
}

fn usable(key: &Key, user: &User, now: Timestamp) -> Result<(), Refusal> {
    let fault = match () {
        () if key.deleted_at.is_some() => "the key was deleted",
        () if !key.is_enabled => "the key is disabled",
        () if key.is_expired(now) => "the key has expired",
        () if !user.is_active(now) => "the key's user is disabled or has expired",
        () => return Ok(()),
    };
    Err(unauthorized(fault))
}

/// Compares digests without an early exit, so that neither the token's length nor its beginning shows in the time taken.
fn is_admin_token(token: &Secret, text: &str) -> bool {
    let (ours, theirs) = (Sha256::digest(token.expose()), Sha256::digest(text));
    let differing = ours.iter().zip(theirs.iter()).fold(0_u8, |acc, (a, b)| acc | (a ^ b));
    differing == 0 && !text.is_empty()
}

pub fn unauthorized(message: &str) -> Refusal {
    let challenge = axum::http::HeaderValue::from_static("Bearer");
    Refusal::new(Code::UNAUTHORIZED, message).header(header::WWW_AUTHENTICATE, challenge)
}
