//! Login and logout.

use axum::http::HeaderValue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Actor, Via, Who, credential, session};
use crate::admin::bodies::{Nothing, Text};
use crate::admin::call::Call;
use crate::admin::envelope::ApiError;
use crate::admin::reasons::Reason;
use crate::domain::user::Role;
use crate::state::TokenCheck;

/// The body of `auth/login`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoginForm {
    /// An API key, or the administrator token.
    pub key: Text<1, 512>,
}

/// Who logged in, and where the web UI goes next.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Login {
    /// `admin` or `user`.
    role: &'static str,
    /// `null` for the administrator token, which is not a user.
    user_id: Option<i64>,
    user_name: String,
    /// `/dashboard`, or `/my-usage` for a key that may not use the whole web UI.
    redirect_to: &'static str,
}

/// Opens a web session for a key. Failed attempts from the same address do not affect a valid API
/// key.
///
/// # Errors
/// 401 if the text is not a usable key or the admin token; 429 if the address has failed too often.
pub async fn login(call: Call, body: LoginForm) -> Result<(Login, HeaderValue), ApiError> {
    let ctx = &call.ctx;
    let actor = actor_of(&call, &body.key.0)?;
    let who = Who { actor, via: Via::Cookie };
    let cookie = session::open(ctx, &who, call.now).await?;
    let (user_id, user_name) = match &who.actor {
        Actor::Token => (None, "admin".to_owned()),
        Actor::Key { user, .. } => (Some(user.id.0), user.name.clone()),
    };
    let redirect_to = if who.is_read_only() { "/my-usage" } else { "/dashboard" };
    let role = if who.role() == Role::Admin { "admin" } else { "user" };
    Ok((Login { role, user_id, user_name, redirect_to }, cookie))
}

/// The holder of the credential. Until the login throttle blocks the address, it counts every
/// failure. A wrong admin token also counts in `AdminToken`, which all operations share.
fn actor_of(call: &Call, text: &str) -> Result<Actor, ApiError> {
    let key = credential::of_key_text(&call.ctx, text, call.now);
    if let Ok(Some(actor)) = key {
        return Ok(actor);
    }
    if let Some(seconds) = call.client.and_then(|ip| call.throttle.closed_for(ip, call.now)) {
        return Err(credential::throttled(seconds));
    }
    let found =
        key.and_then(|_| match call.ctx.node.admin_token.check(text, call.client, call.now) {
            TokenCheck::Right => Ok(Actor::Token),
            TokenCheck::Throttled { seconds } => Err(credential::throttled(seconds)),
            TokenCheck::Wrong | TokenCheck::UnknownKey => {
                Err(credential::unauthorized(Reason::NeitherKeyNorToken))
            }
        });
    found.inspect_err(|_| {
        tracing::warn!(client = call.client.map(tracing::field::display), "a login failed");
        if let Some(ip) = call.client {
            call.throttle.failed(ip, call.now);
        }
    })
}

/// Ends the session that the cookie names. Succeeds without a cookie, too.
pub async fn logout(call: Call, _: Nothing) -> Result<((), HeaderValue), ApiError> {
    if let Some(token) = &call.cookie {
        call.ctx.node.store.delete_web_session(&session::hash(token)).await?;
    }
    Ok(((), session::forget(call.ctx.secure_cookies)?))
}
