//! `providers/testProvider`: one small real request to a provider, stored or not yet.
//!
//! The format is the provider's own. The result is text; it never contains the credential, whatever
//! the provider echoes. A stored credential is sent only where `destination` allows. Every test
//! leaves an audit record.

use futures_util::{StreamExt as _, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

use super::credentials::{Merged, SentSecrets};
use super::outcome::{self, Report};
use super::{certificates, credentials, destination, fields, opened};
use crate::admin::bodies::{
    BaseUrl, CredentialText, CustomHeaders, Id, OneOf, Patch, PathTemplate, PemText, Plain,
    ProxyUrl, QueryParameters, Sent, Text, Url,
};
use crate::admin::call::{AuditChange, Call};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::reasons::Reason;
use crate::admin::records::provider::{CredentialTest, ProviderTest};
use crate::domain::credentials::Credentials;
use crate::domain::ids::ProviderId;
use crate::domain::provider::{Provider, ProviderType};
use crate::domain::provider_auth::ProviderAuth;
use crate::store::StoredProvider;
use crate::upstream::endpoint::ProviderCall as Upstream;
use crate::upstream::probe::probe;
use crate::upstream::small_request;

const TIME_LIMIT: Duration = Duration::from_secs(30);
/// For the list of models, which is optional.
const LIST_TIME_LIMIT: Duration = Duration::from_secs(5);
/// Credentials that are tried at once.
const AT_ONCE: usize = 8;
/// Characters of the answer that are shown.
const SHOWN: usize = 500;

/// The body of `providers/testProvider`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TestProvider {
    /// A stored provider; the fields below replace its own for this test.
    pub provider_id: Option<Id>,
    /// Left out: the first that the provider allows, or lists.
    pub model: Option<Text<1, 200>>,
    /// As of a provider.
    #[serde(default)]
    pub url: Sent<Url<BaseUrl, 1, 500>>,
    /// Left out: the stored one, which is sent only to the stored provider's origin (scheme, host,
    /// port) and through its proxy. Needed again where one of these differs, or where `tls_ca` is
    /// added or replaced.
    #[serde(default)]
    pub key: Sent<CredentialText>,
    /// As of a provider.
    #[serde(default, rename = "provider_type")]
    pub provider_type: Sent<OneOf<ProviderType>>,
    /// As of a provider.
    #[serde(default)]
    pub auth: Sent<OneOf<ProviderAuth>>,
    /// As of a provider.
    #[serde(default, rename = "custom_headers")]
    pub custom_headers: Patch<CustomHeaders>,
    /// As of a provider.
    #[serde(default)]
    pub query: Patch<QueryParameters>,
    /// As of a provider.
    #[serde(default, rename = "path_template")]
    pub path_template: Patch<PathTemplate>,
    /// As of a provider.
    #[serde(default, rename = "proxy_url")]
    pub proxy_url: Patch<Url<ProxyUrl, 1, 500>>,
    /// As of a provider.
    #[serde(default, rename = "tls_ca")]
    pub tls_ca: Patch<PemText>,
    /// As of a provider.
    #[serde(default, rename = "tls_client_certificate")]
    pub tls_client_certificate: Patch<PemText>,
    /// As of a provider.
    #[serde(default, rename = "tls_client_key")]
    pub tls_client_key: Patch<PemText>,
    /// Only the list of models is asked for: no request is sent.
    #[serde(default)]
    pub list_only: bool,
}

/// The provider to test, and the stored provider that it is based on.
struct Trial {
    stored: Option<StoredProvider>,
    provider: Provider,
}

pub(super) async fn test_provider(
    call: Call,
    body: TestProvider,
) -> Result<ProviderTest, ApiError> {
    let mut trial = trial(&call, &body).await?;
    let outcome = match take_key(&call, &body, &mut trial) {
        Ok(()) => Ok(run(body.clone(), &trial.provider).await),
        Err(refusal) => Err(refusal),
    };
    audit(&call, &trial, &outcome, body.key.0.is_some()).await?;
    outcome
}

async fn run(body: TestProvider, provider: &Provider) -> ProviderTest {
    let (listing, models) = listed(provider).await;
    if body.list_only {
        return record(provider, "listing", None, listing, models);
    }
    let usual = || provider.usual_model().map(ToOwned::to_owned);
    let model = match body.model.plain().or_else(usual).or_else(|| models.first().cloned()) {
        Some(model) => provider.upstream_model(&model).to_owned(),
        // No model to test with: the result is that of the list, or of the connection.
        None => return record(provider, "listing", None, listing, models),
    };
    let (reported, credentials) =
        tokio::join!(asked(provider, &model), each_other(provider, &model));
    let tested = record(provider, "request", Some(model), reported, models);
    ProviderTest { credentials, ..tested }
}

/// The result of the one small request.
async fn asked(provider: &Provider, model: &str) -> Report {
    let outcome = small_request::send(provider, model, TIME_LIMIT).await;
    let format = provider.kind.format();
    outcome::of_answer(provider, &outcome, |reply| small_request::text(format, reply))
}

/// The same with each further credential.
async fn each_other(provider: &Provider, model: &str) -> Vec<CredentialTest> {
    let others = provider.variants.iter().skip(1);
    // Each has its own parts: the borrowed ones would not be `Send` for every lifetime.
    let tests = others.map(|one| with_other(Arc::clone(one), model.to_owned()));
    let tests: Vec<_> = tests.collect();
    stream::iter(tests).buffered(AT_ONCE).collect().await
}

async fn with_other(one: Arc<Provider>, model: String) -> CredentialTest {
    let Report { ok, code, status, latency_ms, message, params } = asked(&one, &model).await;
    let name = one.credential.as_ref().map(|one| one.name.clone()).unwrap_or_default();
    let message = without_secrets(&message, &one).chars().take(SHOWN).collect();
    CredentialTest { name, ok, code, params, status, latency_ms, message }
}

fn record(
    provider: &Provider,
    stage: &'static str,
    model: Option<String>,
    reported: Report,
    models: Vec<String>,
) -> ProviderTest {
    let Report { ok, code, status, latency_ms, message, params } = reported;
    let message = without_secrets(&message, provider).chars().take(SHOWN).collect();
    let credentials = Vec::new();
    ProviderTest {
        ok,
        stage,
        code,
        params,
        status,
        latency_ms,
        model,
        message,
        models,
        credentials,
    }
}

/// The stored provider with the sent fields replaced. Its credential is not opened yet.
async fn trial(call: &Call, body: &TestProvider) -> Result<Trial, ApiError> {
    let stored = match body.provider_id.plain() {
        Some(id) => {
            let stored = call.ctx.node.store.begin().await?.provider(ProviderId(id)).await?;
            Some(stored.ok_or_else(|| ApiError::missing("provider", id))?)
        }
        None => {
            for (field, sent) in [("url", body.url.0.is_some()), ("key", body.key.0.is_some())] {
                if !sent {
                    return Err(ApiError::because(
                        Code::REQUIRED_FIELD,
                        Reason::RequiredWithoutProvider,
                    )
                    .field(field));
                }
            }
            None
        }
    };
    let blank = || Provider::blank(call.now);
    let mut provider = stored.as_ref().map_or_else(blank, |stored| stored.provider.clone());
    body.url.apply(&mut provider.url);
    body.provider_type.apply(&mut provider.kind);
    body.auth.apply(&mut provider.auth);
    body.query.plain().apply(&mut provider.query);
    body.path_template.plain().apply_option(&mut provider.path_template);
    fields::without_password(body.proxy_url.plain()).apply_option(&mut provider.proxy_url);
    body.tls_ca.plain().apply_option(&mut provider.tls.ca);
    body.tls_client_certificate.plain().apply_option(&mut provider.tls.client_certificate);
    Ok(Trial { stored, provider })
}

/// The secrets in the request; else the stored ones, if their destination is unchanged.
fn take_key(call: &Call, body: &TestProvider, trial: &mut Trial) -> Result<(), ApiError> {
    let sent = SentSecrets::of_test(body);
    let Some(stored) = &trial.stored else {
        let mut wanted = credentials::merge(Credentials::default(), sent)?;
        credentials::check_key(&trial.provider, &wanted.credentials.key)?;
        certificates::check(None, &trial.provider, &mut wanted, call.now)?;
        trial.provider.set_credentials(wanted.credentials);
        return Ok(());
    };
    let known = match (opened(call, stored), sent.lost(&trial.provider)) {
        (Err(refusal), Some(field)) => return Err(refusal.field(field)),
        (known, _) => known.unwrap_or_default(),
    };
    let mut wanted = credentials::merge(known, sent)?;
    certificates::check(Some(&stored.provider), &trial.provider, &mut wanted, call.now)?;
    destination::check(&stored.provider, &trial.provider, &wanted)?;
    let with_others = Merged { keeps_credential: true, ..wanted.clone() };
    if destination::check(&stored.provider, &trial.provider, &with_others).is_err() {
        // The other keys are sent only where they were stored for.
        wanted.credentials.others.clear();
    }
    if !wanted.keeps_key {
        credentials::check_key(&trial.provider, &wanted.credentials.key)?;
    }
    trial.provider.set_credentials(wanted.credentials);
    Ok(())
}

/// Records who sent a credential where, also if it was refused. It contains neither the credential
/// nor the provider's answer. No configuration changes.
async fn audit(
    call: &Call,
    trial: &Trial,
    outcome: &Result<ProviderTest, ApiError>,
    has_key: bool,
) -> Result<(), ApiError> {
    let provider = &trial.provider;
    let mut after = json!({
        "url": provider.url,
        "providerType": provider.kind.as_str(),
        "auth": provider.auth.as_str(),
        "proxyUrl": provider.proxy_url,
        "key": if has_key { "sent with the test" } else { "stored" },
    });
    match outcome {
        Ok(test) => {
            after["credentials"] = json!(test.credentials.len());
            after["model"] = json!(test.model);
            after["ok"] = json!(test.ok);
            after["status"] = json!(test.status);
        }
        Err(refusal) => after["refused"] = json!(refusal.message()),
    }
    let target = trial
        .stored
        .as_ref()
        .map_or_else(|| "unsaved provider".to_owned(), |s| format!("provider {}", s.provider.id));
    let change =
        AuditChange { action: "providers.testProvider", target, before: None, after: Some(after) };
    let mut tx = call.ctx.node.store.begin().await?;
    call.audit(&mut tx, change).await?;
    Ok(tx.commit_record().await?)
}

/// The provider's own list, and the result of the query. No name contains the credential.
async fn listed(provider: &Provider) -> (Report, Vec<String>) {
    let (reported, models) = outcome::of_listing(
        provider,
        &probe(provider, Upstream::ListModels, None, LIST_TIME_LIMIT).await,
    );
    (reported, models.into_iter().map(|name| without_secrets(&name, provider)).collect())
}

/// The provider's secrets are also found in their JSON-escaped form.
fn without_secrets(message: &str, provider: &Provider) -> String {
    let secrets = provider.secrets().filter(|secret| secret.is_searched_for());
    secrets.fold(message.to_owned(), |message, secret| {
        let quoted = Value::from(secret.expose()).to_string();
        message.replace(secret.expose(), "***").replace(quoted.trim_matches('"'), "***")
    })
}
