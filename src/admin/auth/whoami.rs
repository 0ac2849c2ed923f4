//! The current login, and what the web UI needs to know about this gateway before it can show
//! anything.

use schemars::JsonSchema;
use serde::Serialize;

use super::Actor;
use crate::admin::bodies::Nothing;
use crate::admin::call::Call;
use crate::admin::envelope::ApiError;
use crate::admin::records::Iso;
use crate::admin::records::user::UserRecord;
use crate::domain::user::Role;

/// The caller and the gateway.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhoAmI {
    /// `admin` or `user`.
    role: &'static str,
    /// `null` for the administrator token, which is not a user.
    user_id: Option<i64>,
    user_name: String,
    key_id: Option<i64>,
    key_name: Option<String>,
    /// The user with their keys; `null` for the administrator token, and for a read-only key.
    user: Option<UserRecord>,
    /// The key may read its own usage and nothing else.
    read_only: bool,
    /// The gateway's time zone: limits reset and days begin by it.
    time_zone: String,
    now: Iso,
    version: &'static str,
    /// The port that clients send their requests to; a proxy in front may have another.
    proxy_port: u16,
    /// Whether that port speaks TLS.
    proxy_tls: bool,
    /// What this gateway is called, from the system settings.
    site_title: String,
    /// The symbol shown with amounts, from the system settings; amounts are USD all the same.
    currency_display: String,
}

/// Public facts, also sent before a login.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Site {
    /// What this gateway is called.
    site_title: String,
}

/// Names the gateway, for the page on which people log in.
pub async fn site(call: Call) -> Result<Site, ApiError> {
    Ok(Site { site_title: call.ctx.node.state.peek().settings.site_title.clone() })
}

/// Says who the credential belongs to.
///
/// # Errors
/// None: a caller without a credential is refused before.
pub async fn whoami(call: Call, _: Nothing) -> Result<WhoAmI, ApiError> {
    let who = call.who()?;
    let (user_id, user_name, key_id, key_name) = match &who.actor {
        Actor::Token => (None, "admin".to_owned(), None, None),
        Actor::Key { key, user } => {
            (Some(user.id.0), user.name.clone(), Some(key.id.0), Some(key.name.clone()))
        }
    };
    let snapshot = call.ctx.node.state.peek();
    let settings = &snapshot.settings;
    let user = match &who.actor {
        Actor::Key { user, .. } if !who.is_read_only() => {
            let mut record = UserRecord::of(user, &snapshot, call.now);
            if !who.is_admin() {
                // Written by administrators for themselves.
                (record.note, record.tags) = (String::new(), Vec::new());
            }
            Some(record)
        }
        _ => None,
    };
    Ok(WhoAmI {
        role: if who.role() == Role::Admin { "admin" } else { "user" },
        user_id,
        user_name,
        key_id,
        key_name,
        user,
        read_only: who.is_read_only(),
        time_zone: call.ctx.time_zone.to_string(),
        now: Iso(call.now),
        version: call.ctx.version,
        proxy_port: call.ctx.proxy.port,
        proxy_tls: call.ctx.proxy.tls,
        site_title: settings.site_title.clone(),
        currency_display: settings.currency_display.clone(),
    })
}
