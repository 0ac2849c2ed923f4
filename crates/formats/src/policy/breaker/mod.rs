//! A provider's circuit breaker, as a pure state machine.
//!
//! ```text
//!            failures in a row ≥ threshold
//!   CLOSED ───────────────────────────────► OPEN ◄──────────────┐
//!     ▲                                      │ open duration    │ a probe failed
//!     │                                      ▼ has passed       │
//!     └──────────────────────────────── HALF OPEN ──────────────┘
//!        probe successes in a row ≥ threshold   (one probe at a time)
//! ```
//!
//! Every admitted request carries a [`Ticket`], and returns it at its end. A ticket from an earlier
//! state has no effect: a slow request that began before the circuit opened neither closes nor
//! re-opens it.
//!
//! Failures that one client alone can cause count once the requests of several users have failed so
//! since the last success ([`Breaker::suspected`]): no user can open a circuit for all.

mod shown;
mod standing;
mod suspects;
#[cfg(test)]
mod tests;

pub use shown::BreakerFigures;
pub use standing::Standing;
pub use suspects::{Suspect, Suspects, USERS_NEEDED};

use crate::domain::clock::Timestamp;
use crate::domain::provider::BreakerSettings;

/// A probe that has not ended after this time counts as lost, and another is admitted. (A long
/// reply may take longer: two probes at once do no harm.)
pub const PROBE_LEASE_MS: i64 = 120_000;

/// One provider's circuit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Breaker {
    state: CircuitState,
    /// Counts the changes of state; tickets carry its value.
    generation: u32,
    /// In a row, since the last success.
    failures: u32,
    /// In a row, since the last failure.
    successes: u32,
    /// In a row, since the circuit was last closed or a probe succeeded.
    failed_probes: u32,
    last_failure: Option<Timestamp>,
    last_success: Option<Timestamp>,
    /// Since the last success.
    suspects: Suspects,
    /// Failures that do not count yet, since the last success.
    suspected: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum CircuitState {
    #[default]
    Closed,
    Open {
        until: Timestamp,
    },
    HalfOpen {
        /// When the circuit would have been tried: kept for the health record.
        since: Timestamp,
        successes: u32,
        /// When the current probe began.
        probe: Option<Timestamp>,
    },
}

/// A permit for one request; returned with [`Breaker::succeeded`], [`Breaker::failed`] or
/// [`Breaker::gave_up`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a probe's ticket blocks other probes until it is handed back"]
pub struct Ticket {
    generation: u32,
    is_probe: bool,
}

impl Ticket {
    /// Whether the request decides about a half-open circuit.
    pub const fn is_probe(self) -> bool {
        self.is_probe
    }
}

/// The result of [`Breaker::look`], which takes no ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// Closed: requests pass.
    Pass,
    /// The next request would be the probe.
    Probe,
    /// Open, or half-open with a probe in flight: no request passes.
    Refuse {
        /// When to look again: the end of the open duration; while a probe is in flight, a second
        /// from now.
        until: Timestamp,
    },
}

/// The effect of a request's end, or of an administrator, on the circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The circuit is in the same state as before, or its change concerns no other component.
    None,
    /// The circuit opened, or a failed probe opened it again.
    Opened {
        /// No request passes before this time.
        until: Timestamp,
    },
    /// The circuit closed.
    Closed,
}

impl Breaker {
    /// Whether a request would be admitted; changes nothing. For selection and display.
    pub fn look(&self, now: Timestamp) -> Outlook {
        match self.state {
            CircuitState::Closed => Outlook::Pass,
            CircuitState::Open { until } if now < until => Outlook::Refuse { until },
            CircuitState::Open { .. } => Outlook::Probe,
            CircuitState::HalfOpen { probe: Some(began), .. }
                if now < began.plus_ms(PROBE_LEASE_MS) =>
            {
                // The probe may end at any moment: check again in a second.
                Outlook::Refuse { until: now.plus_ms(1_000) }
            }
            CircuitState::HalfOpen { .. } => Outlook::Probe,
        }
    }

    /// Admits a request, or returns until when it is refused. Moves an open circuit to half open
    /// when its time is over.
    ///
    /// # Errors
    /// The time until which no request is admitted.
    pub fn admit(&mut self, now: Timestamp) -> Result<Ticket, Timestamp> {
        match self.look(now) {
            Outlook::Pass => Ok(self.ticket(false)),
            Outlook::Refuse { until } => Err(until),
            Outlook::Probe => {
                let (since, successes) = match self.state {
                    CircuitState::HalfOpen { since, successes, .. } => (since, successes),
                    CircuitState::Open { until } => {
                        self.generation = self.generation.wrapping_add(1);
                        (until, 0)
                    }
                    CircuitState::Closed => (now, 0),
                };
                self.state = CircuitState::HalfOpen { since, successes, probe: Some(now) };
                Ok(self.ticket(true))
            }
        }
    }

    /// A reply completed.
    pub fn succeeded(
        &mut self,
        ticket: Ticket,
        now: Timestamp,
        settings: &BreakerSettings,
    ) -> Change {
        self.last_success = self.last_success.max(Some(now));
        (self.suspects, self.suspected) = (Suspects::default(), 0);
        if ticket.generation != self.generation {
            return Change::None;
        }
        self.failures = 0;
        self.successes = self.successes.saturating_add(1);
        match self.state {
            CircuitState::HalfOpen { since, successes, .. } => {
                self.failed_probes = 0;
                let successes = successes + 1;
                if successes >= settings.half_open_success_threshold {
                    self.enter(CircuitState::Closed);
                    return Change::Closed;
                }
                self.state = CircuitState::HalfOpen { since, successes, probe: None };
                Change::None
            }
            CircuitState::Closed | CircuitState::Open { .. } => Change::None,
        }
    }

    /// An attempt failed in a way that counts.
    pub fn failed(&mut self, ticket: Ticket, now: Timestamp, settings: &BreakerSettings) -> Change {
        self.last_failure = self.last_failure.max(Some(now));
        if ticket.generation != self.generation {
            return Change::None;
        }
        self.failures = self.failures.saturating_add(1);
        self.successes = 0;
        let trips = match self.state {
            CircuitState::Closed => {
                settings.failure_threshold > 0 && self.failures >= settings.failure_threshold
            }
            CircuitState::HalfOpen { .. } => {
                self.failed_probes = self.failed_probes.saturating_add(1);
                true
            }
            CircuitState::Open { .. } => false,
        };
        if !trips {
            return Change::None;
        }
        let until = now.plus_ms(i64::try_from(settings.open_duration_ms).unwrap_or(i64::MAX));
        self.enter(CircuitState::Open { until });
        Change::Opened { until }
    }

    /// An attempt failed in a way that one client alone can cause. It counts, with those before it,
    /// once the requests of enough users have failed so. Until then it says nothing about the
    /// provider, also as a probe.
    pub fn suspected(
        &mut self,
        ticket: Ticket,
        now: Timestamp,
        settings: &BreakerSettings,
        by: Suspect,
    ) -> Change {
        self.suspects.add(by.user, now);
        if self.suspects.count() < by.needed {
            self.suspected = self.suspected.saturating_add(1);
            self.gave_up(ticket);
            return Change::None;
        }
        self.failures = self.failures.saturating_add(std::mem::take(&mut self.suspected));
        self.failed(ticket, now, settings)
    }

    /// How many users' requests have failed so, with this one.
    pub fn suspects_with(&self, by: Suspect, now: Timestamp) -> usize {
        let mut suspects = self.suspects;
        suspects.add(by.user, now);
        suspects.count()
    }

    /// A request ended without evidence about the provider (the client closed the connection, or
    /// its request was invalid): a probe's place is free again.
    pub fn gave_up(&mut self, ticket: Ticket) {
        if ticket.is_probe
            && ticket.generation == self.generation
            && let CircuitState::HalfOpen { probe, .. } = &mut self.state
        {
            *probe = None;
        }
    }

    /// An administrator's reset: closed, with zero counts.
    pub fn reset(&mut self) -> Change {
        let was_open = self.state != CircuitState::Closed;
        self.enter(CircuitState::Closed);
        (self.failures, self.successes, self.failed_probes) = (0, 0, 0);
        (self.suspects, self.suspected) = (Suspects::default(), 0);
        if was_open { Change::Closed } else { Change::None }
    }

    /// The provider has a new address or credential: its past no longer matters. Tickets issued
    /// before have no effect.
    pub fn renew(&mut self) -> Change {
        let was_open = self.state != CircuitState::Closed;
        *self = Self { generation: self.generation.wrapping_add(1), ..Self::default() };
        if was_open { Change::Closed } else { Change::None }
    }

    /// Moves the times of the circuit by `ms` milliseconds, after the clock was set.
    pub fn shift(&mut self, ms: i64) {
        let times = match &mut self.state {
            CircuitState::Closed => [None, None],
            CircuitState::Open { until } => [Some(until), None],
            CircuitState::HalfOpen { since, probe, .. } => [Some(since), probe.as_mut()],
        };
        let seen = [self.last_failure.as_mut(), self.last_success.as_mut()];
        for time in times.into_iter().chain(seen).flatten() {
            *time = time.plus_ms(ms);
        }
        self.suspects.shift(ms);
    }

    fn enter(&mut self, state: CircuitState) {
        self.state = state;
        self.generation = self.generation.wrapping_add(1);
    }

    const fn ticket(&self, is_probe: bool) -> Ticket {
        Ticket { generation: self.generation, is_probe }
    }
}
