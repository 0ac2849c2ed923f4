//! The head of a request to a provider: which of the client's headers go on, and which credential is put in.
//!
//! A client's credentials never reach a provider, in whatever header, cookie or query parameter they came.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use pingora::http::RequestHeader;

use super::endpoint::Endpoint;
use crate::domain::provider::{Provider, ProviderType};

/// The native format's version header, and the version that a converted request speaks.
const NATIVE_VERSION: (HeaderName, HeaderValue) =
    (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));

/// Headers that never go on: they belong to one connection, name the client's way here, or hold a credential.
const NEVER: [&str; 30] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "host",
    "content-length",
    "content-encoding",
    "accept-encoding",
    "authorization",
    "x-api-key",
    "cookie",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-port",
    "x-real-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "via",
    "x-client-ip",
    "x-alt-api-key",
    "x-goog-api-key",
    "http2-settings",
];

/// Headers of a request in another format that still mean something to the provider.
const CONVERTED: [&str; 2] = ["user-agent", "accept-language"];

/// What the head is made from.
pub struct HeadParts<'a> {
    pub client: &'a HeaderMap,
    pub provider: &'a Provider,
    pub endpoint: &'a Endpoint,
    /// Path and query.
    pub target: &'a str,
    pub body_len: Option<usize>,
    /// The body was converted: the client's format headers do not fit.
    pub converted: bool,
    pub http2: bool,
    pub client_ip: Option<std::net::IpAddr>,
    /// Further headers that carry the client's key, in lower case.
    pub credentials: &'a [String],
    /// Further names that the operator drops, in lower case.
    pub drop: &'a [String],
}

/// Builds the head of an upstream request.
///
/// # Errors
/// Pingora's, when the path or a credential cannot stand in a head.
pub fn build(method: http::Method, parts: &HeadParts<'_>) -> pingora::Result<RequestHeader> {
    // What goes and what comes are about as many; Pingora keeps the head for the whole stream.
    let places = if parts.converted { 6 } else { parts.client.len() + 1 };
    let mut head = RequestHeader::build_no_case(method, parts.target.as_bytes(), Some(places))?;
    let listed = connection_listed(parts.client);
    for (name, value) in parts.client {
        if goes_on(name.as_str(), parts, &listed) {
            head.append_header(name.clone(), value.clone())?;
        }
    }
    if let Some(len) = parts.body_len {
        head.insert_header(header::CONTENT_LENGTH, len)?;
        if parts.converted || !head.headers.contains_key(header::CONTENT_TYPE) {
            head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))?;
        }
    }
    credential(&mut head, parts.provider)?;
    if parts.provider.kind.format() == crate::domain::format::WireFormat::Native
        && !head.headers.contains_key(&NATIVE_VERSION.0)
    {
        head.insert_header(NATIVE_VERSION.0, NATIVE_VERSION.1)?;
    }
    if let (true, Some(ip)) = (parts.provider.preserve_client_ip, parts.client_ip) {
        head.insert_header("x-forwarded-for", ip.to_string())?;
    }
    address(&mut head, parts)?;
    Ok(head)
}

fn goes_on(name: &str, parts: &HeadParts<'_>, listed: &[String]) -> bool {
    if parts.converted {
        return CONVERTED.contains(&name);
    }
    !NEVER.contains(&name)
        && !name.starts_with("x-tollgate-")
        && !listed.iter().any(|l| l == name)
        && !parts.credentials.iter().chain(parts.drop).any(|d| d == name)
}

/// Names that the client's `Connection` header declares to be for one hop only.
fn connection_listed(client: &HeaderMap) -> Vec<String> {
    let values = client.get_all(header::CONNECTION).into_iter().filter_map(|v| v.to_str().ok());
    values.flat_map(|v| v.split(',')).map(|n| n.trim().to_ascii_lowercase()).filter(|n| !n.is_empty()).collect()
}

fn credential(head: &mut RequestHeader, provider: &Provider) -> pingora::Result<()> {
    let key = provider.key.expose();
    if key.is_empty() {
        return Ok(());
    }
    let (name, text) = match provider.kind {
        ProviderType::Native => (HeaderName::from_static("x-api-key"), key.to_owned()),
        ProviderType::NativeAuth | ProviderType::Responses | ProviderType::Chat => {
            (header::AUTHORIZATION, format!("Bearer {key}"))
        }
        ProviderType::AltCli => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
    };
    let mut value = HeaderValue::from_str(&text)
        .map_err(|_| pingora::Error::explain(pingora::ErrorType::InvalidHTTPHeader, "the provider's key"))?;
    value.set_sensitive(true);
    head.insert_header(name, value)
}

/// `Host` for HTTP/1; scheme and authority in the target for HTTP/2.
fn address(head: &mut RequestHeader, parts: &HeadParts<'_>) -> pingora::Result<()> {
    if !parts.http2 {
        head.set_version(http::Version::HTTP_11);
        return head.insert_header(header::HOST, parts.endpoint.authority.as_str());
    }
    let scheme = if parts.endpoint.tls { "https" } else { "http" };
    let uri = http::Uri::builder()
        .scheme(scheme)
        .authority(parts.endpoint.authority.as_str())
        .path_and_query(parts.target)
        .build()
        .map_err(|_| pingora::Error::explain(pingora::ErrorType::InvalidHTTPHeader, "the upstream address"))?;
    head.set_uri(uri);
    head.set_version(http::Version::HTTP_2);
    Ok(())
}
