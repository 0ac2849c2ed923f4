//! The head of a request to a provider: the client's headers that are forwarded, and the credential
//! that is added.
//!
//! Headers go on by a list: those that the formats define and that real clients send, and those
//! that the operator adds. So no client chooses the account, the project, the address or the key of
//! a relay behind the provider, unless a record allows it (`domain::feature`). A client's
//! credentials never reach a provider, in whatever header, cookie or query parameter they came, and
//! whatever the operator adds; but one that takes the client's own credential gets that. Nor does a header that would change the form of the reply, or the
//! meaning of the request, without the gateway's knowledge: a reply without readable usage would
//! cost nothing.
//!
//! See docs/decisions/14-heads-in-http-maps.md.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request;
use pingora::http::RequestHeader;

use super::endpoint::Endpoint;
use crate::domain::cloud::ClaudeCloud;
use crate::domain::network;
use crate::domain::provider::Provider;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const NATIVE_BETA: HeaderName = HeaderName::from_static("anthropic-beta");
/// The native format's version header, with the version of converted requests.
const NATIVE_VERSION: (HeaderName, HeaderValue) =
    (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));

/// Whether a header is forwarded to a provider of the client's own format. `name`: lower-case.
fn is_on_the_list(name: &str) -> bool {
    const STARTS: [&str; 4] = ["x-stainless-", "x-codex-", "x-claude-code-", "x-session-"];
    let known = matches!(
        name,
        "accept"
            | "accept-language"
            | "anthropic-beta"
            | "anthropic-dangerous-direct-browser-access"
            // Refused unless they are allowed: `policy::features`.
            | "anthropic-user-profile-id"
            | "anthropic-version"
            | "anthropic-workspace-id"
            | "conversation-id"
            | "conversation_id"
            | "idempotency-key"
            | "openai-beta"
            | "originator"
            | "session-id"
            | "session_id"
            | "thread-id"
            | "thread_id"
            | "traceparent"
            | "tracestate"
            | "user-agent"
            | "version"
            | "x-anthropic-additional-protection"
            | "x-app"
            | "x-client-request-id"
            | "x-goog-api-client"
            | "x-openai-subagent"
            | "x-server-timeout"
    );
    known || name.starts_with("x-") && STARTS.iter().any(|start| name.starts_with(start))
}

/// Whether a header is never forwarded, because it belongs to one connection or one body, names the
/// client's path to the gateway, or holds a credential.
fn is_of_this_hop(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
            | "expect"
            | "host"
            | "content-length"
            | "content-encoding"
            | "accept-encoding"
            | "authorization"
            | "x-api-key"
            | "cookie"
            | "forwarded"
            | "x-forwarded-for"
            | "x-forwarded-host"
            | "x-forwarded-proto"
            | "x-forwarded-port"
            | "x-real-ip"
            | "true-client-ip"
            | "cf-connecting-ip"
            | "via"
            | "x-client-ip"
            | "x-alt-api-key"
            | "x-goog-api-key"
            | "api-key"
            | "http2-settings"
    )
}

/// Whether a header is never forwarded because it changes the reply (a field mask, a range, another
/// encoding, a receipt in place of the reply) or the request (another method or path).
fn reshapes(name: &str) -> bool {
    matches!(
        name,
        "x-goog-fieldmask"
            | "x-goog-encode-response-if-executable"
            | "x-http-method"
            | "x-http-method-override"
            | "x-method-override"
            | "x-original-url"
            | "x-original-uri"
            | "x-rewrite-url"
            | "prefer"
            | "range"
            | "if-range"
            | "if-match"
            | "if-none-match"
            | "if-modified-since"
            | "if-unmodified-since"
            | "accept-charset"
    )
}

/// Whether an operator may add a header of this name (in lower case) to the requests to a provider:
/// one that the gateway sets, that belongs to the connection or that has a credential may not be.
pub fn may_be_added(name: &str) -> bool {
    let is_set = matches!(
        name,
        "accept"
            | "anthropic-beta"
            | "anthropic-version"
            | "content-type"
            | "traceparent"
            | "tracestate"
    );
    !is_set && !in_any_spelling(name, is_never_forwarded)
}

/// The forms of a reply that usage can be read from, and those that leave the choice to the
/// provider.
const READABLE: [&str; 5] =
    ["application/json", "text/event-stream", "application/*", "text/*", "*/*"];

/// Headers of a request in another format that are still meaningful for the provider.
const CONVERTED: [&str; 2] = ["user-agent", "accept-language"];

/// Bytes of a client's user agent that are forwarded; the rest is cut off.
const USER_AGENT_MAX: usize = 1024;
/// Bytes of a client's headers that are forwarded, names and values together. Servers refuse heads
/// above 8 to 16 KiB, and the provider is not to blame for that.
const CLIENT_MAX: usize = 8 * 1024;

/// The parts of the head.
pub struct HeadParts<'a> {
    /// All headers of the client; [`build`] decides which of them are forwarded.
    pub client: &'a HeaderMap,
    /// Has the credential, and whether the client's address is forwarded.
    pub provider: &'a Provider,
    /// The access token, as the value of its header, if the credential is exchanged for one.
    pub token: Option<&'a HeaderValue>,
    /// The client's own credential, in the header that it came in, if the provider takes it.
    pub own: Option<(&'a HeaderName, &'a HeaderValue)>,
    /// Has the authority, and whether TLS is used.
    pub endpoint: &'a Endpoint,
    /// Path and query.
    pub target: &'a str,
    /// Length of the body in bytes; `None` = there is no body.
    pub body_len: Option<usize>,
    /// The content type of a body that is a form; `None` = it is JSON.
    pub form: Option<&'a str>,
    /// The body was converted: the client's format headers do not apply.
    pub converted: bool,
    /// What a converted body needs in the native format's beta header.
    pub betas: &'a [&'static str],
    /// Betas of the client that are left out.
    pub without_betas: &'a [&'a str],
    /// Whether the connection to the provider speaks HTTP/2.
    pub http2: bool,
    /// The client's address, for `X-Forwarded-For`; `None` if it is not known.
    pub client_ip: Option<std::net::IpAddr>,
    /// Further headers that carry the client's key.
    pub credentials: &'a [HeaderName],
    /// Further names that the operator passes on, in lower case.
    pub pass: &'a [String],
    /// Further names that the operator drops, in lower case.
    pub drop: &'a [String],
}

/// Builds the head of an upstream request.
///
/// The headers are put into the map itself: Pingora's `insert_header` parses each name again, which
/// took 3 700 instructions for a usual request.
pub fn build(method: http::Method, parts: &HeadParts<'_>) -> pingora::Result<RequestHeader> {
    let head = RequestHeader::build_no_case(method, parts.target.as_bytes(), Some(0))?;
    let mut head = request::Parts::from(head);
    // About as many are removed as are added; Pingora keeps the head for the complete stream.
    let places = if parts.converted { 6 } else { parts.client.len() };
    let mut headers = HeaderMap::with_capacity(places);
    let listed = connection_listed(parts.client);
    for (name, value) in parts.client {
        if goes_on(name.as_str(), parts, &listed) && (name != header::ACCEPT || is_readable(value))
        {
            let appended = headers.try_append(name.clone(), value.clone());
            appended.map_err(|_| invalid("the client's headers"))?;
        }
    }
    bound(&mut headers);
    if !parts.without_betas.is_empty() {
        leave_betas_out(&mut headers, parts.without_betas);
    }
    if let Some(len) = parts.body_len {
        let len = HeaderValue::from_str(itoa::Buffer::new().format(len));
        headers.insert(header::CONTENT_LENGTH, len.map_err(|_| invalid("the length"))?);
        // Of whatever type the client says that it is: the gateway has read it as JSON.
        let json = HeaderValue::from_static("application/json");
        let form = parts.form.and_then(|form| HeaderValue::from_str(form).ok());
        headers.insert(header::CONTENT_TYPE, form.unwrap_or(json));
    }
    for (name, value) in &parts.provider.custom_headers {
        headers.insert(name, value.clone());
    }
    credential(&mut headers, parts)?;
    if parts.provider.kind.format() == crate::domain::format::WireFormat::Native
        && !headers.contains_key(&NATIVE_VERSION.0)
    {
        headers.insert(NATIVE_VERSION.0, NATIVE_VERSION.1);
    }
    if !parts.betas.is_empty() {
        let betas = HeaderValue::from_str(&parts.betas.join(","));
        headers.append(NATIVE_BETA, betas.map_err(|_| invalid("the betas"))?);
    }
    if let (true, Some(ip)) = (parts.provider.preserve_client_ip, parts.client_ip) {
        let ip = HeaderValue::from_str(&network::text(ip));
        headers.insert(X_FORWARDED_FOR, ip.map_err(|_| invalid("the client's address"))?);
    }
    address(&mut head, &mut headers, parts)?;
    head.headers = headers;
    Ok(head.into())
}

/// Takes out of a head what a cloud has in the body.
pub fn of_cloud(head: &mut RequestHeader, cloud: ClaudeCloud) {
    if cloud == ClaudeCloud::None {
        return;
    }
    head.remove_header(&NATIVE_VERSION.0);
    if cloud != ClaudeCloud::Vertex {
        head.remove_header(&NATIVE_BETA);
        head.remove_header("anthropic-user-profile-id");
        // What Bedrock makes of the type that a client asks for is not the client's concern.
        head.remove_header(&header::ACCEPT);
    }
}

/// Bounds the client's headers: cuts a long user agent, and leaves out the longest headers while
/// all together are too long.
fn bound(headers: &mut HeaderMap) {
    if let Some(agent) = headers.get_mut(header::USER_AGENT)
        && let Some(start) = agent.as_bytes().get(..USER_AGENT_MAX)
        && let Ok(start) = HeaderValue::from_bytes(start)
    {
        *agent = start;
    }
    let length = |(name, value): &(&HeaderName, &HeaderValue)| name.as_str().len() + value.len();
    while headers.iter().map(|one| length(&one)).sum::<usize>() > CLIENT_MAX {
        let longest = headers.iter().max_by_key(length).map(|(name, _)| name.clone());
        longest.map(|name| headers.remove(name));
    }
}

/// Leaves betas out of the client's header.
fn leave_betas_out(headers: &mut HeaderMap, without: &[&str]) {
    let values = headers.get_all(NATIVE_BETA).into_iter().filter_map(|value| value.to_str().ok());
    let left: Vec<&str> = values
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|beta| !beta.is_empty() && !without.contains(beta))
        .collect();
    let left = HeaderValue::from_str(&left.join(",")).ok().filter(|left| !left.is_empty());
    headers.remove(NATIVE_BETA);
    left.map(|left| headers.insert(NATIVE_BETA, left));
}

fn invalid(what: &'static str) -> Box<pingora::Error> {
    pingora::Error::explain(pingora::ErrorType::InvalidHTTPHeader, what)
}

fn goes_on(name: &str, parts: &HeadParts<'_>, listed: &[String]) -> bool {
    let is_meant = if parts.converted { CONVERTED.contains(&name) } else { is_on_the_list(name) };
    (is_meant || parts.pass.iter().any(|passed| passed == name))
        && !in_any_spelling(name, |name| {
            is_never_forwarded(name)
                || parts.credentials.iter().any(|one| one == name)
                || listed.iter().chain(parts.drop).any(|one| one == name)
        })
}

/// Some servers treat an underscore as a hyphen.
fn in_any_spelling(name: &str, is_one: impl Fn(&str) -> bool) -> bool {
    is_one(name) || (name.contains('_') && is_one(&name.replace('_', "-")))
}

fn is_never_forwarded(name: &str) -> bool {
    is_of_this_hop(name)
        || reshapes(name)
        || name.starts_with("x-goog-upload-")
        || name.starts_with("x-tollgate-")
}

/// Whether an `Accept` header allows only readable forms.
fn is_readable(accept: &HeaderValue) -> bool {
    let form =
        |range: &str| range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    accept
        .to_str()
        .is_ok_and(|list| list.split(',').all(|range| READABLE.contains(&form(range).as_str())))
}

/// Names that the client's `Connection` header declares as hop-by-hop.
fn connection_listed(client: &HeaderMap) -> Vec<String> {
    let values = client.get_all(header::CONNECTION).into_iter().filter_map(|v| v.to_str().ok());
    values
        .flat_map(|v| v.split(','))
        .map(|n| n.trim().to_ascii_lowercase())
        .filter(|n| !n.is_empty())
        .collect()
}

fn credential(headers: &mut HeaderMap, parts: &HeadParts<'_>) -> pingora::Result<()> {
    let (provider, auth) = (parts.provider, parts.provider.auth);
    let Some((name, before)) = auth.header(provider.kind) else {
        if let Some((name, value)) = parts.own.filter(|_| auth.is_clients()) {
            headers.insert(name, value.clone());
        }
        return Ok(());
    };
    let mut value = match (parts.token, provider.key.expose()) {
        (Some(token), _) => token.clone(),
        (None, "") => return Ok(()),
        (None, _) if auth.is_exchanged() => return Err(invalid("no access token")),
        (None, key) if before.is_empty() => key_value(HeaderValue::from_str(key))?,
        (None, key) => key_value(HeaderValue::from_str(&format!("{before}{key}")))?,
    };
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

fn key_value<E>(value: Result<HeaderValue, E>) -> pingora::Result<HeaderValue> {
    value.map_err(|_| invalid("the provider's key"))
}

/// `Host` for HTTP/1; scheme and authority in the target for HTTP/2.
fn address(
    head: &mut request::Parts,
    headers: &mut HeaderMap,
    parts: &HeadParts<'_>,
) -> pingora::Result<()> {
    let authority = parts.endpoint.authority.as_str();
    if !parts.http2 {
        head.version = http::Version::HTTP_11;
        headers.insert(header::HOST, parts.endpoint.host_header.clone());
        return Ok(());
    }
    let scheme = if parts.endpoint.tls { "https" } else { "http" };
    let uri = http::Uri::builder().scheme(scheme).authority(authority);
    let uri = uri.path_and_query(parts.target).build();
    head.uri = uri.map_err(|_| invalid("the upstream address"))?;
    head.version = http::Version::HTTP_2;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{
        HeaderMap, HeaderValue, bound, in_any_spelling, is_never_forwarded, is_on_the_list,
        is_readable,
    };

    #[test]
    fn no_header_that_is_never_forwarded_is_on_the_list() {
        for name in ["x-api-key", "cookie", "authorization", "range", "x-forwarded-for", "host"] {
            assert!(is_never_forwarded(name) && !is_on_the_list(name), "{name}");
        }
    }

    #[test]
    fn headers_that_are_never_forwarded_are_known_in_any_spelling() {
        let is_known = |name| in_any_spelling(name, is_never_forwarded);
        for name in [
            "x-goog-fieldmask",
            "x_goog_fieldmask",
            "x-goog_fieldmask",
            "range",
            "prefer",
            "x-goog-upload-protocol",
            "x_api_key",
            "transfer_encoding",
            "x_forwarded-for",
            "x_tollgate_request_id",
        ] {
            assert!(is_known(name), "{name}");
        }
        for name in ["accept", "x-goog-api-client", "anthropic-beta", "user-agent", "x_app"] {
            assert!(!is_known(name), "{name}");
        }
    }

    #[test]
    fn long_headers_are_cut_or_left_out() {
        let mut headers = HeaderMap::new();
        let text = |len| HeaderValue::from_bytes(&vec![b'a'; len]).unwrap();
        headers.insert("user-agent", text(12_000));
        headers.insert("x-small", text(10));
        headers.insert("x-large", text(5_000));
        headers.append("x-largest", text(5_500));
        headers.append("x-largest", text(1));
        bound(&mut headers);
        let left: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_str(), value.len())).collect();
        assert_eq!(left, [("user-agent", 1024), ("x-small", 10), ("x-large", 5_000)]);
    }

    #[test]
    fn only_readable_forms_may_be_asked_for() {
        for (accept, readable) in [
            ("application/json", true),
            ("text/event-stream", true),
            ("application/json, text/event-stream;q=0.9, */*", true),
            ("application/x-protobuf", false),
            ("application/json, application/x-protobuf", false),
            ("", false),
        ] {
            assert_eq!(is_readable(&HeaderValue::from_static(accept)), readable, "{accept}");
        }
    }
}
