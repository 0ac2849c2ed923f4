//! A provider as shown.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::health::AttemptErrorRecord;
use super::limits::LimitsRecord;
use super::{Exact, Iso};
use crate::domain::credentials::Credentials;
use crate::domain::provider::{Provider, SwitchedOff};
use crate::domain::provider_credential::ProviderCredential;
use crate::domain::provider_tls::ProviderTls;
use crate::domain::proxy_address;
use crate::domain::secret::{MASK, Secret};
use crate::upstream::certificates::{self, Described};

/// An upstream provider; its key is masked.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderRecord {
    /// Identifies the provider: the `providerId` that other operations take.
    pub id: i64,
    /// 1–64 characters, for administrators; clients do not see it.
    pub name: String,
    /// The upstream's base address, with or without `/v1`, or with a path prefix.
    pub url: String,
    /// Masked.
    pub key: String,
    /// `native`, `native-auth`, `responses`, `chat-compatible` or `alt-cli`.
    pub provider_type: &'static str,
    /// How the credential is sent: `auto` (as the type has it), `x-api-key`, `bearer`,
    /// `x-goog-api-key`, `api-key`, `none`, `gcp-service-account` or `azure-entra`.
    pub auth: &'static str,
    /// Headers that are added to each request; parts in `${…}` are secret, and masked.
    pub custom_headers: BTreeMap<String, String>,
    /// Parameters that are added to the query of each request.
    pub query: BTreeMap<String, String>,
    /// The path of calls after `url`; `null` = as the type has it.
    pub path_template: Option<String>,
    /// Further credentials, which take turns with `key`.
    pub credentials: Vec<CredentialRecord>,
    /// Whether `key` is used beside them.
    pub key_is_enabled: bool,
    /// Why the gateway itself disabled `key`: the provider refused it.
    pub key_refused: Option<AttemptErrorRecord>,
    /// Percent of a window of its account above which a credential is passed over; `null` = never.
    pub quota_guard: Option<u32>,
    /// A disabled provider gets no requests.
    pub is_enabled: bool,
    /// The share among providers of the same priority, 1–100.
    pub weight: u32,
    /// Lower is tried first.
    pub priority: i32,
    /// Costs of requests to this provider are multiplied by this.
    pub cost_multiplier: Exact,
    /// Comma-separated group names; `null` = the default group.
    pub group_tag: Option<String>,
    /// Model names, a trailing `*` matches any suffix; empty = every model.
    pub allowed_models: Vec<String>,
    /// Requested model → model sent upstream.
    pub model_redirects: BTreeMap<String, String>,
    /// Features that requests to it may use though it denies their class, or that need someone's
    /// permission.
    pub allowed_features: Vec<String>,
    /// Features that requests to it may not use.
    pub denied_features: Vec<String>,
    /// What the provider may use.
    #[serde(flatten)]
    pub limits: LimitsRecord,
    /// Attempts at this provider for one request, 1–10, the first included.
    pub max_retry_attempts: u32,
    /// Consecutive failures; 0 = the circuit never opens.
    pub circuit_breaker_failure_threshold: u32,
    /// Milliseconds.
    pub circuit_breaker_open_duration: u64,
    /// Successes of probes in a row that close the circuit.
    pub circuit_breaker_half_open_success_threshold: u32,
    /// `null` = the configured default, 0 = none.
    pub first_byte_timeout_streaming_ms: Option<u64>,
    /// Milliseconds between two bytes of a stream; `null` = the configured default, 0 = none.
    pub streaming_idle_timeout_ms: Option<u64>,
    /// Milliseconds without content in a stream that only sends signs of life; `null` = the
    /// configured default, 0 = none.
    pub streaming_content_timeout_ms: Option<u64>,
    /// Milliseconds for a complete reply; `null` = the configured default, 0 = none.
    pub request_timeout_non_streaming_ms: Option<u64>,
    /// `inherit`, `5m` or `1h`.
    pub cache_ttl_preference: &'static str,
    /// `auto`, `force_official` or `keep_original`.
    pub instructions_strategy: &'static str,
    /// Whether the upstream gets the client's address in `X-Forwarded-For`.
    pub preserve_client_ip: bool,
    /// Whether its host is Anthropic's own: `auto`, `yes` or `no`.
    pub anthropic_host: &'static str,
    /// Whether it gets the requests of a session over one WebSocket (responses only).
    pub websocket: bool,
    /// Seconds between two probes, which the gateway itself makes; `null` = it makes none.
    pub probe_interval: Option<u32>,
    /// The model that probes ask for; `null` = the first that the provider allows.
    pub probe_model: Option<String>,
    /// The address of its proxy, a password masked; `null` = none of the provider's own.
    pub proxy_url: Option<String>,
    /// PEM: the authorities that may have signed the provider's certificate; `null` = the system's.
    pub tls_ca: Option<String>,
    /// PEM: the certificate that the gateway shows to the provider.
    pub tls_client_certificate: Option<String>,
    /// Masked; `null` = none.
    pub tls_client_key: Option<String>,
    /// What the certificates say.
    pub certificates: Vec<CertificateRecord>,
    /// A note for administrators; may be empty.
    pub note: String,
    /// Why the gateway itself disabled the provider; `null` when it did not, and once the provider
    /// is enabled again.
    pub switched_off: Option<SwitchedOffRecord>,
    /// When the provider was made.
    pub created_at: Iso,
    /// When the record was last changed.
    pub updated_at: Iso,
}

impl ProviderRecord {
    /// `credentials` are shown masked; `None` if they cannot be opened.
    pub fn new(provider: &Provider, credentials: Option<&Credentials>) -> Self {
        let masked_key = credentials.map_or_else(|| MASK.to_owned(), |one| one.key.masked());
        let headers = credentials.map_or(&[][..], |one| one.headers.as_slice());
        let (breaker, timeouts) = (&provider.breaker, &provider.timeouts);
        let tagged = !provider.group_tag.names().is_empty();
        Self {
            id: provider.id.0,
            name: provider.name.clone(),
            url: provider.url.clone(),
            key: masked_key,
            provider_type: provider.kind.as_str(),
            auth: provider.auth.as_str(),
            custom_headers: headers.iter().map(|one| (one.name.clone(), one.masked())).collect(),
            query: provider.query.iter().cloned().collect(),
            path_template: provider.path_template.clone(),
            credentials: further(provider, credentials),
            key_is_enabled: provider.credentials.first().is_none_or(|one| one.is_enabled),
            key_refused: provider.credentials.first().and_then(refused),
            quota_guard: provider.quota_guard,
            is_enabled: provider.is_enabled,
            weight: provider.weight,
            priority: provider.priority,
            cost_multiplier: Exact(provider.cost_multiplier),
            group_tag: tagged.then(|| provider.group_tag.to_string()),
            allowed_models: provider.allowed_models.clone(),
            allowed_features: provider.features.allowed.names(),
            denied_features: provider.features.denied.names(),
            model_redirects: provider.model_redirects.iter().cloned().collect(),
            limits: (&provider.limits).into(),
            max_retry_attempts: provider.max_retry_attempts,
            circuit_breaker_failure_threshold: breaker.failure_threshold,
            circuit_breaker_open_duration: breaker.open_duration_ms,
            circuit_breaker_half_open_success_threshold: breaker.half_open_success_threshold,
            first_byte_timeout_streaming_ms: timeouts.first_byte_streaming_ms,
            streaming_idle_timeout_ms: timeouts.streaming_idle_ms,
            streaming_content_timeout_ms: timeouts.streaming_content_ms,
            request_timeout_non_streaming_ms: timeouts.request_non_streaming_ms,
            cache_ttl_preference: provider.cache_ttl.as_str(),
            instructions_strategy: provider.instructions.as_str(),
            preserve_client_ip: provider.preserve_client_ip,
            anthropic_host: provider.anthropic_host.as_str(),
            websocket: provider.websocket,
            probe_interval: provider.probe_interval,
            probe_model: provider.probe_model.clone(),
            proxy_url: provider.proxy_url.as_deref().map(|url| {
                let masked = credentials.is_some_and(|one| !one.proxy_password.expose().is_empty());
                if masked { proxy_address::masked(url) } else { url.to_owned() }
            }),
            tls_ca: provider.tls.ca.clone(),
            tls_client_certificate: provider.tls.client_certificate.clone(),
            tls_client_key: provider.tls.client_certificate.as_ref().map(|_| MASK.to_owned()),
            certificates: CertificateRecord::of(&provider.tls),
            note: provider.note.clone(),
            switched_off: provider.switched_off.as_ref().map(SwitchedOffRecord::from),
            created_at: Iso(provider.created_at),
            updated_at: Iso(provider.updated_at),
        }
    }
}

/// A certificate of a provider.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateRecord {
    /// `tls_ca` or `tls_client_certificate`.
    pub field: &'static str,
    /// Whom it names.
    pub subject: String,
    /// When it ends.
    pub expires_at: Iso,
}

impl CertificateRecord {
    fn of(tls: &ProviderTls) -> Vec<Self> {
        let texts = [("tls_ca", &tls.ca), ("tls_client_certificate", &tls.client_certificate)];
        let all = texts.into_iter().flat_map(|(field, pem)| {
            let read = pem.as_deref().and_then(|pem| certificates::described(pem).ok());
            read.unwrap_or_default().into_iter().map(move |one| (field, one))
        });
        let record = |(field, one): (_, Described)| {
            let expires_at = Iso(one.expires_at);
            Self { field, subject: one.subject, expires_at }
        };
        all.map(record).collect()
    }
}

/// One of a provider's further credentials.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialRecord {
    /// Another one with each text.
    pub id: i64,
    /// What it is called.
    pub name: String,
    /// Masked.
    pub key: String,
    /// Whether requests use it.
    pub is_enabled: bool,
    /// Why the gateway itself disabled it: the provider refused it.
    pub refused: Option<AttemptErrorRecord>,
}

fn further(provider: &Provider, credentials: Option<&Credentials>) -> Vec<CredentialRecord> {
    let record = |(index, one): (usize, &ProviderCredential)| CredentialRecord {
        id: one.id.0,
        name: one.name.clone(),
        key: credentials
            .and_then(|all| all.text_of(index, one.id))
            .map_or_else(|| MASK.to_owned(), Secret::masked),
        is_enabled: one.is_enabled,
        refused: refused(one),
    };
    provider.credentials.iter().enumerate().skip(1).map(record).collect()
}

fn refused(one: &ProviderCredential) -> Option<AttemptErrorRecord> {
    one.refused.as_ref().map(AttemptErrorRecord::from)
}

/// A provider that the gateway itself disabled (`breaker.disable_after_failed_probes`).
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SwitchedOffRecord {
    /// When the gateway disabled the provider.
    pub at: Iso,
    /// Probes of its circuit that failed in a row.
    pub failed_probes: u32,
    /// How the last of them failed; `null` where it is not known.
    pub error: Option<AttemptErrorRecord>,
}

impl From<&SwitchedOff> for SwitchedOffRecord {
    fn from(off: &SwitchedOff) -> Self {
        let error = off.error.as_ref().map(AttemptErrorRecord::from);
        Self { at: Iso(off.at), failed_probes: off.failed_probes, error }
    }
}

/// The id of a record that was made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Created {
    /// The new record's id.
    pub id: i64,
}

/// What a test request to a provider came to.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderTest {
    /// A reply in the provider's format came.
    pub ok: bool,
    /// What the other fields are about: `request`, or `listing` where there was no model to ask
    /// for.
    pub stage: &'static str,
    /// `ok`, `connection_refused`, `unknown_host`, `tls_failed`, `timed_out`, `no_connection`,
    /// `proxy_unreachable`, `proxy_login`, `proxy_refused`, `bad_address`, `no_token`, `unauthorized` (401, 403), `not_found` (404), `rate_limited` (429),
    /// `provider_error` (5xx), `client_error` (any other status), `no_models` (the list is empty:
    /// name a model) or `not_a_reply`.
    pub code: &'static str,
    /// What a sentence about the code needs: `status`, or `host` and `port`.
    pub params: Map<String, Value>,
    /// The provider's status; `null` when there was no answer.
    pub status: Option<u16>,
    /// Milliseconds of the exchange that `stage` names; 0 when there was no answer.
    pub latency_ms: u64,
    /// The model that it was asked for; `null` where none was named and the provider lists none.
    pub model: Option<String>,
    /// What it said, or why there was no answer.
    pub message: String,
    /// The models that it lists, where it does.
    pub models: Vec<String>,
    /// The same request with each of its other keys, enabled or not.
    pub credentials: Vec<CredentialTest>,
}

/// What a test request with one of a provider's other keys came to.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialTest {
    /// The name of the key.
    pub name: String,
    /// As of the test.
    pub ok: bool,
    /// As of the test.
    pub code: &'static str,
    /// As of the test.
    pub params: Map<String, Value>,
    /// As of the test.
    pub status: Option<u16>,
    /// As of the test.
    pub latency_ms: u64,
    /// As of the test.
    pub message: String,
}
