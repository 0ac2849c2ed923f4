//! The administration on the proxy's own listener, for deployments with a single origin.
//!
//! The proxy does not know the administration: `app` hands it an [`EmbeddedAdmin`]. Requests at
//! `/api/` and for the web UI go to it as they came, and leave no ledger record; it checks its own
//! credentials.

use std::net::SocketAddr;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use pingora::Result;
use pingora::http::{Method, RequestHeader, ResponseHeader};
use pingora::proxy::Session;

use super::body_budget::BodyReservation;
use super::context::RequestContext;
use super::intake::{self, Received};

/// The administration's service in this process.
#[async_trait]
pub trait EmbeddedAdmin: Send + Sync {
    /// Answers a request whose body is whole.
    async fn call(&self, request: http::Request<Bytes>, client: Option<SocketAddr>) -> AdminReply;
}

/// A reply, its body piece by piece.
pub struct AdminReply {
    pub head: http::response::Parts,
    pub body: Box<dyn Pieces>,
}

/// The pieces of a body; `None` at its end.
#[async_trait]
pub trait Pieces: Send {
    async fn next(&mut self) -> Option<Bytes>;
}

/// Whether a request belongs to the administration: its API, or what a browser asks for to show the
/// web UI. The clients' own paths all begin with `/v1`; whatever else they send that is no GET gets
/// the proxy's answer.
#[must_use]
pub fn is_admin(head: &RequestHeader) -> bool {
    let path = head.uri.path();
    path.starts_with("/api/") || (!path.starts_with("/v1") && matches!(head.method, Method::GET | Method::HEAD))
}

/// Passes a request to the administration and its reply to the client.
///
/// # Errors
/// When its body is too large or broken, or the client cannot be written to.
pub async fn serve(session: &mut Session, ctx: &mut RequestContext, admin: &dyn EmbeddedAdmin) -> Result<()> {
    let reservation = BodyReservation::new(&ctx.gateway.bodies, None);
    let Received { pieces, reservation } = intake::read(session, reservation, &ctx.live).await?;
    let head = session.req_header();
    let mut request = http::Request::new(Bytes::from(pieces.concat()));
    drop(pieces);
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = head.uri.clone();
    *request.headers_mut() = head.headers.clone();
    let client = session.client_addr().and_then(|a| a.as_inet()).copied();
    let reply = admin.call(request, client).await;
    drop(reservation);
    if is_live(&reply.head) {
        // It ends with the process, which must not wait for it.
        ctx.in_flight = None;
    }
    write(session, reply).await
}

/// A reply without an end: a live view.
fn is_live(head: &http::response::Parts) -> bool {
    head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream")
}

async fn write(session: &mut Session, reply: AdminReply) -> Result<()> {
    let AdminReply { head: from, mut body } = reply;
    let mut head = ResponseHeader::build_no_case(from.status, Some(from.headers.len() + 1))?;
    for (name, value) in &from.headers {
        if name != CONNECTION && name != TRANSFER_ENCODING {
            head.append_header(name.clone(), value.clone())?;
        }
    }
    if !from.headers.contains_key(CONTENT_LENGTH) && session.req_header().version == http::Version::HTTP_11 {
        head.insert_header(TRANSFER_ENCODING, "chunked")?;
    }
    session.write_response_header(Box::new(head), false).await.map_err(|e| e.into_down())?;
    while let Some(piece) = body.next().await {
        session.write_response_body(Some(piece), false).await.map_err(|e| e.into_down())?;
    }
    session.write_response_body(Some(Bytes::new()), true).await.map_err(|e| e.into_down())
}
