//! The first stage: the head of a request, with its route, its client's address and its framing.

use std::sync::Arc;

use h2::ext::Protocol;
use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE, USER_AGENT};
use http::{HeaderName, Method};
use pingora::proxy::Session;

use super::upload;
use crate::domain::format::WireFormat;
use crate::formats::client_address::client_address;
use crate::formats::framing::has_field;
use crate::formats::query;
use crate::formats::route::{self, Operation, Route};
use crate::proxy::context::{HeadFacts, RequestContext};
use crate::proxy::reply::refusal::Refusal;

/// Every request of the native format has it.
const NATIVE_VERSION: HeaderName = HeaderName::from_static("anthropic-version");
/// Longest path that is recorded as it is, in bytes. A longer one has a long model's name within
/// it.
const MAX_ENDPOINT: usize = 512;
/// What is recorded of a longer one: its start, and its end, which names the operation.
const ENDPOINT_START: usize = 440;
const ENDPOINT_END: usize = 40;
/// Longest part of a `User-Agent` that is recorded.
const MAX_USER_AGENT: usize = 256;

/// Refuses a head that another server could read differently, and notes the facts of any other.
///
/// # Errors
/// When the head has a length and a transfer encoding, no host, or asks for a tunnel.
pub(in crate::proxy) fn open(session: &Session, ctx: &mut RequestContext) -> Result<(), Refusal> {
    framing(session)?;
    note(session, ctx);
    Ok(())
}

/// Finds the format and the operation.
///
/// # Errors
/// When nothing is served at this path or by this method, or the head is invalid.
pub(in crate::proxy) fn route(
    session: &Session,
    ctx: &mut RequestContext,
) -> Result<Route, Refusal> {
    let head = session.req_header();
    let path = head.uri.path();
    let upgrade = head.headers.contains_key(UPGRADE) || head.method == Method::CONNECT;
    if let Err(bad) = route::check_path(&head.method, path) {
        ctx.format = WireFormat::AltCli;
        return Err(bad.into());
    }
    let Some(mut route) = route::match_path(&head.method, path) else {
        let allow = route::methods(path);
        // The last method is the most specific: of a path with several, `POST` is that of a reply.
        let method = allow.and_then(|allow| allow.rsplit(", ").next()?.parse().ok());
        let would_be = method.and_then(|method| route::match_path(&method, path));
        let near = would_be.map(|route| route.format).or_else(|| route::format_near(path));
        ctx.format = near.unwrap_or(ctx.format);
        let allow = allow.ok_or(Refusal::UnknownRoute)?;
        return Err(if upgrade {
            Refusal::UpgradeUnsupported
        } else {
            Refusal::WrongMethod { allow }
        });
    };
    if head.headers.contains_key(&NATIVE_VERSION) {
        route = route.for_native();
    }
    ctx.format = route.format;
    match &route.operation {
        // Its own query is that of the call.
        Operation::Stored(call) if call.rest == route::DOWNLOAD => return Ok(route),
        Operation::Endpoint(endpoint) if endpoint.is_upload() => {
            if let Some(call) = upload::continued(ctx, head.uri.query())? {
                route.operation = Operation::Upload(Box::new(call));
            }
        }
        _ => {}
    }
    ctx.head.query = query::upstream(route.format, head.uri.query())?;
    Ok(route)
}

/// Notes the facts of a head that are recorded.
fn note(session: &Session, ctx: &mut RequestContext) {
    let head = session.req_header();
    ctx.head = HeadFacts {
        endpoint: endpoint(head.uri.path()),
        query: None,
        user_agent: head.headers.get(USER_AGENT).map(|v| {
            let text = String::from_utf8_lossy(v.as_bytes());
            // Characters are counted only where there may be too many.
            if text.len() <= MAX_USER_AGENT {
                return text.into();
            }
            let end = text.char_indices().nth(MAX_USER_AGENT).map_or(text.len(), |(end, _)| end);
            text[..end].into()
        }),
        client_ip: session
            .client_addr()
            .and_then(|a| a.as_inet())
            .map(|peer| client_address(peer.ip(), &head.headers, &ctx.live.trusted_proxies)),
    };
}

/// A path as it is recorded.
fn endpoint(path: &str) -> Arc<str> {
    if path.len() <= MAX_ENDPOINT {
        return path.into();
    }
    let start = path.get(..path.floor_char_boundary(ENDPOINT_START)).unwrap_or_default();
    let end = path.get(path.ceil_char_boundary(path.len() - ENDPOINT_END)..).unwrap_or_default();
    format!("{start}…{end}").into()
}

/// Refuses heads that another server on the path could read differently.
fn framing(session: &Session) -> Result<(), Refusal> {
    let head = session.req_header();
    if head.method == Method::CONNECT && head.extensions.get::<Protocol>().is_none() {
        let allow = route::methods(head.uri.path()).unwrap_or("GET, POST");
        return Err(Refusal::WrongMethod { allow });
    }
    if head.version > http::Version::HTTP_11 {
        return Ok(());
    }
    // Pingora drops `Content-Length` if both are present, so the raw head is checked.
    if head.headers.contains_key(TRANSFER_ENCODING)
        && has_field(&session.to_h1_raw(), CONTENT_LENGTH.as_str())
    {
        return Err(Refusal::MalformedHead(
            "a body has either a length or a transfer encoding, not both",
        ));
    }
    let mut codings = head.headers.get_all(TRANSFER_ENCODING).iter();
    if !codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked")) {
        return Err(Refusal::TransferCoding);
    }
    if head.version == http::Version::HTTP_11 && !head.headers.contains_key(HOST) {
        return Err(Refusal::MalformedHead("the Host header is missing"));
    }
    Ok(())
}
