//! Answers that the gateway writes itself: refusals and small JSON bodies, in the client's format.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use pingora::http::ResponseHeader;
use pingora::protocols::http::ServerSession as Session;

use super::exchange::Exchange;
use super::keep;
use super::refusal::Meaning;
use crate::formats::error;

/// Carries the request's id, on every answer.
pub const REQUEST_ID: &str = "x-tollgate-request-id";
/// Carries the session id, where one is known.
pub const SESSION_ID: &str = "x-tollgate-session-id";

/// Writes an error of the gateway's own, whole.
///
/// # Errors
/// Pingora's, when the client cannot be written to.
pub async fn refuse(session: &mut Session, x: &Exchange, meaning: &Meaning) -> pingora::Result<()> {
    let body = error::body(x.format, &meaning.reply());
    let headers = meaning.headers.iter().map(|(name, value)| (*name, value.as_str()));
    whole(session, x, meaning.status, headers, body.into()).await
}

/// Writes a JSON answer, whole.
///
/// # Errors
/// Pingora's, when the client cannot be written to.
pub async fn whole<'a>(
    session: &mut Session,
    x: &Exchange,
    status: u16,
    headers: impl Iterator<Item = (&'static str, &'a str)>,
    body: Bytes,
) -> pingora::Result<()> {
    let mut head = ResponseHeader::build_no_case(status, Some(8))?;
    head.insert_header(CONTENT_TYPE, "application/json")?;
    head.insert_header(CONTENT_LENGTH, body.len())?;
    for (name, value) in headers {
        head.insert_header(name, value)?;
    }
    own_headers(&mut head, x)?;
    keep::note(x, &body);
    session.write_response_header(Box::new(head)).await?;
    session.write_response_body(body, true).await
}

/// Adds the gateway's own headers to a head.
///
/// # Errors
/// Pingora's, when a value cannot stand in a head.
pub fn own_headers(head: &mut ResponseHeader, x: &Exchange) -> pingora::Result<()> {
    head.insert_header(REQUEST_ID, x.request_id.to_string())?;
    if let Some(inbound) = &x.inbound {
        // A session id is the client's own text: one that cannot stand in a head is left out.
        let _ = head.insert_header(SESSION_ID, inbound.session.as_str());
    }
    if x.gateway.live.load().overhead_header {
        let own = x.started.elapsed().saturating_sub(x.waited);
        head.insert_header(
            "server-timing",
            format!("gateway;dur={}.{:03}", own.as_millis(), own.subsec_micros() % 1000),
        )?;
    }
    Ok(())
}
