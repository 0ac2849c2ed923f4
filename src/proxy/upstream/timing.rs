//! How long each part of one attempt may take.

use std::time::{Duration, Instant};

use super::wire::Bound;
use crate::config::Live;
use crate::domain::provider::Provider;
use crate::policy::classify::NetworkFailure;
use crate::upstream::pool::LinkTimes;

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
    /// Until the first meaningful part of the reply. Streams only.
    first_content: Option<Instant>,
    /// Between meaningful parts of a stream.
    idle: Option<Duration>,
    /// For the whole attempt. Replies in one piece only.
    whole: Option<Instant>,
}

impl Timing {
    /// The deadline bounds the first byte of a stream over all attempts. If nothing of it would be
    /// left for another provider, this one has half of the rest. A reply in one piece has its
    /// own bound; the deadline then only prevents further attempts.
    #[must_use]
    pub(super) fn start(provider: &Provider, live: &Live, stream: bool, left: TimeLeft) -> Self {
        let now = Instant::now();
        let (own, defaults) = (provider.timeouts, live.timeouts);
        let time = |own: Option<u64>, default: u64| bound(own.unwrap_or(default));
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
                first_content: granted.map(|d| now + d),
                idle: time(own.streaming_idle_ms, defaults.streaming_idle_ms),
                whole: None,
            };
        }
        let whole = time(own.request_non_streaming_ms, defaults.request_non_streaming_ms);
        Self { whole: whole.map(|d| now + d), ..Self::default() }
    }

    /// Extends the bound of the whole attempt by the time in which the client took nothing.
    pub(super) fn extend(&mut self, by: Duration) {
        self.whole = self.whole.map(|at| at + by);
    }

    /// How long to wait for the head, or for the first meaningful part.
    #[must_use]
    pub(super) fn until_content(&self) -> Bound {
        let until = [self.first_content, self.whole].into_iter().flatten().min();
        let timeout = if self.whole.is_some() {
            NetworkFailure::TotalTimeout
        } else {
            NetworkFailure::FirstByteTimeout
        };
        Bound { time: until.map(|at| at.saturating_duration_since(Instant::now())), timeout }
    }

    /// How long to wait for the next part, if the last meaningful one came at `last`.
    #[must_use]
    pub(super) fn until_next(&self, last: Instant) -> Bound {
        let until = [self.idle.map(|idle| last + idle), self.whole].into_iter().flatten().min();
        let timeout = if self.whole.is_some() {
            NetworkFailure::TotalTimeout
        } else {
            NetworkFailure::IdleTimeout
        };
        Bound { time: until.map(|at| at.saturating_duration_since(Instant::now())), timeout }
    }
}

/// Bounds of the connection itself.
#[must_use]
pub(super) fn link_times(live: &Live) -> LinkTimes {
    LinkTimes {
        connect: bound(live.timeouts.connect_ms),
        tls: bound(live.timeouts.tls_ms),
        keepalive: Duration::from_millis(live.timeouts.upstream_keepalive_ms),
    }
}

fn least<const N: usize>(times: [Option<Duration>; N]) -> Option<Duration> {
    times.into_iter().flatten().min()
}

/// 0 = none.
fn bound(ms: u64) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(ms))
}
