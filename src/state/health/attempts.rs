//! The attempts at one provider: counts, the last error, what opened the circuit, and the time of
//! the last log line.
//!
//! It is part of the provider's entry in [`super`], under its lock, and local to this
//! process: other nodes have their own attempts.

use std::sync::Arc;

use crate::domain::clock::Timestamp;
use crate::domain::provider::Provider;
use crate::domain::secret::Secret;
use crate::policy::failure::FailureKind;
use crate::policy::provider_state::{Attempts, ProviderState, Recent};

/// Interval between two log lines about a failing provider.
const LINE_MS: i64 = 60_000;
/// Failed attempts in a row after which a notification reports the provider as failing.
const REPORTED_AFTER: u32 = 3;
/// Characters of an error that are stored.
const ERROR_CHARS: usize = 300;

/// A failed attempt, as the data plane reports it.
#[derive(Debug, Clone, Copy)]
pub struct Failed<'a> {
    /// How the attempt failed, as one of a few kinds.
    pub kind: FailureKind,
    /// The provider's status, if one was received.
    pub status: Option<u16>,
    /// The provider's error text, or why there was no reply; may be long and may hold the
    /// credential.
    pub message: &'a str,
}

/// A failed attempt as it is stored and shown: bounded, without the provider's credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptError {
    /// How the attempt failed, as one of a few kinds.
    pub kind: FailureKind,
    /// The provider's status; `None` if there was no reply.
    pub status: Option<u16>,
    /// At most 300 characters, on one line; the provider's credential is replaced by `***`.
    pub message: Box<str>,
    /// When the attempt failed.
    pub at: Timestamp,
}

impl AttemptError {
    /// Bounds the text of `failed`, and masks the credential of `provider` in it.
    pub fn new(provider: &Provider, failed: Failed<'_>, at: Timestamp) -> Self {
        let hide = |text: String, secret: &Secret| text.replace(secret.expose(), "***");
        let open = provider
            .secrets()
            .filter(|secret| secret.is_searched_for())
            .fold(failed.message.to_owned(), hide);
        let plain = open.chars().map(|c| if c.is_control() { ' ' } else { c });
        let message: String = plain.take(ERROR_CHARS).collect();
        Self { kind: failed.kind, status: failed.status, message: message.into(), at }
    }
}

/// A provider's attempts as shown.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The state for display, with circuit and cooldown.
    pub state: ProviderState,
    /// The last failed attempt, also when others succeeded since; `None` = none on this process.
    pub last_error: Option<Arc<AttemptError>>,
    /// What opened the circuit, while it is open. `None` if another node or process opened it.
    pub open_reason: Option<Arc<AttemptError>>,
    /// The first failed attempt since the last success; `None` if the last attempt succeeded.
    pub failing_since: Option<Timestamp>,
    /// Failed attempts since the last success.
    pub failed_in_a_row: u32,
    /// Attempts of the last five minutes, and those of them that failed.
    pub recent: Recent,
    /// The cooldown's end, if there is one.
    pub cooldown_until: Option<Timestamp>,
    /// The open circuit's end.
    pub open_until: Option<Timestamp>,
}

/// What to do after an attempt's end, once the lock is released.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Noted {
    /// Write a log line about this many failures since the last one.
    pub(super) line: Option<u32>,
    /// The provider began or stopped failing.
    pub(super) turned: bool,
    /// Notifications are due.
    pub(super) reported: bool,
    pub(super) in_a_row: u32,
}

#[derive(Debug, Default)]
pub(super) struct AttemptLog {
    attempts: Attempts,
    last_error: Option<Arc<AttemptError>>,
    open_reason: Option<Arc<AttemptError>>,
    last_line: Option<Timestamp>,
    /// Failures since the last log line.
    unlogged: u32,
    /// A notification of the failures was sent.
    reported: bool,
}

impl AttemptLog {
    pub(super) fn succeeded(&mut self, now: Timestamp) -> Noted {
        let turned = self.attempts.succeeded(now);
        Noted { turned, reported: std::mem::take(&mut self.reported), ..Noted::default() }
    }

    pub(super) fn failed(&mut self, now: Timestamp, error: Arc<AttemptError>) -> Noted {
        let in_a_row = self.attempts.failed(now);
        self.last_error = Some(error);
        self.unlogged = self.unlogged.saturating_add(1);
        let due = !self.last_line.is_some_and(|last| now.is_within(LINE_MS, last));
        let line = due.then(|| {
            self.last_line = Some(now);
            std::mem::take(&mut self.unlogged)
        });
        let reported = in_a_row >= REPORTED_AFTER
            && !std::mem::replace(&mut self.reported, in_a_row >= REPORTED_AFTER);
        Noted { line, turned: in_a_row == 1, reported, in_a_row }
    }

    /// The circuit opened here.
    pub(super) fn opened(&mut self) {
        self.open_reason.clone_from(&self.last_error);
    }

    /// The circuit closed, or another node opened it.
    pub(super) fn forget_reason(&mut self) {
        self.open_reason = None;
    }

    /// An administrator's reset: as if nothing had been tried. The last error is still shown.
    pub(super) fn reset(&mut self) {
        let last_error = self.last_error.take();
        *self = Self { last_error, last_line: self.last_line, ..Self::default() };
    }

    /// The provider has a new address or credential: nothing was tried with it. A notification of
    /// its failure is still followed by one of its first success.
    pub(super) fn renew(&mut self) {
        *self = Self { reported: self.reported, ..Self::default() };
    }

    /// Whether nothing was tried.
    pub(super) fn is_empty(&self) -> bool {
        self.last_error.is_none() && self.attempts.is_unused()
    }

    /// The last failed attempt.
    pub(super) fn last_error(&self) -> Option<Arc<AttemptError>> {
        self.last_error.clone()
    }

    pub(super) fn last_message(&self) -> Option<Arc<str>> {
        self.last_error.as_ref().map(|error| Arc::from(&*error.message))
    }

    pub(super) fn seen(
        &self,
        open_until: Option<Timestamp>,
        cooldown: Option<Timestamp>,
        now: Timestamp,
    ) -> Seen {
        Seen {
            state: self.attempts.state(open_until.is_some(), cooldown.is_some(), now),
            last_error: self.last_error.clone(),
            open_reason: self.open_reason.clone().filter(|_| open_until.is_some()),
            failing_since: self.attempts.failing_since(),
            failed_in_a_row: self.attempts.in_a_row(),
            recent: self.attempts.recent(now),
            cooldown_until: cooldown,
            open_until,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(at: Timestamp) -> Arc<AttemptError> {
        let message = "no connection".into();
        Arc::new(AttemptError { kind: FailureKind::Connect, status: None, message, at })
    }

    #[test]
    fn the_first_failure_has_a_line_and_the_rest_one_a_minute_with_their_number() {
        let (mut log, start) = (AttemptLog::default(), Timestamp(1_000_000));
        let mut fail = |ms| log.failed(start.plus_ms(ms), error(start));
        assert_eq!(fail(0).line, Some(1));
        assert_eq!((fail(1).line, fail(59_999).line), (None, None));
        assert_eq!(fail(60_000).line, Some(3));
    }

    #[test]
    fn notifications_are_due_once_at_the_third_failure_and_at_the_recovery_after_it() {
        let (mut log, now) = (AttemptLog::default(), Timestamp(1_000_000));
        let reported: Vec<bool> = (0..5).map(|_| log.failed(now, error(now)).reported).collect();
        assert_eq!(reported, [false, false, true, false, false]);
        assert!(log.succeeded(now).reported);
        assert!(!log.failed(now, error(now)).reported);
        let recovered = log.succeeded(now);
        assert!(recovered.turned && !recovered.reported, "nobody was notified that it failed");
    }
}
