//! Where the keys of a credential come from.

use serde::Deserialize;

use super::profile::{self, AssumedRole, Base};
use super::{AwsKeys, Environment, Signer, metadata, sso, sts};
use crate::domain::aws_host::AwsHost;
use crate::domain::clock::Timestamp;
use crate::domain::provider::Provider;
use crate::domain::secret::Secret;
use crate::upstream::endpoint::Endpoint;
use crate::upstream::tokens::exchange::{Exchange, checked};
use crate::upstream::tokens::read_json;

/// The members of a credential. Keys are also known by the names that AWS' command line prints.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AwsMembers {
    source: Option<SourceName>,
    #[serde(alias = "AccessKeyId")]
    access_key_id: Option<String>,
    #[serde(alias = "SecretAccessKey")]
    secret_access_key: Option<Secret>,
    #[serde(alias = "SessionToken")]
    session_token: Option<Secret>,
    profile: Option<String>,
    role_arn: Option<String>,
    external_id: Option<String>,
    session_name: Option<String>,
    region: Option<String>,
    service: Option<String>,
    sts_endpoint: Option<String>,
    #[serde(rename = "Version")]
    _version: Option<serde::de::IgnoredAny>,
    #[serde(rename = "Expiration")]
    _expiration: Option<serde::de::IgnoredAny>,
}

/// The sources that a credential can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SourceName {
    Environment,
    Profile,
    WebIdentity,
    Container,
    Imds,
    Sso,
    Default,
}

enum KeySource {
    Keys(AwsKeys),
    Named(SourceName, Option<String>),
}

/// A credential, and what its keys sign for.
pub(in crate::upstream) struct AwsCredential {
    source: KeySource,
    role: Option<AssumedRole>,
    region: String,
    service: String,
    sts_endpoint: Option<String>,
    environment: Environment,
}

/// What every call to AWS needs.
pub(super) struct AwsCalls<'a> {
    pub region: &'a str,
    pub sts_endpoint: Option<&'a str>,
    pub exchange: &'a Exchange,
    pub environment: &'a Environment,
    pub now: Timestamp,
}

impl AwsCalls<'_> {
    /// A variable that is set, and not empty.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.environment)(name).filter(|value| !value.is_empty())
    }

    /// # Errors
    /// It is not set.
    fn wanted(&self, name: &str) -> Result<String, String> {
        self.variable(name).ok_or_else(|| format!("{name} is not set"))
    }
}

impl AwsCredential {
    /// # Errors
    /// Why it is not a credential for this provider; the text can be shown.
    pub(in crate::upstream) fn read(
        provider: &Provider,
        key: &Secret,
        environment: &Environment,
    ) -> Result<Self, String> {
        let members: AwsMembers = read_json(key, "the credential for AWS")?;
        let host = Endpoint::parse(&provider.url).map(|endpoint| endpoint.host).unwrap_or_default();
        let host = AwsHost::of(&host);
        let region = members.region.or_else(|| host.map(|host| host.region.to_owned()));
        let region = region.ok_or("region is needed, which this address does not have")?;
        let service = members.service.or_else(|| host.map(|host| host.service.to_owned()));
        let service = service.unwrap_or_else(|| "bedrock".to_owned());
        for (name, text) in [("region", &region), ("service", &service)] {
            if text.is_empty() || !text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
                return Err(format!("{name} must have letters, digits and hyphens only"));
            }
        }
        if members.sts_endpoint.clone().is_some_and(|url| checked(url).is_err()) {
            return Err("sts_endpoint must begin with https://".to_owned());
        }
        let source = match (members.source, members.access_key_id, members.secret_access_key) {
            (None, Some(id), Some(secret)) if !id.is_empty() && !secret.expose().is_empty() => {
                let token = members.session_token.filter(|token| !token.expose().is_empty());
                KeySource::Keys(AwsKeys { id, secret, token, expires_at: None })
            }
            (Some(name), None, None) => KeySource::Named(name, members.profile),
            _ => {
                return Err(
                    "either access_key_id and secret_access_key are needed, or source".to_owned()
                );
            }
        };
        let role = members.role_arn.map(|arn| AssumedRole {
            arn,
            external_id: members.external_id,
            session_name: members.session_name,
        });
        let (sts_endpoint, environment) = (members.sts_endpoint, environment.clone());
        Ok(Self { source, role, region, service, sts_endpoint, environment })
    }

    /// The present keys, and when they expire.
    ///
    /// # Errors
    /// Why there are none; the text has no secret.
    pub(in crate::upstream) async fn signer(
        &self,
        exchange: &Exchange,
        now: Timestamp,
    ) -> Result<(Signer, Option<Timestamp>), String> {
        let calls = AwsCalls {
            region: &self.region,
            sts_endpoint: self.sts_endpoint.as_deref(),
            exchange,
            environment: &self.environment,
            now,
        };
        let mut keys = match &self.source {
            KeySource::Keys(keys) => keys.clone(),
            KeySource::Named(name, profile) => named(&calls, *name, profile.as_deref()).await?,
        };
        if let Some(role) = &self.role {
            keys = sts::assume(&calls, &keys, role).await?;
        }
        if keys.expires_at.is_some_and(|at| at <= now) {
            return Err("the keys have expired".to_owned());
        }
        let (region, service, expires_at) =
            (self.region.clone(), self.service.clone(), keys.expires_at);
        Ok((Signer { keys, region, service }, expires_at))
    }
}

async fn named(
    calls: &AwsCalls<'_>,
    name: SourceName,
    profile: Option<&str>,
) -> Result<AwsKeys, String> {
    match name {
        SourceName::Environment => of_environment(calls),
        SourceName::WebIdentity => web_identity(calls).await,
        SourceName::Container => metadata::container(calls).await,
        SourceName::Imds => metadata::instance(calls).await,
        SourceName::Profile | SourceName::Sso => {
            let files = profile::ProfileFiles::read(calls.environment).await;
            let plan = files.plan(profile, calls.environment)?;
            if name == SourceName::Sso && !matches!(plan.base, Base::Sso(_)) {
                return Err(format!("the profile “{}” has no sso_account_id", plan.name));
            }
            of_plan(calls, plan).await
        }
        // In the order of AWS' own libraries.
        SourceName::Default if calls.variable("AWS_ACCESS_KEY_ID").is_some() => {
            of_environment(calls)
        }
        SourceName::Default if calls.variable("AWS_WEB_IDENTITY_TOKEN_FILE").is_some() => {
            web_identity(calls).await
        }
        SourceName::Default => {
            let files = profile::ProfileFiles::read(calls.environment).await;
            if profile.is_some() || files.has(None, calls.environment) {
                let plan = files.plan(profile, calls.environment)?;
                return of_plan(calls, plan).await;
            }
            let is_container = ["RELATIVE", "FULL"].iter().any(|kind| {
                calls.variable(&format!("AWS_CONTAINER_CREDENTIALS_{kind}_URI")).is_some()
            });
            if is_container {
                metadata::container(calls).await
            } else {
                metadata::instance(calls).await
            }
        }
    }
}

fn of_environment(calls: &AwsCalls<'_>) -> Result<AwsKeys, String> {
    Ok(AwsKeys {
        id: calls.wanted("AWS_ACCESS_KEY_ID")?,
        secret: Secret::new(calls.wanted("AWS_SECRET_ACCESS_KEY")?),
        token: calls.variable("AWS_SESSION_TOKEN").map(Secret::new),
        expires_at: None,
    })
}

/// The role and the token file of the environment, as a service account of Kubernetes has them.
async fn web_identity(calls: &AwsCalls<'_>) -> Result<AwsKeys, String> {
    let role = AssumedRole {
        arn: calls.wanted("AWS_ROLE_ARN")?,
        external_id: None,
        session_name: calls.variable("AWS_ROLE_SESSION_NAME"),
    };
    sts::web_identity(calls, &role, &calls.wanted("AWS_WEB_IDENTITY_TOKEN_FILE")?).await
}

/// The keys of a profile: the first ones, then each role in turn.
async fn of_plan(calls: &AwsCalls<'_>, plan: profile::KeyPlan) -> Result<AwsKeys, String> {
    let mut keys = match plan.base {
        Base::Keys(keys) => keys,
        Base::WebIdentity(role, file) => sts::web_identity(calls, &role, &file).await?,
        Base::Sso(settings) => sso::keys(calls, &settings).await?,
        Base::Environment => of_environment(calls)?,
        Base::Container => metadata::container(calls).await?,
        Base::Instance => metadata::instance(calls).await?,
    };
    for role in &plan.roles {
        keys = sts::assume(calls, &keys, role).await?;
    }
    Ok(keys)
}
