//! The client's head of a relayed reply: the provider's, without the headers that are not
//! forwarded.

use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING,
};
use pingora::http::ResponseHeader;
use pingora::proxy::Session;

use super::provider_headers;
use crate::domain::format::WireFormat;
use crate::proxy::context::RequestContext;
use crate::proxy::upstream::incoming::Relay;

/// Header names that are not forwarded: they belong to one connection, or to the provider's own
/// account.
const NEVER: [&str; 12] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
    "transfer-encoding",
    "set-cookie",
    "alt-svc",
    "strict-transport-security",
    "content-encoding",
];

/// Builds the client's head from the provider's.
///
/// # Errors
/// Pingora's, when a value is not valid in a head.
pub(in crate::proxy) fn build(
    session: &Session,
    ctx: &RequestContext,
    relay: &Relay,
    from: &ResponseHeader,
) -> pingora::Result<ResponseHeader> {
    // Capacity of a usual head: Pingora keeps the map as long as the stream. It grows on demand.
    let places = if relay.converted { 5 } else { from.headers.len() + 2 };
    let mut head = ResponseHeader::build_no_case(from.status, Some(places))?;
    let hides = !ctx.live.pass_provider_headers;
    let dropped = |name: &str| {
        NEVER.contains(&name)
            || hides && provider_headers::is_of_account(name)
            || ctx.live.forward_headers.drop_response.iter().any(|d| d == name)
    };
    if relay.converted {
        let json_array = ctx.format == WireFormat::AltCli && !ctx.asked_for_events();
        let events = relay.streamed && !json_array;
        head.insert_header(
            CONTENT_TYPE,
            if events { "text/event-stream" } else { "application/json" },
        )?;
        head.insert_header(CACHE_CONTROL, "no-cache")?;
    } else {
        for (name, value) in &from.headers {
            if !dropped(name.as_str()) && name != CONTENT_LENGTH {
                head.append_header(name.clone(), value.clone())?;
            }
        }
    }
    let untouched =
        !from.headers.contains_key(CONTENT_ENCODING) && !relay.converted && !relay.streamed;
    match (relay.length, from.headers.get(CONTENT_LENGTH)) {
        (Some(length), _) => head.insert_header(CONTENT_LENGTH, length)?,
        (None, Some(length)) if untouched => head.insert_header(CONTENT_LENGTH, length.clone())?,
        _ => unknown_length(session, &mut head)?,
    }
    Ok(head)
}

/// Chunked for HTTP/1.1; nothing for HTTP/2; an HTTP/1.0 client reads until the connection closes.
fn unknown_length(session: &Session, head: &mut ResponseHeader) -> pingora::Result<()> {
    match session.req_header().version {
        http::Version::HTTP_11 => head.insert_header(TRANSFER_ENCODING, "chunked"),
        http::Version::HTTP_2 => Ok(()),
        _ => head.insert_header(CONNECTION, "close"),
    }
}
