//! The opening handshake (RFC 6455, section 4.2). Extensions and subprotocols are declined.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use h2::ext::Protocol;
use http::header::{
    CONNECTION, CONTENT_LENGTH, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, Method, Version};
use pingora::Result;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::proxy::Session;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::domain::record::RequestOutcome;
use crate::proxy::connections::client_stream::ClientStream;
use crate::proxy::context::RequestContext;
use crate::proxy::reply::answer::{self, Answer};
use crate::proxy::reply::refusal::Refusal;
use crate::proxy::reply::refusal_reply::RefusalReply;

/// The path, without a slash at its end.
const PATH: &str = "/v1/responses";
/// The protocol's only version.
const VERSION: &str = "13";

/// Whether a request asks for a WebSocket that is served.
pub(in crate::proxy) fn is_asked_for(session: &Session, ctx: &RequestContext) -> bool {
    let head = session.req_header();
    let path = head.uri.path();
    let is_handshake = match head.version {
        Version::HTTP_11 => {
            head.method == Method::GET && has_option(&head.headers, &UPGRADE, "websocket")
        }
        _ => is_over_http2(head),
    };
    ctx.live.websockets.are_served && path.strip_suffix('/').unwrap_or(path) == PATH && is_handshake
}

/// Whether a request is the handshake of HTTP/2 (RFC 8441).
fn is_over_http2(head: &RequestHeader) -> bool {
    let protocol = head.extensions.get::<Protocol>();
    head.method == Method::CONNECT && protocol.is_some_and(|it| it.as_str() == "websocket")
}

fn has_option(headers: &HeaderMap, name: &HeaderName, option: &str) -> bool {
    let texts = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).any(|one| one.trim().eq_ignore_ascii_case(option))
}

/// Checks the request. Returns the answer to one of another version.
///
/// # Errors
/// When it is not a valid handshake.
pub(super) fn check(
    session: &Session,
    ctx: &RequestContext,
) -> std::result::Result<Option<Answer>, Refusal> {
    let headers = &session.req_header().headers;
    let is_over_http2 = is_over_http2(session.req_header());
    if !is_over_http2 && !has_option(headers, &CONNECTION, "upgrade") {
        return Err(Refusal::MalformedHead("the Connection header does not name the upgrade"));
    }
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != VERSION) {
        let reply = RefusalReply::new(426, "invalid_request_error", "the version is not 13")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", VERSION);
        return Ok(Some(Answer::refusal(ctx, reply, RequestOutcome::Refused)));
    }
    if is_over_http2 {
        // One connection has many; HTTP/1's are counted as connections.
        let open = ctx.gateway.node.metrics.connections.websockets.get();
        let most = i64::try_from(ctx.live.max_connections).unwrap_or(i64::MAX);
        let reply = RefusalReply::new(503, "overloaded_error", "too many WebSockets are open");
        return Ok((open >= most).then(|| {
            let reply = reply.retry_after(Some(5_000));
            Answer::refusal(ctx, reply, RequestOutcome::Refused)
        }));
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).and_then(|key| STANDARD.decode(key).ok());
    if key.is_none_or(|key| key.len() != 16) {
        return Err(Refusal::MalformedHead("the Sec-WebSocket-Key header is not 16 bytes"));
    }
    let body = headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0");
    let head = session.to_h1_raw().len();
    let early = ClientStream::of(session).is_some_and(|client| client.has_more_than(head));
    if body || early || headers.contains_key(TRANSFER_ENCODING) {
        return Err(Refusal::MalformedHead("frames must wait for the answer to the handshake"));
    }
    Ok(None)
}

/// Answers 101; over HTTP/2 200.
pub(super) async fn accept(session: &mut Session, ctx: &RequestContext) -> Result<()> {
    if is_over_http2(session.req_header()) {
        let mut head = ResponseHeader::build(200, Some(1))?.as_owned_parts();
        answer::own_headers(&mut head.headers, ctx)?;
        let written = session.write_response_header(Box::new(head.into()), false).await;
        return written.map_err(|e| e.into_down());
    }
    let key = session.req_header().headers.get(SEC_WEBSOCKET_KEY);
    let accept = derive_accept_key(key.map_or(&[][..], |key| key.as_bytes()));
    let mut head = ResponseHeader::build(101, Some(5))?;
    head.insert_header(UPGRADE, "websocket")?;
    head.insert_header(CONNECTION, "Upgrade")?;
    head.insert_header(SEC_WEBSOCKET_ACCEPT, accept)?;
    let mut head = head.as_owned_parts();
    answer::own_headers(&mut head.headers, ctx)?;
    session.write_response_header(Box::new(head.into()), false).await.map_err(|e| e.into_down())
}
