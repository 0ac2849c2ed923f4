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
/// `REQUIRED_FIELD` of `key`, `credentials` or `custom_headers`, saying what differs.
pub(in crate::admin) fn check(
    stored: &Provider,
    wanted: &Provider,
    merged: &Merged,
) -> Result<(), ApiError> {
    let field = match (merged.keeps_key, merged.keeps_credential, merged.keeps_header) {
        (true, ..) => "key",
        (_, true, _) => "credentials",
        (.., true) => "custom_headers",
        (false, false, false) => return Ok(()),
    };
    let missing = |why| Err(ApiError::because(Code::REQUIRED_FIELD, why).field(field));
    if !same_origin(&stored.url, &wanted.url) {
        return missing(Reason::OtherDestination);
    }
    // Over plain HTTP a proxy reads the credential, and over HTTPS it chooses the server.
    if stored.proxy_url != wanted.proxy_url {
        return missing(Reason::OtherProxy);
    }
    // Where no credential is sent, the stored one waits for the next change.
    let is_sent = !matches!(wanted.auth, ProviderAuth::None | ProviderAuth::Client);
    let is_exchanged = is_sent && (stored.auth.is_exchanged() || wanted.auth.is_exchanged());
    if (merged.keeps_key || merged.keeps_credential) && is_exchanged && stored.auth != wanted.auth {
        return missing(Reason::OtherCredential);
    }
    Ok(())
}
