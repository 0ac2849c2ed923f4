//! Answers that the gateway writes itself: refusals and small JSON bodies, in the client's format.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue};
use pingora::http::ResponseHeader;

use super::limit_headers::{self, value};
use super::refusal_reply::RefusalReply;
use crate::config::ReplyHeaders;
use crate::domain::record::RequestOutcome;
use crate::formats::error;
use crate::proxy::context::RequestContext;
use crate::proxy::record::Ending;

/// Carries the request's id, on every answer.
pub(in crate::proxy) const REQUEST_ID: HeaderName =
    HeaderName::from_static("x-tollgate-request-id");
/// Carries the session id, if one is known.
pub(in crate::proxy) const SESSION_ID: HeaderName =
    HeaderName::from_static("x-tollgate-session-id");
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// A complete answer, and how it ends the request.
#[derive(Debug, Clone)]
pub struct Answer {
    pub ending: Ending,
    pub headers: Vec<(&'static str, String)>,
    /// Headers of a provider's.
    pub passed: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// The requested data, as JSON.
    pub fn ok(body: impl Into<Bytes>) -> Self {
        let ending = Ending { outcome: RequestOutcome::Completed, status: 200, error: None };
        Self { ending, headers: Vec::new(), passed: HeaderMap::new(), body: body.into() }
    }

    /// An error of the gateway's own, in the client's format.
    pub fn refusal(ctx: &RequestContext, reply: RefusalReply, outcome: RequestOutcome) -> Self {
        let body = error::body(ctx.format, &reply.error()).into();
        let own = error::headers(ctx.format, &reply.error());
        let ending = Ending { outcome, status: reply.status, error: Some(reply.message) };
        let mut headers = reply.headers;
        headers.extend(own);
        Self { ending, headers, passed: HeaderMap::new(), body }
    }

    /// Its head, without the headers that every reply carries.
    pub fn head(&self) -> pingora::Result<ResponseHeader> {
        let mut head = ResponseHeader::build_no_case(self.ending.status, Some(8))?;
        for (name, value) in &self.passed {
            head.append_header(name, value)?;
        }
        head.insert_header(CONTENT_TYPE, "application/json")?;
        head.insert_header(CONTENT_LENGTH, self.body.len())?;
        for (name, value) in &self.headers {
            head.insert_header(*name, value)?;
        }
        Ok(head)
    }
}

/// About how many headers [`own_headers`] adds: one for browsers, the ids, and three for each of
/// two limits.
pub(super) const OWN_HEADERS: usize = 9;

/// Adds the headers that every reply carries.
pub(in crate::proxy) fn own_headers(
    headers: &mut HeaderMap,
    ctx: &RequestContext,
) -> pingora::Result<()> {
    let mut buffer = uuid::Uuid::encode_buffer();
    headers.insert(REQUEST_ID, value(&*ctx.id.0.as_hyphenated().encode_lower(&mut buffer))?);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if ctx.live.reply_headers == ReplyHeaders::All {
        standing(headers, ctx)?;
    }
    if ctx.live.overhead_header {
        let own = ctx.overhead();
        let text = format!("gateway;dur={}.{:03}", own.as_millis(), own.subsec_micros() % 1000);
        headers.insert(SERVER_TIMING, value(&text)?);
    }
    Ok(())
}

/// Adds the session, and what the caller has left.
fn standing(headers: &mut HeaderMap, ctx: &RequestContext) -> pingora::Result<()> {
    if let Some(body) = ctx.record.as_ref().and_then(|record| record.body.as_ref())
        // A session id is the client's own text: one that is not valid in a head is left out.
        && let Ok(session) = HeaderValue::from_str(body.session.as_str())
    {
        headers.insert(SESSION_ID, session);
    }
    limit_headers::add(headers, ctx)
}
