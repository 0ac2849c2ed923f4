//! The day's figures: the store's, updated with events.
//!
//! The store's figures lack the requests that are still in the journal, but only the store has
//! those of other nodes. So the figures are the store's, plus the requests that ended here since it
//! was read. At the next reading the store reports which of those it has counted meanwhile; the
//! last few thousand are kept for that.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::admin::records::overview::{Attention, OverviewRecord};
use crate::domain::clock::Timestamp;
use crate::domain::ids::RequestId;
use crate::domain::record::Record;
use crate::policy::window::Span;
use crate::store::{Figures, OverviewFound};

/// Maximum age of the store's figures.
const FRESH: Duration = Duration::from_secs(10);
/// The same after a failed read, and while the store does not have the day's first requests.
const RETRY: Duration = Duration::from_secs(2);
/// Requests that are kept. Above this, the oldest are assumed to be counted in the store.
const REMEMBERED: usize = 2_000;

#[derive(Default)]
pub(super) struct LiveTally {
    found: Option<OverviewFound>,
    day: Option<Span>,
    /// The sum of what the store has not counted, as far as is known.
    more: Figures,
    remembered: VecDeque<(RequestId, Figures)>,
    tried: Option<Instant>,
    failed: bool,
    /// When the store was last read.
    read_at: Option<Timestamp>,
}

impl LiveTally {
    /// Whether the store must be read.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        // The day's first requests: only the store has their users and models.
        let first = self.more.requests > 0
            && self.found.as_ref().is_some_and(|found| found.users.is_empty());
        let time_limit = if self.failed || first { RETRY } else { FRESH };
        let other_day = self.day.is_some_and(|day| !day.contains(now));
        self.tried.is_none_or(|at| at.elapsed() >= time_limit) || (other_day && !self.failed)
    }

    /// Requests whose presence in the store is to be checked.
    pub(super) fn pending(&self) -> Vec<RequestId> {
        self.remembered.iter().map(|(id, _)| *id).collect()
    }

    /// A request ended here.
    pub(super) fn add(&mut self, record: &Record) {
        if self.day.is_some_and(|day| !day.contains(record.counts_at())) {
            return;
        }
        let figures = Figures {
            requests: 1,
            errors: u64::from(record.outcome.is_error()),
            limited: u64::from(record.is_limit_refusal()),
            cost: record.cost.unwrap_or_default(),
            duration_ms: record.duration_ms,
        };
        self.more = self.more.plus(figures);
        self.remembered.push_back((record.request_id, figures));
        if self.remembered.len() > REMEMBERED {
            self.remembered.pop_front();
        }
    }

    /// The store was read.
    pub(super) fn found(&mut self, found: OverviewFound, day: Span, now: Timestamp) {
        self.read_at = Some(now);
        if self.day.is_some_and(|before| before != day) {
            self.remembered.clear();
        }
        self.remembered.retain(|(id, _)| !found.counted.contains(id));
        self.more =
            self.remembered.iter().fold(Figures::default(), |sum, (_, figures)| sum.plus(*figures));
        (self.found, self.day) = (Some(found), Some(day));
        (self.tried, self.failed) = (Some(Instant::now()), false);
    }

    /// The time of the store's part of the figures.
    pub(super) fn read_at(&self) -> Option<Timestamp> {
        self.read_at
    }

    /// The store could not be read.
    pub(super) fn failed(&mut self) {
        (self.tried, self.failed) = (Some(Instant::now()), true);
    }

    /// `None` before the first reading.
    pub(super) fn record(
        &self,
        sessions: u64,
        attention: Option<Attention>,
    ) -> Option<OverviewRecord> {
        self.found.as_ref().map(|found| OverviewRecord::new(found, self.more, sessions, attention))
    }
}
