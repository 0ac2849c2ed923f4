//! The errors of the journal, as its callers receive them.

use std::io;
use std::path::PathBuf;

/// Why the journal could not be opened, or a record could not be written to it.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The directory of the journal cannot be created, written or locked.
    #[error("journal directory {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A setting is out of its bounds; the text names it.
    #[error("journal settings: {0}")]
    Settings(&'static str),
    /// The record is held in memory until the disk accepts it; only the end of the process loses
    /// it.
    #[error("the journal cannot be written ({0}): the record is held in memory")]
    Held(AppendRefused),
    /// Neither disk nor memory took the record. The log has all of it.
    #[error("the journal cannot be written ({0}), and no more can be held in memory")]
    Lost(AppendRefused),
    /// An encoded record has this many bytes, more than one frame may have. The log has the record.
    #[error("a record of {0} bytes is larger than the journal takes")]
    TooLarge(usize),
}

/// Why the journal did not accept a record.
#[derive(Debug, thiserror::Error)]
pub enum AppendRefused {
    /// The journal uses as much of the disk as it may.
    #[error("its share of the disk is used up: {bytes} of {max} bytes")]
    Full {
        /// Bytes that the journal uses on disk.
        bytes: u64,
        /// Bytes that it may use (`ledger.max_bytes`).
        max: u64,
    },
    /// The file system, or a quota on it, has no space left.
    #[error("the disk is full")]
    DiskFull,
    /// Any other error of the file system.
    #[error("{0}")]
    Disk(io::Error),
}

impl From<io::Error> for AppendRefused {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull,
            _ => Self::Disk(error),
        }
    }
}
