//! Requests for the administration, on the proxy's own listener.
//!
//! Those at `/api/` and for the web UI go to it unchanged, and leave no ledger record; it checks
//! its own credentials. It answers from the head if that is enough: the proxy reads the body from
//! the client only as the administration requests it, within the administration's bounds and
//! budget, not those of the data plane.

use bytes::Bytes;
use http::Response;
use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderMap, TRANSFER_ENCODING,
};
use http_body::Frame;
use http_body_util::BodyExt as _;
use pingora::Result;
use pingora::http::{Method, RequestHeader, ResponseHeader};
use pingora::proxy::Session;

use crate::proxy::connections::gone::unless_gone;
use crate::proxy::context::RequestContext;
use crate::proxy::embedded_admin::{AdminBody, EmbeddedAdmin, Feed, client_body};
use crate::proxy::request::received;

/// Whether a request belongs to the administration: its API, or what a browser requests for the web
/// UI. The clients' own paths all begin with `/v1`; other requests that are not GET get the proxy's
/// answer.
pub(super) fn is_admin(head: &RequestHeader) -> bool {
    let path = head.uri.path();
    path.starts_with("/api/")
        || (!path.starts_with("/v1") && matches!(head.method, Method::GET | Method::HEAD))
}

/// Passes a request to the administration and its reply to the client.
///
/// # Errors
/// When the request's body is badly framed, or the client closes the connection.
pub(super) async fn serve(
    session: &mut Session,
    ctx: &mut RequestContext,
    admin: &dyn EmbeddedAdmin,
) -> Result<()> {
    let (body, feed) = client_body();
    let head = session.req_header();
    let mut request = http::Request::new(body);
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = head.uri.clone();
    *request.headers_mut() = head.headers.clone();
    let peer = session.client_addr().and_then(|a| a.as_inet()).copied();
    let mut feeding = Feeding::default();
    let mut answering = admin.call(request, peer);
    let reply = tokio::select! {
        reply = &mut answering => reply,
        fed = feeding.run(session, feed) => {
            fed?;
            answering.await
        }
    };
    if is_live(reply.headers()) {
        // A live view ends with the process, which must not wait for it.
        ctx.in_flight = None;
    }
    finish(session, reply, &feeding).await
}

/// Reads the body on request.
#[derive(Default)]
struct Feeding {
    has_begun: bool,
    /// A read is in progress: if it is dropped now, its bytes are lost.
    is_reading: bool,
}

impl Feeding {
    /// Ends with the body, or when the administration drops its end.
    async fn run(&mut self, session: &mut Session, mut feed: Feed) -> Result<()> {
        while feed.wanted.recv().await.is_some() {
            if !std::mem::replace(&mut self.has_begun, true)
                && session.req_header().headers.contains_key(EXPECT)
            {
                session.write_continue_response().await.map_err(|e| e.into_down())?;
            }
            self.is_reading = true;
            let piece = session.read_request_body().await;
            self.is_reading = false;
            match piece {
                Ok(Some(piece)) => {
                    // The administration may have dropped its end.
                    let _ = feed.pieces.send(piece).await;
                }
                Ok(None) => break,
                Err(e) => {
                    // The start of the next request after a damaged body is unknown.
                    session.set_keepalive(None);
                    return Err(received::unread(e));
                }
            }
        }
        Ok(())
    }
}

/// Writes the reply. It may come before the end of the body: a client that is still sending
/// receives it all the same.
async fn finish(
    session: &mut Session,
    reply: Response<AdminBody>,
    feeding: &Feeding,
) -> Result<()> {
    let unasked = !feeding.has_begun && session.req_header().headers.contains_key(EXPECT);
    if unasked || feeding.is_reading {
        session.set_keepalive(None);
    }
    write(session, reply).await?;
    if feeding.is_reading && session.req_header().version <= http::Version::HTTP_11 {
        // Otherwise the connection would be closed with unread bytes, and the client could lose the
        // reply.
        let _ = session.as_downstream_mut().drain_request_body().await;
    }
    Ok(())
}

/// A reply that does not end: a live view.
fn is_live(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream")
}

/// The next piece. A client that closes while none comes ends the reply, unless it is still
/// sending.
async fn next(session: &mut Session, body: &mut AdminBody) -> Result<Option<Bytes>> {
    if session.as_downstream_mut().is_body_done() {
        return unless_gone(session, false, piece(body)).await;
    }
    Ok(piece(body).await)
}

async fn piece(body: &mut AdminBody) -> Option<Bytes> {
    loop {
        match body.frame().await?.map(Frame::into_data) {
            Ok(Ok(data)) if !data.is_empty() => return Some(data),
            // Empty data and trailers contain nothing for the client.
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}

async fn write(session: &mut Session, reply: Response<AdminBody>) -> Result<()> {
    let (from, mut body) = reply.into_parts();
    let mut head = ResponseHeader::build_no_case(from.status, Some(from.headers.len() + 1))?;
    for (name, value) in &from.headers {
        if name != CONNECTION && name != TRANSFER_ENCODING {
            head.append_header(name.clone(), value.clone())?;
        }
    }
    if !from.headers.contains_key(CONTENT_LENGTH)
        && session.req_header().version == http::Version::HTTP_11
    {
        head.insert_header(TRANSFER_ENCODING, "chunked")?;
    }
    session.write_response_header(Box::new(head), false).await.map_err(|e| e.into_down())?;
    while let Some(piece) = next(session, &mut body).await? {
        session.write_response_body(Some(piece), false).await.map_err(|e| e.into_down())?;
    }
    session.write_response_body(Some(Bytes::new()), true).await.map_err(|e| e.into_down())
}
