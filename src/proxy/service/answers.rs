//! The answers that the gateway writes itself, and the end of replies that break.

use std::sync::Arc;

use bytes::Bytes;
use http::header::UPGRADE;
use http::{Method, Version};
use pingora::Result;
use pingora::proxy::{FailToProxy, ProxyHttp as _, Session};

use super::Service;
use crate::domain::record::{DecisionStep, RequestOutcome};
use crate::formats::error;
use crate::proxy::connections::client_stream::ClientStream;
use crate::proxy::context::RequestContext;
use crate::proxy::exchange::Exchange;
use crate::proxy::record::Ending;
use crate::proxy::reply::answer::Answer;
use crate::proxy::reply::limit_headers;
use crate::proxy::reply::refusal::Refusal;
use crate::proxy::request::received::expects_continue;
use crate::proxy::settle;

impl Service {
    /// Writes an answer of the gateway itself, through the hooks that every reply passes.
    pub(super) async fn respond(
        &self,
        session: &mut Session,
        ctx: &mut Box<Exchange>,
        answer: Answer,
    ) -> Result<()> {
        let mut head = answer.head()?;
        ctx.request.ending = answer.ending;
        let mut body = Some(answer.body);
        self.response_filter(session, &mut head, ctx).await?;
        self.response_body_filter(session, &mut body, true, ctx)?;
        if head.headers.contains_key(UPGRADE)
            && let Some(client) = ClientStream::of(session)
        {
            client.upgrade_is_required();
        }
        // Pingora leaves out the body of an answer to HEAD, but not in HTTP/2.
        let asked = session.req_header();
        let is_head = asked.method == Method::HEAD && asked.version == Version::HTTP_2;
        session.write_response_header(Box::new(head), is_head).await.map_err(|e| e.into_down())?;
        if is_head {
            return Ok(());
        }
        session.write_response_body(body, true).await.map_err(|e| e.into_down())
    }

    /// Ends a stream whose client has its head by a sign of life, and for which every provider has
    /// failed: with the answer as its format's error event.
    pub(super) async fn end_waiting(
        &self,
        session: &mut Session,
        ctx: &mut Box<Exchange>,
        answer: Answer,
    ) -> FailToProxy {
        let status = answer.ending.status;
        let request = &mut ctx.request;
        request.ending = answer.ending;
        let detail = format!(
            "the client had the head of its stream (proxy.keepalive): the {status} went to it as \
             an error event"
        );
        request.decide_itself(DecisionStep::Exhausted, detail, Some(status));
        let event = error::in_stream(request.format, request.reads_array(), status, &answer.body);
        let can_reuse_downstream = self.last_piece(session, ctx, event.into()).await;
        FailToProxy { error_code: status, can_reuse_downstream }
    }

    /// Writes the bytes that end a stream. Returns whether the connection can take another request.
    async fn last_piece(
        &self,
        session: &mut Session,
        ctx: &mut Box<Exchange>,
        piece: Bytes,
    ) -> bool {
        let mut body = Some(piece);
        let filtered = self.response_body_filter(session, &mut body, true, ctx);
        // The client may have closed too: the record is made, so nothing depends on this write.
        let is_written = filtered.is_ok() && session.write_response_body(body, true).await.is_ok();
        if !is_written {
            cut(session).await;
        }
        is_written
    }

    /// A refusal, counted and noted in the decision chain.
    pub(super) fn refusal(
        &self,
        ctx: &mut RequestContext,
        refusal: &Refusal,
        outcome: RequestOutcome,
    ) -> Answer {
        let metrics = &self.gateway.node.metrics;
        if let Refusal::ModelNotPriced { model } = refusal {
            self.gateway.node.unpriced_models.note(&Arc::from(model.as_str()), None, ctx.now());
        }
        match refusal {
            Refusal::Limit(denied) => metrics.refused(denied.limit_type),
            Refusal::BodyBudgetExceeded => metrics.bodies.refused.inc(),
            Refusal::ModelNotAllowed { .. }
            | Refusal::FeatureNotAllowed { .. }
            | Refusal::ToolNotPriced { .. }
            | Refusal::ClientNotAllowed
            | Refusal::ClientOutdated { .. }
            | Refusal::SensitiveWord { .. } => metrics.screened(refusal.reason()),
            _ if ctx.is_open() => {}
            // No caller is known.
            _ => metrics.unauthenticated(refusal.reason()),
        }
        let mut reply = refusal.reply(ctx.zone());
        if let Refusal::Limit(denied) = refusal {
            reply.headers.extend(limit_headers::of_refusal(ctx, denied));
        }
        let step = match outcome {
            RequestOutcome::Refused => Some(DecisionStep::Refused),
            RequestOutcome::UpstreamFailed => Some(DecisionStep::Exhausted),
            _ => None,
        };
        if let Some(step) = step {
            let detail = refusal.detail().unwrap_or_else(|| reply.message.clone());
            ctx.decide_itself(step, detail, Some(reply.status));
        }
        let answer = Answer::refusal(ctx, reply, outcome);
        if !ctx.is_open() && !refusal.is_of_identity() {
            settle::log_stranger(ctx, &answer.ending);
        }
        if !ctx.is_open() {
            settle::end_trace_of_stranger(ctx, &answer.ending);
        }
        answer
    }

    /// Ends a reply that has begun. A stream gets its format's error event and a regular end of the
    /// body. A reply in one piece is cut off, so that no client treats it as complete.
    pub(super) async fn break_off(
        &self,
        session: &mut Session,
        ctx: &mut Box<Exchange>,
        why: &str,
    ) -> FailToProxy {
        let format = ctx.request.format;
        let Some(forwarded) = ctx.forwarded_reply() else {
            return FailToProxy { error_code: 500, can_reuse_downstream: false };
        };
        let (status, streamed) = (forwarded.status, forwarded.streamed);
        let event = if streamed { forwarded.error_event(format, why) } else { Bytes::new() };
        ctx.request.ending =
            Ending { outcome: RequestOutcome::BrokenOff, status, error: Some(why.to_owned()) };
        if streamed {
            let can_reuse_downstream = self.last_piece(session, ctx, event).await;
            return FailToProxy { error_code: 502, can_reuse_downstream };
        }
        // The record is closed with what it has.
        let _ = self.response_body_filter(session, &mut Some(event), true, ctx);
        cut(session).await;
        FailToProxy { error_code: 502, can_reuse_downstream: false }
    }
}

/// Cuts a reply off. An HTTP/1 connection is closed when it is dropped, without waiting for bytes
/// that the client does not read.
pub(super) async fn cut(session: &mut Session) {
    if session.req_header().version == Version::HTTP_2 {
        session.as_downstream_mut().shutdown().await;
    }
}

/// Whether an answer other than a 1xx has been written.
pub(super) fn has_answer(session: &Session) -> bool {
    session.response_written().is_some_and(|head| !head.status.is_informational())
}

/// Whether the client waits for a `100 Continue` that it has not received.
pub(super) fn awaits_continue(session: &mut Session) -> bool {
    expects_continue(session.req_header())
        && session.response_written().is_none()
        && !session.as_downstream_mut().is_body_done()
}

/// Reads what the client is still sending of a refused body. Returns whether the connection can
/// take another request.
pub(super) async fn drained(session: &mut Session) -> bool {
    if session.req_header().version == Version::HTTP_2 {
        return true;
    }
    session.as_downstream_mut().drain_request_body().await.is_ok()
}
