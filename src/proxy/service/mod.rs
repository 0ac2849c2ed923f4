//! The proxy as Pingora's `ProxyHttp`: every hook, in the order in which a request passes them.
//!
//! A hook names the step and calls the stage that implements it; ARCHITECTURE.md has the table.
//! `proxy_upstream_filter` (`driver/mod.rs`) drives the attempts and calls the upstream hooks
//! as Pingora's own driver would. With the log level `trace` each hook writes a line (target
//! `tollgate::hook`).

mod answers;

use std::os::fd::RawFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pingora::apps::HttpServerOptions;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::modules::http::HttpModules;
use pingora::protocols::Digest;
use pingora::protocols::http::v2::server::H2Options;
use pingora::proxy::{FailToProxy, HttpProxy, ProxyHttp, Session};
use pingora::server::configuration::ServerConf;
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorSource, ErrorType, Result};

use self::answers::{awaits_continue, cut, drained, has_answer};
use crate::domain::record::RequestOutcome;
use crate::formats::route::Operation;
use crate::http_client::in_process::Purpose;
use crate::proxy::connections::client_stream::ClientStream;
use crate::proxy::context::RequestContext;
use crate::proxy::exchange::Exchange;
use crate::proxy::gateway::Gateway;
use crate::proxy::local::{self, Arrived, count};
use crate::proxy::pipeline;
use crate::proxy::ready;
use crate::proxy::reply::answer::{self, Answer};
use crate::proxy::reply::client_head;
use crate::proxy::reply::give_up::GiveUp;
use crate::proxy::reply::refusal::Refusal;
use crate::proxy::request::on_behalf::OnBehalf;
use crate::proxy::stages;
use crate::proxy::upstream::{head, receiving};

/// How long the unread rest of a refused body is read, so that a client that is still sending
/// receives the answer.
const DRAIN: Duration = Duration::from_secs(5);

/// How long an HTTP/2 connection without a request is kept. Pingora then closes it without a
/// GOAWAY, so this is longer than clients keep one themselves.
const HTTP2_IDLE: Duration = Duration::from_secs(600);

/// Concurrent requests on one HTTP/2 connection.
const HTTP2_STREAMS: u32 = 100;
/// Streams that a client may reset before the gateway has accepted them.
const HTTP2_RESET_UNSEEN: usize = 20;
/// Bytes of a reply that are buffered while a client's window is closed, for each stream.
const HTTP2_SEND_BUFFER: usize = 128 << 10;

/// The proxy service.
pub struct Service {
    pub(in crate::proxy) gateway: Arc<Gateway>,
}

/// Bounds of each HTTP/2 connection. The library's defaults are larger, or could change with a
/// release.
fn http2_options(max_head_bytes: usize) -> H2Options {
    let mut options = H2Options::default();
    options
        // Decoded size. Above it the library answers 431; far above it, it closes the connection.
        .max_header_list_size(u32::try_from(max_head_bytes).unwrap_or(u32::MAX))
        .max_concurrent_streams(HTTP2_STREAMS)
        .max_pending_accept_reset_streams(HTTP2_RESET_UNSEEN)
        .max_send_buffer_size(HTTP2_SEND_BUFFER)
        .enable_connect_protocol();
    options
}

/// The service under Pingora's `HttpProxy`. `h2c`: HTTP/2 without TLS is accepted too.
pub fn http_proxy(gateway: Arc<Gateway>, conf: &Arc<ServerConf>, h2c: bool) -> HttpProxy<Service> {
    let mut options = HttpServerOptions::default();
    options.h2c = h2c;
    // For WebSockets over HTTP/2. Any other is refused like another wrong method.
    options.allow_connect_method_proxying = true;
    options.h2_idle_timeout = Some(HTTP2_IDLE);
    let max_head_bytes = gateway.node.live.load().max_head_bytes;
    let mut proxy = pingora::proxy::http_proxy(conf, Service { gateway });
    proxy.h2_options = Some(http2_options(max_head_bytes));
    proxy.server_options = Some(options);
    proxy
}

#[async_trait]
impl ProxyHttp for Service {
    type CTX = Box<Exchange>;

    fn new_ctx(&self) -> Self::CTX {
        Box::new(Exchange::new(Arc::clone(&self.gateway)))
    }

    /// None: replies are neither compressed nor otherwise changed by Pingora's modules.
    fn init_downstream_modules(&self, _: &mut HttpModules) {}

    /// Settings of the client's connection.
    async fn early_request_filter(&self, session: &mut Session, ctx: &mut Self::CTX) -> Result<()> {
        trace(ctx, "early_request_filter");
        let asks_for_tunnel = session.req_header().method == http::Method::CONNECT;
        // The head of a tunnel is refused like one that Pingora cannot read.
        if let Some(client) = ClientStream::of(session).filter(|_| !asks_for_tunnel) {
            client.head_is_read();
        }
        if let Some(on_behalf) = OnBehalf::of(session) {
            ctx.request.id = on_behalf.request;
            ctx.request.is_tool_check = on_behalf.purpose == Purpose::ToolCheck;
            ctx.request.is_over_websocket = on_behalf.purpose == Purpose::WebSocket;
            ctx.request.is_explained = on_behalf.purpose == Purpose::Explanation;
        }
        if !ctx.request.is_explained {
            ctx.request.begin_trace(session);
        }
        let live = &ctx.request.live;
        // Pingora keeps a connection that may be reused without limit (0). If it may not be reused,
        // this must not allow it again.
        if asks_for_tunnel {
            // A client that was refused a tunnel may have begun to use it.
            session.set_keepalive(None);
        } else if session.get_keepalive() == Some(0) {
            session.set_keepalive(Some(live.keepalive_timeout_ms.div_ceil(1000)));
        }
        session.set_pipelining_enabled(true);
        session.set_total_drain_timeout(Some(DRAIN));
        // A reply before the end of the request's body does not cost the connection: the rest is
        // drained.
        session.set_close_on_response_before_downstream_finish(false);
        // Of each write: a client that reads nothing must not occupy a provider's connection.
        let timeout = live.reply_write_timeout_ms;
        session.set_write_timeout((timeout > 0).then(|| Duration::from_millis(timeout)));
        Ok(())
    }

    /// What the gateway answers itself; else the stages up to the plan: the caller, the operation,
    /// the permissions, and the providers that could answer.
    async fn request_filter(&self, session: &mut Session, ctx: &mut Self::CTX) -> Result<bool> {
        trace(ctx, "request_filter");
        let route = match stages::head(local::answer(session, &mut ctx.request)).await? {
            Arrived::PassesOn(route) => route,
            Arrived::Answer(answer) => {
                return self.respond(session, ctx, answer).await.map(|()| true);
            }
            Arrived::Answered => return Ok(true),
        };
        if ctx.request.is_explained {
            let answer = Box::pin(pipeline::explain(session, &mut ctx.request, route)).await?;
            return self.respond(session, ctx, answer).await.map(|()| true);
        }
        let forwarding = pipeline::prepare(session, &mut ctx.request, route).await?;
        ctx.forward(forwarding);
        Ok(false)
    }

    /// The attempts.
    async fn proxy_upstream_filter(
        &self,
        session: &mut Session,
        ctx: &mut Self::CTX,
    ) -> Result<bool> {
        trace(ctx, "proxy_upstream_filter");
        self.ask_providers(session, ctx).await?;
        // The client has its reply: Pingora must not connect to a provider itself.
        Ok(false)
    }

    /// The provider of the next attempt.
    async fn upstream_peer(
        &self,
        session: &mut Session,
        ctx: &mut Self::CTX,
    ) -> Result<Box<HttpPeer>> {
        trace(ctx, "upstream_peer");
        ctx.next_peer(session).await
    }

    fn fail_to_connect(
        &self,
        _: &mut Session,
        _: &HttpPeer,
        ctx: &mut Self::CTX,
        e: Box<Error>,
    ) -> Box<Error> {
        trace(ctx, "fail_to_connect");
        ctx.attempt_failed(e)
    }

    async fn connected_to_upstream(
        &self,
        _: &mut Session,
        reused: bool,
        peer: &HttpPeer,
        _: RawFd,
        _: Option<&Digest>,
        ctx: &mut Self::CTX,
    ) -> Result<()> {
        trace(ctx, "connected_to_upstream");
        self.gateway.node.metrics.connections.upstream(reused);
        tracing::trace!(request_id = %ctx.request.id, %peer, reused, "connected to a provider");
        Ok(())
    }

    /// The head of the rendered request, with the provider's credential.
    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        upstream_request: &mut RequestHeader,
        ctx: &mut Self::CTX,
    ) -> Result<()> {
        trace(ctx, "upstream_request_filter");
        head::build(session, upstream_request, ctx.running()?)
    }

    /// Hands out the rendered body piece by piece. The client's own body has been read completely
    /// before.
    async fn request_body_filter(
        &self,
        _: &mut Session,
        body: &mut Option<Bytes>,
        _: bool,
        ctx: &mut Self::CTX,
    ) -> Result<()> {
        trace(ctx, "request_body_filter");
        *body = ctx.running()?.attempt.rendered.next_piece();
        Ok(())
    }

    /// Judges the head of a provider's reply.
    async fn upstream_response_filter(
        &self,
        session: &mut Session,
        upstream_response: &mut ResponseHeader,
        ctx: &mut Self::CTX,
    ) -> Result<()> {
        trace(ctx, "upstream_response_filter");
        receiving::begin(ctx.running()?, upstream_response)?;
        receiving::replace_address(session, ctx.running()?, upstream_response)
    }

    /// Decodes, reads the usage and converts. Collects the body of an error reply, and judges it
    /// when it is complete.
    #[cfg_attr(feature = "stages", inline(never))]
    fn upstream_response_body_filter(
        &self,
        _: &mut Session,
        body: &mut Option<Bytes>,
        end_of_stream: bool,
        ctx: &mut Self::CTX,
    ) -> Result<Option<Duration>> {
        trace(ctx, "upstream_response_body_filter");
        receiving::take(ctx.running()?, body, end_of_stream)?;
        Ok(None)
    }

    /// The client's head: the gateway's own headers, and for a forwarded reply the forwarded ones
    /// of the provider.
    async fn response_filter(
        &self,
        session: &mut Session,
        upstream_response: &mut ResponseHeader,
        ctx: &mut Self::CTX,
    ) -> Result<()> {
        trace(ctx, "response_filter");
        let mut head = match ctx.released_reply() {
            Some(forwarded) => {
                client_head::build(session, &ctx.request, forwarded.for_head(), upstream_response)?
            }
            None => upstream_response.as_owned_parts(),
        };
        answer::own_headers(&mut head.headers, &ctx.request)?;
        *upstream_response = head.into();
        Ok(())
    }

    /// The only place where a request with a complete reply ends: its record is in the journal
    /// before the bytes that complete the reply are sent.
    #[cfg_attr(feature = "stages", inline(never))]
    fn response_body_filter(
        &self,
        _: &mut Session,
        body: &mut Option<Bytes>,
        end_of_stream: bool,
        ctx: &mut Self::CTX,
    ) -> Result<Option<Duration>> {
        trace(ctx, "response_body_filter");
        if let (Some(transcript), Some(piece)) = (&mut ctx.request.transcript, &body) {
            transcript.reply(piece);
        }
        if let (Some(trace), Some(piece)) = (&mut ctx.request.trace, &body)
            && let Some(content) = trace.content()
        {
            content.reply(piece);
        }
        if end_of_stream
            || ctx.released_reply().is_some_and(|forwarded| forwarded.is_complete(false))
        {
            ctx.complete();
        }
        Ok(None)
    }

    /// Judges a failed exchange: retry it, fail over, or give up.
    fn error_while_proxy(
        &self,
        _: &HttpPeer,
        _: &mut Session,
        mut e: Box<Error>,
        ctx: &mut Self::CTX,
        client_reused: bool,
    ) -> Box<Error> {
        trace(ctx, "error_while_proxy");
        e.retry.decide_reuse(client_reused);
        ctx.attempt_failed(e)
    }

    /// Writes what the client gets in place of a reply: a refusal, a provider's client error, or
    /// the error event of a stream that has begun. Writes nothing if the client has closed the
    /// connection.
    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        e: &Error,
        ctx: &mut Self::CTX,
    ) -> FailToProxy {
        trace(ctx, "fail_to_proxy");
        let gone = FailToProxy { error_code: 0, can_reuse_downstream: false };
        if *e.esource() == ErrorSource::Downstream {
            // First: closing can wait on a client that reads nothing.
            ctx.abandon(true);
            cut(session).await;
            return gone;
        }
        let answer = match e.cause.as_deref().and_then(|cause| cause.downcast_ref::<GiveUp>()) {
            Some(GiveUp::BrokenOff { why }) => return self.break_off(session, ctx, why).await,
            Some(GiveUp::Refused { refusal, outcome }) => match estimated(ctx).await {
                Some(Ok(answer)) => answer,
                // The request is at fault, and no provider was asked.
                Some(Err(bad)) if *outcome == RequestOutcome::Refused => {
                    self.refusal(&mut ctx.request, &bad, *outcome)
                }
                _ => self.refusal(&mut ctx.request, refusal, *outcome),
            },
            Some(GiveUp::ClientError(answer)) => answer.clone(),
            None if has_answer(session) => {
                ctx.abandon(false);
                cut(session).await;
                return gone;
            }
            None => self.refusal(&mut ctx.request, &Refusal::Internal, RequestOutcome::Internal),
        };
        if ctx.forwarding().is_some_and(|forwarding| forwarding.keepalive.has_head) {
            return self.end_waiting(session, ctx, answer).await;
        }
        let status = answer.ending.status;
        let unasked = awaits_continue(session);
        if unasked {
            // The client will not send its body now, so the next bytes cannot be distinguished from
            // it.
            session.set_keepalive(None);
        }
        if self.respond(session, ctx, answer).await.is_err() {
            return gone;
        }
        FailToProxy { error_code: status, can_reuse_downstream: !unasked && drained(session).await }
    }

    /// Ends a request whose reply was never complete.
    async fn logging(&self, _: &mut Session, e: Option<&Error>, ctx: &mut Self::CTX) {
        trace(ctx, "logging");
        let left = e.is_some_and(|e| *e.esource() == ErrorSource::Downstream);
        ctx.abandon(left);
    }

    /// The record and the access line report the error with more detail.
    fn suppress_error_log(&self, _: &Session, _: &Self::CTX, _: &Error) -> bool {
        true
    }

    /// Without the query, which may hold a key.
    fn request_summary(&self, session: &Session, ctx: &Self::CTX) -> String {
        format!(
            "{} {}, request {}",
            session.req_header().method,
            session.req_header().uri.path(),
            ctx.request.id
        )
    }
}

/// The answer to a request for a token count that no provider gave.
async fn estimated(ctx: &mut Exchange) -> Option<std::result::Result<Answer, Refusal>> {
    let forwarding = ctx.forwarding()?;
    if forwarding.route.operation != Operation::CountTokens {
        return None;
    }
    let inbound = Arc::clone(&forwarding.inbound);
    let answer = Box::pin(count::estimate(&ctx.request, inbound)).await;
    if answer.is_ok() {
        ctx.request.answers_itself("no provider counted: the answer is an estimate");
    }
    Some(answer)
}

/// Bounds a write to the client: Pingora bounds the parts of a body, but neither the head nor the
/// last flush. Pinned by the caller: if it were passed by value, it would be copied five times.
pub(in crate::proxy) async fn bounded(
    ctx: &RequestContext,
    write: Pin<&mut impl Future<Output = Result<()>>>,
) -> Result<()> {
    let written = match ctx.live.reply_write_timeout_ms {
        0 => write.await,
        ms => ready::within(Duration::from_millis(ms), write)
            .await
            .unwrap_or_else(|| Error::e_explain(ErrorType::WriteTimedout, "writing to the client")),
    };
    written.map_err(|e| e.into_down())
}

fn trace(ctx: &Exchange, hook: &str) {
    tracing::trace!(target: "tollgate::hook", request_id = %ctx.request.id, hook);
}
