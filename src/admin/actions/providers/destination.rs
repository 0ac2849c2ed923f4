//! The allowed destination of a stored credential: the origin, the proxy, and the authorities that
//! decide which server is trusted, that it was stored with.
//!
//! A stored credential can be used and never read. If an administrator could change its destination
//! to an address of their own, it could be read there. So a change of the destination requires the
//! credential again. The type and the path may change: they do not change the receiver.

use super::credentials::{Merged, check_key};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::reasons::Reason;
use crate::domain::provider::Provider;
use crate::domain::provider_auth::ProviderAuth;
use crate::upstream::origin::same_origin;

/// Refuses to use stored secrets, which `merged` names, for `wanted` unless it has the same
/// destination as `stored`; and a stored credential where another kind is needed.
///
/// # Errors
/// `REQUIRED_FIELD` of the first that is stored, saying what differs.
pub(in crate::admin) fn check(
    stored: &Provider,
    wanted: &Provider,
    merged: &Merged,
) -> Result<(), ApiError> {
    let kept = [
        (merged.keeps_key, "key"),
        (merged.keeps_credential, "credentials"),
        (merged.keeps_header, "custom_headers"),
    ];
    let first = kept.iter().find(|(keeps, _)| *keeps).map(|(_, field)| *field);
    let missing = |why, field| Err(ApiError::because(Code::REQUIRED_FIELD, why).field(field));
    let tls_key = merged.keeps_tls_key.then_some("tls_client_key");
    if let Some(field) = first.or(tls_key)
        && !same_origin(&stored.url, &wanted.url)
    {
        return missing(Reason::OtherDestination, field);
    }
    // Over plain HTTP a proxy reads the credential, and over HTTPS it chooses the server.
    let password = merged.keeps_proxy_password.then_some("proxy_url");
    if let Some(field) = first.or(password)
        && stored.proxy_url != wanted.proxy_url
    {
        return missing(Reason::OtherProxy, field);
    }
    let Some(field) = first else { return Ok(()) };
    // Other authorities confirm other servers. Back to those of the system is free.
    if wanted.tls.ca.as_deref().is_some_and(|ca| !is_same(stored.tls.ca.as_deref(), ca)) {
        return missing(Reason::OtherAuthorities, field);
    }
    // Where no credential is sent, the stored one waits for the next change.
    let is_sent = !matches!(wanted.auth, ProviderAuth::None | ProviderAuth::Client);
    let is_exchanged = is_sent && (stored.auth.is_exchanged() || wanted.auth.is_exchanged());
    let others = merged.credentials.others.iter().map(|(_, key)| key);
    let mut kept = std::iter::once(&merged.credentials.key)
        .filter(|_| merged.keeps_key)
        .chain(others.filter(|_| merged.keeps_credential));
    // One that waited may be of a kind that is never sent itself.
    let mut is_unfit = || kept.any(|key| check_key(wanted, key).is_err());
    let keeps_one = merged.keeps_key || merged.keeps_credential;
    if keeps_one && is_sent && stored.auth != wanted.auth && (is_exchanged || is_unfit()) {
        return missing(Reason::OtherCredential, field);
    }
    Ok(())
}

/// The same authorities; line ends say nothing.
fn is_same(stored: Option<&str>, wanted: &str) -> bool {
    stored.is_some_and(|stored| stored.lines().eq(wanted.lines()))
}
