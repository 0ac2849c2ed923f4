//! What is secret of a provider: what an edit makes of what is stored.
//!
//! Secrets are shown masked. One that is sent as it is shown keeps its stored text.

use serde::de::IgnoredAny;

use super::fields::ProviderFields;
use super::test::TestProvider;
use crate::admin::bodies::{CustomHeaders, Patch};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::reasons::Reason;
use crate::domain::credentials::{Credentials, CustomHeader};
use crate::domain::provider::Provider;
use crate::domain::proxy_address::{self, ProxyAddress};
use crate::domain::secret::{Secret, is_masked};
use crate::upstream::tokens;

/// What a body has of the secrets.
#[derive(Debug, Default)]
pub(in crate::admin) struct SentSecrets {
    /// The credential; `None` = it stays.
    pub key: Option<Secret>,
    /// The headers, as they were entered; `None` = they stay.
    pub headers: Option<Vec<CustomHeader>>,
    /// The password of the proxy.
    pub proxy_password: SentSecret,
    /// The key of the client certificate.
    pub tls_key: SentSecret,
}

/// What a body has of one secret.
#[derive(Debug, Default)]
pub(in crate::admin) enum SentSecret {
    /// It is not sent: the stored one stays.
    #[default]
    Kept,
    /// The mask of the stored one.
    Masked,
    /// There is none.
    Cleared,
    /// Another one.
    Set(Secret),
}

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
    /// The password of the proxy stays.
    pub keeps_proxy_password: bool,
    /// The key of the client certificate stays.
    pub keeps_tls_key: bool,
}

impl SentSecrets {
    /// Of a provider's body.
    pub(in crate::admin) fn of(body: &ProviderFields) -> Self {
        Self {
            key: body.key.plain().map(Secret::new),
            headers: headers_of(&body.custom_headers),
            proxy_password: SentSecret::of_proxy(body.proxy_url.plain()),
            tls_key: SentSecret::of(body.tls_client_key.plain()),
        }
    }

    /// Of a test's body.
    pub(super) fn of_test(body: &TestProvider) -> Self {
        Self {
            key: body.key.plain().map(Secret::new),
            headers: headers_of(&body.custom_headers),
            proxy_password: SentSecret::of_proxy(body.proxy_url.plain()),
            tls_key: SentSecret::of(body.tls_client_key.plain()),
        }
    }

    /// The first field that must be sent for `wanted` where the stored secrets cannot be opened. A
    /// field that is sent says what there is, also if it says that there is nothing.
    pub(in crate::admin) fn lost(&self, wanted: &Provider) -> Option<&'static str> {
        let proxy = wanted.proxy_url.as_deref().and_then(ProxyAddress::parse);
        let is_kept = |secret: &SentSecret| matches!(secret, SentSecret::Kept);
        let has_certificate = wanted.tls.client_certificate.is_some();
        let needed = [
            (self.key.is_none(), "key"),
            (has_certificate && is_kept(&self.tls_key), "tls_client_key"),
            (
                proxy.is_some_and(|proxy| proxy.user.is_some()) && is_kept(&self.proxy_password),
                "proxy_url",
            ),
        ];
        needed.iter().find(|(is_needed, _)| *is_needed).map(|(_, field)| *field)
    }
}

impl SentSecret {
    fn of(sent: Patch<String>) -> Self {
        match sent {
            Patch::Keep => Self::Kept,
            Patch::Clear => Self::Cleared,
            Patch::Set(text) if is_masked(&text) => Self::Masked,
            Patch::Set(text) => Self::Set(Secret::new(text)),
        }
    }

    /// The password in the address of a proxy.
    fn of_proxy(sent: Patch<String>) -> Self {
        match sent {
            Patch::Keep => Self::Kept,
            Patch::Clear => Self::Cleared,
            Patch::Set(url) => match proxy_address::without_password(&url).1 {
                Some(password) => Self::of(Patch::Set(password.to_owned())),
                None => Self::Cleared,
            },
        }
    }

    /// The secret that is to be, and whether it is the stored one.
    fn merge(self, stored: &Secret, field: &str) -> Result<(Secret, bool), ApiError> {
        let has_stored = !stored.expose().is_empty();
        match self {
            Self::Kept => Ok((stored.clone(), has_stored)),
            Self::Masked if has_stored => Ok((stored.clone(), true)),
            Self::Masked => {
                Err(ApiError::because(Code::INVALID_FORMAT, Reason::IsMasked).field(field))
            }
            Self::Cleared => Ok((Secret::default(), false)),
            Self::Set(secret) => Ok((secret, false)),
        }
    }
}

fn headers_of(sent: &Patch<CustomHeaders>) -> Option<Vec<CustomHeader>> {
    match sent.plain() {
        Patch::Keep => None,
        Patch::Clear => Some(Vec::new()),
        Patch::Set(headers) => Some(headers.into_iter().map(custom).collect()),
    }
}

fn custom((name, value): (String, String)) -> CustomHeader {
    CustomHeader { name, value: Secret::new(value) }
}

/// The stored secrets with those that are sent; further credentials stay.
///
/// # Errors
/// There is a mask of something that is not stored.
pub(in crate::admin) fn merge(stored: Credentials, sent: SentSecrets) -> Result<Merged, ApiError> {
    let keeps_key = sent.key.is_none();
    let (headers, keeps_header) = merged_headers(&stored, sent.headers)?;
    let (proxy_password, keeps_proxy_password) =
        sent.proxy_password.merge(&stored.proxy_password, "proxy_url")?;
    let (tls_key, keeps_tls_key) = sent.tls_key.merge(&stored.tls_key, "tls_client_key")?;
    let key = sent.key.unwrap_or(stored.key);
    Ok(Merged {
        credentials: Credentials { key, headers, others: stored.others, proxy_password, tls_key },
        keeps_key,
        keeps_credential: false,
        keeps_header,
        keeps_proxy_password,
        keeps_tls_key,
    })
}

/// The headers that are to be, and whether a secret part of one is stored already.
fn merged_headers(
    stored: &Credentials,
    sent: Option<Vec<CustomHeader>>,
) -> Result<(Vec<CustomHeader>, bool), ApiError> {
    let Some(mut headers) = sent else {
        return Ok((stored.headers.clone(), stored.has_secret_header()));
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
    Ok((headers, keeps_header))
}

/// Whether a credential has the form of those that are exchanged, or that sign.
fn is_json(key: &Secret) -> bool {
    let text = key.expose();
    text.starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether the credential is of the kind that the provider needs.
///
/// # Errors
/// If it is not, saying why.
pub(in crate::admin) fn check_key(provider: &Provider, key: &Secret) -> Result<(), ApiError> {
    let refusal = |reason| ApiError::because(Code::INVALID_FORMAT, reason).field("key");
    if !provider.auth.is_exchanged() {
        let is_sent = key.expose().bytes().all(|byte| byte.is_ascii_graphic());
        return match provider.auth.header(provider.kind) {
            _ if !is_sent => Err(refusal(Reason::MustBeHeaderText)),
            Some(_) if is_json(key) => Err(refusal(Reason::CredentialNotSent)),
            _ => Ok(()),
        };
    }
    tokens::check(provider, key)
        .map_err(|why| refusal(Reason::CredentialUnfit).with("detail", why.into()))
}
