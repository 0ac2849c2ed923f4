//! The administration on the proxy's own listener, for deployments with a single origin.
//!
//! The proxy does not know the administration: `app` hands it a [`Door`]. Requests at `/api/` and for
//! the web UI go through it as they came, and leave no ledger record; the administration checks its own credentials.

use std::net::SocketAddr;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use pingora::http::{Method, RequestHeader, ResponseHeader};
use pingora::protocols::http::ServerSession as Session;

use super::exchange::Exchange;
use super::intake::{self, Received};
use super::refusal::Refusal;
use super::room::Room;
use super::stages::Done;
use crate::config::Live;

/// Another service in this process.
#[async_trait]
pub trait Door: Send + Sync {
    /// Answers a request whose body is whole.
    async fn call(&self, request: http::Request<Bytes>, client: Option<SocketAddr>) -> Answer;
}

/// An answer, its body piece by piece.
pub struct Answer {
    pub head: http::response::Parts,
    pub body: Box<dyn Pieces>,
}

/// The pieces of a body; `None` at its end.
#[async_trait]
pub trait Pieces: Send {
    async fn next(&mut self) -> Option<Bytes>;
}

/// Whether a request belongs to the administration: its API, or what a browser asks for to show the web UI. The clients' own
/// paths all begin with `/v1`; whatever else they send that is no GET gets the proxy's answer.
#[must_use]
pub fn is_admin(head: &RequestHeader) -> bool {
    let path = head.uri.path();
    path.starts_with("/api/") || (!path.starts_with("/v1") && matches!(head.method, Method::GET | Method::HEAD))
}

/// Passes a request through the door.
///
/// # Errors
/// When its body is too large or broken, or the client cannot be written to.
pub async fn serve(session: &mut Session, x: &mut Exchange, door: &dyn Door, live: &Live) -> Result<Done, Refusal> {
    let Received { pieces, room } = intake::read(session, Room::new(&x.gateway.bodies, None), live).await?;
    let head = session.req_header();
    let mut request = http::Request::new(Bytes::from(pieces.concat()));
    drop(pieces);
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = head.uri.clone();
    *request.headers_mut() = head.headers.clone();
    let client = session.client_addr().and_then(|a| a.as_inet()).copied();
    x.settled = true;
    let answer = door.call(request, client).await;
    drop(room);
    if is_live(&answer.head) {
        // It ends with the process, which must not wait for it.
        x.running = None;
    }
    write(session, answer).await.map_err(|_| Refusal::Internal)?;
    Ok(Done::Answered)
}

/// An answer without an end: somebody watches.
fn is_live(head: &http::response::Parts) -> bool {
    head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream")
}

async fn write(session: &mut Session, answer: Answer) -> pingora::Result<()> {
    let Answer { head: from, mut body } = answer;
    let mut head = ResponseHeader::build_no_case(from.status, Some(from.headers.len() + 1))?;
    for (name, value) in &from.headers {
        if name != CONNECTION && name != TRANSFER_ENCODING {
            head.append_header(name.clone(), value.clone())?;
        }
    }
    if !from.headers.contains_key(CONTENT_LENGTH) && session.req_header().version == http::Version::HTTP_11 {
        head.insert_header(TRANSFER_ENCODING, "chunked")?;
    }
    session.write_response_header(Box::new(head)).await?;
    while let Some(piece) = body.next().await {
        session.write_response_body(piece, false).await?;
    }
    session.write_response_body(Bytes::new(), true).await
}
