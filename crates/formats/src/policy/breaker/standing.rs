//! A circuit's state as it is sent to other nodes, and stored for the next process.

use super::{Breaker, Change, CircuitState, Suspects};
use crate::domain::clock::Timestamp;

/// The state of a circuit that nodes exchange, without the counts that are local to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    state: CircuitState,
    /// In a row, at the time of the change.
    pub failures: u32,
    /// In a row, over all nodes: they take turns to probe.
    pub failed_probes: u32,
    /// The users whose requests failed in a way that one client alone can cause.
    suspects: Suspects,
    /// When a reply last completed, which clears them.
    last_success: Option<Timestamp>,
}

impl Standing {
    /// Whether both have the same state, ignoring counts.
    pub fn same_state(&self, other: &Self) -> bool {
        self.state == other.state
    }

    /// Whether both have the same suspects.
    pub fn same_suspects(&self, other: &Self) -> bool {
        self.suspects.same_users(&other.suspects)
    }

    /// Whether there are suspects.
    pub fn has_suspects(&self) -> bool {
        self.suspects.count() > 0
    }

    /// Whether the circuit is closed, whatever its counts.
    pub fn is_closed(&self) -> bool {
        self.state == CircuitState::Closed
    }

    /// `closed`, `open UNTIL` or `half SINCE SUCCESSES PROBE` (times in ms, `-` for none), after
    /// the failures. Failed probes, the last success and the suspects follow at the end, if there
    /// are any.
    pub fn to_text(self) -> String {
        let failures = self.failures;
        let text = match self.state {
            CircuitState::Closed => format!("{failures} closed"),
            CircuitState::Open { until } => format!("{failures} open {}", until.0),
            CircuitState::HalfOpen { since, successes, probe } => {
                let probe = probe.map_or_else(|| "-".to_owned(), |began| began.0.to_string());
                format!("{failures} half {} {successes} {probe}", since.0)
            }
        };
        let probes = self.failed_probes;
        match (self.last_success, self.has_suspects()) {
            (None, false) if probes == 0 => text,
            (None, false) => format!("{text} {probes}"),
            (success, _) => {
                let success = success.map_or_else(|| "-".to_owned(), |at| at.0.to_string());
                format!("{text} {probes} {success} {}", self.suspects.to_text())
            }
        }
    }

    /// Reads what [`Self::to_text`] writes; `None` for any other text.
    pub fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let failures = words.next()?.parse().ok()?;
        let state = match words.next()? {
            "closed" => CircuitState::Closed,
            "open" => CircuitState::Open { until: Timestamp(words.next()?.parse().ok()?) },
            "half" => CircuitState::HalfOpen {
                since: Timestamp(words.next()?.parse().ok()?),
                successes: words.next()?.parse().ok()?,
                probe: match words.next()? {
                    "-" => None,
                    began => Some(Timestamp(began.parse().ok()?)),
                },
            },
            _ => return None,
        };
        let failed_probes = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        let last_success = words.next().and_then(|word| word.parse().ok()).map(Timestamp);
        let suspects = words.next().map(Suspects::read).unwrap_or_default();
        Some(Self { state, failures, failed_probes, suspects, last_success })
    }
}

impl Breaker {
    /// The state for other nodes and for the next process.
    pub const fn standing(&self) -> Standing {
        let (suspects, last_success) = (self.suspects, self.last_success);
        let (state, failures, failed_probes) = (self.state, self.failures, self.failed_probes);
        Standing { state, failures, failed_probes, suspects, last_success }
    }

    /// Takes over the suspects that another node reports, and drops those from before its last
    /// success.
    pub fn hear_suspects(&mut self, reported: &Standing) {
        let success = self.last_success.max(reported.last_success);
        let mut theirs = reported.suspects;
        theirs.drop_before(success);
        self.suspects.drop_before(success);
        self.suspects.merge(&theirs);
        if self.suspects.count() == 0 {
            self.suspected = 0;
        }
    }

    /// Applies the state that another node sent. If the state changes, tickets issued before have
    /// no effect any more.
    pub fn adopt(&mut self, reported: Standing) -> Change {
        if reported.state == self.state {
            return Change::None;
        }
        let was_closed = self.state == CircuitState::Closed;
        let same_kind = matches!(
            (self.state, reported.state),
            (CircuitState::HalfOpen { .. }, CircuitState::HalfOpen { .. })
        );
        if same_kind {
            self.state = reported.state
        } else {
            self.enter(reported.state)
        }
        (self.failures, self.failed_probes) = (reported.failures, reported.failed_probes);
        match reported.state {
            CircuitState::Closed => Change::Closed,
            CircuitState::Open { until } if was_closed => Change::Opened { until },
            CircuitState::Open { .. } | CircuitState::HalfOpen { .. } => Change::None,
        }
    }
}
