//! Google's credentials: the forms that `google-auth` reads, by their `type`.

use ring::rsa::KeyPair;
use ring::signature::RSA_PKCS1_SHA256;
use serde::Deserialize;
use serde_json::json;

use super::exchange::{Exchange, Issued, TokenRequest, checked};
use super::federation::Federation;
use super::machine::GoogleMachine;
use super::{jwt, read_json};
use crate::domain::clock::Timestamp;
use crate::domain::secret::Secret;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// What a token may be used for.
pub(super) const CLOUD: &str = "https://www.googleapis.com/auth/cloud-platform";
/// The same of one that only asks for the token of another account.
pub(super) const IAM: &str = "https://www.googleapis.com/auth/iam";
/// The life of an assertion, in seconds: the longest that Google accepts.
const LIFE: i64 = 3600;

/// Where a token of Google comes from.
pub(super) enum Google {
    Account(Box<ServiceAccount>),
    User(User),
    Federation(Box<Federation>),
    Impersonated(Box<Impersonated>),
    Machine(GoogleMachine),
}

#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl Google {
    pub(super) fn read(key: &Secret) -> Result<Self, String> {
        let typed: Typed = read_json(key, "the credential")?;
        match typed.kind.as_deref() {
            None | Some("service_account") => {
                ServiceAccount::read(key).map(Box::new).map(Self::Account)
            }
            Some("authorized_user") => User::read(key).map(Self::User),
            Some("external_account") => Federation::read(key).map(Box::new).map(Self::Federation),
            Some("impersonated_service_account") => {
                Impersonated::read(key).map(Box::new).map(Self::Impersonated)
            }
            Some("metadata") => GoogleMachine::read(key).map(Self::Machine),
            Some(_) => Err("type must be service_account, authorized_user, external_account, \
                            impersonated_service_account or metadata"
                .to_owned()),
        }
    }

    pub(super) async fn token(
        &self,
        exchange: &Exchange,
        scope: &str,
        now: Timestamp,
    ) -> Result<Issued, String> {
        match self {
            Self::Account(account) => exchange.token(account.request(scope, now)?, now).await,
            Self::User(user) => exchange.token(user.request(), now).await,
            Self::Federation(federation) => federation.token(exchange, scope, now).await,
            Self::Impersonated(account) => {
                // One inside another is refused when it is read, so this ends.
                let source = Box::pin(account.source.token(exchange, IAM, now)).await?;
                account.target.token(exchange, &source, now).await
            }
            Self::Machine(machine) => exchange.token(machine.request(), now).await,
        }
    }
}

/// The members of a service account's key file that are needed.
#[derive(Deserialize)]
struct AccountFile {
    client_email: String,
    private_key: Secret,
    private_key_id: Option<String>,
    #[serde(default = "usual_endpoint")]
    token_uri: String,
}

fn usual_endpoint() -> String {
    "https://oauth2.googleapis.com/token".to_owned()
}

/// A service account's key, which signs an assertion (RFC 7523).
pub(super) struct ServiceAccount {
    email: String,
    key: KeyPair,
    key_id: Option<String>,
    endpoint: String,
}

impl ServiceAccount {
    fn read(key: &Secret) -> Result<Self, String> {
        let file: AccountFile = read_json(key, "the key of a service account")?;
        let (key, endpoint) = (jwt::rsa_key(&file.private_key)?, checked(file.token_uri)?);
        Ok(Self { email: file.client_email, key, key_id: file.private_key_id, endpoint })
    }

    fn request(&self, scope: &str, now: Timestamp) -> Result<TokenRequest, String> {
        let issued = now.0.div_euclid(1000);
        let mut header = json!({ "alg": "RS256", "typ": "JWT" });
        if let Some(id) = &self.key_id {
            header["kid"] = id.as_str().into();
        }
        let claims = json!({
            "iss": self.email,
            "scope": scope,
            "aud": self.endpoint,
            "iat": issued,
            "exp": issued + LIFE,
        });
        let assertion = jwt::signed(&self.key, &RSA_PKCS1_SHA256, &header, &claims)?;
        let fields = vec![("grant_type", GRANT.to_owned()), ("assertion", assertion)];
        Ok(TokenRequest::form(&self.endpoint, fields))
    }
}

/// A person's refresh token, as `gcloud auth application-default login` stores it.
#[derive(Deserialize)]
pub(super) struct User {
    client_id: String,
    client_secret: Secret,
    refresh_token: Secret,
    #[serde(default = "usual_endpoint")]
    token_uri: String,
}

impl User {
    fn read(key: &Secret) -> Result<Self, String> {
        let mut user: Self = read_json(key, "the credential of a user")?;
        user.token_uri = checked(user.token_uri)?;
        Ok(user)
    }

    fn request(&self) -> TokenRequest {
        let fields = vec![
            ("grant_type", "refresh_token".to_owned()),
            ("client_id", self.client_id.clone()),
            ("client_secret", self.client_secret.expose().to_owned()),
            ("refresh_token", self.refresh_token.expose().to_owned()),
        ];
        TokenRequest::form(&self.token_uri, fields)
    }
}

/// The account that another identity asks a token for.
pub(super) struct ImpersonatedTarget {
    url: String,
    delegates: Vec<String>,
    /// Seconds.
    life: u32,
}

impl ImpersonatedTarget {
    pub(super) fn new(url: String, delegates: Vec<String>, life: u32) -> Result<Self, String> {
        Ok(Self { url: checked(url)?, delegates, life })
    }

    /// Its token, asked for with that of the source.
    pub(super) async fn token(
        &self,
        exchange: &Exchange,
        source: &Issued,
        now: Timestamp,
    ) -> Result<Issued, String> {
        let life = format!("{}s", self.life);
        let body = json!({ "delegates": self.delegates, "scope": [CLOUD], "lifetime": life });
        exchange.token(TokenRequest::json(&self.url, &body, &source.text), now).await
    }
}

#[derive(Deserialize)]
struct ImpersonatedFile {
    service_account_impersonation_url: String,
    source_credentials: serde_json::Value,
    #[serde(default)]
    delegates: Vec<String>,
}

/// An account whose token another credential asks for.
pub(super) struct Impersonated {
    source: Google,
    target: ImpersonatedTarget,
}

impl Impersonated {
    fn read(key: &Secret) -> Result<Self, String> {
        let file: ImpersonatedFile = read_json(key, "the impersonated account")?;
        let source = Google::read(&Secret::new(file.source_credentials.to_string()));
        let source = source.map_err(|why| format!("source_credentials: {why}"))?;
        if matches!(source, Google::Impersonated(_)) {
            return Err("source_credentials must not be an impersonated account".to_owned());
        }
        let life = u32::try_from(LIFE).unwrap_or_default();
        let target =
            ImpersonatedTarget::new(file.service_account_impersonation_url, file.delegates, life)?;
        Ok(Self { source, target })
    }
}
