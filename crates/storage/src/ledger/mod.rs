//! Accounting that cannot be lost: a local journal, and the writer that delivers it to the database
//! exactly once.
//!
//! ```text
//! request path                            writer (one task)
//! append ─► own directory: 1.seg 2.seg ─► read a batch ─► sink ─► checkpoint ─► delete segments
//!           directories of dead processes ►
//! ```
//!
//! **Guarantee.** When [`Ledger::append`] returns `Ok`, the kernel has the record: it survives
//! `kill -9`. An `fdatasync` every `sync_interval_ms`, off the request path, bounds the loss by a
//! power failure. The journal deletes a record only after the database has committed it to its disk
//! ([`Sink`]). The writer delivers at least once and the database accepts each request id once, so
//! the sum is exactly once.
//!
//! **Memory.** There is no queue: the writer reads the files. Records wait on disk.
//!
//! **Space.** The journal uses at most `max_bytes` of disk. Shortly before that, and whenever the
//! disk itself is full, [`Ledger::has_room`] returns false: the data plane then refuses new
//! requests, while those in flight can still be recorded. A record that the disk does not accept is
//! held in memory (bounded) and written as soon as there is space; `append` reports it as an error.
//! Only if that is full too is a record dropped. All of it is logged in both cases, at once, so
//! that the end of the process loses nothing that `tollgate import-log` cannot read back
//! ([`record_of_line`]); at its end the process hands what it holds to another one ([`hand_on`]).
//!
//! **Several processes.** Each process has its own directory under the root, locked while it lives.
//! A process adopts directories whose owner has ended, at start and while running (see [`claim`]).
//! So a new binary can start while the old one still drains.
//!
//! Not here: SQL and metrics. Telemetry renders [`Ledger::stats`].

mod checkpoint;
mod claim;
mod copy;
mod delivery;
mod disk;
mod encoding;
mod error;
mod frame;
mod hand_on;
mod journal;
mod left;
mod log_lines;
mod reader;
mod segment;
mod set_aside;
mod settings;
mod sink;
mod stats;
mod survey;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Notify;

use crate::domain::clock::Clock;
use crate::domain::record::Record;

use claim::Claim;
use journal::{Appended, Journal};
use set_aside::SetAside;
use stats::JournalTally;

pub use copy::{Copied, copy_journals};
pub use error::{AppendRefused, LedgerError};
pub use left::each_left;
pub use log_lines::record_of_line;
pub use settings::LedgerSettings;
pub use sink::{Sink, SinkError};
pub use stats::JournalStats;
pub use survey::{Survey, Undelivered, survey, waiting};

impl LedgerSettings {
    fn check(&self) -> Result<(), LedgerError> {
        let least = u64::try_from(segment::HEADER).unwrap_or(u64::MAX) + 1_024;
        match self {
            s if s.segment_bytes < least => {
                Err(LedgerError::Settings("segment_bytes is below 1 KiB"))
            }
            s if s.max_bytes < s.segment_bytes.saturating_mul(2) => {
                Err(LedgerError::Settings("max_bytes is less than two segments"))
            }
            s if s.batch_rows == 0 => Err(LedgerError::Settings("batch_rows is 0")),
            s if s.sync_interval_ms == 0 => Err(LedgerError::Settings("sync_interval_ms is 0")),
            _ => Ok(()),
        }
    }
}

/// The journal of this process and its delivery to the database. Shared in an `Arc`.
pub struct Ledger {
    root: PathBuf,
    settings: LedgerSettings,
    clock: Arc<dyn Clock>,
    claim: Claim,
    journal: Journal,
    set_aside: SetAside,
    tally: Arc<JournalTally>,
    /// Wakes the writer: there is something to deliver, a full batch, or a flush.
    wake: Notify,
    /// Wakes the callers that wait in [`Ledger::flush`].
    delivered: Notify,
}

impl Ledger {
    /// Claims a directory under `root` (created if missing) and starts an empty journal in it.
    ///
    /// [`Ledger::run`] takes over what dead processes left behind.
    ///
    /// # Errors
    /// When the directory cannot be created, written or locked, or the settings contradict each
    /// other.
    pub fn open(
        root: &Path,
        settings: LedgerSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, LedgerError> {
        settings.check()?;
        let failed = |source| LedgerError::Directory { path: root.to_owned(), source };
        let claim = Claim::fresh(root).map_err(failed)?;
        let tally = Arc::new(JournalTally::default());
        let journal =
            Journal::create(claim.path(), settings, Arc::clone(&tally)).map_err(failed)?;
        let set_aside = SetAside::beside(root, Arc::clone(&tally));
        let (wake, delivered) = (Notify::new(), Notify::new());
        Ok(Arc::new(Self {
            root: root.to_owned(),
            settings,
            clock,
            claim,
            journal,
            set_aside,
            tally,
            wake,
            delivered,
        }))
    }

    /// Writes one record to the journal: one `write(2)`, no waiting. Returns when the kernel has
    /// the bytes.
    ///
    /// # Errors
    /// [`LedgerError::Held`] if the disk took nothing and the record waits in memory; the others if
    /// it is not kept at all. Each is counted, and a record that is not kept is logged completely.
    pub fn append(&self, record: &Record) -> Result<(), LedgerError> {
        match self.journal.append(record) {
            Ok(Appended { before, after }) => {
                let delivered = self.tally.delivered_records.load(Ordering::SeqCst);
                let batch = self.settings.batch_rows as u64;
                let (was, is) = (before.saturating_sub(delivered), after.saturating_sub(delivered));
                if was == 0 || (was < batch && batch <= is) {
                    self.wake.notify_one();
                }
                Ok(())
            }
            Err(error) => {
                // Other held records may have been written.
                self.wake.notify_one();
                Err(error)
            }
        }
    }

    /// Appends records for another process, or the next start, to deliver, and syncs them.
    ///
    /// # Errors
    /// When the disk does not take all of them. Some may be in the journal then.
    pub fn leave(&self, records: &[Record]) -> Result<(), LedgerError> {
        records.iter().try_for_each(|record| self.append(record))?;
        let failed = |source| LedgerError::Directory { path: self.root.clone(), source };
        self.journal.sync().map_err(failed)
    }

    /// Whether new requests may be accepted: the disk has space for their records and a reserve for
    /// those in flight, and it syncs.
    pub fn has_room(&self) -> bool {
        self.journal.has_room()
    }

    /// Whether at least half of that reserve is left, so that a request that no provider is asked
    /// for may be recorded.
    pub fn has_reserve(&self) -> bool {
        self.journal.has_reserve()
    }

    /// Why new requests are refused, if they are.
    pub fn trouble(&self) -> Option<&'static str> {
        match (self.has_room(), self.tally.sync_failing.load(Ordering::Relaxed)) {
            (true, _) => None,
            (false, true) => Some("cannot be synced to the disk: new requests are refused"),
            (false, false) => Some("is full: new requests are refused"),
        }
    }

    /// All figures for metrics, as of now.
    pub fn stats(&self) -> JournalStats {
        JournalStats {
            full: !self.has_room(),
            ..self.tally.read(self.settings.max_bytes, self.clock.now())
        }
    }

    /// Waits until everything appended before the call is in the database; `false` if `timeout`
    /// came first.
    pub async fn flush(&self, timeout: Duration) -> bool {
        let target = self.tally.appended_records.load(Ordering::SeqCst);
        let reached = async {
            loop {
                let news = self.delivered.notified();
                tokio::pin!(news);
                news.as_mut().enable();
                if self.tally.delivered_records.load(Ordering::SeqCst) >= target {
                    return;
                }
                self.tally.flush_asked.store(true, Ordering::SeqCst);
                self.wake.notify_one();
                news.await;
            }
        };
        tokio::time::timeout(timeout, reached).await.is_ok()
    }

    fn is_drained(&self) -> bool {
        let delivered = self.tally.delivered_records.load(Ordering::SeqCst);
        delivered >= self.tally.appended_records.load(Ordering::SeqCst)
            && self.journal.holds_nothing()
    }
}

/// A directory with nothing left to deliver is removed; one with records stays for the next
/// process.
impl Drop for Ledger {
    fn drop(&mut self) {
        if self.is_drained()
            && let Err(error) = self.claim.remove()
        {
            tracing::warn!(%error, path = %self.claim.path().display(), "an empty journal directory was left behind");
        }
    }
}
