//! Which of a provider's several credentials an attempt uses, and what a failure says of it.
//!
//! A provider with one credential passes here without a look: its failures are the provider's own.

use std::sync::Arc;

use pingora::http::ResponseHeader;

use super::attempt::Attempt;
use super::failure::{ErrorStatus, Failure};
use super::forwarding::Forwarding;
use crate::domain::clock::Timestamp;
use crate::domain::provider::Provider;
use crate::formats::route::Operation;
use crate::policy::client_error::{self, CredentialFault};
use crate::policy::failure::NetworkFailure;
use crate::policy::{quota, retry_after};
use crate::proxy::context::RequestContext;
use crate::state::NodeEvent;
use crate::state::credentials::CredentialAsk;
use crate::state::health::attempts::{AttemptError, Failed};

/// The cooldown of a credential whose provider does not say how long, in milliseconds.
const COOLDOWN_MS: i64 = 60_000;
/// Credentials of a provider that one request may try with failures other than a 401: the request
/// itself may be the reason.
const MOST_LIMITED: usize = 3;

/// What follows from a failure that is about the credential.
pub(super) struct OtherCredential {
    /// The provider with the credential to use next; `None` if none can be used now.
    pub next: Option<Arc<Provider>>,
    /// For the decision chain.
    pub why: String,
}

/// The provider with that of its several credentials that is to be used; `None` if none can be used
/// now.
pub(super) fn choose(
    request: &RequestContext,
    forwarding: &Forwarding,
    provider: &Provider,
) -> Option<Arc<Provider>> {
    let (key, inbound) = (forwarding.identified.caller.key_id(), &forwarding.inbound);
    let continued = match &forwarding.route.operation {
        Operation::Stored(call) => Some(&*call.id),
        _ => inbound.peek.continued(request.format),
    };
    let history = &request.gateway.stored_history;
    let holder = key.zip(continued).and_then(|(key, reply)| history.holder(key, reply));
    let holder = inbound.account.or(holder);
    let ask = CredentialAsk {
        session: key.map(|key| (key, &inbound.session)),
        holder: holder.filter(|held| held.0 == provider.id).map(|held| held.1),
        tried: &forwarding.tried,
        now: request.now(),
    };
    request.gateway.node.credentials.choose(provider, &ask)
}

/// Notes a failed attempt with one of several credentials. `Some` if the credential is at fault:
/// then it has a cooldown, or is disabled, and the next one is chosen.
pub(super) fn failed(
    request: &RequestContext,
    forwarding: &mut Forwarding,
    attempt: &Attempt,
    failure: &Failure,
) -> Option<OtherCredential> {
    let credential = attempt.provider.credential.as_ref()?;
    let (now, states) = (request.now(), &request.gateway.node.credentials);
    let place = (attempt.provider.id, credential.id);
    let (kind, status, message) = (failure.kind(), failure.status(), failure.describe());
    let error = Failed { kind, status, message: &message };
    let error = Arc::new(AttemptError::new(&attempt.provider, error, now));
    states.failed(place, Arc::clone(&error));
    let fault = fault(forwarding, failure)?;
    forwarding.tried.push(place);
    let whole = Arc::clone(forwarding.identified.snapshot.provider(attempt.provider.id)?);
    // An access token may have been revoked before its time, and a token count has limits of its
    // own.
    let is_refused = fault == CredentialFault::Refused && !attempt.provider.auth.is_exchanged();
    if status != Some(401) {
        forwarding.limited.push(whole.id);
    }
    let limited = forwarding.limited.iter().filter(|id| **id == whole.id).count();
    let is_last = limited >= MOST_LIMITED;
    let told = told_cooldown(request, attempt, failure, now);
    let is_vague = is_last && !is_refused && told.is_none();
    let state = if is_vague || !attempt.ticket.has_effect() {
        "is passed over for this request".to_owned()
    } else if is_refused {
        if !states.refuse(&whole, credential.id, error) {
            return None;
        }
        "is disabled".to_owned()
    } else {
        let longest = i64::try_from(request.live.retry.max_cooldown_ms).unwrap_or(i64::MAX);
        let until = told.unwrap_or_else(|| now.plus_ms(COOLDOWN_MS)).min(now.plus_ms(longest));
        states.set_cooldown(place, until, now);
        format!("has a cooldown of {} s", until.since(now).max(0).saturating_add(999) / 1_000)
    };
    request.gateway.node.events.tell(|| NodeEvent::Provider(whole.id));
    let may_go_on = !is_last && forwarding.has_time();
    let next = if may_go_on { choose(request, forwarding, &whole) } else { None };
    let why = match next.as_ref().and_then(|next| next.credential.as_ref()) {
        Some(next) => format!("{state}, sent again with the key “{}”", next.name),
        None => state,
    };
    Some(OtherCredential { next, why })
}

/// What a failure says of the credential. An error rule that matches it comes first.
fn fault(forwarding: &Forwarding, failure: &Failure) -> Option<CredentialFault> {
    match failure {
        Failure::Network(trouble) if trouble.what == NetworkFailure::NoToken => {
            Some(CredentialFault::UsedUp)
        }
        Failure::ErrorReply(error) => {
            let reply = error.reply();
            let fault = client_error::credential_fault(&reply)?;
            let rules = &forwarding.identified.snapshot.error_rules;
            rules.decide(&reply).is_none().then_some(fault)
        }
        _ => None,
    }
}

/// The end of the cooldown as the provider tells it: by `Retry-After`, else by the windows of the
/// account.
fn told_cooldown(
    request: &RequestContext,
    attempt: &Attempt,
    failure: &Failure,
    now: Timestamp,
) -> Option<Timestamp> {
    let longest = request.live.retry.max_cooldown_ms;
    let asked = match failure {
        Failure::ErrorReply(ErrorStatus { retry_after: Some(header), .. }) => {
            retry_after::cooldown_until(header, now, longest)
        }
        _ => None,
    };
    let place = (attempt.provider.id, attempt.provider.credential_id());
    asked.or_else(|| request.gateway.node.credentials.used_up_until(place, now))
}

/// Notes the windows of the account that the head of a reply describes: those of a client's own
/// account are the client's.
pub(super) fn note_windows(request: &RequestContext, attempt: &Attempt, head: &ResponseHeader) {
    let headers = &head.headers;
    let has_windows = || headers.keys().any(|name| quota::is_quota_header(name.as_str()));
    if attempt.provider.auth.is_clients() || !has_windows() {
        return;
    }
    let texts =
        headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    let (now, provider) = (request.now(), &attempt.provider);
    let windows = quota::read(texts, now);
    let place = (provider.id, provider.credential_id());
    request.gateway.node.credentials.windows_seen(place, windows, now);
}

/// A complete reply came: the session stays with the credential.
pub(in crate::proxy) fn served(
    request: &RequestContext,
    forwarding: &Forwarding,
    attempt: &Attempt,
) {
    if let Some(credential) = &attempt.provider.credential
        && let Some(key) = forwarding.identified.caller.key_id()
    {
        let place = (attempt.provider.id, credential.id);
        request.gateway.node.credentials.served(place, key, &forwarding.inbound.session);
    }
}
