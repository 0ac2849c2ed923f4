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
//! Every request that is let through carries a [`Ticket`], and hands it back with its end. A ticket from an earlier state
//! changes nothing: a slow request that began before the circuit opened neither closes nor re-opens it.

use crate::domain::clock::Timestamp;
use crate::domain::provider::BreakerSettings;

/// A probe that has not ended after this long is taken for lost, and another may go. (Long replies may outlive it: two
/// probes at once do no harm.)
pub const PROBE_LEASE_MS: i64 = 120_000;

/// One provider's circuit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Breaker {
    state: State,
    /// Counts the changes of state; tickets carry it.
    generation: u32,
    /// In a row, since the last success.
    failures: u32,
    /// In a row, since the last failure.
    successes: u32,
    last_failure: Option<Timestamp>,
    last_success: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Closed,
    Open {
        until: Timestamp,
    },
    HalfOpen {
        /// When the circuit would have been tried: kept for the health record.
        since: Timestamp,
        successes: u32,
        /// When the running probe began.
        probe: Option<Timestamp>,
    },
}

/// Leave to send one request; goes back with [`Breaker::succeeded`], [`Breaker::failed`] or [`Breaker::gave_up`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a probe's ticket blocks other probes until it is handed back"]
pub struct Ticket {
    generation: u32,
    is_probe: bool,
}

impl Ticket {
    /// Whether the request decides over a half-open circuit.
    #[must_use]
    pub const fn is_probe(self) -> bool {
        self.is_probe
    }
}

/// What [`Breaker::look`] sees, without taking a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// Closed: requests pass.
    Pass,
    /// The next request would be the probe.
    Probe,
    Refuse {
        until: Timestamp,
    },
}

/// What nodes tell one another of a circuit: its state, without the counts that only concern the node that has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    state: State,
    /// In a row, when it changed.
    pub failures: u32,
}

/// What a request's end, or an administrator, did to the circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    None,
    Opened { until: Timestamp },
    Closed,
}

/// The figures of a health record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSnapshot {
    /// `OPEN` on the wire (a half-open circuit too), else `CLOSED`.
    pub open: bool,
    /// The open duration is over: probes decide.
    pub half_open: bool,
    /// In a row.
    pub failure_count: u32,
    /// In a row.
    pub success_count: u32,
    pub last_failure: Option<Timestamp>,
    pub last_success: Option<Timestamp>,
    /// When open: the end of the open duration (past, when half open).
    pub open_until: Option<Timestamp>,
    pub recovers_in_ms: Option<i64>,
}

impl Standing {
    /// Whether both say the same, counts aside.
    #[must_use]
    pub fn same_state(&self, other: &Self) -> bool {
        self.state == other.state
    }

    /// `closed`, `open UNTIL` or `half SINCE SUCCESSES PROBE` (times in ms, `-` for none), and the failures.
    #[must_use]
    pub fn to_text(self) -> String {
        let failures = self.failures;
        match self.state {
            State::Closed => format!("{failures} closed"),
            State::Open { until } => format!("{failures} open {}", until.0),
            State::HalfOpen { since, successes, probe } => {
                let probe = probe.map_or_else(|| "-".to_owned(), |began| began.0.to_string());
                format!("{failures} half {} {successes} {probe}", since.0)
            }
        }
    }

    /// Reads [`Self::to_text`].
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let failures = words.next()?.parse().ok()?;
        let state = match words.next()? {
            "closed" => State::Closed,
            "open" => State::Open { until: Timestamp(words.next()?.parse().ok()?) },
            "half" => State::HalfOpen {
                since: Timestamp(words.next()?.parse().ok()?),
                successes: words.next()?.parse().ok()?,
                probe: match words.next()? {
                    "-" => None,
                    began => Some(Timestamp(began.parse().ok()?)),
                },
            },
            _ => return None,
        };
        Some(Self { state, failures })
    }
}

impl Breaker {
    /// Whether a request would be let through; changes nothing. For selection and for showing.
    #[must_use]
    pub fn look(&self, now: Timestamp) -> Outlook {
        match self.state {
            State::Closed => Outlook::Pass,
            State::Open { until } if now < until => Outlook::Refuse { until },
            State::Open { .. } => Outlook::Probe,
            State::HalfOpen { probe: Some(began), .. } if now < began.plus_ms(PROBE_LEASE_MS) => {
                // The probe may end at any moment: worth another look in a second.
                Outlook::Refuse { until: now.plus_ms(1_000) }
            }
            State::HalfOpen { .. } => Outlook::Probe,
        }
    }

    /// Lets a request through, or says until when it is refused. Moves an open circuit whose time has come to half open.
    ///
    /// # Errors
    /// The time until which nothing passes.
    pub fn admit(&mut self, now: Timestamp) -> Result<Ticket, Timestamp> {
        match self.look(now) {
            Outlook::Pass => Ok(self.ticket(false)),
            Outlook::Refuse { until } => Err(until),
            Outlook::Probe => {
                let (since, successes) = match self.state {
                    State::HalfOpen { since, successes, .. } => (since, successes),
                    State::Open { until } => {
                        self.generation = self.generation.wrapping_add(1);
                        (until, 0)
                    }
                    State::Closed => (now, 0),
                };
                self.state = State::HalfOpen { since, successes, probe: Some(now) };
                Ok(self.ticket(true))
            }
        }
    }

    /// A reply reached its proper end.
    pub fn succeeded(&mut self, ticket: Ticket, now: Timestamp, settings: &BreakerSettings) -> Change {
        self.last_success = self.last_success.max(Some(now));
        if ticket.generation != self.generation {
            return Change::None;
        }
        self.failures = 0;
        self.successes = self.successes.saturating_add(1);
        match self.state {
            State::HalfOpen { since, successes, .. } => {
                let successes = successes + 1;
                if successes >= settings.half_open_success_threshold {
                    self.enter(State::Closed);
                    return Change::Closed;
                }
                self.state = State::HalfOpen { since, successes, probe: None };
                Change::None
            }
            State::Closed | State::Open { .. } => Change::None,
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
            State::Closed => settings.failure_threshold > 0 && self.failures >= settings.failure_threshold,
            State::HalfOpen { .. } => true,
            State::Open { .. } => false,
        };
        if !trips {
            return Change::None;
        }
        let until = now.plus_ms(i64::try_from(settings.open_duration_ms).unwrap_or(i64::MAX));
        self.enter(State::Open { until });
        Change::Opened { until }
    }

    /// A request ended without saying anything about the provider (the client left, or erred): a probe's place is free again.
    pub fn gave_up(&mut self, ticket: Ticket) {
        if ticket.is_probe
            && ticket.generation == self.generation
            && let State::HalfOpen { probe, .. } = &mut self.state
        {
            *probe = None;
        }
    }

    /// An administrator's reset: closed, with zero counts.
    pub fn reset(&mut self) -> Change {
        let was_open = self.state != State::Closed;
        self.enter(State::Closed);
        (self.failures, self.successes) = (0, 0);
        if was_open { Change::Closed } else { Change::None }
    }

    /// For other nodes.
    #[must_use]
    pub const fn standing(&self) -> Standing {
        Standing { state: self.state, failures: self.failures }
    }

    /// Takes over what another node tells. Tickets given out before change nothing any more if the state is another one.
    pub fn adopt(&mut self, told: Standing) -> Change {
        if told.state == self.state {
            return Change::None;
        }
        let was_closed = self.state == State::Closed;
        let same_kind = matches!((self.state, told.state), (State::HalfOpen { .. }, State::HalfOpen { .. }));
        if same_kind {
            self.state = told.state
        } else {
            self.enter(told.state)
        }
        self.failures = told.failures;
        match told.state {
            State::Closed => Change::Closed,
            State::Open { until } if was_closed => Change::Opened { until },
            State::Open { .. } | State::HalfOpen { .. } => Change::None,
        }
    }

    #[must_use]
    pub fn snapshot(&self, now: Timestamp) -> BreakerSnapshot {
        let (open_until, half_open) = match self.state {
            State::Closed => (None, false),
            State::Open { until } => (Some(until), until <= now),
            State::HalfOpen { since, .. } => (Some(since), true),
        };
        BreakerSnapshot {
            open: open_until.is_some(),
            half_open,
            failure_count: self.failures,
            success_count: self.successes,
            last_failure: self.last_failure,
            last_success: self.last_success,
            open_until,
            recovers_in_ms: open_until.map(|until| until.since(now).max(0)),
        }
    }

    /// Closed, and nothing to remember: such a breaker may be dropped.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.state == State::Closed && self.failures == 0
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.generation = self.generation.wrapping_add(1);
    }

    const fn ticket(&self, is_probe: bool) -> Ticket {
        Ticket { generation: self.generation, is_probe }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: BreakerSettings =
        BreakerSettings { failure_threshold: 3, open_duration_ms: 1_000, half_open_success_threshold: 2 };

    fn at(ms: i64) -> Timestamp {
        Timestamp(ms)
    }

    fn opened() -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 0..3 {
            let ticket = breaker.admit(at(0)).unwrap();
            breaker.failed(ticket, at(0), &SETTINGS);
        }
        breaker
    }

    #[test]
    fn failures_in_a_row_open_and_a_success_starts_the_count_anew() {
        let mut breaker = Breaker::default();
        let mut end = |ok: bool, now| {
            let ticket = breaker.admit(at(now)).unwrap();
            if ok { breaker.succeeded(ticket, at(now), &SETTINGS) } else { breaker.failed(ticket, at(now), &SETTINGS) }
        };
        let changes: Vec<_> = [false, false, true, false, false].map(|ok| end(ok, 5)).to_vec();
        assert_eq!(changes, [Change::None; 5]);
        assert_eq!(end(false, 6), Change::Opened { until: at(1_006) });
        assert_eq!(breaker.admit(at(1_005)), Err(at(1_006)));
    }

    #[test]
    fn one_probe_at_a_time_until_the_threshold_closes() {
        let mut breaker = opened();
        assert_eq!(breaker.look(at(999)), Outlook::Refuse { until: at(1_000) });
        let probe = breaker.admit(at(1_000)).unwrap();
        assert!(probe.is_probe());
        assert!(breaker.admit(at(1_001)).is_err(), "the first probe still runs");
        assert_eq!(breaker.succeeded(probe, at(1_500), &SETTINGS), Change::None);
        let probe = breaker.admit(at(1_501)).unwrap();
        assert_eq!(breaker.succeeded(probe, at(1_600), &SETTINGS), Change::Closed);
        assert!(!breaker.admit(at(1_601)).unwrap().is_probe());
        assert!(breaker.is_idle());
    }

    #[test]
    fn a_failed_probe_opens_again_for_the_whole_duration() {
        let mut breaker = opened();
        let probe = breaker.admit(at(2_000)).unwrap();
        assert_eq!(breaker.failed(probe, at(2_100), &SETTINGS), Change::Opened { until: at(3_100) });
        let probe = breaker.admit(at(3_100)).unwrap();
        let _ = breaker.succeeded(probe, at(3_200), &SETTINGS);
        let probe = breaker.admit(at(3_201)).unwrap();
        assert_eq!(
            breaker.failed(probe, at(3_300), &SETTINGS),
            Change::Opened { until: at(4_300) },
            "successes in a row"
        );
    }

    #[test]
    fn ends_of_requests_from_an_earlier_state_change_nothing() {
        let mut breaker = Breaker::default();
        let (early, late) = (breaker.admit(at(0)).unwrap(), breaker.admit(at(0)).unwrap());
        for _ in 0..3 {
            let ticket = breaker.admit(at(0)).unwrap();
            breaker.failed(ticket, at(0), &SETTINGS);
        }
        let before = breaker.look(at(500));
        assert_eq!(breaker.succeeded(early, at(500), &SETTINGS), Change::None);
        assert_eq!(breaker.look(at(500)), before);
        let probe = breaker.admit(at(1_000)).unwrap();
        assert_eq!(breaker.failed(late, at(1_100), &SETTINGS), Change::None, "does not fail the probe");
        assert_eq!(breaker.succeeded(probe, at(1_200), &SETTINGS), Change::None);
        assert!(breaker.snapshot(at(1_200)).half_open);
    }

    #[test]
    fn a_probe_whose_client_left_or_that_was_lost_frees_its_place() {
        let mut breaker = opened();
        let probe = breaker.admit(at(1_000)).unwrap();
        breaker.gave_up(probe);
        let _lost = breaker.admit(at(1_001)).unwrap();
        assert!(breaker.admit(at(1_001 + PROBE_LEASE_MS - 1)).is_err());
        assert!(breaker.admit(at(1_001 + PROBE_LEASE_MS)).unwrap().is_probe());
    }

    #[test]
    fn a_threshold_of_zero_never_opens() {
        let never = BreakerSettings { failure_threshold: 0, ..SETTINGS };
        let mut breaker = Breaker::default();
        for _ in 0..1_000 {
            let ticket = breaker.admit(at(0)).unwrap();
            assert_eq!(breaker.failed(ticket, at(0), &never), Change::None);
        }
        assert_eq!(breaker.snapshot(at(0)).failure_count, 1_000);
    }

    #[test]
    fn the_snapshot_tells_the_state_and_a_reset_clears_it() {
        let mut breaker = opened();
        let shown = breaker.snapshot(at(400));
        assert_eq!((shown.open, shown.half_open, shown.failure_count), (true, false, 3));
        assert_eq!((shown.open_until, shown.recovers_in_ms), (Some(at(1_000)), Some(600)));
        assert!(breaker.snapshot(at(1_000)).half_open, "its time has come, even before a request asks");
        assert_eq!(breaker.reset(), Change::Closed);
        let shown = breaker.snapshot(at(500));
        assert_eq!((shown.open, shown.failure_count, shown.open_until), (false, 0, None));
        assert_eq!(shown.last_failure, Some(at(0)));
    }

    #[test]
    fn what_one_node_tells_another_takes_over() {
        let (mut here, mut there) = (opened(), Breaker::default());
        let tell = |from: &Breaker| {
            let told = Standing::read(&from.standing().to_text());
            assert_eq!(told, Some(from.standing()));
            told.unwrap()
        };
        assert_eq!(there.adopt(tell(&here)), Change::Opened { until: at(1_000) });
        assert_eq!(there.admit(at(999)), Err(at(1_000)));
        assert_eq!(there.adopt(tell(&here)), Change::None, "known already");
        let probe = here.admit(at(1_000)).unwrap();
        there.adopt(tell(&here));
        assert!(there.admit(at(1_001)).is_err(), "one probe at a time");
        here.succeeded(probe, at(1_002), &SETTINGS);
        there.adopt(tell(&here));
        let probe = there.admit(at(1_003)).unwrap();
        assert_eq!(
            there.succeeded(probe, at(1_004), &SETTINGS),
            Change::Closed,
            "the second success, of both together"
        );
        assert_eq!(here.adopt(tell(&there)), Change::Closed);
        assert_eq!(Standing::read("3 ajar"), None);
    }
}
