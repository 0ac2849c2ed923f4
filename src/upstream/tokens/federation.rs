//! Google's workload identity federation: the token of another system for one of Google
//! (RFC 8693), and with it, if wanted, that of a service account.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderName;
use http::header::AUTHORIZATION;
use serde::Deserialize;
use serde_json::Value;

use super::exchange::{Exchange, Issued, TokenRequest, checked, checked_here};
use super::google::{IAM, ImpersonatedTarget};
use super::{jwt, read_json};
use crate::domain::clock::Timestamp;
use crate::domain::secret::Secret;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
/// The types of JSON Web Tokens.
const SUBJECTS: [&str; 2] =
    ["urn:ietf:params:oauth:token-type:jwt", "urn:ietf:params:oauth:token-type:id_token"];

#[derive(Deserialize)]
struct FederationFile {
    audience: String,
    subject_token_type: String,
    token_url: String,
    credential_source: SourceFile,
    service_account_impersonation_url: Option<String>,
    service_account_impersonation: Option<ImpersonationLife>,
    client_id: Option<String>,
    client_secret: Option<Secret>,
    workforce_pool_user_project: Option<String>,
}

#[derive(Deserialize)]
struct ImpersonationLife {
    token_lifetime_seconds: Option<u32>,
}

#[derive(Deserialize)]
struct SourceFile {
    file: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    format: Option<SourceFormat>,
}

/// How the subject token stands in the source.
#[derive(Deserialize)]
struct SourceFormat {
    #[serde(rename = "type")]
    kind: Option<String>,
    subject_token_field_name: Option<String>,
}

/// Where the subject token comes from.
enum Source {
    File(String),
    Url(String, Vec<(HeaderName, String)>),
}

/// A pool of identities that Google trusts, and this machine's identity in it.
pub(super) struct Federation {
    url: String,
    /// The fields that do not change.
    fields: Vec<(&'static str, String)>,
    /// `Authorization` of the exchange.
    login: Option<String>,
    source: Source,
    /// The member of the source's JSON; `None`: the source is the token.
    member: Option<String>,
    account: Option<ImpersonatedTarget>,
}

impl Federation {
    pub(super) fn read(key: &Secret) -> Result<Self, String> {
        let file: FederationFile = read_json(key, "the external account")?;
        if !SUBJECTS.contains(&file.subject_token_type.as_str()) {
            return Err(format!("subject_token_type must be {} or {}", SUBJECTS[0], SUBJECTS[1]));
        }
        let life = file.service_account_impersonation.and_then(|one| one.token_lifetime_seconds);
        let target = |url| ImpersonatedTarget::new(url, Vec::new(), life.unwrap_or(3600));
        let account = file.service_account_impersonation_url.map(target).transpose()?;
        let mut fields = vec![
            ("grant_type", GRANT.to_owned()),
            ("audience", file.audience),
            ("requested_token_type", ACCESS_TOKEN.to_owned()),
            ("subject_token_type", file.subject_token_type),
        ];
        let login = match (file.client_id, file.client_secret) {
            (Some(id), secret) => {
                let secret = secret.unwrap_or_default();
                let login = STANDARD.encode(format!("{id}:{}", secret.expose()));
                Some(format!("Basic {login}"))
            }
            (None, _) => None,
        };
        if let Some(project) = file.workforce_pool_user_project.filter(|_| login.is_none()) {
            let options = serde_json::json!({ "userProject": project });
            fields.push(("options", options.to_string()));
        }
        let (source, member) = file.credential_source.read()?;
        Ok(Self { url: checked(file.token_url)?, fields, login, source, member, account })
    }

    pub(super) async fn token(
        &self,
        exchange: &Exchange,
        scope: &str,
        now: Timestamp,
    ) -> Result<Issued, String> {
        let subject = self.subject(exchange).await?;
        let scope = if self.account.is_some() { IAM } else { scope };
        let mut fields = self.fields.clone();
        fields.extend([("scope", scope.to_owned()), ("subject_token", subject)]);
        let mut request = TokenRequest::form(&self.url, fields);
        if let Some(login) = &self.login {
            request = request.with(AUTHORIZATION, login.clone());
        }
        let federated = exchange.token(request, now).await?;
        match &self.account {
            Some(account) => account.token(exchange, &federated, now).await,
            None => Ok(federated),
        }
    }

    /// The token of the other system.
    async fn subject(&self, exchange: &Exchange) -> Result<String, String> {
        let (text, of) = match &self.source {
            Source::File(path) => (jwt::read(path).await?, path.as_str()),
            Source::Url(url, headers) => {
                let mut request = TokenRequest::get(url.clone());
                for (name, value) in headers {
                    request = request.with(name.clone(), value.clone());
                }
                let got = exchange.text(&request).await;
                (got.map_err(|why| format!("the subject token: {why}"))?, "credential_source.url")
            }
        };
        match &self.member {
            None => jwt::only_token(&text, of),
            Some(member) => {
                let json: Value = serde_json::from_str(&text).unwrap_or_default();
                jwt::only_token(json[member].as_str().unwrap_or_default(), of)
            }
        }
    }
}

impl SourceFile {
    fn read(self) -> Result<(Source, Option<String>), String> {
        let header = |(name, value): (String, String)| {
            let name = name.parse();
            let name = name.map_err(|_| "credential_source.headers has an invalid name")?;
            Ok::<_, String>((name, value))
        };
        let source = match (self.file, self.url) {
            (Some(path), None) => Source::File(jwt::file(path)?),
            (None, Some(url)) => {
                let headers = self.headers.into_iter().map(header).collect::<Result<_, _>>()?;
                Source::Url(checked_here(url)?, headers)
            }
            _ => {
                return Err("credential_source must have either file or url: other sources are \
                            not supported"
                    .to_owned());
            }
        };
        let is_json = |format: &SourceFormat| format.kind.as_deref() == Some("json");
        let member = match self.format {
            Some(format) if is_json(&format) => Some(
                format
                    .subject_token_field_name
                    .ok_or("credential_source.format needs subject_token_field_name")?,
            ),
            _ => None,
        };
        Ok((source, member))
    }
}
