//! A client that waits for a stream: it is noticed if it closes its connection, and it gets a sign
//! of life every `proxy.keepalive`.
//!
//! The first sign brings the head of the reply, without anything of a provider. Another attempt
//! stays possible after it.

use std::pin::{Pin, pin};
use std::time::Instant;

use bytes::Bytes;
use pingora::Result;
use pingora::proxy::{ProxyHttp as _, Session};

use super::hedge::Hedge;
use super::waiter::{Wait, Waiter, before};
use crate::formats::ping::ping;
use crate::proxy::connections::gone::unless_gone;
use crate::proxy::exchange::Exchange;
use crate::proxy::reply::client_head;
use crate::proxy::service::{Service, bounded};

/// The client of an attempt.
pub(super) struct Client<'a> {
    pub service: &'a Service,
    pub session: &'a mut Session,
    pub ctx: &'a mut Box<Exchange>,
    /// The attempt at a second provider, which goes on beside.
    pub hedge: &'a mut Option<Box<Hedge>>,
}

impl Waiter for Client<'_> {
    /// One timer serves `until`, the next sign of life, and the time of a second provider.
    /// `wait.detached`: the client has closed its connection, and `work` continues.
    async fn on<T: Send>(
        &mut self,
        wait: Wait,
        mut work: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> Result<Option<T>> {
        let Wait { mut now, until, detached } = wait;
        while self.hedge.is_none() {
            let due = self.due().filter(|_| !detached);
            let next = [until, due].into_iter().flatten().min();
            let step = before(now, next, work.as_mut());
            if let Some(done) = unless_gone(self.session, detached, step).await? {
                return Ok(Some(done));
            }
            if due.is_none() || next != due {
                return Ok(None);
            }
            // By the bound, not by the clock: the timer may fire a millisecond early.
            if due.is_some_and(|due| self.wants_hedge(due)) {
                now = Instant::now();
                break;
            }
            // Boxed: a stream needs no memory for this.
            Box::pin(self.ping()).await?;
            now = Instant::now();
        }
        Box::pin(self.race(Wait { now, ..wait }, work)).await
    }

    fn needs_new_connection(&mut self) -> Result<()> {
        self.ctx.running()?.attempt.fresh = true;
        Ok(())
    }
}

impl Client<'_> {
    /// Whether a second provider is to be asked by this time.
    fn wants_hedge(&self, now: Instant) -> bool {
        let at = self.ctx.forwarding().and_then(|forwarding| forwarding.keepalive.hedge_at);
        at.is_some_and(|at| at <= now)
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.ctx.forwarding()?.keepalive.due()
    }

    pub(super) async fn ping(&mut self) -> Result<()> {
        let Self { service, session, ctx, .. } = self;
        let keepalive = &mut ctx.running()?.forwarding.keepalive;
        if !std::mem::replace(&mut keepalive.has_head, true) {
            let mut head = client_head::of_waiting(session, &ctx.request)?;
            service.response_filter(session, &mut head, ctx).await?;
            let write = pin!(session.write_response_header(Box::new(head), false));
            bounded(&ctx.request, write).await?;
        }
        let sign = Bytes::from_static(ping(ctx.request.format));
        let write = pin!(session.write_response_body(Some(sign), false));
        bounded(&ctx.request, write).await?;
        ctx.running()?.forwarding.keepalive.wrote(Instant::now(), true);
        Ok(())
    }
}
