//! How long each part of one attempt may take.

use std::time::{Duration, Instant};

use super::wire::Bound;
use crate::config::Live;
use crate::domain::provider::Provider;
use crate::policy::classify::NetworkFailure;
use crate::upstream::pool::LinkTimes;

/// The bounds of one attempt.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Timing {
    /// Until the first meaningful part of the reply. Streams only.
    first_content: Option<Instant>,
    /// Between meaningful parts of a stream.
    idle: Option<Duration>,
    /// For the whole attempt. Replies in one piece only.
    whole: Option<Instant>,
}

impl Timing {
    /// `deadline` bounds the first byte of a stream over all attempts. A reply in one piece has its
    /// own bound; the deadline then only prevents further attempts.
    #[must_use]
    pub(super) fn start(
        provider: &Provider,
        live: &Live,
        stream: bool,
        deadline: Option<Instant>,
    ) -> Self {
        let now = Instant::now();
        let (own, defaults) = (provider.timeouts, live.timeouts);
        let after = |own: Option<u64>, default: u64| bound(own.unwrap_or(default));
        if stream {
            let first = after(own.first_byte_streaming_ms, defaults.first_byte_streaming_ms)
                .map(|d| now + d);
            let first_content = [first, deadline].into_iter().flatten().min();
            let idle = after(own.streaming_idle_ms, defaults.streaming_idle_ms);
            return Self { first_content, idle, whole: None };
        }
        let whole =
            after(own.request_non_streaming_ms, defaults.request_non_streaming_ms).map(|d| now + d);
        Self { first_content: None, idle: None, whole }
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

/// 0 = none.
fn bound(ms: u64) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(ms))
}
