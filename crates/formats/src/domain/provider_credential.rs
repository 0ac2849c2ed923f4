//! Several credentials of one provider, which requests use in turn.
//!
//! The first is the one in the provider's `key`. A provider with one credential has no list of them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::credentials::Credentials;
use super::ids::CredentialId;
use super::provider::{LastError, Provider};

/// The name of the credential in a provider's `key`.
pub const KEY_NAME: &str = "key";

/// One of several credentials, without its text. Stored as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderCredential {
    /// Changes with the text.
    pub id: CredentialId,
    /// The administrator's name for it, as in decision chains and metrics. The first is called
    /// [`KEY_NAME`].
    pub name: String,
    /// If false, no request uses it.
    pub is_enabled: bool,
    /// Why the gateway itself disabled it: the provider refused it.
    #[serde(default)]
    pub refused: Option<LastError>,
    /// When an administrator enabled it after a refusal: what was known before says nothing of it.
    #[serde(default)]
    pub since: Timestamp,
}

impl ProviderCredential {
    /// The credential in the `key` of a provider that had no other one.
    pub fn of_key() -> Self {
        let (id, name) = (CredentialId::KEY, KEY_NAME.to_owned());
        Self { id, name, is_enabled: true, refused: None, since: Timestamp::default() }
    }
}

/// The provider with each of its credentials.
pub(super) fn variants(provider: &Provider, credentials: &Credentials) -> Vec<Arc<Provider>> {
    let with = |(index, one): (usize, &ProviderCredential)| {
        let key = credentials.text_of(index, one.id)?.clone();
        let (credential, variants) = (Some(one.clone()), Vec::new());
        let credentials = Vec::new();
        Some(Arc::new(Provider { key, credential, variants, credentials, ..provider.clone() }))
    };
    provider.credentials.iter().enumerate().filter_map(with).collect()
}
