//! A client that waits for a stream: it is noticed if it closes its connection, and it gets a sign
//! of life every `proxy.keepalive`.
//!
//! The first sign brings the head of the reply, without anything of a provider. Another attempt
//! stays possible after it.

use std::pin::Pin;
use std::time::Instant;

use bytes::Bytes;
use pingora::Result;
use pingora::proxy::{ProxyHttp as _, Session};

use crate::formats::ping::ping;
use crate::proxy::connections::gone::unless_gone;
use crate::proxy::exchange::Exchange;
use crate::proxy::reply::client_head;
use crate::proxy::service::{Service, bounded};

/// A wait that begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    /// When it begins. The driver measures it anyway: each reading of the clock costs a hundred
    /// instructions, and a request waits four times.
    pub now: Instant,
    /// `None`: without a bound.
    pub until: Option<Instant>,
    /// The client has closed its connection, and the work continues.
    pub detached: bool,
}

impl Wait {
    /// Without a bound.
    pub(super) const fn from(now: Instant) -> Self {
        Self { now, until: None, detached: false }
    }
}

/// The client of an attempt.
pub(super) struct Client<'a> {
    pub service: &'a Service,
    pub session: &'a mut Session,
    pub ctx: &'a mut Box<Exchange>,
}

impl Client<'_> {
    /// Runs `work` until it ends, or `until` is reached (`None`).
    ///
    /// One timer serves both `until` and the next sign of life. `wait.detached`: the client has
    /// closed its connection, and `work` continues.
    ///
    /// # Errors
    /// When the client closes its connection.
    pub(super) async fn on<T>(
        &mut self,
        wait: Wait,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> Result<Option<T>> {
        let Wait { mut now, until, detached } = wait;
        loop {
            let due = self.due().filter(|_| !detached);
            let next = [until, due].into_iter().flatten().min();
            let step = before(now, next, work.as_mut());
            if let Some(done) = unless_gone(self.session, detached, step).await? {
                return Ok(Some(done));
            }
            if due.is_none() || next != due {
                return Ok(None);
            }
            // Boxed: a stream needs no memory for this.
            Box::pin(self.ping()).await?;
            now = Instant::now();
        }
    }

    fn due(&self) -> Option<Instant> {
        self.ctx.forwarding()?.keepalive.due()
    }

    async fn ping(&mut self) -> Result<()> {
        let Self { service, session, ctx } = self;
        let keepalive = &mut ctx.running()?.forwarding.keepalive;
        if !std::mem::replace(&mut keepalive.has_head, true) {
            let mut head = client_head::of_waiting(session, &ctx.request)?;
            service.response_filter(session, &mut head, ctx).await?;
            bounded(&ctx.request, session.write_response_header(Box::new(head), false)).await?;
        }
        let sign = Bytes::from_static(ping(ctx.request.format));
        bounded(&ctx.request, session.write_response_body(Some(sign), false)).await?;
        ctx.running()?.forwarding.keepalive.wrote(Instant::now(), true);
        Ok(())
    }
}

/// Waits from `now` for `work` until then; `None` for the time = without a bound.
async fn before<T>(
    now: Instant,
    until: Option<Instant>,
    work: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    match until {
        Some(until) => {
            let left = until.saturating_duration_since(now);
            pingora::time::timeout(left, work).await.ok()
        }
        None => Some(work.await),
    }
}
