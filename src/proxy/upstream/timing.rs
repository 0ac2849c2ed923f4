//! How long each part of one attempt may take.

use std::time::{Duration, Instant};

use crate::config::Live;
use crate::domain::provider::Provider;
use crate::policy::failure::NetworkFailure;
use crate::upstream::pool::LinkTimes;

/// Until when to wait, and which time-out that is.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// `None` = unbounded.
    pub until: Option<Instant>,
    /// The complete time that is over then, for messages.
    pub time: Duration,
    pub timeout: NetworkFailure,
}

impl Bound {
    /// No bound.
    pub(super) const fn none(timeout: NetworkFailure) -> Self {
        Self { until: None, time: Duration::ZERO, timeout }
    }
}

/// The remaining time for all attempts.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeLeft {
    /// No reply may begin later.
    pub deadline: Option<Instant>,
    /// Whether another provider can be asked after this one.
    pub others: bool,
}

/// The bounds of one attempt.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Timing {
    /// The time until the first byte is only a share of the remaining time: the rest is for the
    /// other providers. Streams only.
    pub(super) is_share: bool,
    /// It is less than the provider's due, because other attempts took most of the deadline.
    pub(super) is_cut_short: bool,
    /// Until the first byte of the body. Streams only.
    first_byte: Option<Limit>,
    /// Between two bytes of a stream.
    idle: Option<Duration>,
    /// Between two events with content of a stream.
    content: Option<Duration>,
    /// For the whole attempt. Replies in one piece only.
    whole: Option<Limit>,
    /// The first and the last byte of a stream's body so far.
    bytes: Option<(Instant, Instant)>,
}

/// A point in time, and the time that it bounds.
#[derive(Debug, Clone, Copy)]
struct Limit {
    until: Instant,
    time: Duration,
}

impl Timing {
    /// The deadline bounds the first byte of a stream over all attempts. If nothing of it would be
    /// left for another provider, this one has half of the rest. A reply in one piece has its
    /// own bound; the deadline then only prevents further attempts.
    pub(super) fn start(
        now: Instant,
        provider: &Provider,
        live: &Live,
        stream: bool,
        left: TimeLeft,
    ) -> Self {
        let (own, defaults) = (provider.timeouts, live.timeouts);
        let time = |own: Option<u64>, default: u64| bound(own.unwrap_or(default));
        let limit = |time: Duration| Limit { until: now + time, time };
        if stream {
            let first = time(own.first_byte_streaming_ms, defaults.first_byte_streaming_ms);
            let rest = left.deadline.map(|at| at.saturating_duration_since(now));
            let takes_all = rest.is_some_and(|rest| first.is_none_or(|first| first >= rest));
            let is_share = left.others && takes_all;
            let granted = least([first, rest.map(|rest| if is_share { rest / 2 } else { rest })]);
            let due = least([first, bound(live.retry.deadline_ms).map(|all| all / 2)]);
            return Self {
                is_share,
                // A tenth for what came before the attempt.
                is_cut_short: granted.zip(due).is_some_and(|(time, due)| time < due * 9 / 10),
                first_byte: granted.map(limit),
                idle: time(own.streaming_idle_ms, defaults.streaming_idle_ms),
                content: time(own.streaming_content_ms, defaults.streaming_content_ms),
                whole: None,
                bytes: None,
            };
        }
        let whole = time(own.request_non_streaming_ms, defaults.request_non_streaming_ms);
        Self { whole: whole.map(limit), ..Self::default() }
    }

    /// The request was sent, and `took` so long. The provider took bytes meanwhile, which has a
    /// bound of its own: its time to the first byte begins now.
    pub(super) fn sent(&mut self, took: Duration) {
        if let Some(first) = &mut self.first_byte {
            first.until += took;
        }
    }

    /// A piece of a stream's body arrived.
    pub(super) fn byte_came(&mut self, now: Instant) {
        let (first, _) = self.bytes.unwrap_or((now, now));
        self.bytes = Some((first, now));
    }

    /// How long a stream has sent bytes, if it has sent any.
    pub(super) fn alive(&self) -> Duration {
        self.bytes.map_or(Duration::ZERO, |(first, _)| first.elapsed())
    }

    /// Extends the bounds by the time in which the client took nothing.
    pub(super) fn extend(&mut self, by: Duration) {
        if let Some(whole) = &mut self.whole {
            whole.until += by;
        }
        if let Some((_, last)) = &mut self.bytes {
            *last += by;
        }
    }

    /// How long to wait for the head, or for the first byte of the body.
    pub(super) fn until_first_byte(&self) -> Bound {
        match (self.whole, self.first_byte) {
            (Some(whole), _) => of(whole, NetworkFailure::TotalTimeout),
            (None, Some(first)) => of(first, NetworkFailure::FirstByteTimeout),
            (None, None) => Bound::none(NetworkFailure::FirstByteTimeout),
        }
    }

    /// How long to wait for the next byte, if the last content came at `content`.
    pub(super) fn until_next(&self, content: Instant) -> Bound {
        let Some((_, last)) = self.bytes else { return self.until_first_byte() };
        if let Some(whole) = self.whole {
            return of(whole, NetworkFailure::TotalTimeout);
        }
        let after = |at: Instant, time: Duration| Limit { until: at + time, time };
        let idle = self.idle.map(|time| after(last, time));
        let content = self.content.map(|time| after(content, time));
        match (idle, content) {
            (Some(idle), Some(content)) if content.until < idle.until => {
                of(content, NetworkFailure::ContentTimeout)
            }
            (Some(idle), _) => of(idle, NetworkFailure::IdleTimeout),
            (None, Some(content)) => of(content, NetworkFailure::ContentTimeout),
            (None, None) => Bound::none(NetworkFailure::IdleTimeout),
        }
    }
}

/// Bounds of the connection itself.
pub(super) fn link_times(live: &Live) -> LinkTimes {
    LinkTimes {
        connect: bound(live.timeouts.connect_ms),
        tls: bound(live.timeouts.tls_ms),
        keepalive: Duration::from_millis(live.timeouts.upstream_keepalive_ms),
    }
}

const fn of(limit: Limit, timeout: NetworkFailure) -> Bound {
    Bound { until: Some(limit.until), time: limit.time, timeout }
}

fn least<const N: usize>(times: [Option<Duration>; N]) -> Option<Duration> {
    times.into_iter().flatten().min()
}

/// 0 = none.
fn bound(ms: u64) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(ms))
}
