//! A provider's own certificates: authorities that it is checked with, and the gateway's identity.

use serde::{Deserialize, Serialize};

use super::secret::Secret;

/// Certificates for the connections to a provider's origin. All are PEM.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderTls {
    /// The authorities that may have signed the provider's certificate, in place of the system's.
    #[serde(default)]
    pub ca: Option<String>,
    /// The chain that the gateway shows, its own certificate first.
    #[serde(default)]
    pub client_certificate: Option<String>,
    /// The private key of that certificate, sealed with the credential.
    #[serde(skip)]
    pub client_key: Secret,
}

impl ProviderTls {
    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.ca.is_none() && self.client_certificate.is_none()
    }
}
