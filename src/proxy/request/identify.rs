//! The caller: from the credential to the key and its owner, in the order of
//! checks of docs/reference/credentials.md.
//!
//! It reads only the snapshot: an unknown key costs a hash and a look-up, and no SQL.
//!
//! See docs/decisions/11-identify-before-the-body.md.

use std::sync::Arc;

use pingora::proxy::Session;

use super::credentials::{self, Presented};
use super::on_behalf::OnBehalf;
use crate::crypto::key_text;
use crate::domain::clock::Timestamp;
use crate::domain::ids::KeyId;
use crate::formats::route::Route;
use crate::proxy::caller::Principal;
use crate::proxy::context::RequestContext;
use crate::proxy::own_credential::OwnCredential;
use crate::proxy::record::OpenRecord;
use crate::proxy::reply::refusal::Refusal;
use crate::state::rejected::Attempt;
use crate::state::{Caller as KeyHolder, Snapshot};
use crate::telemetry::{RejectedLine, access_rejected};

/// A known caller, and the snapshot that the request uses.
pub struct Identified {
    pub caller: Principal,
    pub snapshot: Arc<Snapshot>,
    /// The client's own credential for a provider that takes it.
    pub own: Option<Arc<OwnCredential>>,
}

impl Identified {
    /// Whether the caller of a connection that takes several requests may still use it, by the
    /// configuration that is in effect now.
    ///
    /// # Errors
    /// The key is no longer usable.
    pub(in crate::proxy) fn check(&mut self, ctx: &mut RequestContext) -> Result<(), Refusal> {
        self.renew(ctx)?;
        self.caller.usable(ctx.now())
    }

    /// Call it once the body has arrived, which may take long. If the configuration was changed
    /// meanwhile, the caller is looked up again, and the request uses the new snapshot.
    ///
    /// # Errors
    /// The key is no longer usable.
    pub(in crate::proxy) fn renew(&mut self, ctx: &mut RequestContext) -> Result<(), Refusal> {
        if Arc::ptr_eq(&self.snapshot, &ctx.gateway.node.state.peek()) {
            return Ok(());
        }
        let snapshot = ctx.gateway.node.state.snapshot();
        if let Some(key) = self.caller.key_id() {
            let found = snapshot.key(key).ok_or(Refusal::UnknownKey)?;
            self.caller = usable(found, ctx.now()).map_err(|(refusal, _)| refusal)?;
        }
        if let Some(record) = &mut ctx.record {
            record.renew(self.caller.clone(), Arc::clone(&snapshot));
        }
        self.snapshot = snapshot;
        Ok(())
    }
}

/// Finds the caller and opens the request's record.
pub(in crate::proxy) fn identify(
    session: &Session,
    ctx: &mut RequestContext,
    route: &Route,
) -> Result<Identified, Refusal> {
    let identified = caller_of(session, ctx)?;
    let (caller, snapshot) = (identified.caller.clone(), Arc::clone(&identified.snapshot));
    ctx.record = Some(Box::new(OpenRecord::new(caller, snapshot, route.operation.clone())));
    Ok(identified)
}

/// Finds the caller of a request that has no record.
pub(in crate::proxy) fn caller_of(
    session: &Session,
    ctx: &RequestContext,
) -> Result<Identified, Refusal> {
    let snapshot = ctx.gateway.node.state.snapshot();
    let found = match OnBehalf::of(session).and_then(|on_behalf| on_behalf.key) {
        Some(key) => {
            Found { presented: Presented::None, caller: named(ctx, &snapshot, key), own: None }
        }
        None => find(session, ctx, &snapshot),
    };
    match found.caller {
        Ok(caller) => Ok(Identified { caller, snapshot, own: found.own }),
        Err((refusal, key)) => {
            if !ctx.is_explained {
                note_rejected(ctx, &refusal, &found.presented, key);
            }
            Err(refusal)
        }
    }
}

/// Whether the text is the admin token. After ten wrong ones from the client's address, no text is.
fn is_admin_token(ctx: &RequestContext, text: &str) -> bool {
    ctx.gateway.node.admin_token.is_at_proxy(text, ctx.head.client_ip, ctx.started_at)
}

/// What the credentials of a request say.
struct Found {
    presented: Presented,
    /// The caller; else the step that failed, with the key if it exists.
    caller: Result<Principal, (Refusal, Option<KeyId>)>,
    own: Option<Arc<OwnCredential>>,
}

/// Looks the presented key up. Only a request whose usual places hold no key of the gateway is
/// asked for `x-tollgate-key`.
fn find(session: &Session, ctx: &RequestContext, snapshot: &Snapshot) -> Found {
    let head = session.req_header();
    // A web session's token is not compared: browsers send it automatically, so it is not an
    // attempt at the admin token.
    let is_admin = |text: &str| !key_text::is_like_a_session(text) && is_admin_token(ctx, text);
    let (headers, query) = (&head.headers, head.uri.query());
    let aliases = &ctx.gateway.fixed.alt_key_headers;
    let mut presented = credentials::presented(headers, query, aliases, is_admin);
    let (mut holder, mut own) = (presented.holder(snapshot), None);
    if holder.is_none()
        && let Some(beside) = credentials::beside_own(headers, query, aliases, is_admin)
    {
        (holder, presented) = (beside.holder(snapshot), beside);
        if let Presented::One(key) = &presented {
            own = OwnCredential::of(headers, key).map(Arc::new);
        }
    }
    let caller = match (holder, &presented) {
        (Some(holder), _) => usable(holder, ctx.started_at),
        (None, Presented::None) => Err((Refusal::MissingCredential, None)),
        (None, Presented::Conflicting) => Err((Refusal::ConflictingCredentials, None)),
        // Keys first: they keep working from an address that is blocked from trying the admin token.
        (None, Presented::One(text)) => match is_admin_token(ctx, text) {
            true => Ok(Principal::Admin),
            false => Err((Refusal::UnknownKey, None)),
        },
    };
    // What opens the gateway is sent to no provider. Strangers learn nothing of the admin token here.
    if caller.is_ok() && own.as_ref().is_some_and(|own| is_gateways(ctx, snapshot, own)) {
        let caller = Err((Refusal::ConflictingCredentials, None));
        return Found { presented: Presented::Conflicting, caller, own: None };
    }
    Found { presented, caller, own }
}

/// Whether a client's own credential is a key of the gateway, or its admin token.
fn is_gateways(ctx: &RequestContext, snapshot: &Snapshot, own: &OwnCredential) -> bool {
    let is_key = snapshot.caller(&key_text::hash(own.token.expose())).is_some();
    is_key || ctx.gateway.node.admin_token.is(&own.token)
}

impl Presented {
    /// The holder of the key, if it is known.
    fn holder<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s KeyHolder> {
        match self {
            Self::One(text) => snapshot.caller(&key_text::hash(text)),
            Self::None | Self::Conflicting => None,
        }
    }
}

/// The caller of a request that the administration makes on behalf of a key: no credential was
/// presented.
fn named(
    ctx: &RequestContext,
    snapshot: &Snapshot,
    key: KeyId,
) -> Result<Principal, (Refusal, Option<KeyId>)> {
    usable(snapshot.key(key).ok_or((Refusal::UnknownKey, Some(key)))?, ctx.started_at)
}

/// The holder of a key that exists, if it may be used at this time.
fn usable(found: &KeyHolder, now: Timestamp) -> Result<Principal, (Refusal, Option<KeyId>)> {
    let caller = Principal::Key { key: Arc::clone(&found.key), user: Arc::clone(&found.user) };
    caller.usable(now).map_err(|fault| (fault, Some(found.key.id)))?;
    Ok(caller)
}

impl Principal {
    /// Whether the key and its owner may be used at this time.
    pub(super) fn usable(&self, now: Timestamp) -> Result<(), Refusal> {
        match self {
            Self::Key { key, .. } if !key.is_enabled => Err(Refusal::KeyDisabled),
            Self::Key { key, .. } if key.is_expired(now) => Err(Refusal::KeyExpired),
            Self::Key { user, .. } if !user.is_active(now) => Err(Refusal::UserDisabled),
            Self::Key { .. } | Self::Admin => Ok(()),
        }
    }
}

/// Lists the request among the rejected ones, and in the access log.
fn note_rejected(
    ctx: &RequestContext,
    refusal: &Refusal,
    presented: &Presented,
    key: Option<KeyId>,
) {
    let attempt = Attempt {
        at: ctx.started_at,
        client: ctx.head.client_ip,
        endpoint: &ctx.head.endpoint,
        format: ctx.format,
        reason: refusal.reason(),
        user_agent: ctx.head.user_agent.as_deref(),
        credential: match presented {
            Presented::One(text) => Some(text),
            Presented::None | Presented::Conflicting => None,
        },
        key,
    };
    let Some(noted) =
        ctx.gateway.node.rejected.note(&attempt).filter(|_| ctx.gateway.fixed.access_log)
    else {
        return;
    };
    let reply = refusal.reply(ctx.zone());
    let client = noted.client.map(|ip| ip.to_string());
    access_rejected(&RejectedLine {
        request_id: ctx.id,
        at: noted.last_at,
        status: reply.status,
        error: &reply.message,
        endpoint: &noted.endpoint,
        format: noted.format,
        reason: noted.reason,
        key_id: noted.key,
        key_fingerprint: noted.fingerprint.as_deref(),
        times: noted.count,
        user_agent: noted.user_agent.as_deref(),
        client_addr: client.as_deref(),
        span: ctx.span(),
    });
}
