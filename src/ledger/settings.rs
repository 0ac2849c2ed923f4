//! Sizes and times of the ledger.

/// Sizes and times of the ledger. The configuration has the same values with their documentation
/// and bounds.
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

impl Default for LedgerSettings {
    fn default() -> Self {
        Self {
            segment_bytes: 16 << 20,
            max_bytes: 1 << 30,
            batch_rows: 500,
            flush_interval_ms: 200,
            sync_interval_ms: 1_000,
            drain_ms: 10_000,
        }
    }
}
