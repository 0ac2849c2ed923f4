//! Web sessions: an opaque random token in a cookie, its hash in the store.
//!
//! The token contains no information, is valid for seven days, and ends with its key: at logout,
//! and when the key is disabled, deleted or expires, or its user is disabled. Enabling the key
//! again does not revive it. A login with the admin token ends when the token changes.

use axum::http::HeaderValue;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::{Actor, Who};
use crate::admin::context::Context;
use crate::admin::envelope::ApiError;
use crate::crypto::carried::COOKIE_NAME;
use crate::domain::clock::Timestamp;
use crate::store::WebSession;

const SECONDS: i64 = 7 * 24 * 3600;
/// Logins of one key, or of the admin token, at once. A further one ends the oldest.
const MOST: u32 = 100;

/// SHA-256 of a token: 256 random bits need no slow hash.
pub fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Opens a session for the caller and returns its `Set-Cookie` value.
///
/// # Errors
/// The random source or the store failed.
pub async fn open(ctx: &Context, who: &Who, now: Timestamp) -> Result<HeaderValue, ApiError> {
    let mut random = [0_u8; 32];
    let source = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&source, &mut random)
        .map_err(|_| ApiError::internal("no random bytes"))?;
    let token = URL_SAFE_NO_PAD.encode(random);
    let (key_id, user_id) = match &who.actor {
        Actor::Token => (None, None),
        Actor::Key { key, user } => (Some(key.id), Some(user.id)),
    };
    let token_check = match &who.actor {
        Actor::Token => Some(ctx.node.admin_token.session_check(&token)),
        Actor::Key { .. } => None,
    };
    let expires_at = now.plus_ms(SECONDS * 1000);
    let session = WebSession {
        hash: hash(&token),
        key_id,
        user_id,
        token_check,
        created_at: now,
        expires_at,
    };
    ctx.node.store.prune_web_sessions(now).await?;
    ctx.node.store.insert_web_session(&session).await?;
    ctx.node.store.keep_newest_web_sessions(key_id, &session.hash, MOST - 1).await?;
    cookie(&token, SECONDS, ctx.secure_cookies)
}

/// A `Set-Cookie` value that deletes the session from the browser.
pub fn forget(secure: bool) -> Result<HeaderValue, ApiError> {
    cookie("", 0, secure)
}

fn cookie(token: &str, max_age: i64, secure: bool) -> Result<HeaderValue, ApiError> {
    let secure = if secure { "; Secure" } else { "" };
    let text =
        format!("{COOKIE_NAME}={token}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::try_from(text).map_err(ApiError::internal)
}
