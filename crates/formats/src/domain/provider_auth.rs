//! How requests to a provider are authenticated.

use http::HeaderName;
use http::header::AUTHORIZATION;
use serde::{Deserialize, Serialize};

use super::provider::ProviderType;

/// How the credential of a provider is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[derive(strum::IntoStaticStr, strum::EnumString)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ProviderAuth {
    /// As the provider's type has it.
    #[default]
    Auto,
    /// In `x-api-key`.
    XApiKey,
    /// In `Authorization: Bearer`.
    Bearer,
    /// In `x-goog-api-key`.
    XGoogApiKey,
    /// In `api-key`, as Azure has it.
    ApiKey,
    /// Not at all.
    None,
    /// An access token for the service account whose key (JSON) is the credential.
    GcpServiceAccount,
    /// An access token of Microsoft Entra ID for the application whose secret (JSON) is the
    /// credential.
    AzureEntra,
    /// Each request is signed with the keys of AWS (Signature Version 4) that the credential (JSON)
    /// has or names.
    AwsSigv4,
    /// The client's own credential, as the request carries it. Replies cost nobody else anything.
    Client,
}

impl ProviderAuth {
    /// The name on the wire and in the database, such as `x-api-key`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Reads what [`Self::as_str`] writes; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    /// Whether the credential itself is not sent, but an access token that it is exchanged for, or
    /// a signature.
    pub const fn is_exchanged(self) -> bool {
        matches!(self, Self::GcpServiceAccount | Self::AzureEntra | Self::AwsSigv4)
    }

    /// Whether requests are signed.
    pub const fn is_signature(self) -> bool {
        matches!(self, Self::AwsSigv4)
    }

    /// Whether the provider gets the client's own credential, and no other.
    pub const fn is_clients(self) -> bool {
        matches!(self, Self::Client)
    }

    /// The header of the credential or the token of a provider of this type, and what stands before
    /// it; `None` if nothing is sent, or a signature.
    pub fn header(self, kind: ProviderType) -> Option<(HeaderName, &'static str)> {
        const BEARER: (HeaderName, &str) = (AUTHORIZATION, "Bearer ");
        const X_API_KEY: (HeaderName, &str) = (HeaderName::from_static("x-api-key"), "");
        const X_GOOG_API_KEY: (HeaderName, &str) = (HeaderName::from_static("x-goog-api-key"), "");
        const API_KEY: (HeaderName, &str) = (HeaderName::from_static("api-key"), "");
        Some(match (self, kind) {
            (Self::None | Self::AwsSigv4 | Self::Client, _) => return None,
            (Self::XApiKey, _) | (Self::Auto, ProviderType::Native) => X_API_KEY,
            (Self::XGoogApiKey, _) | (Self::Auto, ProviderType::AltCli) => X_GOOG_API_KEY,
            (Self::ApiKey, _) => API_KEY,
            (Self::Auto | Self::Bearer | Self::GcpServiceAccount | Self::AzureEntra, _) => BEARER,
        })
    }
}
