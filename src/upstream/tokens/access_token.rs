//! What a credential is exchanged for: the value of a header, or what signs requests.

use std::sync::Arc;

use http::HeaderValue;

use crate::domain::secret::Secret;
use crate::upstream::aws::Signer;

/// What a credential is exchanged for.
#[derive(Debug, Clone)]
pub enum AccessToken {
    /// The value of the `Authorization` header, marked as sensitive.
    Header(HeaderValue),
    /// What signs each request.
    Signer(Arc<Signer>),
}

impl AccessToken {
    /// The value of the `Authorization` header; `None` if requests are signed.
    pub const fn header(&self) -> Option<&HeaderValue> {
        match self {
            Self::Header(value) => Some(value),
            Self::Signer(_) => None,
        }
    }

    /// What signs requests, if they are signed.
    pub fn signer(&self) -> Option<&Signer> {
        match self {
            Self::Header(_) => None,
            Self::Signer(signer) => Some(signer),
        }
    }

    /// What no message may have.
    pub fn secrets(&self) -> Vec<Secret> {
        match self {
            Self::Header(value) => {
                let text = value.to_str().ok().and_then(|text| text.strip_prefix("Bearer "));
                text.map(Secret::new).into_iter().collect()
            }
            Self::Signer(signer) => signer.secrets().collect(),
        }
    }
}

impl PartialEq for AccessToken {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Header(one), Self::Header(other)) => one == other,
            (Self::Signer(one), Self::Signer(other)) => one.is_same(other),
            _ => false,
        }
    }
}
