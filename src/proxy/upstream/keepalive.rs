//! When a client that waits for a stream gets its next sign of life (`proxy.keepalive`).

use std::time::{Duration, Instant};

use super::forwarded_reply::ForwardedReply;
use crate::proxy::context::RequestContext;

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
    /// When a second provider is asked; `None` = not while the current wait lasts.
    pub hedge_at: Option<Instant>,
}

impl KeepAlive {
    /// For a client whose wait begins `now`.
    pub fn begin(ctx: &RequestContext, stream: bool, now: Instant) -> Self {
        let every = ctx.live.keepalive_ms;
        Self {
            every: (stream && every > 0).then(|| Duration::from_millis(every)),
            last: now,
            array: ctx.reads_array(),
            has_head: false,
            gaps: Gaps::Anywhere,
            is_gap: true,
            hedge_at: None,
        }
    }

    /// When the next one is due, or a second provider.
    pub fn due(&self) -> Option<Instant> {
        let sign = self.every.filter(|_| self.is_gap).map(|every| self.last + every);
        match self.hedge_at {
            None => sign,
            Some(hedge) => Some(sign.map_or(hedge, |sign| sign.min(hedge))),
        }
    }

    /// Whether a reply can follow the head that the client has.
    pub const fn fits(&self, forwarded: &ForwardedReply) -> bool {
        match (self.has_head, self.array) {
            (false, _) => true,
            (true, true) => forwarded.converted || !forwarded.streamed,
            (true, false) => forwarded.streamed,
        }
    }

    /// The reply begins: its bytes follow.
    pub const fn reply_begins(&mut self, forwarded: &ForwardedReply) {
        self.hedge_at = None;
        self.gaps = match (forwarded.streamed, forwarded.converted, self.array) {
            (true, true, _) => Gaps::Anywhere,
            (true, false, false) => Gaps::BetweenEvents,
            _ => Gaps::Nowhere,
        };
    }

    /// Whether a sign of life may follow this piece.
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
