//! A provider's credential and headers: what an edit makes of those that are stored.
//!
//! Secret parts of headers are shown masked. A header that is sent as it is shown keeps its stored
//! value.

use crate::admin::bodies::{CustomHeaders, Patch};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::reasons::Reason;
use crate::domain::credentials::{Credentials, CustomHeader};
use crate::domain::provider::Provider;
use crate::domain::secret::Secret;
use crate::upstream::tokens;

/// What is to be stored, and what of it is stored already.
#[derive(Debug, Clone)]
pub(in crate::admin) struct Merged {
    /// What is to be stored.
    pub credentials: Credentials,
    /// The credential stays.
    pub keeps_key: bool,
    /// One of the further credentials stays.
    pub keeps_credential: bool,
    /// A secret part of a header stays.
    pub keeps_header: bool,
}

/// The headers of a body, as they were entered; `None` if they stay.
pub(in crate::admin) fn headers_of(sent: &Patch<CustomHeaders>) -> Option<Vec<CustomHeader>> {
    match sent.plain() {
        Patch::Keep => None,
        Patch::Clear => Some(Vec::new()),
        Patch::Set(headers) => Some(headers.into_iter().map(custom).collect()),
    }
}

fn custom((name, value): (String, String)) -> CustomHeader {
    CustomHeader { name, value: Secret::new(value) }
}

/// The stored credentials with the key and the headers that are sent; further credentials stay.
///
/// # Errors
/// A header has a mask that no stored one has.
pub(in crate::admin) fn merge(
    stored: Credentials,
    key: Option<Secret>,
    headers: Option<Vec<CustomHeader>>,
) -> Result<Merged, ApiError> {
    let keeps_key = key.is_none();
    let key = key.unwrap_or_else(|| stored.key.clone());
    let (others, keeps_credential) = (stored.others.clone(), false);
    let Some(mut headers) = headers else {
        let keeps_header = stored.has_secret_header();
        let credentials = Credentials { key, headers: stored.headers, others };
        return Ok(Merged { credentials, keeps_key, keeps_credential, keeps_header });
    };
    let mut keeps_header = false;
    for header in headers.iter_mut().filter(|header| header.is_masked()) {
        let is_it =
            |old: &&CustomHeader| old.name == header.name && old.masked() == header.value.expose();
        let Some(old) = stored.headers.iter().find(is_it) else {
            let refusal = ApiError::because(Code::INVALID_FORMAT, Reason::IsMasked);
            return Err(refusal.field("custom_headers").with("name", header.name.clone().into()));
        };
        *header = old.clone();
        keeps_header = true;
    }
    let credentials = Credentials { key, headers, others };
    Ok(Merged { credentials, keeps_key, keeps_credential, keeps_header })
}

/// Whether the credential is of the kind that the provider needs.
///
/// # Errors
/// If it is not, saying why.
pub(in crate::admin) fn check_key(provider: &Provider, key: &Secret) -> Result<(), ApiError> {
    let refusal = |reason| ApiError::because(Code::INVALID_FORMAT, reason).field("key");
    if !provider.auth.is_exchanged() {
        let is_sent = key.expose().bytes().all(|byte| byte.is_ascii_graphic());
        return if is_sent { Ok(()) } else { Err(refusal(Reason::MustBeHeaderText)) };
    }
    tokens::check(provider, key)
        .map_err(|why| refusal(Reason::CredentialUnfit).with("detail", why.into()))
}
