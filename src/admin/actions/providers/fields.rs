//! The bodies of `providers/*`, and how they are applied to a provider. Field names are snake_case
//! here.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::admin::actions::keys::fields::{GroupText, Name, groups};
use crate::admin::bodies::{
    BaseUrl, CredentialFields, CredentialText, CustomHeaders, FeatureList, Fraction, Id, List,
    ModelText, OneOf, Pairs, Patch, PathTemplate, PemText, ProxyUrl, QueryParameters, Sent, Text,
    Url, Whole, features,
};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::limits::ProviderLimits;
use crate::admin::reasons::Reason;
use crate::domain::key::CacheTtl;
use crate::domain::provider::{AnthropicHost, InstructionsStrategy, Provider, ProviderType};
use crate::domain::provider_auth::ProviderAuth;
use crate::domain::proxy_address;
use crate::formats::route;

/// Which provider.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfProvider {
    /// The provider.
    pub provider_id: Id,
}

/// Milliseconds; at most an hour, which is longer than any reply takes.
pub type Timeout = Whole<u64, 0, 3_600_000>;

/// A provider's own fields: of a new one, and of an edit.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProviderFields {
    /// What the provider is called.
    #[schemars(extend("required" = true))]
    pub name: Sent<Name>,
    /// The upstream's base address, with or without `/v1`, or with a path prefix.
    #[schemars(extend("required" = true))]
    pub url: Sent<Url<BaseUrl, 1, 2048>>,
    /// The upstream's credential. Write-only: records show it masked. With the `auth`
    /// `gcp-service-account` a JSON object with one of Google's credentials, with `azure-entra` one
    /// with an application of Entra ID or the machine's identity (docs/providers.md).
    #[schemars(extend("required" = true))]
    pub key: Sent<CredentialText>,
    /// How the upstream is spoken to.
    #[schemars(extend("default" = "native"))]
    pub provider_type: Sent<OneOf<ProviderType>>,
    /// How the credential is sent. `auto`: as the type has it. `client`: the client's own is sent,
    /// which comes beside the gateway's key in `x-tollgate-key`, and nothing is charged.
    #[schemars(extend("default" = "auto"))]
    pub auth: Sent<OneOf<ProviderAuth>>,
    /// Headers that are added to each request, value by name. Parts of a value in `${…}` are secret:
    /// records show them masked, and a value that is sent as it is shown stays.
    pub custom_headers: Patch<CustomHeaders>,
    /// Parameters that are added to the query of each request, value by name.
    pub query: Patch<QueryParameters>,
    /// The path of calls after `url`, with `{path}` for the call's own path without its version
    /// (`chat/completions`) and `{model}` for the model.
    pub path_template: Patch<PathTemplate>,
    /// Further credentials at the same address, which take turns with `key`: the one whose account
    /// has the most left comes first. The whole list; one that is left out is removed.
    pub credentials: Patch<List<CredentialFields, 0, 31>>,
    /// Whether `key` is used, where there are further credentials.
    #[schemars(extend("default" = true))]
    pub key_is_enabled: Sent<bool>,
    /// Percent. A credential whose account has used more of a window is passed over until the
    /// window's reset, while another one or another provider can serve; `null` = never.
    pub quota_guard: Patch<Whole<u32, 1, 100>>,
    /// Whether it gets requests.
    #[schemars(extend("default" = true))]
    pub is_enabled: Sent<bool>,
    /// The share among providers of the same priority.
    #[schemars(extend("default" = 1))]
    pub weight: Sent<Whole<u32, 1, 100>>,
    /// Lower is tried first.
    #[schemars(extend("default" = 0))]
    pub priority: Sent<Whole<i32, -1000, 1_000_000>>,
    /// Costs are multiplied by this.
    #[schemars(extend("default" = 1))]
    pub cost_multiplier: Sent<Fraction<1000, 4>>,
    /// Comma-separated provider groups; empty or `null` = the default group.
    pub group_tag: Patch<GroupText>,
    /// A trailing `*` matches any suffix; empty = every model.
    pub allowed_models: Patch<List<ModelText<1, 200>, 0, 1000>>,
    /// Requested model → model sent upstream.
    pub model_redirects: Patch<Pairs<500, 200>>,
    /// Features that requests to it may use though it denies their class, or that need someone's
    /// permission.
    pub allowed_features: Patch<FeatureList>,
    /// Features that requests to it may not use.
    pub denied_features: Patch<FeatureList>,
    /// Its limits.
    #[serde(flatten)]
    pub limits: ProviderLimits,
    /// Attempts here for one request.
    #[schemars(extend("default" = 2))]
    pub max_retry_attempts: Sent<Whole<u32, 1, 10>>,
    /// Consecutive failures that open the circuit; 0 = it never opens.
    #[schemars(extend("default" = 5))]
    pub circuit_breaker_failure_threshold: Sent<Whole<u32, 0, 1000>>,
    /// Milliseconds.
    #[schemars(extend("default" = 1_800_000))]
    pub circuit_breaker_open_duration: Sent<Whole<u64, 1000, 86_400_000>>,
    /// Successes of probes in a row that close the circuit.
    #[schemars(extend("default" = 2))]
    pub circuit_breaker_half_open_success_threshold: Sent<Whole<u32, 1, 100>>,
    /// Milliseconds to the first byte of a stream's body; `null` = as configured, 0 = none.
    pub first_byte_timeout_streaming_ms: Patch<Timeout>,
    /// Milliseconds between two bytes of a stream; `null` = as configured, 0 = none.
    pub streaming_idle_timeout_ms: Patch<Timeout>,
    /// Milliseconds without content in a stream that only sends signs of life; `null` = as
    /// configured, 0 = none.
    pub streaming_content_timeout_ms: Patch<Timeout>,
    /// Milliseconds for a complete reply; `null` = as configured, 0 = none.
    pub request_timeout_non_streaming_ms: Patch<Timeout>,
    /// Lifetime that prompt caches are asked for.
    #[schemars(extend("default" = "inherit"))]
    pub cache_ttl_preference: Sent<OneOf<CacheTtl>>,
    /// What becomes of a request's instructions (responses only). `auto` and `force_official` have
    /// no effect without `instructions.short_file` or `long_file` in the configuration.
    #[schemars(extend("default" = "keep_original"))]
    pub instructions_strategy: Sent<OneOf<InstructionsStrategy>>,
    /// Whether the upstream receives the client's address.
    #[schemars(extend("default" = false))]
    pub preserve_client_ip: Sent<bool>,
    /// Whether the host is Anthropic's own, which judges the tool calls of agents itself. `auto`:
    /// by the type and the host's name.
    #[schemars(extend("default" = "auto"))]
    pub anthropic_host: Sent<OneOf<AnthropicHost>>,
    /// Whether it gets the streamed requests of a session over one WebSocket (responses only). If
    /// it refuses, they go over HTTP.
    #[schemars(extend("default" = false))]
    pub websocket: Sent<bool>,
    /// Seconds. The gateway itself makes a small request this often, with each enabled key in turn,
    /// and pays for it; `null` = it makes none. Not for `auth: client`.
    pub probe_interval: Patch<Whole<u32, 5, 86_400>>,
    /// The model of these requests; `null` = the first of `allowed_models` without a `*`, or of
    /// `model_redirects`. Required if there is none.
    pub probe_model: Patch<Text<1, 200>>,
    /// `http://`, `https://` (CONNECT), `socks5://` or `socks5h://`, then
    /// `[user:password@]host:port`. The proxy resolves the provider's name. Records show the password
    /// masked, and an address that is sent as it is shown keeps it.
    pub proxy_url: Patch<Url<ProxyUrl, 1, 2048>>,
    /// PEM: the authorities that may have signed the provider's certificate, in place of the
    /// system's.
    pub tls_ca: Patch<PemText>,
    /// PEM: the certificate that the gateway shows to the provider, with its chain.
    pub tls_client_certificate: Patch<PemText>,
    /// PEM: its private key. Write-only: records show it masked.
    pub tls_client_key: Patch<PemText>,
    /// For administrators.
    pub note: Patch<Text<0, 200>>,
}

impl ProviderFields {
    /// Sets every field that was sent; the caller handles the credential and the headers.
    pub fn apply(&self, provider: &mut Provider) {
        self.apply_identity(provider);
        provider.limits = self.limits.on(provider.limits);
        self.max_retry_attempts.apply(&mut provider.max_retry_attempts);
        let breaker = &mut provider.breaker;
        self.circuit_breaker_failure_threshold.apply(&mut breaker.failure_threshold);
        self.circuit_breaker_open_duration.apply(&mut breaker.open_duration_ms);
        self.circuit_breaker_half_open_success_threshold
            .apply(&mut breaker.half_open_success_threshold);
        let timeouts = &mut provider.timeouts;
        self.first_byte_timeout_streaming_ms
            .plain()
            .apply_option(&mut timeouts.first_byte_streaming_ms);
        self.streaming_idle_timeout_ms.plain().apply_option(&mut timeouts.streaming_idle_ms);
        self.streaming_content_timeout_ms.plain().apply_option(&mut timeouts.streaming_content_ms);
        self.request_timeout_non_streaming_ms
            .plain()
            .apply_option(&mut timeouts.request_non_streaming_ms);
        self.cache_ttl_preference.apply(&mut provider.cache_ttl);
        self.instructions_strategy.apply(&mut provider.instructions);
        self.preserve_client_ip.apply(&mut provider.preserve_client_ip);
        self.anthropic_host.apply(&mut provider.anthropic_host);
        self.websocket.apply(&mut provider.websocket);
        self.probe_interval.plain().apply_option(&mut provider.probe_interval);
        self.probe_model.plain().apply_option(&mut provider.probe_model);
        without_password(self.proxy_url.plain()).apply_option(&mut provider.proxy_url);
        self.tls_ca.plain().apply_option(&mut provider.tls.ca);
        self.tls_client_certificate.plain().apply_option(&mut provider.tls.client_certificate);
        self.note.plain().apply(&mut provider.note);
    }

    fn apply_identity(&self, provider: &mut Provider) {
        self.name.apply(&mut provider.name);
        self.url.apply(&mut provider.url);
        self.provider_type.apply(&mut provider.kind);
        self.auth.apply(&mut provider.auth);
        self.query.plain().apply(&mut provider.query);
        self.path_template.plain().apply_option(&mut provider.path_template);
        self.quota_guard.plain().apply_option(&mut provider.quota_guard);
        self.is_enabled.apply(&mut provider.is_enabled);
        self.weight.apply(&mut provider.weight);
        self.priority.apply(&mut provider.priority);
        self.cost_multiplier.apply(&mut provider.cost_multiplier);
        groups(&self.group_tag).apply(&mut provider.group_tag);
        self.allowed_models.plain().apply(&mut provider.allowed_models);
        self.model_redirects.plain().apply(&mut provider.model_redirects);
        features(&self.allowed_features).apply(&mut provider.features.allowed);
        features(&self.denied_features).apply(&mut provider.features.denied);
    }
}

/// The address of a proxy as it is stored: the password is sealed with the credential.
pub(super) fn without_password(sent: Patch<String>) -> Patch<String> {
    sent.map(|url| proxy_address::without_password(&url).0)
}

/// The names that calls have in their path must be valid there: an alt-cli provider's. And probes
/// need a model, and an account of the gateway's own.
///
/// # Errors
/// Of the first field that does not fit the others.
pub fn check(provider: &Provider) -> Result<(), ApiError> {
    let redirects = provider.model_redirects.iter();
    let redirects = redirects.map(|(from, to)| ("model_redirects", from, to));
    let probe = provider.probe_model.iter().map(|model| ("probe_model", model, model));
    let in_paths = redirects.chain(probe).filter(|_| provider.kind == ProviderType::AltCli);
    for (field, named, sent) in in_paths {
        if route::check_redirect(sent).is_err() {
            let refusal = ApiError::because(Code::INVALID_FORMAT, Reason::RedirectNotInPath);
            return Err(refusal.field(field).with("model", named.as_str().into()));
        }
    }
    if provider.probe_interval.is_none() || provider.probes().is_some() {
        return Ok(());
    }
    Err(match provider.auth.is_clients() {
        true => {
            ApiError::because(Code::INVALID_FORMAT, Reason::ProbeOfClients).field("probe_interval")
        }
        false => {
            ApiError::because(Code::REQUIRED_FIELD, Reason::ProbeNeedsModel).field("probe_model")
        }
    })
}
