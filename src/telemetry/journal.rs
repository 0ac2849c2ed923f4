//! Figures of the ledger: its journal and its writer.

use prometheus::{Error, IntCounter, IntGauge};

use super::registration::Registration;

/// The ledger's figures.
pub struct JournalMetrics {
    /// Records journalled and not yet in the database.
    pub pending_records: IntGauge,
    /// Journal bytes that are not in the database yet, including those of dead processes.
    pub pending_bytes: IntGauge,
    /// Age of the oldest of them, in whole seconds; 0 if there is none.
    pub oldest_age_seconds: IntGauge,
    /// Records in memory because the disk did not accept them.
    pub held_records: IntGauge,
    /// Appends that did not reach the disk at once.
    pub append_errors: IntCounter,
    /// Syncs of the journal that failed.
    pub sync_errors: IntCounter,
    /// Records that neither disk nor memory could keep.
    pub lost_records: IntCounter,
    /// Records and stretches of the journal that were set aside for the operator.
    pub set_aside: IntCounter,
    /// Batches that the database accepted.
    pub writer_batches: IntCounter,
    /// Batches that failed and are retried.
    pub writer_errors: IntCounter,
    /// Records that the writer delivered to the database.
    pub writer_rows: IntCounter,
    /// Messages of sessions that should have been stored and were not.
    pub messages_lost: IntCounter,
}

impl JournalMetrics {
    pub(super) fn register(on: &Registration<'_>) -> Result<Self, Error> {
        Ok(Self {
            pending_records: on
                .gauge("tollgate_journal_pending_records", "Records waiting for the database.")?,
            pending_bytes: on.gauge(
                "tollgate_journal_pending_bytes",
                "Journal bytes waiting for the database.",
            )?,
            oldest_age_seconds: on.gauge(
                "tollgate_journal_oldest_age_seconds",
                "Age of the oldest waiting record.",
            )?,
            held_records: on.gauge(
                "tollgate_journal_held_records",
                "Records in memory, as the disk takes none.",
            )?,
            append_errors: on.counter(
                "tollgate_journal_append_errors_total",
                "Records the journal could not take.",
            )?,
            sync_errors: on.counter(
                "tollgate_journal_sync_errors_total",
                "Syncs of the journal that failed.",
            )?,
            lost_records: on.counter(
                "tollgate_journal_lost_records_total",
                "Records written to the log alone.",
            )?,
            set_aside: on.counter(
                "tollgate_journal_set_aside_total",
                "Records and damage put aside for a person.",
            )?,
            writer_batches: on
                .counter("tollgate_writer_batches_total", "Batches written to the database.")?,
            writer_errors: on
                .counter("tollgate_writer_errors_total", "Batches that failed and were kept.")?,
            writer_rows: on
                .counter("tollgate_writer_rows_total", "Records written to the database.")?,
            messages_lost: on.counter(
                "tollgate_session_messages_lost_total",
                "Session messages that were not stored.",
            )?,
        })
    }
}
