//! Sizes and times of the ledger.

/// Sizes and times of the ledger. Defaults and bounds are in `config/sections`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerSettings {
    /// A segment file is closed when the next record would exceed this.
    pub segment_bytes: u64,
    /// Disk space for the journal, including directories of dead processes. At least two segments.
    pub max_bytes: u64,
    /// Maximum number of records in one database transaction.
    pub batch_rows: usize,
    /// How long a record may wait for others to share its transaction.
    pub flush_interval_ms: u64,
    /// How often appended records are synced to the disk.
    pub sync_interval_ms: u64,
    /// How long shutting down may take to deliver the remaining records.
    pub drain_ms: u64,
}
