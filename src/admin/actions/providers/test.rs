//! `providers/testProvider`: one small real request to a provider, stored or not yet.
//!
//! The format is the provider's own. The result is text; it never contains the credential, whatever
//! the provider echoes. A stored credential is sent only where `destination` allows. Every test
//! leaves an audit record.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

use super::credentials::SentSecrets;
use super::outcome::{self, Report};
use super::{certificates, credentials, destination, fields, opened};
use crate::admin::bodies::{
    BaseUrl, CredentialText, CustomHeaders, Id, OneOf, Patch, PathTemplate, PemText, Plain,
    ProxyUrl, QueryParameters, Sent, Text, Url,
};
use crate::admin::call::{AuditChange, Call};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::reasons::Reason;
use crate::admin::records::provider::ProviderTest;
use crate::domain::cloud::ClaudeCloud;
use crate::domain::credentials::Credentials;
use crate::domain::format::WireFormat;
use crate::domain::ids::ProviderId;
use crate::domain::provider::{Provider, ProviderType};
use crate::domain::provider_auth::ProviderAuth;
use crate::formats::convert::{self, RequestOptions};
use crate::formats::native::{bedrock, converse::ConverseOptions, vertex};
use crate::store::StoredProvider;
use crate::upstream::endpoint::ProviderCall as Upstream;
use crate::upstream::probe::probe;

const TIME_LIMIT: Duration = Duration::from_secs(30);
/// For the list of models, which is optional.
const LIST_TIME_LIMIT: Duration = Duration::from_secs(5);
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
    let model =
        match body.model.plain().or_else(|| usual(provider)).or_else(|| models.first().cloned()) {
            Some(model) => provider
                .model_redirects
                .iter()
                .find(|(from, _)| *from == model)
                .map_or(model, |(_, to)| to.clone()),
            // No model to test with: the result is that of the list, or of the connection.
            None => return record(provider, "listing", None, listing, models),
        };
    let format = provider.kind.format();
    let asked = Upstream::Generate { model: &model, stream: false };
    let outcome = probe(provider, asked, Some(request(provider, &model)), TIME_LIMIT).await;
    let reported = outcome::of_answer(provider, &outcome, |reply| text(format, reply));
    record(provider, "request", Some(model), reported, models)
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
    ProviderTest { ok, stage, code, params, status, latency_ms, model, message, models }
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

fn usual(provider: &Provider) -> Option<String> {
    let allowed = provider.allowed_models.iter().find(|name| !name.ends_with('*')).cloned();
    allowed.or_else(|| provider.model_redirects.first().map(|(from, _)| from.clone()))
}

/// The provider's own list, and the result of the query. No name contains the credential.
async fn listed(provider: &Provider) -> (Report, Vec<String>) {
    let (reported, models) = outcome::of_listing(
        provider,
        &probe(provider, Upstream::ListModels, None, LIST_TIME_LIMIT).await,
    );
    (reported, models.into_iter().map(|name| without_secrets(&name, provider)).collect())
}

/// The smallest sensible request.
fn request(provider: &Provider, model: &str) -> String {
    let body = body(provider.kind.format(), model).to_string();
    let edited = match provider.cloud.for_model(model) {
        ClaudeCloud::Converse => {
            let converse = Some(ConverseOptions::default());
            let options = RequestOptions { converse, ..RequestOptions::new(model, false) };
            let native = WireFormat::Native;
            let converted = convert::request(native, native, body.as_bytes(), &options);
            converted.ok().map(|request| vec![request.body.into()])
        }
        ClaudeCloud::None => return body,
        ClaudeCloud::Vertex => vertex::body(&[body.clone().into()], None, None),
        ClaudeCloud::Bedrock => {
            bedrock::body(&[body.clone().into()], bedrock::InHeaders::default())
        }
    };
    edited.map_or(body, |edited| String::from_utf8_lossy(&edited.concat()).into_owned())
}

fn body(format: WireFormat, model: &str) -> Value {
    const TEXT: &str = "ActionReply with the one word: ok";
    let message = json!([{ "role": "user", "content": TEXT }]);
    match format {
        WireFormat::Native => json!({ "model": model, "max_tokens": 32, "messages": message }),
        WireFormat::Chat => json!({ "model": model, "max_tokens": 32, "messages": message }),
        WireFormat::Responses => {
            json!({ "model": model, "max_output_tokens": 32, "input": message })
        }
        WireFormat::AltCli => json!({
            "contents": [{ "role": "user", "parts": [{ "text": TEXT }] }],
            "generationConfig": { "maxOutputTokens": 32 },
        }),
    }
}

/// The text of a reply; `None` if it is not a reply of the format. One without text (only
/// reasoning) is empty.
fn text(format: WireFormat, reply: &Value) -> Option<String> {
    let blocks = match format {
        WireFormat::Native => {
            let message =
                if reply["output"].is_object() { &reply["output"]["message"] } else { reply };
            message["content"].as_array()?.clone()
        }
        WireFormat::Chat => {
            let message = &reply["choices"].as_array()?.first()?["message"];
            return message
                .is_object()
                .then(|| message["content"].as_str().unwrap_or_default().to_owned());
        }
        WireFormat::Responses => {
            let items = reply["output"].as_array()?;
            items.iter().filter_map(|item| item["content"].as_array()).flatten().cloned().collect()
        }
        WireFormat::AltCli => {
            let first = reply["candidates"].as_array()?.first()?;
            first["content"]["parts"].as_array().cloned().unwrap_or_default()
        }
    };
    Some(blocks.iter().filter_map(|block| block["text"].as_str()).collect())
}

/// The provider's secrets are also found in their JSON-escaped form.
fn without_secrets(message: &str, provider: &Provider) -> String {
    let secrets = provider.secrets().filter(|secret| secret.is_searched_for());
    secrets.fold(message.to_owned(), |message, secret| {
        let quoted = Value::from(secret.expose()).to_string();
        message.replace(secret.expose(), "***").replace(quoted.trim_matches('"'), "***")
    })
}
