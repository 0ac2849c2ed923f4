//! The ledger's own figures, for metrics, readiness and the web UI.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use crate::domain::clock::Timestamp;

/// A reading of the ledger's counters and gauges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JournalStats {
    /// Records of this process that are not in the database yet.
    pub pending_records: u64,
    /// Journal bytes that are not in the database yet, including those of dead processes.
    pub pending_bytes: u64,
    /// Those of dead processes alone.
    pub left_bytes: u64,
    /// Bytes that the journal uses on disk, out of `max_bytes`.
    pub disk_bytes: u64,
    /// Bytes that the journal may use on disk (`ledger.max_bytes`).
    pub max_bytes: u64,
    /// How long the next record to be delivered has waited; 0 if none waits.
    pub oldest_age_ms: u64,
    /// Records in memory because the disk did not accept them.
    pub held_records: u64,
    /// Records of this process that were written to the journal's file since its start.
    pub appended_records: u64,
    /// Appends that did not reach the disk at once.
    pub append_errors: u64,
    /// Records that neither disk nor memory could keep: they are in the log only.
    pub lost_records: u64,
    /// Syncs of the journal that failed.
    pub sync_errors: u64,
    /// The last sync failed, also on a new segment: new requests are refused.
    pub sync_failing: bool,
    /// Batches that the database accepted.
    pub writer_batches: u64,
    /// Rows that the database did not have before.
    pub writer_rows: u64,
    /// Rows that it already had (a batch repeated after a crash).
    pub writer_repeated: u64,
    /// Batches that failed and are retried.
    pub writer_errors: u64,
    /// The last attempt to deliver failed.
    pub writer_failing: bool,
    /// Records that the database refused, set aside for the operator.
    pub refused_records: u64,
    /// Damaged stretches of the journal, set aside for the operator.
    pub damaged_ranges: u64,
    /// Journals of dead processes taken over.
    pub adopted: u64,
    /// There is no space: new requests are refused.
    pub full: bool,
}

#[derive(Default)]
pub(super) struct JournalTally {
    pub appended_records: AtomicU64,
    pub appended_bytes: AtomicU64,
    /// Of this process's own records: how many are delivered or set aside.
    pub delivered_records: AtomicU64,
    pub delivered_bytes: AtomicU64,
    pub disk_bytes: AtomicU64,
    pub adopted_bytes: AtomicU64,
    pub held_records: AtomicU64,
    pub append_errors: AtomicU64,
    pub lost_records: AtomicU64,
    pub sync_errors: AtomicU64,
    /// The last sync failed, also on a new segment: what was appended may not survive a power
    /// failure.
    pub sync_failing: AtomicBool,
    pub writer_batches: AtomicU64,
    pub writer_rows: AtomicU64,
    pub writer_repeated: AtomicU64,
    pub writer_errors: AtomicU64,
    pub writer_failing: AtomicBool,
    pub refused_records: AtomicU64,
    pub damaged_ranges: AtomicU64,
    pub adopted: AtomicU64,
    /// End of the request whose record is delivered next; 0 = unknown.
    pub oldest_at: AtomicI64,
    /// A caller waits in `flush`: do not wait for a batch to fill.
    pub flush_asked: AtomicBool,
}

pub(super) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

pub(super) fn subtract(gauge: &AtomicU64, count: u64) {
    // A gauge that was corrected meanwhile must not wrap around.
    let _ = gauge
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| Some(now.saturating_sub(count)));
}

impl JournalTally {
    pub(super) fn read(&self, max_bytes: u64, now: Timestamp) -> JournalStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let pending_records =
            get(&self.appended_records).saturating_sub(get(&self.delivered_records));
        let own_bytes = get(&self.appended_bytes).saturating_sub(get(&self.delivered_bytes));
        let oldest_at = self.oldest_at.load(Ordering::Relaxed);
        let age = if oldest_at == 0 { 0 } else { now.since(Timestamp(oldest_at)) };
        JournalStats {
            pending_records,
            pending_bytes: own_bytes.saturating_add(get(&self.adopted_bytes)),
            left_bytes: get(&self.adopted_bytes),
            disk_bytes: get(&self.disk_bytes).saturating_add(get(&self.adopted_bytes)),
            max_bytes,
            oldest_age_ms: u64::try_from(age).unwrap_or(0),
            held_records: get(&self.held_records),
            appended_records: get(&self.appended_records),
            append_errors: get(&self.append_errors),
            lost_records: get(&self.lost_records),
            sync_errors: get(&self.sync_errors),
            sync_failing: self.sync_failing.load(Ordering::Relaxed),
            writer_batches: get(&self.writer_batches),
            writer_rows: get(&self.writer_rows),
            writer_repeated: get(&self.writer_repeated),
            writer_errors: get(&self.writer_errors),
            writer_failing: self.writer_failing.load(Ordering::Relaxed),
            refused_records: get(&self.refused_records),
            damaged_ranges: get(&self.damaged_ranges),
            adopted: get(&self.adopted),
            full: false,
        }
    }
}
