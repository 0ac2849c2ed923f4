//! A circuit as a health record shows it.

use super::{Breaker, CircuitState};
use crate::domain::clock::Timestamp;

/// The figures of a health record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerFigures {
    /// `OPEN` on the wire (a half-open circuit too), else `CLOSED`.
    pub open: bool,
    /// The open duration is over: probes decide.
    pub half_open: bool,
    /// Failures in a row, since the last success.
    pub failure_count: u32,
    /// Successes in a row, since the last failure.
    pub success_count: u32,
    /// Failed probes in a row, since the circuit was last closed or a probe succeeded.
    pub failed_probes: u32,
    /// The last attempt that failed and counted. It stays when the circuit closes.
    pub last_failure: Option<Timestamp>,
    /// The last attempt that succeeded.
    pub last_success: Option<Timestamp>,
    /// When open: the end of the open duration (past, when half open).
    pub open_until: Option<Timestamp>,
    /// Milliseconds until `open_until`, 0 when half open; `None` if closed.
    pub recovers_in_ms: Option<i64>,
}

impl Breaker {
    /// The figures to show at a given time.
    pub fn figures(&self, now: Timestamp) -> BreakerFigures {
        let (open_until, half_open) = match self.state {
            CircuitState::Closed => (None, false),
            CircuitState::Open { until } => (Some(until), until <= now),
            CircuitState::HalfOpen { since, .. } => (Some(since), true),
        };
        BreakerFigures {
            open: open_until.is_some(),
            half_open,
            failure_count: self.failures,
            success_count: self.successes,
            failed_probes: self.failed_probes,
            last_failure: self.last_failure,
            last_success: self.last_success,
            open_until,
            recovers_in_ms: open_until.map(|until| until.since(now).max(0)),
        }
    }
}
