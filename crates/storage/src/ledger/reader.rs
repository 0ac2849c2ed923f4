//! The read side of a journal directory: the next records after a position.
//!
//! It keeps no state between calls: its result depends only on the files and the position, so a
//! batch that could not be delivered is simply read again. Nothing unreadable is skipped silently:
//! damaged bytes are set aside and logged, and reading continues at the next complete frame. It
//! blocks: not for a runtime thread.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::domain::record::Record;

use super::encoding::Decoder;
use super::frame::{self, FoundFrame};
use super::segment::{self, HEADER, Header, Position};
use super::set_aside::SetAside;

/// Bytes of a segment that are read at a time.
const CHUNK: u64 = 256 << 10;
/// A batch ends when its records have this many bytes.
const BATCH_BYTES: u64 = 4 << 20;

/// Records in the order of the journal.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub records: Vec<Record>,
    /// Where reading continues once these are delivered.
    pub next: Position,
    /// Journal bytes between the two positions.
    pub bytes: u64,
    /// Nothing follows `next`.
    pub at_end: bool,
}

/// One journal directory to read from.
pub(super) struct JournalReader<'a> {
    pub dir: &'a Path,
    /// The end of the journal; `None` for one that no process writes any more: then the end of its
    /// last file.
    pub end: Option<Position>,
    /// Where unreadable bytes are kept; `None` for a look at what another read will deliver.
    pub set_aside: Option<&'a SetAside>,
}

impl JournalReader<'_> {
    /// The next `rows` records from `at`, or fewer.
    pub(super) fn read(&self, at: Position, rows: usize) -> io::Result<Batch> {
        let mut batch = Batch { next: at, ..Batch::default() };
        for number in segment::list(self.dir)?.into_iter().filter(|number| *number >= at.segment) {
            if self.end.is_some_and(|end| number > end.segment) {
                break;
            }
            if number > batch.next.segment {
                batch.next = Position { segment: number, offset: 0 };
            }
            if !self.read_segment(&mut batch, rows)? {
                return Ok(batch);
            }
        }
        batch.at_end = true;
        Ok(batch)
    }

    /// Continues in the segment of `batch.next`; `false` if the batch is full before the segment's
    /// end.
    fn read_segment(&self, batch: &mut Batch, rows: usize) -> io::Result<bool> {
        let number = batch.next.segment;
        let file = File::open(segment::path(self.dir, number))?;
        let length = file.metadata()?.len();
        let limit = match self.end {
            Some(end) if end.segment == number => length.min(end.offset),
            _ => length,
        };
        let segment = Segment { file: &file, number, limit };
        if batch.next.offset < HEADER as u64 {
            self.open_segment(batch, &segment)?;
        }
        let mut decoder = Decoder::default();
        let mut wanted = CHUNK;
        while batch.next.offset < limit {
            let bytes = segment.bytes(batch.next.offset, wanted)?;
            let whole = batch.next.offset + bytes.len() as u64 == limit;
            let used = parse(&bytes, batch, rows, &mut decoder);
            advance(batch, used as u64);
            if batch.records.len() >= rows || batch.bytes >= BATCH_BYTES {
                let last = self.end.is_some_and(|end| end.segment == number);
                return Ok(last && batch.next.offset >= limit);
            }
            wanted = match bytes.get(used..).map(frame::read) {
                Some(FoundFrame::Short(needed)) if !whole => CHUNK.max(needed as u64),
                Some(FoundFrame::Frame(payload)) => {
                    self.unreadable_record(batch, payload)?;
                    CHUNK
                }
                Some(_) if used < bytes.len() => {
                    self.skip_damage(batch, &segment)?;
                    CHUNK
                }
                _ => CHUNK,
            };
        }
        Ok(true)
    }

    /// Moves to the first frame of a segment, if this program's version can read it.
    fn open_segment(&self, batch: &mut Batch, segment: &Segment<'_>) -> io::Result<()> {
        let bytes = segment.bytes(0, HEADER as u64)?;
        let Ok(found) = <[u8; HEADER]>::try_from(bytes.as_slice()) else {
            // Its owner died while creating it. Headers are written completely or not at all, so
            // there are no frames.
            batch.next.offset = segment.limit;
            return Ok(());
        };
        match segment::read_header(found) {
            Header::Good => batch.next.offset = HEADER as u64,
            Header::Damaged => {
                batch.next.offset = 0;
                self.skip_damage(batch, segment)?;
            }
            Header::Foreign(version) => {
                let what = format!(
                    "a journal segment of version {version}, which this program cannot read: \
                     set aside"
                );
                let all = segment.bytes(0, segment.limit)?;
                self.damage(batch.next, &all, &what)?;
                advance(batch, segment.limit);
            }
        }
        Ok(())
    }

    /// A frame with a correct checksum whose payload is not a record of this program's version.
    fn unreadable_record(&self, batch: &mut Batch, payload: &[u8]) -> io::Result<()> {
        self.damage(
            batch.next,
            payload,
            "a journal record that this program cannot read: set aside",
        )?;
        advance(batch, (frame::HEAD + payload.len()) as u64);
        Ok(())
    }

    /// Sets aside the bytes up to the next complete frame, or the segment's end.
    fn skip_damage(&self, batch: &mut Batch, segment: &Segment<'_>) -> io::Result<()> {
        let rest = segment.bytes(batch.next.offset, segment.limit)?;
        let found = frame::resync(&rest);
        let what = match found {
            Some(_) => {
                "damage in the middle of a journal segment: set aside, the records behind it \
                 are read"
            }
            None if matches!(frame::read(&rest), FoundFrame::Short(_)) => {
                "a journal segment ends in a torn record: set aside"
            }
            None => "the end of a journal segment is damaged: set aside",
        };
        let lost = found.unwrap_or(rest.len());
        self.damage(batch.next, &rest[..lost], what)?;
        advance(batch, lost as u64);
        Ok(())
    }

    fn damage(&self, at: Position, bytes: &[u8], what: &str) -> io::Result<()> {
        self.set_aside.map_or(Ok(()), |kept| kept.damage(self.dir, at, bytes, what))
    }
}

/// Adds complete, readable frames from the start of `bytes` to the batch; returns their size in
/// bytes.
fn parse(bytes: &[u8], batch: &mut Batch, rows: usize, decoder: &mut Decoder) -> usize {
    let mut used = 0;
    while batch.records.len() < rows
        && batch.bytes + (used as u64) < BATCH_BYTES
        && let Some(rest) = bytes.get(used..)
        && let FoundFrame::Frame(payload) = frame::read(rest)
        && let Some(record) = decoder.read(payload)
    {
        batch.records.push(record);
        used += frame::HEAD + payload.len();
    }
    used
}

fn advance(batch: &mut Batch, bytes: u64) {
    batch.next.offset += bytes;
    batch.bytes += bytes;
}

/// A segment file, up to its relevant end.
struct Segment<'a> {
    file: &'a File,
    number: u64,
    limit: u64,
}

impl Segment<'_> {
    /// At most `length` bytes from `offset`.
    fn bytes(&self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let length = length.min(self.limit.saturating_sub(offset));
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.file.read_exact_at(&mut bytes, offset).map_err(|error| {
            io::Error::new(error.kind(), format!("segment {} at {offset}: {error}", self.number))
        })?;
        Ok(bytes)
    }
}
