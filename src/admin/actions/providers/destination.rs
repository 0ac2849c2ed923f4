//! The allowed destination of a stored credential: the origin, and the proxy, that it was stored
//! with.
//!
//! A stored credential can be used and never read. If an administrator could change its destination
//! to an address of their own, it could be read there. So a change of the destination requires the
//! credential again. The type and the path may change: they do not change the receiver.

use super::credentials::Merged;
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
    // Where no credential is sent, the stored one waits for the next change.
    let is_sent = !matches!(wanted.auth, ProviderAuth::None | ProviderAuth::Client);
    let is_exchanged = is_sent && (stored.auth.is_exchanged() || wanted.auth.is_exchanged());
    if (merged.keeps_key || merged.keeps_credential) && is_exchanged && stored.auth != wanted.auth {
        return missing(Reason::OtherCredential, field);
    }
    Ok(())
}
