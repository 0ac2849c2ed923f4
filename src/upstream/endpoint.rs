//! Derives the path of a call from a provider's base address.
//!
//! Operators paste addresses as vendors print them: with or without `/v1`, with a path prefix, with
//! another version segment (`/api/v3`), or with the complete path of the call. Each gives the right
//! endpoint.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::domain::format::WireFormat;

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
    /// `""` or `/prefix`, without version segment and without trailing slash.
    prefix: String,
    /// The version segment in the address, if there is one.
    version: Option<String>,
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
    /// The list of models, or its first page.
    ListModels,
    /// The page of the list after the one that ended with this; the whole list in formats whose
    /// lists have no pages.
    ListModelsAfter(&'a str),
}

/// Why an address is no base address; completes "the address …".
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
        let (prefix, version) = split_version(uri.path());
        let authority = if port == own_port {
            authority.host().to_owned()
        } else {
            format!("{}:{port}", authority.host())
        };
        Ok(Self { tls, host, port, authority, prefix, version })
    }

    /// `host:port` as a CONNECT request names it: an IPv6 address in brackets.
    #[must_use]
    pub fn connect_target(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// The path (and the query that the call itself needs) of a call in `format`.
    #[must_use]
    pub fn path(&self, format: WireFormat, call: ProviderCall<'_>) -> String {
        let own = if format == WireFormat::AltCli { "v1beta" } else { "v1" };
        let (prefix, version) = (self.prefix.as_str(), self.version.as_deref().unwrap_or(own));
        let at = |call: &str| [prefix, "/", version, call].concat();
        let of = |model: &str, verb: &str| at(&format!("/models/{}:{verb}", segment(model)));
        match (format, call) {
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

/// Splits `/prefix/v1[/messages]` into (`/prefix`, `v1`).
fn split_version(path: &str) -> (String, Option<String>) {
    let mut path = path.trim_end_matches('/');
    for call in CALLS {
        if let Some(rest) = path.strip_suffix(call) {
            path = rest;
            break;
        }
    }
    match path.rsplit_once('/') {
        Some((prefix, last)) if is_version(last) => (prefix.to_owned(), Some(last.to_owned())),
        _ => (path.to_owned(), None),
    }
}

/// `v1`, `v4`, `v1beta`, `v1alpha2`, …
fn is_version(segment: &str) -> bool {
    let Some(rest) = segment.strip_prefix('v') else { return false };
    rest.starts_with(|c: char| c.is_ascii_digit())
        && rest.bytes().all(|b| b.is_ascii_alphanumeric())
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
mod tests {
    use super::*;

    const GENERATE: ProviderCall<'_> = ProviderCall::Generate { model: "m", stream: false };

    #[test]
    fn a_list_of_models_is_asked_for_in_large_pages() {
        let endpoint = Endpoint::parse("https://api.example").unwrap();
        for (format, first, next) in [
            (
                WireFormat::Native,
                "/v1/models?limit=1000",
                "/v1/models?limit=1000&after_id=a%2Fb%26",
            ),
            (
                WireFormat::AltCli,
                "/v1beta/models?pageSize=1000",
                "/v1beta/models?pageSize=1000&pageToken=a%2Fb%26",
            ),
            (WireFormat::Chat, "/v1/models", "/v1/models"),
            (WireFormat::Responses, "/v1/models", "/v1/models"),
        ] {
            assert_eq!(endpoint.path(format, ProviderCall::ListModels), first);
            assert_eq!(endpoint.path(format, ProviderCall::ListModelsAfter("a/b&")), next);
        }
    }

    #[test]
    fn each_usual_base_address_gives_the_right_path() {
        let cases = [
            ("https://api.example", WireFormat::Native, "/v1/messages"),
            ("https://api.example/", WireFormat::Native, "/v1/messages"),
            ("https://api.example/v1", WireFormat::Native, "/v1/messages"),
            ("https://api.example/v1/messages", WireFormat::Native, "/v1/messages"),
            ("https://api.example/anthropic", WireFormat::Native, "/anthropic/v1/messages"),
            ("https://api.example/anthropic/v1/", WireFormat::Native, "/anthropic/v1/messages"),
            ("https://api.example/v1", WireFormat::Responses, "/v1/responses"),
            ("https://api.example/openai/v1", WireFormat::Chat, "/openai/v1/chat/completions"),
            ("https://api.example/api/v3", WireFormat::Chat, "/api/v3/chat/completions"),
            (
                "https://api.example/api/paas/v4/chat/completions",
                WireFormat::Chat,
                "/api/paas/v4/chat/completions",
            ),
            ("https://api.example", WireFormat::AltCli, "/v1beta/models/m:generateContent"),
            ("https://api.example/v1beta", WireFormat::AltCli, "/v1beta/models/m:generateContent"),
            ("https://api.example/gw/v1", WireFormat::AltCli, "/gw/v1/models/m:generateContent"),
        ];
        for (url, format, path) in cases {
            assert_eq!(Endpoint::parse(url).unwrap().path(format, GENERATE), path, "{url}");
        }
    }

    #[test]
    fn hosts_ports_and_faults() {
        let e = Endpoint::parse("http://[::1]:9100/v1").unwrap();
        assert_eq!(
            (e.tls, e.host.as_str(), e.port, e.authority.as_str()),
            (false, "::1", 9100, "[::1]:9100")
        );
        assert_eq!(e.connect_target(), "[::1]:9100");
        let e = Endpoint::parse("https://api.example:443").unwrap();
        assert_eq!(
            (e.authority.as_str(), e.connect_target().as_str()),
            ("api.example", "api.example:443")
        );
        for bad in ["", "api.example", "ftp://x", "http://", "/v1", "https:///v1"] {
            assert_eq!(Endpoint::parse(bad), Err(EndpointError::NotAbsolute), "{bad}");
        }
        assert_eq!(Endpoint::parse("https://u:p@x"), Err(EndpointError::Credentials));
        assert_eq!(Endpoint::parse("https://x/v1?key=1"), Err(EndpointError::Query));
    }

    #[test]
    fn a_model_name_stays_inside_its_segment() {
        let e = Endpoint::parse("https://x").unwrap();
        let path =
            e.path(WireFormat::AltCli, ProviderCall::Generate { model: "a b?c#d:e", stream: true });
        assert_eq!(path, "/v1beta/models/a%20b%3Fc%23d%3Ae:streamGenerateContent");
        let path =
            e.path(WireFormat::AltCli, ProviderCall::Generate { model: "a/../b", stream: false });
        assert_eq!(path, "/v1beta/models/a%2F..%2Fb:generateContent");
    }
}
