//! Google's service accounts: a signed assertion for an access token (RFC 7523).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::KeyPair;
use ring::signature::RSA_PKCS1_SHA256;
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use serde::Deserialize;
use serde_json::json;

use super::{TokenForm, checked, read_json};
use crate::domain::clock::Timestamp;
use crate::domain::secret::Secret;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// The life of an assertion, in seconds: the longest that Google accepts.
const LIFE: i64 = 3600;

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

pub(super) struct ServiceAccount {
    email: String,
    key: KeyPair,
    key_id: Option<String>,
    endpoint: String,
}

impl ServiceAccount {
    pub(super) fn read(key: &Secret) -> Result<Self, String> {
        let file: AccountFile = read_json(key, "the key of a service account")?;
        let unreadable = || "private_key must be an RSA key in PEM (PKCS #8)".to_owned();
        let der = PrivatePkcs8KeyDer::from_pem_slice(file.private_key.expose().as_bytes())
            .map_err(|_| unreadable())?;
        let key = KeyPair::from_pkcs8(der.secret_pkcs8_der()).map_err(|_| unreadable())?;
        let endpoint = checked(file.token_uri)?;
        Ok(Self { email: file.client_email, key, key_id: file.private_key_id, endpoint })
    }

    pub(super) fn form(&self, now: Timestamp) -> Result<TokenForm, String> {
        let issued = now.0.div_euclid(1000);
        let mut header = json!({ "alg": "RS256", "typ": "JWT" });
        if let Some(id) = &self.key_id {
            header["kid"] = id.as_str().into();
        }
        let claims = json!({
            "iss": self.email,
            "scope": SCOPE,
            "aud": self.endpoint,
            "iat": issued,
            "exp": issued + LIFE,
        });
        let part = |json: serde_json::Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let mut signature = vec![0; self.key.public().modulus_len()];
        self.key
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .map_err(|_| "the assertion could not be signed")?;
        let assertion = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature));
        let fields = vec![("grant_type", GRANT.to_owned()), ("assertion", assertion)];
        Ok(TokenForm { url: self.endpoint.clone(), fields })
    }
}
