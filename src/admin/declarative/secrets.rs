//! Secrets in a document: masked, sealed, or as they are.
//!
//! A masked secret, or none, leaves what is stored. A sealed one (`sealed:…`) was exported, and
//! opens on gateways with the same secret key. It is bound to what it was for: a provider's
//! credential to the origin, the proxy and the authorities that it was sent with, and a secret that
//! another receiver gets to its field. Else an administrator, who cannot read a stored credential,
//! could export it and have it sent to an address of their own.

use serde_json::Value;

use super::work::{Desk, Work};
use crate::admin::bodies::SEALED;
use crate::admin::envelope::{ApiError, Code};
use crate::crypto::vault::{SealedFor, Vault};
use crate::domain::provider::Provider;
use crate::domain::secret::{MASK, Secret, is_masked};
use crate::upstream::endpoint::Endpoint;

/// Why a sealed text is refused.
pub(super) const OTHER_PLACE: &str = "the sealed text was altered, or was sealed for another place \
                                      or address: write the secret itself";

/// How an export shows secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Secrets {
    /// Enough to recognise them.
    #[default]
    Masked,
    /// Encrypted with the gateway's secret key.
    Sealed,
}

/// A secret as a document has it.
#[derive(Debug)]
pub(super) enum Written {
    /// None is written, or a masked one.
    Kept {
        masked: bool,
    },
    /// `null`.
    Cleared,
    Sealed(String),
    Plain(Secret),
    /// No text.
    Wrong,
}

impl Written {
    pub(super) fn read(value: Option<Value>) -> Self {
        match value {
            None => Self::Kept { masked: false },
            Some(Value::Null) => Self::Cleared,
            Some(Value::String(text)) if is_masked(&text) => Self::Kept { masked: true },
            Some(Value::String(text)) => match text.strip_prefix(SEALED) {
                Some(sealed) => Self::Sealed(sealed.to_owned()),
                None => Self::Plain(Secret::new(text.trim())),
            },
            Some(_) => Self::Wrong,
        }
    }

    /// The secret that is to be, where one is written; no answer at all after a fault.
    pub(super) fn opened(
        self,
        work: &mut Work<'_>,
        purpose: &str,
        at: &str,
    ) -> Option<Option<Secret>> {
        let opened = self.open(&work.desk, purpose);
        opened.map_err(|what| work.faults.add(Code::INVALID_FORMAT, at, &what)).ok()
    }

    fn open(self, desk: &Desk<'_>, purpose: &str) -> Result<Option<Secret>, String> {
        match self {
            Self::Kept { .. } | Self::Cleared => Ok(None),
            Self::Plain(secret) => Ok(Some(secret)),
            Self::Wrong => Err("must be text".to_owned()),
            Self::Sealed(sealed) => {
                desk.vault.open(SealedFor::exported(purpose), &sealed).map(Some).map_err(|error| {
                    match error.lacks_key() {
                        true => format!("the sealed text {error}"),
                        false => OTHER_PLACE.to_owned(),
                    }
                })
            }
        }
    }
}

/// A record with its credential.
pub(super) struct WithKey<T> {
    pub record: T,
    /// `None` = it cannot be opened.
    pub key: Option<Secret>,
    /// It is another one than the stored one.
    pub is_another: bool,
}

impl<T> WithKey<T> {
    /// With the credential that is written, else the stored one.
    pub(super) fn new(record: T, written: Option<Secret>, before: Option<&Self>) -> Self {
        let old = before.and_then(|before| before.key.as_ref());
        let is_another = written.is_some() && written.as_ref() != old;
        Self { record, key: written.or_else(|| old.cloned()), is_another }
    }

    pub(super) fn masked(&self) -> String {
        self.key.as_ref().map_or_else(|| MASK.to_owned(), Secret::masked)
    }
}

/// How an export shows secrets.
#[derive(Clone, Copy)]
pub(super) struct Sealing<'a> {
    pub vault: &'a Vault,
    pub secrets: Secrets,
    /// The id of the key that seals; `None`: the oldest.
    pub key: Option<&'a str>,
}

impl Sealing<'_> {
    /// A secret as the export shows it.
    ///
    /// # Errors
    /// It cannot be sealed.
    pub(super) fn shown(&self, purpose: &str, secret: &Secret) -> Result<Value, ApiError> {
        if self.secrets == Secrets::Masked {
            return Ok(secret.masked().into());
        }
        let ring = self.key.map_or_else(|| self.vault.ring(), |id| self.vault.ring_with(id));
        let key = self.key.and_then(|id| ring.key(id)).or_else(|| ring.oldest());
        let key = key.ok_or_else(|| ApiError::internal("there is no secret key"))?;
        let sealed =
            Vault::seal(key, SealedFor::exported(purpose), secret).map_err(ApiError::internal)?;
        Ok(format!("{SEALED}{sealed}").into())
    }
}

/// What a provider's credential is for: the addresses that it may be sent to, and the authorities
/// that decide which server has them.
pub(super) fn purpose_of(provider: &Provider) -> String {
    let purpose = purpose_of_field(provider, "key");
    match &provider.tls.ca {
        Some(authorities) => format!("{purpose} trusting {authorities}"),
        None => purpose,
    }
}

/// What a secret is for that only this field may have: the provider does not get it.
pub(super) fn purpose_of_field(provider: &Provider, field: &str) -> String {
    format!(
        "provider {field} for {} through {}",
        origin_of(&provider.url),
        provider.proxy_url.as_deref().unwrap_or("no proxy")
    )
}

/// Scheme, host and port of an address.
pub(super) fn origin_of(url: &str) -> String {
    Endpoint::parse(url).map_or_else(
        |_| url.to_owned(),
        |end| {
            format!(
                "{} {} {}",
                if end.tls { "https" } else { "http" },
                end.host.to_ascii_lowercase(),
                end.port
            )
        },
    )
}
