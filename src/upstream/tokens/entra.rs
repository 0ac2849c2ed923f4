//! Microsoft Entra ID: the proof of an application's identity for an access token (RFC 6749,
//! section 4.4; RFC 7523), or the managed identity of the machine.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rsa::KeyPair;
use ring::signature::RSA_PSS_SHA256;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::exchange::{Exchange, Issued, TokenRequest, checked};
use super::machine::AzureMachine;
use super::{jwt, read_json};
use crate::config::machine_identity;
use crate::domain::clock::Timestamp;
use crate::domain::secret::Secret;
use crate::upstream::certificates;

const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// The life of an assertion, in seconds.
const LIFE: i64 = 600;

/// The members are also known by the names that `az ad sp create-for-rbac` prints.
#[derive(Deserialize)]
struct EntraFile {
    source: Option<String>,
    #[serde(alias = "tenantId", alias = "tenant")]
    tenant_id: Option<String>,
    #[serde(alias = "clientId", alias = "appId")]
    client_id: Option<String>,
    #[serde(alias = "clientSecret", alias = "password")]
    client_secret: Option<Secret>,
    certificate: Option<String>,
    private_key: Option<Secret>,
    token_file: Option<String>,
    #[serde(alias = "activeDirectoryEndpointUrl")]
    authority: Option<String>,
    #[serde(default = "usual_scope")]
    scope: String,
}

fn usual_scope() -> String {
    "https://cognitiveservices.azure.com/.default".to_owned()
}

/// Where a token of Entra comes from.
pub(super) enum Entra {
    Application(Box<Application>),
    Machine(AzureMachine),
}

/// An application, and how it proves what it is.
pub(super) struct Application {
    endpoint: String,
    id: String,
    scope: String,
    proof: Proof,
}

enum Proof {
    Secret(Secret),
    /// The key of a certificate, and the certificate's SHA-256 in base64url.
    Certificate(Box<KeyPair>, String),
    /// A file with a token of another system, such as Kubernetes.
    File(String),
}

impl Entra {
    pub(super) fn read(key: &Secret) -> Result<Self, String> {
        let mut file: EntraFile = read_json(key, "the credential of an application")?;
        match file.source.as_deref() {
            Some("managed_identity") => {
                let machine = AzureMachine::of(file.client_id.as_deref(), &file.scope)?;
                return Ok(Self::Machine(machine));
            }
            Some("workload_identity") => {
                let machine = machine_identity();
                file.tenant_id = file.tenant_id.or(machine.azure_tenant_id);
                file.client_id = file.client_id.or(machine.azure_client_id);
                file.token_file = file.token_file.or(machine.azure_token_file);
                file.authority = file.authority.or(machine.azure_authority_host);
            }
            None => {}
            Some(_) => {
                return Err("source must be workload_identity or managed_identity".to_owned());
            }
        }
        Application::of(file).map(Box::new).map(Self::Application)
    }

    pub(super) async fn token(
        &self,
        exchange: &Exchange,
        now: Timestamp,
    ) -> Result<Issued, String> {
        match self {
            Self::Machine(machine) => exchange.token(machine.request(), now).await,
            Self::Application(one) => exchange.token(one.request(now).await?, now).await,
        }
    }
}

impl Application {
    fn of(file: EntraFile) -> Result<Self, String> {
        let needed = |value: Option<String>, name: &str, variable: &str| {
            let or = match file.source {
                Some(_) => format!(", or the variable {variable} be set"),
                None => String::new(),
            };
            let value = value.filter(|value| !value.is_empty());
            value.ok_or_else(|| format!("{name} must be there, and not empty{or}"))
        };
        let tenant = needed(file.tenant_id.clone(), "tenant_id", "AZURE_TENANT_ID")?;
        let id = needed(file.client_id.clone(), "client_id", "AZURE_CLIENT_ID")?;
        let is_tenant = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        if !tenant.bytes().all(is_tenant) {
            return Err("tenant_id must be an id or a domain".to_owned());
        }
        let proof = match (&file.source, &file.certificate, file.client_secret) {
            (Some(_), ..) => {
                let path = needed(file.token_file, "token_file", "AZURE_FEDERATED_TOKEN_FILE")?;
                Proof::File(jwt::file(path)?)
            }
            (None, Some(pem), None) => certified(pem, &file.private_key.unwrap_or_default())?,
            (None, None, Some(secret)) if !secret.expose().is_empty() => Proof::Secret(secret),
            _ => {
                return Err("there must be either client_secret, or certificate and private_key, \
                            or source"
                    .to_owned());
            }
        };
        let authority =
            file.authority.unwrap_or_else(|| "https://login.microsoftonline.com".into());
        let authority = authority.trim_end_matches('/');
        let endpoint = checked(format!("{authority}/{tenant}/oauth2/v2.0/token"))?;
        Ok(Self { endpoint, id, scope: file.scope, proof })
    }

    async fn request(&self, now: Timestamp) -> Result<TokenRequest, String> {
        let mut fields = vec![
            ("grant_type", "client_credentials".to_owned()),
            ("client_id", self.id.clone()),
            ("scope", self.scope.clone()),
        ];
        let assertion = match &self.proof {
            Proof::Secret(secret) => {
                fields.push(("client_secret", secret.expose().to_owned()));
                return Ok(TokenRequest::form(&self.endpoint, fields));
            }
            Proof::Certificate(key, thumbprint) => self.assertion(key, thumbprint, now)?,
            Proof::File(path) => jwt::only_token(&jwt::read(path).await?, path)?,
        };
        fields.push(("client_assertion_type", ASSERTION.to_owned()));
        fields.push(("client_assertion", assertion));
        Ok(TokenRequest::form(&self.endpoint, fields))
    }

    fn assertion(&self, key: &KeyPair, thumbprint: &str, now: Timestamp) -> Result<String, String> {
        let issued = now.0.div_euclid(1000);
        let header = json!({ "alg": "PS256", "typ": "JWT", "x5t#S256": thumbprint });
        let claims = json!({
            "aud": self.endpoint,
            "iss": self.id,
            "sub": self.id,
            "jti": Uuid::new_v4().to_string(),
            "iat": issued,
            "nbf": issued,
            "exp": issued + LIFE,
        });
        jwt::signed(key, &RSA_PSS_SHA256, &header, &claims)
    }
}

/// A certificate with its key.
fn certified(pem: &str, key: &Secret) -> Result<Proof, String> {
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes());
    let certificate = certificate.map_err(|_| "certificate must be PEM")?;
    let pair = jwt::rsa_key(key)?;
    certificates::check_key(pem, key).map_err(|fault| match fault {
        certificates::CertificateFault::OtherKey => format!("private_key {fault}"),
        fault => format!("certificate {fault}"),
    })?;
    let thumbprint = URL_SAFE_NO_PAD.encode(digest(&SHA256, &certificate));
    Ok(Proof::Certificate(Box::new(pair), thumbprint))
}
