//! A client that waits for a stream: it is noticed if it closes its connection, and it gets a sign
//! of life every `proxy.keepalive`.
//!
//! The first sign brings the head of the reply, without anything of a provider. Another attempt
//! stays possible after it.

use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pingora::Result;
use pingora::proxy::{ProxyHttp as _, Session};

use super::relay::Relay;
use super::wire::unless_gone;
use crate::formats::ping::ping;
use crate::proxy::context::RequestContext;
use crate::proxy::reply::client_head;
use crate::proxy::service::Service;

/// Where a sign of life may stand in a reply that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gaps {
    /// After each piece: a conversion writes complete events, or elements of an array.
    Anywhere,
    /// After an empty line: pieces of a stream that passes through may end within an event.
    BetweenEvents,
    Nowhere,
}

/// When a client gets its next sign of life.
#[derive(Debug)]
pub struct KeepAlive {
    /// `None` = never.
    every: Option<Duration>,
    /// When something was last written, or the wait began.
    last: Instant,
    /// The client reads one JSON array, not events.
    array: bool,
    /// The client has the head of its reply, perhaps by a sign of life.
    pub has_head: bool,
    gaps: Gaps,
    is_gap: bool,
}

impl KeepAlive {
    /// For a client whose wait begins now.
    #[must_use]
    pub fn begin(ctx: &RequestContext, stream: bool) -> Self {
        let every = ctx.live.keepalive_ms;
        Self {
            every: (stream && every > 0).then(|| Duration::from_millis(every)),
            last: Instant::now(),
            array: ctx.reads_array(),
            has_head: false,
            gaps: Gaps::Anywhere,
            is_gap: true,
        }
    }

    /// When the next one is due.
    fn due(&self) -> Option<Instant> {
        self.every.filter(|_| self.is_gap).map(|every| self.last + every)
    }

    /// Whether a reply can follow the head that the client has.
    #[must_use]
    pub const fn fits(&self, relay: &Relay) -> bool {
        match (self.has_head, self.array) {
            (false, _) => true,
            (true, true) => relay.converted || !relay.streamed,
            (true, false) => relay.streamed,
        }
    }

    /// The reply begins: its bytes follow.
    pub const fn reply_begins(&mut self, relay: &Relay) {
        self.gaps = match (relay.streamed, relay.converted, self.array) {
            (true, true, _) => Gaps::Anywhere,
            (true, false, false) => Gaps::BetweenEvents,
            _ => Gaps::Nowhere,
        };
    }

    /// Whether a sign of life may follow this piece.
    #[must_use]
    pub fn may_follow(&self, piece: &[u8]) -> bool {
        match self.gaps {
            Gaps::Anywhere => true,
            Gaps::BetweenEvents => {
                self.every.is_some() && (piece.ends_with(b"\n\n") || piece.ends_with(b"\r\n\r\n"))
            }
            Gaps::Nowhere => false,
        }
    }

    /// A piece was written.
    pub const fn wrote(&mut self, at: Instant, is_gap: bool) {
        (self.last, self.is_gap) = (at, is_gap);
    }
}

/// The client of an exchange.
pub(in crate::proxy) struct Waiting<'a> {
    pub service: &'a Service,
    pub session: &'a mut Session,
    pub ctx: &'a mut Box<RequestContext>,
}

impl Waiting<'_> {
    /// Runs `work` until it ends, or `until` is reached (`None`).
    ///
    /// One timer serves both `until` and the next sign of life. `detached`: the client has closed
    /// its connection, and `work` continues.
    ///
    /// # Errors
    /// When the client closes its connection.
    pub(super) async fn on<T>(
        &mut self,
        detached: bool,
        until: Option<Instant>,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> Result<Option<T>> {
        loop {
            let due = self.due().filter(|_| !detached);
            let next = [until, due].into_iter().flatten().min();
            let step = before(next, work.as_mut());
            if let Some(done) = unless_gone(self.session, detached, step).await? {
                return Ok(Some(done));
            }
            if due.is_none() || next != due {
                return Ok(None);
            }
            // Boxed: a stream needs no memory for this.
            Box::pin(self.ping()).await?;
        }
    }

    fn due(&self) -> Option<Instant> {
        self.ctx.forwarding_ref().ok()?.keepalive.due()
    }

    async fn ping(&mut self) -> Result<()> {
        let Self { service, session, ctx } = self;
        if !std::mem::replace(&mut ctx.forwarding()?.keepalive.has_head, true) {
            let mut head = client_head::of_waiting(session, ctx)?;
            service.response_filter(session, &mut head, ctx).await?;
            service.bounded(ctx, session.write_response_header(Box::new(head), false)).await?;
        }
        let sign = Bytes::from_static(ping(ctx.format));
        service.bounded(ctx, session.write_response_body(Some(sign), false)).await?;
        ctx.forwarding()?.keepalive.wrote(Instant::now(), true);
        Ok(())
    }
}

/// Waits for `work` until then; `None` for the time = without a bound.
async fn before<T>(until: Option<Instant>, work: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match until {
        Some(until) => {
            let left = until.saturating_duration_since(Instant::now());
            pingora::time::timeout(left, work).await.ok()
        }
        None => Some(work.await),
    }
}
