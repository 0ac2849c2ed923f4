//! The identity of the machine that the gateway runs on: its metadata service issues the tokens.

use http::HeaderName;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::exchange::{TokenRequest, checked_here};
use super::read_json;
use crate::config::machine_identity;
use crate::domain::secret::Secret;

/// Where both clouds have their metadata services.
const METADATA: &str = "169.254.169.254";
/// A name of Google's, which only its own resolver knows.
const GOOGLE_NAME: &str = "metadata.google.internal";

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[derive(Deserialize)]
struct GoogleFile {
    #[serde(default = "usual_account")]
    account: String,
}

fn usual_account() -> String {
    "default".to_owned()
}

/// A machine at Google (GCE, GKE, Cloud Run).
pub(super) struct GoogleMachine {
    url: String,
}

impl GoogleMachine {
    pub(super) fn read(key: &Secret) -> Result<Self, String> {
        let file: GoogleFile = read_json(key, "the metadata credential")?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._@".contains(&byte);
        if file.account.is_empty() || !file.account.bytes().all(is_plain) {
            return Err("account must be default or an e-mail address".to_owned());
        }
        let host = machine_identity().gce_metadata_host;
        let host = host.filter(|host| host != GOOGLE_NAME).unwrap_or_else(|| METADATA.to_owned());
        let url = format!(
            "http://{host}/computeMetadata/v1/instance/service-accounts/{}/token",
            file.account
        );
        let url = checked_here(url).map_err(|why| format!("GCE_METADATA_HOST: {why}"))?;
        Ok(Self { url })
    }

    pub(super) fn request(&self) -> TokenRequest {
        let flavor = HeaderName::from_static("metadata-flavor");
        TokenRequest::get(self.url.clone()).with(flavor, "Google".to_owned())
    }
}

/// A managed identity of a machine, or of an app, at Azure.
pub(super) struct AzureMachine {
    url: String,
    header: (HeaderName, String),
}

impl AzureMachine {
    /// The identity of this client; `None`: the system's own.
    pub(super) fn of(client_id: Option<&str>, scope: &str) -> Result<Self, String> {
        let machine = machine_identity();
        let resource = encoded(scope.trim_end_matches("/.default"));
        let client = client_id.map(|id| format!("&client_id={}", encoded(id)));
        let query = |version: &str| {
            let client = client.as_deref().unwrap_or_default();
            format!("?api-version={version}&resource={resource}{client}")
        };
        let (variable, url, header) = match (machine.identity_endpoint, machine.identity_header) {
            (Some(endpoint), Some(secret)) => (
                "IDENTITY_ENDPOINT",
                format!("{endpoint}{}", query("2019-08-01")),
                (HeaderName::from_static("x-identity-header"), secret),
            ),
            _ => {
                let host = machine.azure_metadata_host;
                let host = host.unwrap_or_else(|| format!("http://{METADATA}"));
                let host = host.trim_end_matches('/');
                let path = "/metadata/identity/oauth2/token";
                (
                    "AZURE_POD_IDENTITY_AUTHORITY_HOST",
                    format!("{host}{path}{}", query("2018-02-01")),
                    (HeaderName::from_static("metadata"), "true".to_owned()),
                )
            }
        };
        let url = checked_here(url).map_err(|why| format!("{variable}: {why}"))?;
        Ok(Self { url, header })
    }

    pub(super) fn request(&self) -> TokenRequest {
        let (name, value) = self.header.clone();
        TokenRequest::get(self.url.clone()).with(name, value)
    }
}
