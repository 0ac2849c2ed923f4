//! Figures of OTLP: what was sent to the collector, what was lost, what was relayed.

use prometheus::{Error, IntCounterVec};

use super::registration::Registration;

/// The figures of OTLP; empty while it is off.
pub struct OtlpMetrics {
    exported: IntCounterVec,
    dropped: IntCounterVec,
    relayed: IntCounterVec,
}

impl OtlpMetrics {
    pub(super) fn register(on: &Registration<'_>) -> Result<Self, Error> {
        Ok(Self {
            exported: on.counters(
                "tollgate_otlp_exported_total",
                "Spans, metric points and log lines that the collector has accepted.",
                &["signal"],
            )?,
            dropped: on.counters(
                "tollgate_otlp_dropped_total",
                "Spans, metric points and log lines that were lost, by reason.",
                &["signal", "reason"],
            )?,
            relayed: on.counters(
                "tollgate_otlp_relayed_total",
                "Requests of clients to the OTLP relay, by how they ended.",
                &["signal", "result"],
            )?,
        })
    }

    /// Shows the figures of a signal from now on, zero at first: a rate needs the zero.
    pub fn begin(&self, signal: &'static str) {
        self.exported.with_label_values(&[signal]);
        for reason in ["queue_full", "export_failed", "rejected"] {
            self.dropped.with_label_values(&[signal, reason]);
        }
    }

    /// The collector has accepted `items` of a signal (`traces`, `metrics`, `logs`).
    pub fn exported(&self, signal: &'static str, items: u64) {
        self.exported.with_label_values(&[signal]).inc_by(items);
    }

    /// `items` of a signal were lost. `reason`: `queue_full`, `export_failed`, `rejected`.
    pub fn dropped(&self, signal: &'static str, reason: &'static str, items: u64) {
        if items > 0 {
            self.dropped.with_label_values(&[signal, reason]).inc_by(items);
        }
    }

    /// A request to the relay ended. `result`: `ok`, `refused`, `rejected`, `failed`, `busy`.
    pub fn relayed(&self, signal: &'static str, result: &'static str) {
        self.relayed.with_label_values(&[signal, result]).inc();
    }
}
