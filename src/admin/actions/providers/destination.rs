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
use crate::upstream::endpoint::Endpoint;

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
    let is_exchanged = wanted.auth != ProviderAuth::None
        && (stored.auth.is_exchanged() || wanted.auth.is_exchanged());
    if (merged.keeps_key || merged.keeps_credential) && is_exchanged && stored.auth != wanted.auth {
        return missing(Reason::OtherCredential, field);
    }
    Ok(())
}

/// Scheme, host and port are the same. An invalid address equals only itself.
pub(in crate::admin) fn same_origin(stored: &str, wanted: &str) -> bool {
    if stored == wanted {
        return true;
    }
    match (Endpoint::parse(stored), Endpoint::parse(wanted)) {
        (Ok(a), Ok(b)) => {
            a.tls == b.tls && a.port == b.port && a.host.eq_ignore_ascii_case(&b.host)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let stored = "https://api.example/v1";
        let same = [
            "https://api.example",
            "https://API.example:443/other/v2",
            "https://api.example/v1/messages",
        ];
        for url in same {
            assert!(same_origin(stored, url), "{url}");
        }
        let others = [
            "http://api.example/v1",
            "https://api.example:8443/v1",
            "https://api.example.evil.test/v1",
            "https://api.example@evil.test/v1",
            "https://evil.test/api.example",
            "https://api.example./v1",
            "https://evil.test?https://api.example/v1",
            "https://evil.test#@api.example",
            "https://api.example\\.evil.test",
            "//api.example",
            "",
        ];
        for url in others {
            assert!(!same_origin(stored, url), "{url}");
        }
    }
}
