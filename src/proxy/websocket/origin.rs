//! The requests inside the process: with the head of the handshake, and the client's address.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT,
    HOST, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body_util::Full;
use pingora::http::RequestHeader;
use pingora::proxy::Session;
use tokio::io::DuplexStream;

use crate::domain::ids::RequestId;
use crate::http_client::in_process::{AsKey, Purpose};
use crate::proxy::context::RequestContext;
use crate::proxy::gateway::Gateway;

/// Headers of the handshake alone.
const OF_HANDSHAKE: [HeaderName; 9] = [
    ACCEPT_ENCODING,
    CONNECTION,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    EXPECT,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
];
const BETA: HeaderName = HeaderName::from_static("openai-beta");
/// The beta that asks for the WebSocket, up to its date.
const WEBSOCKET_BETA: &str = "responses_websockets=";

/// What each request over the connection begins with.
pub(super) struct Origin {
    gateway: Arc<Gateway>,
    /// A list: a connection that is idle holds it, and a map takes 1 KB more.
    headers: Box<[(HeaderName, HeaderValue)]>,
    target: Option<PathAndQuery>,
    peer: Option<IpAddr>,
}

impl Origin {
    /// That of the handshake.
    pub(super) fn of(session: &Session, ctx: &RequestContext) -> Self {
        let peer = session.client_addr().and_then(|peer| peer.as_inet()).map(|peer| peer.ip());
        let head = session.req_header();
        let headers = headers_of(head);
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        // Over HTTP/2 the address has scheme and authority too.
        let target = head.uri.path_and_query().cloned();
        Self { gateway: Arc::clone(&ctx.gateway), headers, target, peer }
    }

    /// A connection of the client's inside the process; `None`: the gateway accepts no requests.
    pub(super) fn connect(&self) -> Option<DuplexStream> {
        let purpose = Purpose::WebSocket;
        let as_key = AsKey { key: None, request: RequestId::new(), client: self.peer, purpose };
        self.gateway.in_process.upgrade()?.connect(as_key)
    }

    /// A request with this body, and with headers that its frame carries.
    pub(super) fn request(&self, body: String, more: &[(String, String)]) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = http::Method::POST;
        if let Some(target) = &self.target {
            *request.uri_mut() = target.clone().into();
        }
        let headers = self.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        request.headers_mut().reserve(self.headers.len());
        for (name, value) in headers {
            request.headers_mut().append(name, value);
        }
        for (name, value) in more {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.as_str()))
            {
                request.headers_mut().insert(name, value);
            }
        }
        request
    }
}

/// The headers of the requests of a handshake's connection.
fn headers_of(head: &RequestHeader) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(head.headers.len());
    for (name, value) in &head.headers {
        if !OF_HANDSHAKE.contains(name) && !name.as_str().starts_with("sec-websocket-") {
            headers.append(name.clone(), value.clone());
        }
    }
    if let Some(authority) = head.uri.authority().filter(|_| !headers.contains_key(HOST))
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        headers.insert(HOST, host);
    }
    without_beta(&mut headers);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers
}

/// Removes the beta of the WebSocket: over HTTP a provider could refuse it.
fn without_beta(headers: &mut HeaderMap) {
    let texts: Vec<String> = headers
        .get_all(BETA)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .map(|beta| beta.trim().to_owned())
        .collect();
    headers.remove(BETA);
    for beta in texts.iter().filter(|beta| !beta.starts_with(WEBSOCKET_BETA)) {
        if let Ok(value) = HeaderValue::try_from(beta.as_str()) {
            headers.append(BETA, value);
        }
    }
}
