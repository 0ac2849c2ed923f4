//! The client's head of a forwarded reply: the gateway's content type, and the provider's headers
//! that go on ([`provider_headers`]).

use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderName, HeaderValue, response};
use pingora::http::ResponseHeader;
use pingora::proxy::Session;
use pingora::{Error, ErrorType};

use super::limit_headers::{number, value};
use super::{answer, provider_headers};
use crate::config::ProviderHeaders;
use crate::proxy::context::RequestContext;

/// The model that answers, where the client's name stands for several.
const MODEL: HeaderName = HeaderName::from_static("x-tollgate-model");
/// It is one of the cheaper ones.
const DEGRADED: HeaderName = HeaderName::from_static("x-tollgate-degraded");

/// What of a forwarded reply decides about its head.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::proxy) struct ReplyFacts {
    /// The reply is a stream of events.
    pub streamed: bool,
    /// The provider's format is not the client's.
    pub converted: bool,
    /// It is neither events nor JSON, but of the type that the provider names.
    pub is_opaque: bool,
    /// It answers a call of an upload, whose state is in headers.
    pub is_upload: bool,
    /// The client gets other bytes than the provider sent.
    pub changed: bool,
    /// The length of the client's body, if all of it has arrived.
    pub length: Option<usize>,
}

/// Whether the provider's `Connection` header names this one.
fn is_of_this_hop(headers: &HeaderMap, name: &str) -> bool {
    let values = headers.get_all(CONNECTION).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|listed| listed.trim().eq_ignore_ascii_case(name))
}

/// Builds the client's head from the provider's, without the headers that every reply carries.
///
/// The headers are put into the map itself: Pingora's `insert_header` parses each name again.
///
/// # Errors
/// Pingora's, when the head would have too many headers.
pub(in crate::proxy) fn build(
    session: &Session,
    ctx: &RequestContext,
    forwarded: ReplyFacts,
    from: &ResponseHeader,
) -> pingora::Result<response::Parts> {
    let mut head = response::Parts::from(ResponseHeader::build_no_case(from.status, Some(0))?);
    // Capacity of a usual head: Pingora keeps the map as long as the stream. It grows on demand.
    let own = answer::OWN_HEADERS;
    let places = if forwarded.converted { 3 } else { from.headers.len().min(8) };
    let mut headers = HeaderMap::with_capacity(places + own);
    let passes = ctx.live.provider_headers == ProviderHeaders::Pass;
    let shows = passes || ctx.is_of_clients_account();
    of_gateway(&mut headers, forwarded.streamed && !(forwarded.converted && ctx.reads_array()));
    if let Some(own) = from.headers.get(CONTENT_TYPE).filter(|_| forwarded.is_opaque) {
        headers.insert(CONTENT_TYPE, own.clone());
    }
    if !forwarded.converted {
        for (name, value) in &from.headers {
            let is_of_upload = forwarded.is_upload && provider_headers::is_of_upload(name.as_str());
            if is_of_upload || goes_on(ctx, &from.headers, name.as_str(), shows) {
                headers.try_append(name.clone(), value.clone()).map_err(|_| too_many())?;
            }
        }
    }
    let untouched =
        !from.headers.contains_key(CONTENT_ENCODING) && !forwarded.changed && !forwarded.streamed;
    match (forwarded.length, from.headers.get(CONTENT_LENGTH)) {
        (Some(length), _) => drop(headers.insert(CONTENT_LENGTH, number(length as u64)?)),
        (None, Some(length)) if untouched => drop(headers.insert(CONTENT_LENGTH, length.clone())),
        _ => of_unknown_length(&mut headers, session),
    }
    stood_for(&mut headers, ctx)?;
    head.headers = headers;
    Ok(head)
}

/// Says which model answers, if the client's name stands for several.
fn stood_for(headers: &mut HeaderMap, ctx: &RequestContext) -> pingora::Result<()> {
    let body = ctx.record.as_ref().and_then(|record| record.body.as_ref());
    let Some((body, is_degraded)) = body.and_then(|body| Some((body, body.is_degraded?))) else {
        return Ok(());
    };
    headers.insert(MODEL, value(&body.model)?);
    if is_degraded {
        headers.insert(DEGRADED, HeaderValue::from_static("true"));
    }
    Ok(())
}

/// Whether a header of the provider's goes on. `shows`: one of its account does.
fn goes_on(ctx: &RequestContext, from: &HeaderMap, name: &str, shows: bool) -> bool {
    let rules = &ctx.live.forward_headers;
    let is_meant = provider_headers::is_of_reply(name)
        || shows && provider_headers::is_of_account(name)
        || rules.pass_response.iter().any(|passed| passed == name)
            && !provider_headers::is_never_forwarded(name);
    is_meant
        && !is_of_this_hop(from, name)
        && !rules.drop_response.iter().any(|dropped| dropped == name)
}

/// What of the head of an error goes on: of a client's own account, what describes it.
pub(in crate::proxy) fn of_error(ctx: &RequestContext, from: &HeaderMap) -> HeaderMap {
    let passed = from.iter().filter(|(name, _)| goes_on(ctx, from, name.as_str(), true));
    passed.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The head that brings the first sign of life to a client that waits for a stream: nothing of a
/// provider, because another one may still answer.
pub(in crate::proxy) fn of_waiting(
    session: &Session,
    ctx: &RequestContext,
) -> pingora::Result<ResponseHeader> {
    let mut head = response::Parts::from(ResponseHeader::build_no_case(200, Some(0))?);
    of_gateway(&mut head.headers, !ctx.reads_array());
    let body = ctx.record.as_ref().and_then(|record| record.body.as_ref());
    if body.is_some_and(|body| body.is_degraded == Some(true)) {
        head.headers.insert(DEGRADED, HeaderValue::from_static("true"));
    }
    of_unknown_length(&mut head.headers, session);
    Ok(head.into())
}

/// The headers of a reply that the gateway writes itself.
fn of_gateway(headers: &mut HeaderMap, events: bool) {
    let content_type = if events { "text/event-stream" } else { "application/json" };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
}

/// Chunked for HTTP/1.1; nothing for HTTP/2; an HTTP/1.0 client reads until the connection closes.
fn of_unknown_length(headers: &mut HeaderMap, session: &Session) {
    let (name, value) = match session.req_header().version {
        http::Version::HTTP_11 => (TRANSFER_ENCODING, "chunked"),
        http::Version::HTTP_2 => return,
        _ => (CONNECTION, "close"),
    };
    headers.insert(name, HeaderValue::from_static(value));
}

fn too_many() -> Box<Error> {
    Error::explain(ErrorType::InvalidHTTPHeader, "the provider's reply has too many headers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_connection_header_names_belongs_to_one_hop() {
        let mut headers = HeaderMap::new();
        headers.append(CONNECTION, HeaderValue::from_static("keep-alive, X-Internal"));
        headers.append(CONNECTION, HeaderValue::from_static("x-other"));
        for (name, expected) in
            [("x-internal", true), ("x-other", true), ("x-inter", false), ("content-type", false)]
        {
            assert_eq!(is_of_this_hop(&headers, name), expected, "{name}");
        }
        assert!(!is_of_this_hop(&HeaderMap::new(), "x-internal"));
    }
}
