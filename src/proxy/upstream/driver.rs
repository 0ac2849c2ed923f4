//! One exchange with one provider, through the service's own hooks: the counterpart of Pingora's
//! `HttpProxy::proxy_to_upstream` (pingora-proxy 0.9.1, lib.rs:401) over Pingora's own connector
//! and pool.
//!
//! Pingora's own driver cannot hold a reply back, resend a body of unknown length above 64 KB, or
//! read an error body before deciding. It cannot bound first byte, idle time and total time
//! separately, or reuse a connection after a failover.
//!
//! See docs/decisions/01-own-driver.md.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Version;
use pingora::http::{Method, RequestHeader, ResponseHeader};
use pingora::proxy::{ProxyHttp as _, Session};
use pingora::time::timeout;
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorSource, ErrorType, Result};

use super::failure::Failure;
use super::forwarding::Forwarding;
use super::incoming::Incoming;
use super::relay::Hold;
use super::waiting::Waiting;
use super::wire::Wire;
use crate::config::OnAbort;
use crate::policy::failure::NetworkFailure;
use crate::proxy::context::RequestContext;
use crate::proxy::service::Service;

type Ctx = Box<RequestContext>;

impl Service {
    /// Picks a peer and exchanges the request for a reply, until the client has the complete reply.
    ///
    /// # Errors
    /// What ended the exchange; `retry` says whether another attempt follows.
    pub(in crate::proxy) async fn proxy_to_upstream(
        &self,
        session: &mut Session,
        ctx: &mut Ctx,
    ) -> Result<()> {
        let peer = self.upstream_peer(session, ctx).await?;
        let waiting = Instant::now();
        let mut client = Waiting { service: self, session, ctx };
        let opened = Wire::open(&mut client, &self.gateway.upstreams, &peer).await;
        ctx.waited += waiting.elapsed();
        let mut wire = match opened {
            Ok(wire) => wire,
            Err(e) => return Err(self.fail_to_connect(session, &peer, ctx, e)),
        };
        let reused = wire.is_reused();
        let done = self.exchange(session, &mut wire, &peer, ctx).await;
        if let Err(e) = &done
            && *e.esource() == ErrorSource::Downstream
        {
            self.abort(session, &mut wire, ctx).await;
        }
        let link = ctx.attempt().and_then(|attempt| attempt.link());
        if let Ok(link) = link {
            wire.close(&self.gateway.upstreams, &link).await;
        }
        done.map_err(|e| self.error_while_proxy(&peer, session, e, ctx, reused))
    }

    async fn exchange(
        &self,
        session: &mut Session,
        wire: &mut Wire,
        peer: &HttpPeer,
        ctx: &mut Ctx,
    ) -> Result<()> {
        let (socket, digest) = wire.identity();
        self.connected_to_upstream(session, wire.is_reused(), peer, socket, digest, ctx).await?;
        self.send(session, wire, ctx).await?;
        let bound = ctx.attempt()?.bound();
        let waiting = Instant::now();
        let head = wire.head(&mut Waiting { service: self, session, ctx }, bound).await;
        ctx.waited += waiting.elapsed();
        let mut head = head?;
        self.upstream_response_filter(session, &mut head, ctx).await?;
        self.relay(session, wire, head, ctx).await
    }

    async fn send(&self, session: &mut Session, wire: &mut Wire, ctx: &mut Ctx) -> Result<()> {
        // The hook replaces all of it but the version.
        let mut head = RequestHeader::build_no_case(Method::POST, b"/", Some(0))?;
        head.set_version(if wire.is_http2() { Version::HTTP_2 } else { Version::HTTP_11 });
        self.upstream_request_filter(session, &mut head, ctx).await?;
        let mut body = Vec::new();
        loop {
            let mut piece = None;
            self.request_body_filter(session, &mut piece, true, ctx).await?;
            let Some(piece) = piece else { break };
            body.push(piece);
        }
        let waiting = Instant::now();
        let sent = wire.send(&mut Waiting { service: self, session, ctx }, head, &body).await;
        let took = waiting.elapsed();
        ctx.waited += took;
        if wire.is_sent() {
            ctx.forwarding()?.was_alive(took);
            ctx.attempt()?.was_sent(took);
        }
        ctx.attempt()?.is_billable = wire.is_sent();
        sent
    }

    /// Relays the reply piece by piece, once it has meaningful content.
    async fn relay(
        &self,
        session: &mut Session,
        wire: &mut Wire,
        head: Box<ResponseHeader>,
        ctx: &mut Ctx,
    ) -> Result<()> {
        // Until the client's head has been written.
        let mut held_head = Some(head);
        loop {
            let (mut body, end) = self.receive(session, wire, ctx).await?;
            self.upstream_response_body_filter(session, &mut body, end, ctx)?;
            if let Some(head) = held_head.as_mut() {
                let Some(released) = hold(ctx, body, end)? else { continue };
                body = Some(released);
                let whole = body.as_ref().filter(|_| end).map(Bytes::len);
                ctx.release(whole);
                let has_head = std::mem::replace(&mut ctx.forwarding()?.keepalive.has_head, true);
                if !has_head {
                    self.response_filter(session, head, ctx).await?;
                }
                if let Some(head) = held_head.take().filter(|_| !has_head) {
                    self.bounded(ctx, session.write_response_header(head, false)).await?;
                }
            }
            let last = end && is_complete(ctx, end);
            self.response_body_filter(session, &mut body, last, ctx)?;
            if last || body.as_ref().is_some_and(|bytes| !bytes.is_empty()) {
                let piece = body.as_deref().unwrap_or_default();
                let is_gap = ctx.forwarding()?.keepalive.may_follow(piece);
                let writing = Instant::now();
                let written = self.bounded(ctx, session.write_response_body(body, last)).await;
                let took = writing.elapsed();
                ctx.waited += took;
                written?;
                ctx.attempt()?.was_held_up(took);
                ctx.forwarding()?.keepalive.wrote(writing + took, is_gap);
            }
            if last {
                return Ok(());
            }
            if end {
                return Err(Failure::network(
                    NetworkFailure::Broken,
                    "the provider ended the stream early",
                )
                .into());
            }
        }
    }

    /// Bounds a write to the client: Pingora bounds the parts of a body, but neither the head nor
    /// the last flush.
    pub(super) async fn bounded(
        &self,
        ctx: &RequestContext,
        write: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        let written = match ctx.live.reply_write_timeout_ms {
            0 => write.await,
            ms => timeout(Duration::from_millis(ms), write).await.unwrap_or_else(|_| {
                Error::e_explain(ErrorType::WriteTimedout, "writing to the client")
            }),
        };
        written.map_err(|e| e.into_down())
    }

    /// The next piece from the provider, and whether it is the last.
    async fn receive(
        &self,
        session: &mut Session,
        wire: &mut Wire,
        ctx: &mut Ctx,
    ) -> Result<(Option<Bytes>, bool)> {
        let bound = ctx.attempt()?.bound();
        let waiting = Instant::now();
        let piece = wire.piece(&mut Waiting { service: self, session, ctx }, bound).await;
        let took = waiting.elapsed();
        ctx.waited += took;
        match piece {
            Ok(piece) => {
                ctx.attempt()?.byte_came(waiting + took);
                let end = piece.is_none() || wire.is_done();
                Ok((piece, end))
            }
            // It is irrelevant how the provider ends the connection after a complete reply, or
            // within an error body.
            Err(e) if *e.esource() != ErrorSource::Downstream && is_enough(ctx) => Ok((None, true)),
            Err(e) => Err(e),
        }
    }
}

impl Service {
    /// Stops the provider, or reads its reply to the end, as configured. If the provider has not
    /// received the complete request, it is always stopped. If the usage is known, nothing more is
    /// read.
    async fn abort(&self, session: &mut Session, wire: &mut Wire, ctx: &mut Ctx) {
        let drains = ctx.live.on_abort == OnAbort::Drain && wire.is_sent();
        if !ctx.is_open()
            || ctx.attempt().is_ok_and(|attempt| matches!(attempt.incoming, Incoming::Error(_)))
        {
            return;
        }
        let result = if drains {
            wire.detach();
            let time = Duration::from_millis(ctx.live.abort_drain_ms);
            // Boxed: a stream needs no memory for this.
            let drained = Box::pin(timeout(time, self.drain(session, wire, ctx))).await;
            if matches!(drained, Ok(Ok(()))) { "drained" } else { "incomplete" }
        } else {
            "cancelled"
        };
        ctx.aborted(result);
    }

    /// Reads the rest of a reply and discards it: only its usage matters.
    async fn drain(&self, session: &mut Session, wire: &mut Wire, ctx: &mut Ctx) -> Result<()> {
        // No further attempt is possible.
        ctx.forwarding()?.release_body();
        if matches!(&ctx.attempt()?.incoming, Incoming::Reply(relay) if relay.is_over) {
            return Ok(());
        }
        if matches!(ctx.attempt()?.incoming, Incoming::Awaited) {
            let bound = ctx.attempt()?.bound();
            let mut head = wire.head(&mut Waiting { service: self, session, ctx }, bound).await?;
            self.upstream_response_filter(session, &mut head, ctx).await?;
        }
        let mut left = ctx.live.abort_drain_bytes;
        loop {
            let (mut body, end) = self.receive(session, wire, ctx).await?;
            let length = body.as_ref().map_or(0, Bytes::len);
            self.upstream_response_body_filter(session, &mut body, end, ctx)?;
            if end || is_complete(ctx, false) {
                return Ok(());
            }
            left = left.checked_sub(length).ok_or_else(|| {
                Failure::network(
                    NetworkFailure::TotalTimeout,
                    "the reply is above proxy.abort_drain_bytes",
                )
            })?;
        }
    }
}

fn is_enough(ctx: &mut Ctx) -> bool {
    let is_closed = !ctx.is_open();
    match ctx.attempt().map(|attempt| &attempt.incoming) {
        Ok(Incoming::Error(_)) => true,
        Ok(Incoming::Reply(relay)) => is_closed || relay.lacks_only_the_end(),
        _ => is_closed,
    }
}

fn is_complete(ctx: &mut Ctx, end: bool) -> bool {
    match ctx.attempt().map(|attempt| &attempt.incoming) {
        Ok(Incoming::Reply(relay)) => relay.is_complete(end),
        _ => end,
    }
}

/// Holds a piece back, or releases it with the pieces held before.
fn hold(ctx: &mut Ctx, body: Option<Bytes>, end: bool) -> Result<Option<Bytes>> {
    let Forwarding { attempt, keepalive, .. } = ctx.forwarding()?;
    let Some(Incoming::Reply(relay)) = attempt.as_mut().map(|attempt| &mut attempt.incoming) else {
        return Ok(None);
    };
    match relay.hold(body.unwrap_or_default(), end)? {
        Hold::Wait => Ok(None),
        Hold::Release(_) if !keepalive.fits(relay) => Err(relay.unusable().into()),
        Hold::Release(bytes) => {
            keepalive.reply_begins(relay);
            Ok(Some(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<'a, F>(_: impl FnOnce(&'a Service, &'a mut Session, &'a mut Ctx) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn what_lives_as_long_as_a_stream_is_small() {
        let exchange = size(Service::proxy_to_upstream);
        assert!(exchange <= 3840, "each stream takes {exchange} bytes");
        assert!(
            size_of::<RequestContext>() <= 512,
            "each request takes {} bytes",
            size_of::<RequestContext>()
        );
    }
}
