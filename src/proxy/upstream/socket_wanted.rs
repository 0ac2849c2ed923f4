//! Whether a request goes over its session's WebSocket to the provider, and the handshake of one.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderName, HeaderValue, Method, Request};
use pingora::http::RequestHeader;
use pingora::proxy::Session;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;

use super::head;
use super::running::Running;
use crate::domain::format::WireFormat;
use crate::domain::provider_auth::ProviderAuth;
use crate::formats::route::Operation;
use crate::upstream::sockets::{SocketKey, WantedSocket};

/// Of one request, not of a connection.
const OF_ONE: [HeaderName; 4] = [
    HeaderName::from_static("accept"),
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];
const BETA: (HeaderName, HeaderValue) = (
    HeaderName::from_static("openai-beta"),
    HeaderValue::from_static("responses_websockets=2026-02-06"),
);

/// The socket of a streamed request in a session that more than one request can have. `None`: the
/// request goes over HTTP, as does one that failed over a socket.
pub(in crate::proxy) fn of(session: &Session, running: Running<'_>) -> Option<WantedSocket> {
    let Running { request, forwarding, attempt } = running;
    let (inbound, provider) = (&forwarding.inbound, Arc::clone(&attempt.provider));
    let is_streamed = inbound.stream && forwarding.route.operation == Operation::Generate;
    let name = inbound.session.as_str();
    // `policy::session` names a request without a session by its own id or the reply that it
    // continues, which change with each, or by its first messages, which it may share with nobody.
    let is_alone = name.starts_with("r-")
        || name.starts_with("m-")
        || inbound.peek.previous_response_id.as_deref() == Some(name);
    let has_format = provider.kind.format() == WireFormat::Responses;
    // A signature is made for one request.
    let is_signed = provider.auth == ProviderAuth::AwsSigv4;
    if attempt.fresh || !is_streamed || is_alone || !has_format || is_signed {
        return None;
    }
    let key = forwarding.identified.caller.key_id()?;
    let session_id = inbound.session.clone();
    let lifetime = Duration::from_millis(request.live.websockets.lifetime_ms);
    let (handshake, credential) = handshake(session, Running { request, forwarding, attempt })?;
    let owner = SocketKey {
        provider: (provider.id, provider.updated_at),
        credential,
        key,
        session: session_id,
    };
    Some(WantedSocket { owner, provider, handshake, lifetime })
}

/// Whether a header says whose request it is: who asks, or whose account pays.
fn is_of_account(name: &HeaderName) -> bool {
    name.as_str() == "x-forwarded-for" || name.as_str().starts_with("openai-")
}

/// The request for the upgrade, and a hash of its credentials and what belongs to them.
fn handshake(session: &Session, running: Running<'_>) -> Option<(Request<()>, u64)> {
    let (mut blank, ()) = Request::new(()).into_parts();
    blank.version = http::Version::HTTP_11;
    let mut head = RequestHeader::from(blank);
    let query = running.attempt.rendered.query.clone();
    let authority = running.attempt.link.as_ref()?.endpoint().authority.clone();
    head::of_method(session, &mut head, running, Method::GET, query.as_deref()).ok()?;
    let mut head = head.as_owned_parts();
    let (target, headers) = (head.uri.path_and_query()?, &mut head.headers);
    head.uri = format!("ws://{authority}{target}").parse().ok()?;
    let mut credential = DefaultHasher::new();
    headers
        .iter()
        .filter(|(name, value)| value.is_sensitive() || is_of_account(name))
        .for_each(|(name, value)| (name.as_str(), value.as_bytes()).hash(&mut credential));
    OF_ONE.iter().for_each(|name| drop(headers.remove(name)));
    headers.append(BETA.0, BETA.1);
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    headers.insert(SEC_WEBSOCKET_KEY, HeaderValue::try_from(generate_key()).ok()?);
    Some((Request::from_parts(head, ()), credential.finish()))
}
