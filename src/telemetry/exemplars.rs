//! Exemplars: for each bucket of the reply-time histograms, the last sampled request in it, by its
//! trace. They lead from a slow bucket to a trace of it.
//!
//! Only sampled requests are noted, so this is off the path of most requests. Bounded by the
//! histograms' cells.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::metrics::{DURATION_S, FIRST_BYTE_S};
use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::record::Record;
use crate::domain::trace::SpanContext;

/// The histogram of whole requests.
const DURATION: &str = "tollgate_request_duration_seconds";
/// The histogram of first bytes.
const FIRST_BYTE: &str = "tollgate_first_byte_seconds";

/// One sampled request in a bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exemplar {
    /// The measured value, seconds.
    pub value: f64,
    /// The request's span.
    pub span: SpanContext,
    /// When the request began.
    pub at: Timestamp,
}

/// Histogram, client format, streamed, index of the bucket.
type Cell = (&'static str, &'static str, bool, usize);

/// The exemplars of all histograms.
#[derive(Debug, Default)]
pub struct Exemplars {
    cells: Mutex<BTreeMap<Cell, Exemplar>>,
    are_on: AtomicBool,
}

impl Exemplars {
    /// Requests have traces, so there will be exemplars.
    pub fn turn_on(&self) {
        self.are_on.store(true, Ordering::Relaxed);
    }

    /// Whether scrapers can get exemplars.
    pub(super) fn are_on(&self) -> bool {
        self.are_on.load(Ordering::Relaxed)
    }

    /// Notes a sampled request that was counted in the histograms.
    pub fn note(&self, record: &Record, span: SpanContext) {
        let duration = (record.attempts > 0).then_some(record.duration_ms);
        for (name, bounds, ms) in
            [(DURATION, DURATION_S, duration), (FIRST_BYTE, FIRST_BYTE_S, record.first_byte_ms)]
        {
            let Some(ms) = ms else { continue };
            let value = Duration::from_millis(ms).as_secs_f64();
            let bucket = bounds.iter().position(|bound| value <= *bound).unwrap_or(bounds.len());
            let cell = (name, WireFormat::as_str(record.client_format), record.streamed, bucket);
            self.cells.lock().insert(cell, Exemplar { value, span, at: record.started_at });
        }
    }

    /// Those of one series, in the order of its buckets.
    pub fn of(&self, name: &str, labels: &[(&str, &str)]) -> Vec<Exemplar> {
        self.cells(name, labels).into_iter().map(|(_, exemplar)| exemplar).collect()
    }

    /// The same with the index of their buckets.
    pub(super) fn cells(&self, name: &str, labels: &[(&str, &str)]) -> Vec<(usize, Exemplar)> {
        let label =
            |wanted: &str| labels.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
        let (Some(format), Some(streamed)) = (label("client_format"), label("streamed")) else {
            return Vec::new();
        };
        let all = self.cells.lock();
        let is_one =
            |cell: &Cell| cell.0 == name && cell.1 == format && cell.2 == (streamed == "true");
        all.iter()
            .filter(|(cell, _)| is_one(cell))
            .map(|(cell, exemplar)| (cell.3, *exemplar))
            .collect()
    }
}
