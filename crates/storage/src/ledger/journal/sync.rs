//! Syncs the journal to the disk, and repairs the effects of a failed sync.
//!
//! After a failed `fdatasync` the kernel may drop the pages that it could not write, and a later
//! call reports success. So a segment whose sync failed is never synced or written again. Its
//! frames since the last good sync are read back, usually still from the page cache, and written to
//! a new segment, which is synced in its place. If that fails too, the journal has no space
//! ([`Journal::has_room`]). A frame that is delivered twice in this way is dropped by its request
//! id.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Active, Journal};
use crate::files;
use crate::ledger::disk::SegmentFile;
use crate::ledger::error::LedgerError;
use crate::ledger::frame::{self, FoundFrame};
use crate::ledger::segment::{self, HEADER};
use crate::ledger::stats::add;

/// Bytes of a segment that no sync has covered.
pub(super) struct UnsyncedBytes {
    file: Arc<dyn SegmentFile>,
    segment: u64,
    from: u64,
    to: u64,
}

impl Active {
    /// The unsynced part of the active segment, which then counts as synced.
    pub(super) fn stretch(&mut self) -> Option<UnsyncedBytes> {
        let (from, to) = (self.synced, self.at.offset);
        self.synced = to;
        (from < to).then(|| UnsyncedBytes {
            file: Arc::clone(&self.file),
            segment: self.at.segment,
            from,
            to,
        })
    }

    /// The unsynced parts of all segments, and whether names are unsynced.
    fn take_unsynced(&mut self) -> (Vec<UnsyncedBytes>, bool) {
        let mut all = std::mem::take(&mut self.unsynced);
        all.extend(self.stretch());
        (all, std::mem::take(&mut self.names_changed))
    }
}

impl Journal {
    /// Syncs to the disk what was appended before the call. Blocks: not for the request path.
    ///
    /// Must not be called by two threads at once: the second would not wait for what the first is
    /// syncing.
    ///
    /// # Errors
    /// When the disk failed twice, for the old segment and for a new one.
    pub(in crate::ledger) fn sync(&self) -> io::Result<()> {
        let mut outcome = self.sync_once(self.tally.sync_failing.load(Ordering::Relaxed));
        if let Err(error) = &outcome {
            add(&self.tally.sync_errors, 1);
            tracing::error!(%error, dir = %self.dir.display(), "a journal segment cannot be \
                synced: going on in a new one");
            outcome = self.sync_once(true);
        }
        self.tally.sync_failing.store(outcome.is_err(), Ordering::Relaxed);
        outcome
    }

    /// After a failure there must be a new segment to sync, otherwise success would mean nothing.
    fn sync_once(&self, after_failure: bool) -> io::Result<()> {
        let (stretches, names_changed) = {
            let mut active = self.active.lock();
            if after_failure && active.spoiled {
                self.roll(&mut active).map_err(io::Error::other)?;
            }
            active.take_unsynced()
        };
        let named = if names_changed { files::sync_dir(&self.dir) } else { Ok(()) };
        let mut doubtful = Vec::new();
        let mut outcome = named;
        let unnamed = outcome.is_err();
        for stretch in stretches {
            // Every file is synced, whether others failed or not.
            let synced = stretch.file.sync();
            if synced.is_err() || unnamed {
                doubtful.push(stretch);
            }
            outcome = outcome.and(synced);
        }
        if outcome.is_err() {
            self.write_again(doubtful);
        }
        outcome
    }

    /// Writes the frames of these stretches, and those that arrived meanwhile, to a new segment.
    fn write_again(&self, mut doubtful: Vec<UnsyncedBytes>) {
        {
            let mut active = self.active.lock();
            active.spoiled = true;
            doubtful.extend(active.take_unsynced().0);
            active.names_changed = true;
        }
        for stretch in doubtful {
            match read_back(&segment::path(&self.dir, stretch.segment), &stretch) {
                Ok(bytes) => {
                    self.append_frames(&bytes);
                }
                // Delivered meanwhile, and deleted.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => tracing::error!(
                    %error, segment = stretch.segment, stretch.from, stretch.to,
                    "a stretch of the journal cannot be read back: a power failure now loses it"
                ),
            }
        }
    }

    /// Appends frames, and returns how many the journal has now, on the disk or in memory.
    pub(in crate::ledger) fn append_frames(&self, bytes: &[u8]) -> u64 {
        let (mut rest, mut taken) = (bytes, 0);
        while !rest.is_empty() {
            let length = match frame::read(rest) {
                FoundFrame::Frame(payload) => frame::HEAD + payload.len(),
                _ => {
                    let skip = frame::resync(rest).unwrap_or(rest.len());
                    tracing::error!(bytes = skip, "damaged bytes among the records to append");
                    rest = rest.get(skip..).unwrap_or_default();
                    continue;
                }
            };
            let (whole, behind) = rest.split_at(length);
            // On an error the record is held in memory or logged completely; `append_frame` reports
            // it.
            taken += u64::from(!matches!(self.append_frame(whole), Err(LedgerError::Lost(_))));
            rest = behind;
        }
        taken
    }
}

/// The frames of a stretch, without the segment's header.
fn read_back(path: &std::path::Path, stretch: &UnsyncedBytes) -> io::Result<Vec<u8>> {
    let from = stretch.from.max(HEADER as u64);
    let length = usize::try_from(stretch.to.saturating_sub(from)).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    File::open(path)?.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}
