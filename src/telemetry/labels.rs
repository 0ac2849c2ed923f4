//! Counters and histograms found by index, not by hashing label texts: for label sets that are
//! small enums.

use std::sync::OnceLock;

use prometheus::{Error, Histogram, HistogramVec, IntCounter, IntCounterVec, Opts, Registry};

use super::registration::Buckets;
use crate::domain::format::WireFormat;
use crate::domain::record::{Record, RequestOutcome};

const FORMATS: usize = WireFormat::ALL.len();
const OUTCOMES: usize = RequestOutcome::ALL.len();
/// `1xx` … `5xx`.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// `tollgate_requests_total`, one cell per combination; only combinations that occur are exported.
pub(super) struct RequestCounts {
    family: IntCounterVec,
    cells: Box<[OnceLock<IntCounter>]>,
}

impl RequestCounts {
    pub(super) fn register(registry: &Registry) -> Result<Self, Error> {
        let opts = Opts::new(
            "tollgate_requests_total",
            "Requests of known callers that have ended, refused and aborted ones included.",
        );
        let family = IntCounterVec::new(
            opts,
            &["client_format", "provider_format", "status_class", "outcome"],
        )?;
        registry.register(Box::new(family.clone()))?;
        let cells = (0..FORMATS * (FORMATS + 1) * CLASSES.len() * OUTCOMES)
            .map(|_| OnceLock::new())
            .collect();
        Ok(Self { family, cells })
    }

    pub(super) fn count(&self, record: &Record) {
        let client = record.client_format as usize;
        let provider = record.provider_format.map_or(FORMATS, |format| format as usize);
        let class = class_of(record.status_code);
        let index = ((client * (FORMATS + 1) + provider) * CLASSES.len() + class) * OUTCOMES
            + record.outcome as usize;
        let Some(cell) = self.cells.get(index) else { return };
        let resolve = || {
            let provider = record.provider_format.map_or("none", WireFormat::as_str);
            let labels =
                [record.client_format.as_str(), provider, CLASSES[class], record.outcome.as_str()];
            self.family.with_label_values(&labels)
        };
        cell.get_or_init(resolve).inc();
    }
}

/// Index into [`CLASSES`]; any other status counts as the nearest class.
fn class_of(status: u16) -> usize {
    usize::from((status / 100).clamp(1, 5)) - 1
}

/// A histogram per client format, streamed or not.
pub(super) struct ReplyTimes {
    cells: [[Histogram; 2]; FORMATS],
}

impl ReplyTimes {
    pub(super) fn register(registry: &Registry, buckets: Buckets) -> Result<Self, Error> {
        let family = HistogramVec::new(buckets.options(), &["client_format", "streamed"])?;
        registry.register(Box::new(family.clone()))?;
        let cell =
            |format: WireFormat, streamed| family.with_label_values(&[format.as_str(), streamed]);
        Ok(Self {
            cells: WireFormat::ALL.map(|format| [cell(format, "false"), cell(format, "true")]),
        })
    }

    pub(super) fn observe(&self, record: &Record, ms: u64) {
        let cell = &self.cells[record.client_format as usize][usize::from(record.streamed)];
        cell.observe(std::time::Duration::from_millis(ms).as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enums_index_their_own_lists() {
        for (index, format) in WireFormat::ALL.into_iter().enumerate() {
            assert_eq!(format as usize, index);
        }
        for (index, outcome) in RequestOutcome::ALL.iter().copied().enumerate() {
            assert_eq!(outcome as usize, index);
        }
        for (status, class) in
            [(0, "1xx"), (100, "1xx"), (200, "2xx"), (404, "4xx"), (529, "5xx"), (999, "5xx")]
        {
            assert_eq!(CLASSES[class_of(status)], class);
        }
    }
}
