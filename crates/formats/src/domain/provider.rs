//! An upstream provider record (docs/reference/records.md).

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::cloud::ClaudeCloud;
use super::credentials::Credentials;
use super::feature_policy::FeaturePolicy;
use super::format::WireFormat;
use super::group::Groups;
use super::ids::{CredentialId, ProviderId};
use super::key::CacheTtl;
use super::limits::Limits;
use super::named_model::NamedModel;
use super::path_template;
use super::provider_auth::ProviderAuth;
use super::provider_credential;
use super::provider_credential::ProviderCredential;
use super::provider_tls::ProviderTls;
use super::secret::Secret;

/// The protocol of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[derive(strum::IntoStaticStr, strum::EnumString)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ProviderType {
    /// native format, credential in `x-api-key`
    Native,
    /// native format, credential in `Authorization: Bearer` only
    NativeAuth,
    /// responses format, credential in `Authorization: Bearer`
    Responses,
    /// chat-compatible format, credential in `Authorization: Bearer`
    #[serde(rename = "chat-compatible")]
    #[strum(serialize = "chat-compatible")]
    Chat,
    /// alt-cli format, credential in `x-goog-api-key`
    AltCli,
}

impl ProviderType {
    /// The id on the wire and in the database, such as `chat-compatible`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The type of this id; `None` if there is none.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    /// The format of the requests that such a provider is sent. Both native types share one.
    pub const fn format(self) -> WireFormat {
        match self {
            Self::Native | Self::NativeAuth => WireFormat::Native,
            Self::Responses => WireFormat::Responses,
            Self::Chat => WireFormat::Chat,
            Self::AltCli => WireFormat::AltCli,
        }
    }
}

/// How the instructions of a request for a responses provider are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum InstructionsStrategy {
    /// Add the configured text if the client sent no instructions.
    Auto,
    /// Replace the client's instructions by the configured text.
    ForceOfficial,
    /// Send the client's instructions as they are.
    #[default]
    KeepOriginal,
}

impl InstructionsStrategy {
    /// The name on the wire and in the database: `auto`, `force_official` or `keep_original`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Reads what [`Self::as_str`] writes; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// Whether a provider's host is Anthropic's own, which judges tool calls itself and may receive
/// what its clients send for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum AnthropicHost {
    /// By the type, which is a native one, and the host's name.
    #[default]
    Auto,
    /// It is, such as another gateway before that host.
    Yes,
    /// It is not.
    No,
}

impl AnthropicHost {
    /// The name on the wire and in the database: `auto`, `yes` or `no`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Reads what [`Self::as_str`] writes; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// One upstream. Times are milliseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Provider {
    /// Serial number in the database.
    pub id: ProviderId,
    /// The administrator's name for it, as in records, metrics and messages.
    pub name: String,
    /// Base address, with or without `/v1`, optionally with a path prefix.
    pub url: String,
    /// The credential, decrypted. It is sent only to the origin of `url`.
    #[serde(skip)]
    pub key: Secret,
    /// The protocol of its requests, and the usual header of its credential.
    pub kind: ProviderType,
    /// The form of its calls, by type and address: set with the credentials.
    #[serde(skip)]
    pub cloud: ClaudeCloud,
    /// How its credential is sent.
    #[serde(default)]
    pub auth: ProviderAuth,
    /// Headers that are added to each request, as they are sent. They are sealed together with the
    /// credential.
    #[serde(skip)]
    pub custom_headers: Vec<(HeaderName, HeaderValue)>,
    /// The credentials that it uses in turn, the one in `key` first; empty if that is the only one.
    #[serde(default)]
    pub credentials: Vec<ProviderCredential>,
    /// The provider with each of several credentials in `key`; empty if it has one.
    #[serde(skip)]
    pub variants: Vec<Arc<Self>>,
    /// Which of several credentials is in `key`: `Some` in `variants` only.
    #[serde(skip)]
    pub credential: Option<ProviderCredential>,
    /// Percent of an account's window: a credential that has used more is passed over until the
    /// window's reset, as long as another one can serve.
    #[serde(default)]
    pub quota_guard: Option<u32>,
    /// What else no message may have: secret parts of these headers, the password of its proxy.
    #[serde(skip)]
    pub header_secrets: Vec<Secret>,
    /// Parameters that are added to the query of each request.
    #[serde(default)]
    pub query: Vec<(String, String)>,
    /// The path of calls after the address: see `domain::path_template`.
    #[serde(default)]
    pub path_template: Option<String>,
    /// If false, no request is sent to it.
    pub is_enabled: bool,
    /// 1–100; the share among providers of the same priority.
    pub weight: u32,
    /// Lower is tried first; −1000 to 1 000 000.
    pub priority: i32,
    /// The cost of each request is multiplied by it. 0–1000, at most four decimal places.
    pub cost_multiplier: Decimal,
    /// The groups that it belongs to. A key reaches it if both have a group in common.
    pub group_tag: Groups,
    /// Model names, a trailing `*` matches any suffix; empty = every model.
    pub allowed_models: Vec<String>,
    /// Requested model → model sent upstream. The keys are reachable models too.
    pub model_redirects: Vec<(String, String)>,
    /// What requests to it may use.
    #[serde(default)]
    pub features: FeaturePolicy,
    /// The most that may be spent at it, and its session cap. A provider at a limit is skipped.
    pub limits: Limits,
    /// Attempts at this provider for one request, 1–10.
    pub max_retry_attempts: u32,
    /// When its circuit opens and closes.
    pub breaker: BreakerSettings,
    /// Its own timeouts, in place of the configured ones.
    pub timeouts: ProviderTimeouts,
    /// The prompt-cache lifetime of native requests to it, if the key has no preference.
    pub cache_ttl: CacheTtl,
    /// The treatment of instructions. Only providers of the type [`ProviderType::Responses`] use
    /// it.
    pub instructions: InstructionsStrategy,
    /// Whether it receives the client's address in `x-forwarded-for`.
    pub preserve_client_ip: bool,
    /// Whether its host is Anthropic's own.
    #[serde(default)]
    pub anthropic_host: AnthropicHost,
    /// Whether it gets the requests of a session over one WebSocket. Only providers of the type
    /// [`ProviderType::Responses`] use it.
    #[serde(default)]
    pub websocket: bool,
    /// Seconds between two requests that the gateway itself makes to it; `None` = it makes none.
    #[serde(default)]
    pub probe_interval: Option<u32>,
    /// The model of these; `None` = the first that the provider allows.
    #[serde(default)]
    pub probe_model: Option<String>,
    /// The address of its proxy, without the password: see `domain::proxy_address`.
    pub proxy_url: Option<String>,
    /// The password for that proxy, as it was written; empty if there is none.
    #[serde(skip)]
    pub proxy_password: Secret,
    /// Its own certificates.
    #[serde(default)]
    pub tls: ProviderTls,
    /// The administrator's remark, at most 200 characters; may be empty.
    pub note: String,
    /// Attempts before this time say nothing about the provider's present state: its address,
    /// credential or proxy was changed then, or an administrator enabled it again.
    pub health_since: Timestamp,
    /// `Some` if the gateway itself has disabled the provider.
    pub switched_off: Option<SwitchedOff>,
    /// When the record was created.
    pub created_at: Timestamp,
    /// When the record was last changed.
    pub updated_at: Timestamp,
    /// When the provider was deleted; `None` while it exists.
    pub deleted_at: Option<Timestamp>,
}

/// Anthropic's own hosts have this name, or end with it.
const OWN: &str = "anthropic.com";

/// The host of an address.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    host.split(':').next().unwrap_or_default()
}

impl Provider {
    /// A provider before any field is set.
    pub fn blank(now: Timestamp) -> Self {
        Self {
            id: ProviderId(0),
            name: String::new(),
            url: String::new(),
            key: Secret::default(),
            kind: ProviderType::Native,
            cloud: ClaudeCloud::None,
            auth: ProviderAuth::Auto,
            custom_headers: Vec::new(),
            credentials: Vec::new(),
            variants: Vec::new(),
            credential: None,
            quota_guard: None,
            header_secrets: Vec::new(),
            query: Vec::new(),
            path_template: None,
            is_enabled: true,
            weight: 1,
            priority: 0,
            cost_multiplier: Decimal::ONE,
            group_tag: Groups::default(),
            allowed_models: Vec::new(),
            model_redirects: Vec::new(),
            features: FeaturePolicy::default(),
            limits: Limits::default(),
            max_retry_attempts: 2,
            breaker: BreakerSettings::default(),
            timeouts: ProviderTimeouts::default(),
            cache_ttl: CacheTtl::Inherit,
            instructions: InstructionsStrategy::default(),
            preserve_client_ip: false,
            anthropic_host: AnthropicHost::Auto,
            websocket: false,
            probe_interval: None,
            probe_model: None,
            proxy_url: None,
            proxy_password: Secret::default(),
            tls: ProviderTls::default(),
            note: String::new(),
            health_since: now,
            switched_off: None,
            created_at: now,
            updated_at: now,
            deleted_at: None,
        }
    }
}

/// Why and when the gateway itself disabled a provider. Stored as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SwitchedOff {
    /// When the gateway disabled it.
    pub at: Timestamp,
    /// Probes of its circuit that failed in a row.
    pub failed_probes: u32,
    /// How the last of them failed; `None` if the node that disabled the provider does not have the
    /// error.
    pub error: Option<LastError>,
}

/// The failed attempt that a provider was disabled for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastError {
    /// How it failed: `dns`, `connect`, `tls`, `timeout`, `broken`, `status` or `unusable`.
    pub kind: String,
    /// The provider's HTTP status; `None` if no reply arrived.
    pub status: Option<u16>,
    /// Bounded, without the provider's credential.
    pub message: String,
    /// When the attempt failed.
    pub at: Timestamp,
}

/// When a provider's circuit opens and closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerSettings {
    /// Consecutive failures that open the circuit; 0 = it never opens.
    pub failure_threshold: u32,
    /// Milliseconds that an open circuit lets no request through, until the first probe.
    pub open_duration_ms: u64,
    /// Probe successes in a row that close it again.
    pub half_open_success_threshold: u32,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self { failure_threshold: 5, open_duration_ms: 1_800_000, half_open_success_threshold: 2 }
    }
}

/// Per-provider timeouts: `None` = the configured default, `Some(0)` = no timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProviderTimeouts {
    /// From the start of an attempt to the first byte of a stream's body.
    pub first_byte_streaming_ms: Option<u64>,
    /// Between two bytes of a stream.
    pub streaming_idle_ms: Option<u64>,
    /// Between two events with content, of a stream that sends other bytes meanwhile.
    pub streaming_content_ms: Option<u64>,
    /// The complete attempt, for a reply in one piece.
    pub request_non_streaming_ms: Option<u64>,
}

impl Provider {
    /// Whether its host is Anthropic's own.
    pub fn is_anthropics_own(&self) -> bool {
        let is_named = || {
            let host = host(&self.url);
            let (before, own) =
                host.split_at_checked(host.len().saturating_sub(OWN.len())).unwrap_or_default();
            own.eq_ignore_ascii_case(OWN) && (before.is_empty() || before.ends_with('.'))
        };
        self.kind.format() == WireFormat::Native
            && match self.anthropic_host {
                AnthropicHost::Yes => true,
                AnthropicHost::No => false,
                AnthropicHost::Auto => is_named(),
            }
    }

    /// How often the gateway itself makes a request to it, and for which model; `None` if never.
    pub fn probes(&self) -> Option<(Duration, &str)> {
        let every = Duration::from_secs(self.probe_interval?.into());
        let model = self.probe_model.as_deref().or_else(|| self.usual_model())?;
        Some((every, model)).filter(|_| !self.auth.is_clients())
    }

    /// The first model that it allows by its name, or redirects.
    pub fn usual_model(&self) -> Option<&str> {
        let allowed = self.allowed_models.iter().find(|name| !name.ends_with('*'));
        allowed.or_else(|| self.model_redirects.first().map(|(from, _)| from)).map(String::as_str)
    }

    /// What the cost of a request is multiplied by: nothing is charged that the client's own account
    /// pays.
    pub const fn multiplier(&self) -> Decimal {
        if self.auth.is_clients() { Decimal::ZERO } else { self.cost_multiplier }
    }

    /// Sets its credentials, its own headers, and the form of its calls.
    pub fn set_credentials(&mut self, credentials: Credentials) {
        self.cloud = ClaudeCloud::of(self.kind, self.auth, &self.url);
        self.custom_headers = credentials.sent_headers();
        self.header_secrets = credentials.further_secrets();
        self.proxy_password = credentials.proxy_password.clone();
        self.tls.client_key = credentials.tls_key.clone();
        self.variants = provider_credential::variants(self, &credentials);
        self.key = credentials.key;
    }

    /// The credential in `key`.
    pub fn credential_id(&self) -> CredentialId {
        self.credential.as_ref().map_or(CredentialId::KEY, |one| one.id)
    }

    /// The provider with each of its credentials.
    pub fn with_each_credential(self: &Arc<Self>) -> &[Arc<Self>] {
        if self.variants.is_empty() { std::slice::from_ref(self) } else { &self.variants }
    }

    /// Whether it has a credential of this number.
    pub fn has_credential(self: &Arc<Self>, id: CredentialId) -> bool {
        self.with_each_credential().iter().any(|one| one.credential_id() == id)
    }

    /// The provider with the first of its credentials that is enabled.
    pub fn with_enabled_credential(self: &Arc<Self>) -> &Arc<Self> {
        let is_enabled =
            |one: &&Arc<Self>| one.credential.as_ref().is_some_and(|one| one.is_enabled);
        self.variants.iter().find(is_enabled).unwrap_or(self)
    }

    /// Its credential and the secret parts of its headers, without empty ones.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let all = std::iter::once(&self.key).chain(&self.header_secrets);
        all.filter(|secret| !secret.expose().is_empty())
    }

    /// Whether paths of calls to it have the model's name.
    pub fn names_models_in_paths(&self) -> bool {
        self.kind.format() == WireFormat::AltCli
            || self.path_template.as_deref().is_some_and(path_template::names_model)
            || self.cloud != ClaudeCloud::None
    }

    /// The model name for this provider if the client requests `requested`.
    pub fn upstream_model<'a>(&'a self, requested: &'a str) -> &'a str {
        self.model_redirects
            .iter()
            .find(|(from, _)| from == requested)
            .map_or(requested, |(_, to)| to)
    }

    /// Whether `requested` is a redirect, or in the list of allowed models (an empty list allows
    /// all). A request that names none, for a file, may go to any.
    pub fn supports_model(&self, requested: &str) -> bool {
        self.allowed_models.is_empty()
            || requested.is_empty()
            || self.model_redirects.iter().any(|(from, _)| from == requested)
            || model_matches(&self.allowed_models, requested)
    }

    /// Whether a model may be used here that a request names beside its own. No redirect makes it
    /// another one.
    pub fn allows_named(&self, named: &NamedModel) -> bool {
        self.allowed_models.is_empty()
            || named.is_providers_choice()
            || model_matches(&self.allowed_models, &named.name)
    }
}

/// Whether `model` is in `patterns`, where a trailing `*` matches any suffix.
pub fn model_matches(patterns: &[String], model: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => model.starts_with(prefix),
        None => pattern == model,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_native_provider_at_anthropics_name_is_its_own() {
        let own = |kind, url: &str, anthropic_host| {
            let blank = Provider::blank(Timestamp(0));
            Provider { kind, url: url.to_owned(), anthropic_host, ..blank }.is_anthropics_own()
        };
        use AnthropicHost::{Auto, No, Yes};
        use ProviderType::{Chat, Native, NativeAuth};
        for url in ["https://api.anthropic.com", "https://API.Anthropic.com:443/v1?x=/"] {
            assert!(own(Native, url, Auto) && own(NativeAuth, url, Auto), "{url}");
            assert!(!own(Native, url, No) && !own(Chat, url, Auto), "{url}");
        }
        for url in [
            "https://anthropic.com.example.org",
            "https://notanthropic.com",
            "https://api.anthropic.com@example.org/",
            "https://example.org/api.anthropic.com",
            "",
        ] {
            assert!(!own(Native, url, Auto), "{url}");
            assert!(own(Native, url, Yes) && !own(Chat, url, Yes), "{url}");
        }
    }
}
