//! The content of the journal's folder, for commands that are not a gateway.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::claim::{self, Claim};
use super::encoding::Decoder;
use super::frame::{self, FoundFrame};
use super::segment::HEADER;
use super::{checkpoint, segment, set_aside};
use crate::domain::clock::Timestamp;

/// Bytes that hold any record.
const FIRST: u64 = 256 << 10;

/// Journals under one root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Survey {
    /// Directories of running processes.
    pub held: usize,
    /// Directories of processes that have ended.
    pub abandoned: usize,
    /// Bytes in those that are not known to be in the database.
    pub waiting_bytes: u64,
}

/// Counts journals. Delivers and removes nothing.
///
/// # Errors
/// When a directory cannot be read. That there is no journal is not an error.
pub fn survey(root: &Path) -> io::Result<Survey> {
    let (abandoned, held) = match Claim::survey(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Survey::default()),
        found => found?,
    };
    let mut survey = Survey { held: held.len(), abandoned: abandoned.len(), waiting_bytes: 0 };
    for claim in &abandoned {
        let done = checkpoint::read(claim.path()).offset.max(segment::HEADER as u64);
        survey.waiting_bytes += segment::total_bytes(claim.path())?.saturating_sub(done);
    }
    Ok(survey)
}

/// What all journals under one root hold that is not known to be in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Undelivered {
    /// Bytes of records.
    pub bytes: u64,
    /// When the oldest of these requests began; `None` if none waits, or if it cannot be read.
    pub oldest: Option<Timestamp>,
    /// Files that were set aside: damaged bytes, and records that the database refused.
    pub set_aside: usize,
}

/// Looks at the journals of running processes too. Delivers, locks and removes nothing: while a
/// gateway runs, the figures are those of a moment.
///
/// # Errors
/// When a directory cannot be read. That there is no journal is not an error.
pub fn waiting(root: &Path) -> io::Result<Undelivered> {
    let mut found =
        Undelivered { set_aside: entries(&root.join(set_aside::DIR))?, ..Undelivered::default() };
    let journals = match claim::journals(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        journals => journals?,
    };
    for dir in journals {
        match waiting_in(&dir) {
            // Its owner has just removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok((bytes, oldest)) => {
                found.bytes += bytes;
                found.oldest = [found.oldest, oldest].into_iter().flatten().min();
            }
        }
    }
    Ok(found)
}

/// Bytes after the checkpoint of one journal, and the time of the first record there.
fn waiting_in(dir: &Path) -> io::Result<(u64, Option<Timestamp>)> {
    let done = checkpoint::read(dir);
    let (mut bytes, mut oldest) = (0, None);
    for number in segment::list(dir)?.into_iter().filter(|number| *number >= done.segment) {
        let from =
            if number == done.segment { done.offset.max(HEADER as u64) } else { HEADER as u64 };
        let file = File::open(segment::path(dir, number))?;
        let length = file.metadata()?.len().saturating_sub(from);
        if bytes == 0 && length > 0 {
            oldest = first_time(&file, from, length)?;
        }
        bytes += length;
    }
    Ok((bytes, oldest))
}

/// The time of the record at an offset. `None` if it is damaged: that is the delivery's business.
fn first_time(file: &File, from: u64, length: u64) -> io::Result<Option<Timestamp>> {
    let mut bytes = vec![0; usize::try_from(length.min(FIRST)).unwrap_or_default()];
    let read = file.read_at(&mut bytes, from)?;
    Ok(match frame::read(bytes.get(..read).unwrap_or_default()) {
        FoundFrame::Frame(payload) => {
            Decoder::default().read(payload).map(|record| record.started_at)
        }
        _ => None,
    })
}

/// Files in a folder; 0 if there is none.
fn entries(dir: &Path) -> io::Result<usize> {
    match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        found => Ok(found?.count()),
    }
}
