//! The client's head of a relayed reply: the gateway's content type, and the provider's headers that
//! go on ([`provider_headers`]).

use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderValue, response};
use pingora::http::ResponseHeader;
use pingora::proxy::Session;
use pingora::{Error, ErrorType};

use super::{answer, provider_headers};
use crate::domain::format::WireFormat;
use crate::proxy::context::RequestContext;
use crate::proxy::upstream::relay::Relay;

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
    relay: &Relay,
    from: &ResponseHeader,
) -> pingora::Result<response::Parts> {
    let mut head = response::Parts::from(ResponseHeader::build_no_case(from.status, Some(0))?);
    // Capacity of a usual head: Pingora keeps the map as long as the stream. It grows on demand.
    let own = answer::OWN_HEADERS;
    let places = if relay.converted { 3 } else { from.headers.len().min(8) };
    let mut headers = HeaderMap::with_capacity(places + own);
    let rules = &ctx.live.forward_headers;
    let shows = ctx.live.pass_provider_headers;
    let goes_on = |name: &str| {
        let is_meant = provider_headers::is_of_reply(name)
            || shows && provider_headers::is_of_account(name)
            || rules.pass_response.iter().any(|passed| passed == name)
                && !provider_headers::is_never_forwarded(name);
        is_meant
            && !is_of_this_hop(&from.headers, name)
            && !rules.drop_response.iter().any(|dropped| dropped == name)
    };
    let json_array = ctx.format == WireFormat::AltCli && !ctx.asked_for_events();
    let events = relay.streamed && !(relay.converted && json_array);
    let content_type = if events { "text/event-stream" } else { "application/json" };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if !relay.converted {
        for (name, value) in &from.headers {
            if goes_on(name.as_str()) {
                headers.try_append(name.clone(), value.clone()).map_err(|_| too_many())?;
            }
        }
    }
    let untouched =
        !from.headers.contains_key(CONTENT_ENCODING) && !relay.is_changed() && !relay.streamed;
    let (name, value) = match (relay.length, from.headers.get(CONTENT_LENGTH)) {
        (Some(length), _) => (CONTENT_LENGTH, length.into()),
        (None, Some(length)) if untouched => (CONTENT_LENGTH, length.clone()),
        // Chunked for HTTP/1.1; nothing for HTTP/2; an HTTP/1.0 client reads until the connection
        // closes.
        _ => match session.req_header().version {
            http::Version::HTTP_11 => (TRANSFER_ENCODING, HeaderValue::from_static("chunked")),
            http::Version::HTTP_2 => {
                head.headers = headers;
                return Ok(head);
            }
            _ => (CONNECTION, HeaderValue::from_static("close")),
        },
    };
    headers.insert(name, value);
    head.headers = headers;
    Ok(head)
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
