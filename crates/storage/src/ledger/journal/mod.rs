//! The write side of this process's own journal directory.
//!
//! A frame is built outside of the lock, in a buffer of the thread, and written in one write under
//! it. A failed write leaves no partial frame: the file is cut back to its last good length, or, if
//! even that fails, never written again. Data that a failed sync leaves in doubt is written again
//! (`sync`).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use crate::domain::record::Record;

use super::disk::{Disk, RealDisk, SegmentFile};
use super::error::{AppendRefused, LedgerError};
use super::frame;
use super::log_lines;
use super::segment::{self, HEADER, Position};
use super::settings::LedgerSettings;
use super::stats::{JournalTally, add, subtract};
use sync::UnsyncedBytes;

mod sync;

/// Memory for records that the disk did not accept.
const HELD_BYTES: usize = 8 << 20;
/// With this many records in memory, those of requests that cost nothing are left out.
const HELD_FOR_FREE: u64 = 1_000;
/// A thread's buffer that grew beyond this is freed.
const BUFFER_BYTES: usize = 64 << 10;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

pub(super) struct Journal {
    dir: PathBuf,
    settings: LedgerSettings,
    tally: Arc<JournalTally>,
    disk: Box<dyn Disk>,
    active: Mutex<Active>,
}

struct Active {
    file: Arc<dyn SegmentFile>,
    /// The position of the next frame.
    at: Position,
    /// The segment is closed when a frame would exceed this.
    roll_at: u64,
    /// The file may end in a partial frame, or have lost pages in a failed sync: it must not be
    /// written again.
    spoiled: bool,
    /// The segment's bytes before this are synced.
    synced: u64,
    /// Stretches of closed segments that are not synced yet.
    unsynced: Vec<UnsyncedBytes>,
    /// Segments were created since the directory was last synced.
    names_changed: bool,
    held: VecDeque<Vec<u8>>,
    held_bytes: usize,
}

/// The number of appended records, before and after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Appended {
    pub before: u64,
    pub after: u64,
}

/// The end of the journal at some moment, and the number of records appended by then.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub at: Position,
    pub records: u64,
    pub bytes: u64,
}

impl Journal {
    pub(super) fn create(
        dir: &Path,
        settings: LedgerSettings,
        tally: Arc<JournalTally>,
    ) -> io::Result<Self> {
        Self::create_on(Box::new(RealDisk), dir, settings, tally)
    }

    fn create_on(
        disk: Box<dyn Disk>,
        dir: &Path,
        settings: LedgerSettings,
        tally: Arc<JournalTally>,
    ) -> io::Result<Self> {
        let file = new_segment(&*disk, dir, 1)?;
        tally.disk_bytes.store(HEADER as u64, Ordering::Relaxed);
        let active = Mutex::new(Active {
            file,
            at: Position::start_of(1),
            roll_at: settings.segment_bytes,
            spoiled: false,
            synced: 0,
            unsynced: Vec::new(),
            names_changed: true,
            held: VecDeque::new(),
            held_bytes: 0,
        });
        Ok(Self { dir: dir.to_owned(), settings, tally, disk, active })
    }

    pub(super) fn append(&self, record: &Record) -> Result<Appended, LedgerError> {
        BUFFER.with_borrow_mut(|buffer| {
            let outcome = match frame::encode(record, buffer) {
                Ok(()) => self.append_frame(buffer),
                Err(error) => {
                    add(&self.tally.append_errors, 1);
                    add(&self.tally.lost_records, 1);
                    log_lines::unwritable(record, &error);
                    Err(error)
                }
            };
            buffer.shrink_to(BUFFER_BYTES);
            outcome
        })
    }

    fn append_frame(&self, frame: &[u8]) -> Result<Appended, LedgerError> {
        let mut active = self.active.lock();
        let before = self.tally.appended_records.load(Ordering::SeqCst);
        let written = self.write_held(&mut active).and_then(|()| self.write(&mut active, frame));
        match written {
            Ok(()) => {
                Ok(Appended { before, after: self.tally.appended_records.load(Ordering::SeqCst) })
            }
            Err(why) => Err(self.hold(&mut active, frame, why)),
        }
    }

    fn hold(&self, active: &mut Active, frame: &[u8], why: AppendRefused) -> LedgerError {
        add(&self.tally.append_errors, 1);
        if active.held_bytes + frame.len() > HELD_BYTES {
            add(&self.tally.lost_records, 1);
            log_lines::lost(frame, &why);
            return LedgerError::Lost(why);
        }
        if active.held.is_empty() {
            tracing::error!(%why, dir = %self.dir.display(), "the journal cannot be written: \
                holding records in memory");
        }
        // Now, and not at the end of the process: it may end in any way.
        log_lines::held(frame, &why);
        active.held_bytes += frame.len();
        active.held.push_back(frame.to_vec());
        add(&self.tally.held_records, 1);
        LedgerError::Held(why)
    }

    /// Tries to write the records held in memory to the disk. Returns whether something was
    /// written.
    pub(super) fn retry_held(&self) -> bool {
        let mut active = self.active.lock();
        let before = active.held.len();
        // The reason was logged when the first record was held, and has not changed.
        let _ = self.write_held(&mut active);
        active.held.len() < before
    }

    /// The frames that are held in memory, and their number.
    pub(super) fn held(&self) -> (Vec<u8>, u64) {
        let active = self.active.lock();
        let frames = active.held.iter().flatten().copied().collect();
        (frames, active.held.len() as u64)
    }

    /// Another process has the records that were held in memory.
    pub(super) fn forget_held(&self) {
        let mut active = self.active.lock();
        subtract(&self.tally.held_records, active.held.len() as u64);
        (active.held, active.held_bytes) = (VecDeque::new(), 0);
    }

    fn write_held(&self, active: &mut Active) -> Result<(), AppendRefused> {
        while let Some(frame) = active.held.pop_front() {
            if let Err(why) = self.write(active, &frame) {
                active.held.push_front(frame);
                return Err(why);
            }
            active.held_bytes -= frame.len();
            subtract(&self.tally.held_records, 1);
            if active.held.is_empty() {
                tracing::info!(dir = %self.dir.display(), "the journal can be written again: \
                    nothing was lost");
            }
        }
        Ok(())
    }

    fn write(&self, active: &mut Active, frame: &[u8]) -> Result<(), AppendRefused> {
        let length = frame.len() as u64;
        let bytes = self.disk_bytes();
        if bytes.saturating_add(length) > self.settings.max_bytes {
            return Err(AppendRefused::Full { bytes, max: self.settings.max_bytes });
        }
        let passes = active.at.offset + length > active.roll_at && active.at.offset > HEADER as u64;
        if active.spoiled || passes {
            self.roll(active)?;
        }
        if let Err(error) = active.file.write_at(frame, active.at.offset) {
            active.spoiled = active.file.cut(active.at.offset).is_err();
            return Err(error.into());
        }
        active.at.offset += length;
        self.tally.disk_bytes.fetch_add(length, Ordering::Relaxed);
        self.tally.appended_bytes.fetch_add(length, Ordering::SeqCst);
        self.tally.appended_records.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Continues in a new segment. If none can be created, the current one is used for some time
    /// more.
    fn roll(&self, active: &mut Active) -> Result<(), AppendRefused> {
        let next = active.at.segment + 1;
        match new_segment(&*self.disk, &self.dir, next) {
            Ok(file) => {
                let closed = active.stretch();
                active.unsynced.extend(closed);
                active.file = file;
                active.at = Position::start_of(next);
                (active.synced, active.names_changed) = (0, true);
                active.roll_at = self.settings.segment_bytes;
                active.spoiled = false;
                self.tally.disk_bytes.fetch_add(HEADER as u64, Ordering::Relaxed);
                Ok(())
            }
            Err(error) if active.spoiled => Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, segment = next, "no new journal segment: the old one \
                    grows on");
                active.roll_at = active.at.offset + self.settings.segment_bytes / 8;
                Ok(())
            }
        }
    }

    /// The current end of the journal.
    pub(super) fn end(&self) -> End {
        let active = self.active.lock();
        End {
            at: active.at,
            records: self.tally.appended_records.load(Ordering::SeqCst),
            bytes: self.tally.appended_bytes.load(Ordering::SeqCst),
        }
    }

    /// Deletes the segments that lie completely before `at`.
    pub(super) fn delete_before(&self, at: Position) -> io::Result<()> {
        let freed = segment::delete_before(&self.dir, at.segment)?;
        subtract(&self.tally.disk_bytes, freed);
        Ok(())
    }

    pub(super) fn has_room(&self) -> bool {
        let spare = self.settings.max_bytes / 16;
        self.holds_nothing()
            && !self.tally.sync_failing.load(Ordering::Relaxed)
            && self.disk_bytes() < self.settings.max_bytes - spare
    }

    /// Whether at least half of the reserve for requests in flight is left.
    pub(super) fn has_reserve(&self) -> bool {
        self.tally.held_records.load(Ordering::Relaxed) < HELD_FOR_FREE
            && self.disk_bytes() < self.settings.max_bytes - self.settings.max_bytes / 32
    }

    pub(super) fn holds_nothing(&self) -> bool {
        self.tally.held_records.load(Ordering::Relaxed) == 0
    }

    fn disk_bytes(&self) -> u64 {
        let adopted = self.tally.adopted_bytes.load(Ordering::Relaxed);
        self.tally.disk_bytes.load(Ordering::Relaxed).saturating_add(adopted)
    }
}

/// A segment file with its header, or none at all.
fn new_segment(disk: &dyn Disk, dir: &Path, number: u64) -> io::Result<Arc<dyn SegmentFile>> {
    let path = segment::path(dir, number);
    // An existing file of this name is a segment that could not be started: it has no frames.
    if std::fs::metadata(&path).is_ok_and(|m| m.len() < HEADER as u64) {
        std::fs::remove_file(&path)?;
    }
    let file = disk.create(&path)?;
    if let Err(error) = file.write_at(&segment::header(), 0) {
        std::fs::remove_file(&path)?;
        return Err(error);
    }
    Ok(file)
}

#[cfg(test)]
mod tests;
