//! One exchange with one provider, through the service's own hooks: the counterpart of Pingora's
//! `HttpProxy::proxy_to_upstream` (pingora-proxy 0.9.1, lib.rs:401) over Pingora's own connector
//! and pool.
//!
//! Pingora's own driver cannot hold a reply back, resend a body of unknown length above 64 KB, or
//! read an error body before deciding. It cannot bound first byte, idle time and total time
//! separately, or reuse a connection after a failover.
//!
//! See docs/decisions/01-own-driver.md.

mod client;
mod hedge;
mod opening;
mod over_socket;
mod race;
mod sending;
mod up;
mod waiter;
mod wire;

use std::pin::pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Version;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::proxy::{ProxyHttp as _, Session};
use pingora::time::timeout;
use pingora::upstreams::peer::HttpPeer;
use pingora::{ErrorSource, Result};

use self::client::Client;
use self::hedge::{Begun, Hedge, is_outrun};
use self::wire::{ReplyPiece, Wire};
use crate::config::OnAbort;
use crate::policy::failure::NetworkFailure;
use crate::proxy::exchange::Exchange;
use crate::proxy::held;
use crate::proxy::service::{Service, bounded};
use crate::proxy::upstream::failure::Failure;
use crate::proxy::upstream::incoming::Incoming;
use crate::proxy::upstream::tool_check;

impl Service {
    /// The attempts, in the shape of Pingora's own retry loop (pingora-proxy 0.9.1, lib.rs:1148).
    ///
    /// # Errors
    /// What ended the last one.
    pub(in crate::proxy) async fn ask_providers(
        &self,
        session: &mut Session,
        ctx: &mut Box<Exchange>,
    ) -> Result<()> {
        let mut hedge = None;
        while let Err(e) = self.proxy_to_upstream(session, ctx, &mut hedge).await {
            if !e.retry() {
                if let Some(hedge) = hedge.take() {
                    race::cancel(ctx, *hedge, "cancelled: the request ended", "none");
                }
                return Err(e);
            }
        }
        Ok(())
    }

    /// Picks a peer and exchanges the request for a reply, until the client has the complete reply.
    /// `hedge`: the attempt at a second provider, which becomes the only one if this one fails.
    ///
    /// # Errors
    /// What ended the exchange; `retry` says whether another attempt follows.
    async fn proxy_to_upstream(
        &self,
        session: &mut Session,
        ctx: &mut Box<Exchange>,
        hedge: &mut Option<Box<Hedge>>,
    ) -> Result<()> {
        let (peer, wire, begun) = match hedge.take() {
            Some(second) => {
                let begun = Box::pin(self.hedged(session, ctx, *second)).await?;
                let Begun { wire, peer, head, first } = begun;
                (peer, *wire, Some((head, Box::new(first))))
            }
            None => {
                let peer = self.upstream_peer(session, ctx).await?;
                let running = ctx.running()?;
                let waiting = Instant::now();
                if !running.attempt.provider.websocket {
                    running.forwarding.arm_hedge(waiting);
                }
                let mut client = Client { service: self, session, ctx, hedge };
                let opened = Wire::open(&mut client, &self.gateway.upstreams, &peer, waiting).await;
                client.ctx.request.waited += waiting.elapsed();
                match opened {
                    Ok(wire) => (peer, wire, None),
                    Err(e) if is_outrun(&e) => return Err(e),
                    Err(e) => return Err(self.fail_to_connect(session, &peer, ctx, e)),
                }
            }
        };
        let link = ctx.running()?.attempt.link()?;
        let reused = wire.is_reused();
        let client = Client { service: self, session, ctx, hedge };
        let mut driver = Driver { client, wire, first: None };
        let done = match begun {
            None => driver.exchange(&peer).await,
            Some((head, first)) => {
                driver.first = Some(first);
                driver.forward_reply(head).await
            }
        };
        if let Err(e) = &done {
            if is_outrun(e) {
                // Its connection is closed.
                return done;
            }
            if *e.esource() == ErrorSource::Downstream {
                driver.abort().await;
            }
        }
        driver.wire.close(&self.gateway.upstreams, &link).await;
        done.map_err(|e| self.error_while_proxy(&peer, session, e, ctx, reused))
    }
}

/// An attempt over an open connection to its provider.
struct Driver<'a> {
    client: Client<'a>,
    wire: Wire,
    /// What came of the reply before, if its provider was the second one.
    first: Option<Box<ReplyPiece>>,
}

impl Driver<'_> {
    async fn exchange(&mut self, peer: &HttpPeer) -> Result<()> {
        let Client { service, session, ctx, .. } = &mut self.client;
        let (socket, digest) = self.wire.identity();
        let reused = self.wire.is_reused();
        service.connected_to_upstream(session, reused, peer, socket, digest, ctx).await?;
        self.send().await?;
        let head = self.head().await?;
        self.forward_reply(head).await
    }

    async fn send(&mut self) -> Result<()> {
        let Client { service, session, ctx, .. } = &mut self.client;
        // The hook replaces all of it but the version.
        let (mut blank, ()) = http::Request::new(()).into_parts();
        blank.version = if self.wire.is_http2() { Version::HTTP_2 } else { Version::HTTP_11 };
        let mut head = RequestHeader::from(blank);
        service.upstream_request_filter(session, &mut head, ctx).await?;
        let mut body = Vec::new();
        loop {
            let mut piece = None;
            service.request_body_filter(session, &mut piece, true, ctx).await?;
            let Some(piece) = piece else { break };
            body.push(piece);
        }
        // While the provider takes the request, it is not late.
        ctx.running()?.forwarding.keepalive.hedge_at = None;
        let waiting = Instant::now();
        let sent = self.wire.send(&mut self.client, head, &body, waiting).await;
        let took = waiting.elapsed();
        let running = self.client.ctx.running()?;
        running.request.waited += took;
        running.attempt.is_billable = self.wire.is_sent();
        running.attempt.may_have_made = self.wire.is_sent();
        if self.wire.is_sent() {
            running.forwarding.was_alive(took);
            running.attempt.was_sent(took);
            if !self.wire.is_socket() {
                running.forwarding.arm_hedge(waiting + took);
            }
        }
        sent
    }

    /// The head of the provider's answer, judged.
    async fn head(&mut self) -> Result<Box<ResponseHeader>> {
        let bound = self.client.ctx.running()?.attempt.bound();
        let waiting = Instant::now();
        let head = self.wire.head(&mut self.client, bound, waiting).await;
        let Client { service, session, ctx, .. } = &mut self.client;
        ctx.request.waited += waiting.elapsed();
        let mut head = head?;
        service.upstream_response_filter(session, &mut head, ctx).await?;
        Ok(head)
    }

    /// Forwards the reply piece by piece, once it has meaningful content.
    async fn forward_reply(&mut self, head: Box<ResponseHeader>) -> Result<()> {
        // Until the client's head has been written.
        let mut held_head = Some(head);
        loop {
            let ReplyPiece { mut body, end, .. } = self.receive().await?;
            if self.client.ctx.waits_for_check() {
                // Boxed: a stream needs no memory for this.
                Box::pin(self.check(&mut body)).await?;
            }
            let Client { service, session, ctx, hedge } = &mut self.client;
            if let Some(head) = held_head.as_mut() {
                let mut running = ctx.running()?;
                let Some(released) = running.hold(body, end)? else { continue };
                let keepalive = &mut running.forwarding.keepalive;
                let has_head = std::mem::replace(&mut keepalive.has_head, true);
                if let Some(hedge) = hedge.take() {
                    race::cancel(ctx, *hedge, "cancelled: the other reply began first", "first");
                }
                ctx.release(end.then_some(released.len()));
                body = Some(released);
                if !has_head {
                    service.response_filter(session, head, ctx).await?;
                }
                if let Some(head) = held_head.take().filter(|_| !has_head) {
                    let write = pin!(session.write_response_header(head, false));
                    bounded(&ctx.request, write).await?;
                }
            }
            let last = end && ctx.is_complete(end);
            let said = ctx.forwarding().filter(|now| last && now.is_about_held());
            let said = said.and_then(|_| ctx.said_of_held());
            service.response_body_filter(session, &mut body, last, ctx)?;
            if let Some(said) = said {
                // Boxed: a stream needs no memory for this. A batch is kept for its bill by now.
                Box::pin(held::note(&service.gateway, *said)).await;
            }
            if last || body.as_ref().is_some_and(|bytes| !bytes.is_empty()) {
                self.write(body, last).await?;
            }
            if last {
                return Ok(());
            }
            if end {
                let why = "the provider ended the stream early";
                return Err(Failure::network(NetworkFailure::Broken, why).into());
            }
        }
    }

    /// Has the reply's tool calls checked, and adds what was held back for that.
    async fn check(&mut self, body: &mut Option<Bytes>) -> Result<()> {
        let Client { session, ctx, .. } = &mut self.client;
        let waiting = Instant::now();
        let checked = tool_check::check(session, ctx.running()?).await;
        ctx.request.waited += waiting.elapsed();
        let mut all = body.take().map(Vec::from).unwrap_or_default();
        all.extend(checked?);
        *body = Some(all.into());
        Ok(())
    }

    /// Writes a piece of the reply to the client.
    async fn write(&mut self, body: Option<Bytes>, last: bool) -> Result<()> {
        let Client { session, ctx, .. } = &mut self.client;
        let running = ctx.running()?;
        let is_gap = running.forwarding.keepalive.may_follow(body.as_deref().unwrap_or_default());
        let writing = Instant::now();
        let write = pin!(session.write_response_body(body, last));
        let written = bounded(running.request, write).await;
        let took = writing.elapsed();
        running.request.waited += took;
        written?;
        running.attempt.was_held_up(took);
        running.forwarding.keepalive.wrote(writing + took, is_gap);
        Ok(())
    }

    /// The next piece from the provider, as the client's bytes.
    async fn receive(&mut self) -> Result<ReplyPiece> {
        if let Some(first) = self.first.take() {
            return Ok(*first);
        }
        let bound = self.client.ctx.running()?.attempt.bound();
        let waiting = Instant::now();
        let piece = self.wire.piece(&mut self.client, bound, waiting).await;
        let took = waiting.elapsed();
        let Client { service, session, ctx, .. } = &mut self.client;
        let running = ctx.running()?;
        running.request.waited += took;
        let (mut body, end) = match piece {
            Ok(piece) => {
                running.attempt.byte_came(waiting + took);
                let end = piece.is_none() || self.wire.is_done();
                (piece, end)
            }
            Err(e)
                if *e.esource() != ErrorSource::Downstream
                    && !is_outrun(&e)
                    && running.has_enough() =>
            {
                (None, true)
            }
            Err(e) => return Err(e),
        };
        let received = body.as_ref().map_or(0, Bytes::len);
        service.upstream_response_body_filter(session, &mut body, end, ctx)?;
        Ok(ReplyPiece { body, end, received })
    }

    /// Stops the provider, or reads its reply to the end, as configured. If the provider has not
    /// received the complete request, it is always stopped. If the usage is known, nothing more is
    /// read. What is said of a batch that is made is always read: it cannot be stopped.
    async fn abort(&mut self) {
        if let Some(hedge) = self.client.hedge.take() {
            race::cancel(self.client.ctx, *hedge, "cancelled: the client left", "none");
        }
        let ctx = &mut self.client.ctx;
        let is_error =
            ctx.running().is_ok_and(|now| matches!(now.attempt.incoming, Incoming::Error(_)));
        if !ctx.request.is_open() || is_error {
            return;
        }
        let drains = ctx.request.live.on_abort == OnAbort::Drain || ctx.request.makes_batch();
        let result = if drains && self.wire.is_sent() {
            self.wire.detach();
            let time = Duration::from_millis(ctx.request.live.abort_drain_ms);
            // Boxed: a stream needs no memory for this.
            let drained = Box::pin(timeout(time, self.drain())).await;
            if matches!(drained, Ok(Ok(()))) { "drained" } else { "incomplete" }
        } else {
            "cancelled"
        };
        self.client.ctx.aborted(result);
    }

    /// Reads the rest of a reply and discards it: only its usage matters.
    async fn drain(&mut self) -> Result<()> {
        let running = self.client.ctx.running()?;
        // No further attempt is possible.
        running.forwarding.release_body();
        let mut left = running.request.live.abort_drain_bytes;
        match &running.attempt.incoming {
            Incoming::Reply(forwarded) if forwarded.is_over => return Ok(()),
            Incoming::Awaited => drop(self.head().await?),
            Incoming::Reply(_) | Incoming::Error(_) => {}
        }
        loop {
            let ReplyPiece { end, received, .. } = self.receive().await?;
            if end || self.client.ctx.is_complete(false) {
                return Ok(());
            }
            left = left.checked_sub(received).ok_or_else(|| {
                let why = "the reply is above proxy.abort_drain_bytes";
                Failure::network(NetworkFailure::TotalTimeout, why)
            })?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<'a, F>(
        _: impl FnOnce(&'a Service, &'a mut Session, &'a mut Box<Exchange>) -> F,
    ) -> usize {
        size_of::<F>()
    }

    #[test]
    fn what_lives_as_long_as_a_stream_is_small() {
        let exchange = size(Service::ask_providers);
        assert!(exchange <= 3840, "each stream takes {exchange} bytes");
        assert!(size_of::<Exchange>() <= 512, "each request takes {} bytes", size_of::<Exchange>());
    }
}
