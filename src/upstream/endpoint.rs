//! Derives the path of a call from a provider's base address.
//!
//! Operators paste addresses as vendors print them: with or without `/v1`, with a path prefix, with
//! another version segment (`/api/v3`, `/v1beta/openai`), without any version where the service has
//! none, or with the complete path of the call. Each gives the right endpoint.

use std::borrow::Cow;

use http::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::domain::cloud::ClaudeCloud;
use crate::domain::format::WireFormat;
use crate::domain::path_template;
use crate::domain::provider::Provider;
use crate::formats::native::{bedrock, vertex};
use crate::formats::query::is_named;
use crate::formats::route::StoredCall;

/// A provider's base address, split into its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Whether the scheme is `https`.
    pub tls: bool,
    /// Without port or brackets; used for TLS verification.
    pub host: String,
    /// The port in the address, else 443 or 80.
    pub port: u16,
    /// As sent in `Host`: with the port unless it is the scheme's default.
    pub authority: String,
    /// The same, as the header's value.
    pub host_header: HeaderValue,
    /// `""` or `/prefix`, without trailing slash and without the path of a call.
    base: String,
    /// Whether calls follow the base as it is: see [`is_complete`].
    is_complete: bool,
    /// What the calls of each format follow, in the order of [`WireFormat::ALL`]. Made for each
    /// call, it took 600 instructions.
    before_calls: [String; 4],
    /// The cloud whose paths calls have.
    cloud: ClaudeCloud,
    /// The provider's own form of paths.
    template: Option<String>,
    /// The provider's own parameters, percent-encoded, and the names of them.
    query: String,
    query_names: Vec<String>,
}

/// The operation of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderCall<'a> {
    /// A reply of a model.
    Generate {
        /// The model's name for this provider; part of the path in the alt-cli format only.
        model: &'a str,
        /// Whether the reply is streamed; part of the path in the alt-cli format only.
        stream: bool,
    },
    /// The number of tokens of a request.
    CountTokens {
        /// The model's name for this provider; part of the path in the alt-cli format only.
        model: &'a str,
    },
    /// What another endpoint makes.
    Endpoint {
        /// Its path with the version; in the alt-cli format the action on the model.
        path: &'a str,
        /// The model's name for this provider; part of the path in the alt-cli format only.
        model: &'a str,
    },
    /// About a reply that the provider stores.
    Stored(&'a StoredCall),
    /// A piece of an upload: path and query, as the provider gave them.
    Upload(&'a str),
    /// The list of models, or its first page.
    ListModels,
    /// The page of the list after the one that ended with this; the whole list in formats whose
    /// lists have no pages.
    ListModelsAfter(&'a str),
}

impl<'a> ProviderCall<'a> {
    /// The model that the call names.
    const fn model(self) -> Option<&'a str> {
        match self {
            Self::Generate { model, .. }
            | Self::CountTokens { model }
            | Self::Endpoint { model, .. } => Some(model),
            Self::Stored(_) | Self::Upload(_) | Self::ListModels | Self::ListModelsAfter(_) => None,
        }
    }
}

/// Why an address is not a base address; completes "the address …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The text has no scheme, or another one than `http` and `https`, or no host.
    #[error("is not an absolute http or https address")]
    NotAbsolute,
    /// A user name or a password stands before the host.
    #[error("must not hold credentials: they belong in the key field")]
    Credentials,
    /// There is a `?` or a `#`.
    #[error("must not hold a query or a fragment")]
    Query,
}

/// Paths of complete calls, which are removed from the end of an address.
const CALLS: [&str; 5] =
    ["/messages/count_tokens", "/messages", "/chat/completions", "/responses", "/models"];

impl Endpoint {
    /// Reads a base address.
    ///
    /// # Errors
    /// When it is not an absolute http(s) address, or contains credentials or a query.
    pub fn parse(url: &str) -> Result<Self, EndpointError> {
        if url.contains(['?', '#']) {
            return Err(EndpointError::Query);
        }
        let uri: http::Uri = url.trim().parse().map_err(|_| EndpointError::NotAbsolute)?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(EndpointError::NotAbsolute),
        };
        let authority = uri.authority().ok_or(EndpointError::NotAbsolute)?;
        if authority.as_str().contains('@') {
            return Err(EndpointError::Credentials);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(EndpointError::NotAbsolute);
        }
        let own_port = if tls { 443 } else { 80 };
        let port = authority.port_u16().unwrap_or(own_port);
        let (base, call) = split_call(uri.path());
        let is_complete = call.is_some() || is_complete(&base);
        let authority = if port == own_port {
            authority.host().to_owned()
        } else {
            format!("{}:{port}", authority.host())
        };
        let before_calls = Default::default();
        let host_header = HeaderValue::try_from(authority.as_str());
        let host_header = host_header.map_err(|_| EndpointError::NotAbsolute)?;
        let (template, query, query_names) = Default::default();
        let mut endpoint = Self {
            tls,
            host,
            port,
            authority,
            host_header,
            base,
            is_complete,
            before_calls,
            cloud: ClaudeCloud::None,
            template,
            query,
            query_names,
        };
        endpoint.before_calls = WireFormat::ALL.map(|format| endpoint.before_calls_of(format));
        Ok(endpoint)
    }

    /// A provider's address, with its own form of paths and its own parameters.
    ///
    /// # Errors
    /// As [`Endpoint::parse`].
    pub fn of(provider: &Provider) -> Result<Self, EndpointError> {
        let mut endpoint = Self::parse(&provider.url)?;
        endpoint.cloud = ClaudeCloud::of(provider.kind, provider.auth, &provider.url);
        endpoint.template.clone_from(&provider.path_template);
        let own = &provider.query;
        endpoint.query_names = own.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        let encoded = own.iter().map(|(name, value)| [segment(name), segment(value)].join("="));
        endpoint.query = encoded.collect::<Vec<_>>().join("&");
        Ok(endpoint)
    }

    /// Path and query of a call in `format`. `query` is the client's, if it has one; the
    /// provider's own parameters replace those of the same name.
    pub fn target(
        &self,
        format: WireFormat,
        call: ProviderCall<'_>,
        query: Option<&str>,
    ) -> String {
        if let ProviderCall::Upload(target) = call {
            return target.to_owned();
        }
        let mut target = self.path(format, call);
        let mut add = |parameters: &str| {
            target.push(if target.contains('?') { '&' } else { '?' });
            target.push_str(parameters);
        };
        if self.query.is_empty() {
            query.into_iter().for_each(add);
            return target;
        }
        let is_own =
            |one: &&str| is_named(one, |name| self.query_names.iter().any(|own| own == name));
        let others = query.into_iter().flat_map(|query| query.split('&'));
        others.filter(|one| !is_own(one)).for_each(&mut add);
        add(&self.query);
        target
    }

    /// The path (and the query that the call itself needs) of a call in `format`.
    fn path(&self, format: WireFormat, call: ProviderCall<'_>) -> String {
        if let Some(template) = &self.template {
            let path = Self::path_after("", format, call);
            let model = call.model().map(segment);
            let filled =
                path_template::filled(template, path.trim_start_matches('/'), model.as_deref());
            if let Some(filled) = filled {
                return [&*self.base, &filled].concat();
            }
        }
        match self.cloud {
            ClaudeCloud::None => {}
            ClaudeCloud::Vertex => return self.vertex_claude(call),
            ClaudeCloud::Bedrock | ClaudeCloud::Converse => return self.bedrock_native(call),
        }
        let formats = WireFormat::ALL.iter().zip(&self.before_calls);
        let before = formats.filter(|(its, _)| **its == format).map(|(_, before)| before);
        Self::path_after(before.map(String::as_str).next().unwrap_or_default(), format, call)
    }

    /// The path of a call to Claude at Vertex AI, which lists no models.
    fn vertex_claude(&self, call: ProviderCall<'_>) -> String {
        let (model, verb) = match call {
            ProviderCall::Generate { model, stream: true } => (model, "streamRawPredict"),
            ProviderCall::CountTokens { .. } => ("count-tokens", "rawPredict"),
            call => match call.model() {
                Some(model) => (model, "rawPredict"),
                None => return [&self.base, "/models"].concat(),
            },
        };
        format!("{}/models/{}:{verb}", self.base, segment(&vertex::model_name(model)))
    }

    /// The path of a call at Bedrock by `InvokeModel` or `Converse`, which list no models.
    fn bedrock_native(&self, call: ProviderCall<'_>) -> String {
        let (model, verb) = match call {
            ProviderCall::Generate { model, stream } => {
                let is_converse = self.cloud.for_model(model) == ClaudeCloud::Converse;
                let verb = match (is_converse, stream) {
                    (true, true) => "converse-stream",
                    (true, false) => "converse",
                    (false, true) => "invoke-with-response-stream",
                    (false, false) => "invoke",
                };
                (model, verb)
            }
            ProviderCall::CountTokens { model } => (bedrock::counted_model(model), "count-tokens"),
            // There is none of these.
            call => return Self::path_after(&self.base, WireFormat::Native, call),
        };
        let base = self.base.strip_suffix("/converse").unwrap_or(&self.base);
        let base = base.strip_suffix("/model").unwrap_or(base);
        format!("{base}/model/{}/{verb}", segment(model))
    }

    fn path_after(before: &str, format: WireFormat, call: ProviderCall<'_>) -> String {
        let at = |call: &str| [before, call].concat();
        let of = |model: &str, verb: &str| at(&format!("/models/{}:{verb}", segment(model)));
        match (format, call) {
            (WireFormat::AltCli, ProviderCall::Endpoint { path, .. }) if path.starts_with('/') => {
                // Its version follows the name of the service.
                let (base, version) = before.rsplit_once('/').unwrap_or(("", before));
                format!("{base}/upload/{version}/files")
            }
            (WireFormat::AltCli, ProviderCall::Endpoint { path, model }) => of(model, path),
            (WireFormat::AltCli, ProviderCall::Stored(call)) => {
                let path = call.path();
                at(path.strip_prefix("/v1beta").unwrap_or(&path))
            }
            (_, ProviderCall::Upload(target)) => target.to_owned(),
            (_, ProviderCall::Endpoint { path, .. }) => {
                at(path.strip_prefix("/v1").unwrap_or(path))
            }
            (_, ProviderCall::Stored(call)) => {
                let path = call.path();
                at(path.strip_prefix("/v1").unwrap_or(&path))
            }
            (WireFormat::Native, ProviderCall::ListModels) => at("/models?limit=1000"),
            (WireFormat::AltCli, ProviderCall::ListModels) => at("/models?pageSize=1000"),
            (WireFormat::Native, ProviderCall::ListModelsAfter(last)) => {
                at(&format!("/models?limit=1000&after_id={}", segment(last)))
            }
            (WireFormat::AltCli, ProviderCall::ListModelsAfter(page)) => {
                at(&format!("/models?pageSize=1000&pageToken={}", segment(page)))
            }
            (_, ProviderCall::ListModels | ProviderCall::ListModelsAfter(_)) => at("/models"),
            (WireFormat::Native, ProviderCall::Generate { .. }) => at("/messages"),
            (WireFormat::Native, ProviderCall::CountTokens { .. }) => at("/messages/count_tokens"),
            (WireFormat::Responses, ProviderCall::CountTokens { .. }) => {
                at("/responses/input_tokens")
            }
            (WireFormat::Responses, _) => at("/responses"),
            (WireFormat::Chat, _) => at("/chat/completions"),
            (WireFormat::AltCli, ProviderCall::Generate { model, stream: false }) => {
                of(model, "generateContent")
            }
            (WireFormat::AltCli, ProviderCall::Generate { model, stream: true }) => {
                of(model, "streamGenerateContent")
            }
            (WireFormat::AltCli, ProviderCall::CountTokens { model }) => of(model, "countTokens"),
        }
    }
}

/// Hosts of services whose calls have no version in their path, and the formats for which that is
/// so. A name that begins with a dot stands for all hosts below it.
const WITHOUT_VERSION: [(&str, &[WireFormat]); 4] = [
    ("api.perplexity.ai", &[WireFormat::Chat]),
    (".githubcopilot.com", &[WireFormat::Chat, WireFormat::Responses]),
    ("models.github.ai", &[WireFormat::Chat]),
    ("models.inference.ai.azure.com", &[WireFormat::Chat]),
];
/// Last segments of base addresses that have no version after them: Cloudflare's and Vertex AI's
/// compatible interfaces, and Databricks' endpoints.
const ENDS_WITHOUT_VERSION: [&str; 3] = ["compat", "openapi", "serving-endpoints"];
/// Its paths begin with the version of the relay itself. Bases of the native and alt-cli formats
/// have none of the service behind it.
const VERSIONED_RELAY: &str = "gateway.ai.cloudflare.com";

impl Endpoint {
    fn before_calls_of(&self, format: WireFormat) -> String {
        let own = if format == WireFormat::AltCli { "/v1beta" } else { "/v1" };
        [&*self.base, if self.lacks_version(format) { own } else { "" }].concat()
    }

    /// Whether the base lacks the version that calls of this format have in their path.
    fn lacks_version(&self, format: WireFormat) -> bool {
        let compatible = matches!(format, WireFormat::Chat | WireFormat::Responses);
        if self.host == VERSIONED_RELAY && !compatible {
            let behind = self.base.trim_start_matches('/').split_once('/').map_or("", |(_, b)| b);
            return !is_complete(behind);
        }
        let is_its = |name: &str| match name.strip_prefix('.') {
            Some(domain) => self.host.strip_suffix(domain).is_some_and(|sub| sub.ends_with('.')),
            None => self.host == name,
        };
        let knows =
            |(name, formats): &(&str, &[WireFormat])| is_its(name) && formats.contains(&format);
        let ends = |end: &&str| self.base.rsplit('/').next() == Some(*end);
        let has_none = WITHOUT_VERSION.iter().any(knows)
            || compatible && ENDS_WITHOUT_VERSION.iter().any(ends);
        !self.is_complete && !has_none
    }
}

/// Splits `/prefix[/messages]` into the base and the call. A list of models tells nothing about the
/// version of the other calls.
fn split_call(path: &str) -> (String, Option<&str>) {
    let path = path.trim_end_matches('/');
    if let Some((base, model)) = path.rsplit_once("/models/")
        && model.contains(':')
    {
        return (base.to_owned(), Some(model));
    }
    for call in CALLS {
        if let Some(base) = path.strip_suffix(call) {
            return (base.to_owned(), Some(call).filter(|call| *call != "/models"));
        }
    }
    (path.to_owned(), None)
}

/// Whether a base has a version, at its end or anywhere before: vendors put compatible interfaces
/// below it (`/v1beta/openai`).
fn is_complete(base: &str) -> bool {
    base.split('/').any(is_version)
}

/// `v1`, `v4`, `v1beta`, `v1alpha2`, `v1.1`, `v1p1beta1`, …
fn is_version(segment: &str) -> bool {
    const STAGES: [&str; 7] = ["alpha", "beta", "rc", "preview", "internal", ".", "p"];
    let Some(number) = segment.strip_prefix('v') else { return false };
    let stage = number.trim_start_matches(|c: char| c.is_ascii_digit());
    let known = STAGES.iter().find_map(|known| stage.strip_prefix(known));
    let is_stage = stage.is_empty()
        || known.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_alphanumeric()));
    stage.len() < number.len() && is_stage
}

/// Characters that a model's name in a path keeps without an escape.
const SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'@');

/// A model name as one path segment: characters that would end or split it are percent-encoded.
/// Clients' names with slashes are refused before (`formats::route::check_model`).
fn segment(model: &str) -> Cow<'_, str> {
    utf8_percent_encode(model, SEGMENT).into()
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
