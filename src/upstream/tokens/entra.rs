//! Microsoft Entra ID: the secret of an application for an access token (RFC 6749, section 4.4).

use serde::Deserialize;

use super::{TokenForm, checked, read_json};
use crate::domain::secret::Secret;

/// The members are also known by the names that `az ad sp create-for-rbac` prints.
#[derive(Deserialize)]
struct AppSecret {
    #[serde(alias = "tenantId", alias = "tenant")]
    tenant_id: String,
    #[serde(alias = "clientId", alias = "appId")]
    client_id: String,
    #[serde(alias = "clientSecret", alias = "password")]
    client_secret: Secret,
    #[serde(alias = "activeDirectoryEndpointUrl", default = "usual_authority")]
    authority: String,
    #[serde(default = "usual_scope")]
    scope: String,
}

fn usual_authority() -> String {
    "https://login.microsoftonline.com".to_owned()
}

fn usual_scope() -> String {
    "https://cognitiveservices.azure.com/.default".to_owned()
}

pub(super) struct Application {
    endpoint: String,
    id: String,
    secret: Secret,
    scope: String,
}

impl Application {
    pub(super) fn read(key: &Secret) -> Result<Self, String> {
        let app: AppSecret = read_json(key, "the secret of an application")?;
        let is_tenant = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        if app.tenant_id.is_empty() || !app.tenant_id.bytes().all(is_tenant) {
            return Err("tenant_id must be an id or a domain".to_owned());
        }
        if app.client_id.is_empty() || app.client_secret.expose().is_empty() {
            return Err("client_id and client_secret must not be empty".to_owned());
        }
        let authority = app.authority.trim_end_matches('/');
        let endpoint = checked(format!("{authority}/{}/oauth2/v2.0/token", app.tenant_id))?;
        Ok(Self { endpoint, id: app.client_id, secret: app.client_secret, scope: app.scope })
    }

    pub(super) fn form(&self) -> TokenForm {
        let fields = vec![
            ("grant_type", "client_credentials".to_owned()),
            ("client_id", self.id.clone()),
            ("client_secret", self.secret.expose().to_owned()),
            ("scope", self.scope.clone()),
        ];
        TokenForm { url: self.endpoint.clone(), fields }
    }
}
