//! A copy of what waits in the journals, made while their owners write and deliver: for backups.
//!
//! Copy the journals first and the database afterwards. A record that is not in the copy of the
//! journals was committed to the database before its segment went, or was appended later than the
//! copy began. A record that is in both has one request id, and the database drops the second one.
//!
//! A checkpoint is copied before its segments: what lies before it is in the database by then.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use super::claim;
use super::frame::{self, FoundFrame};
use super::segment::{self, HEADER, Position};
use super::{checkpoint, set_aside};
use crate::files;

/// What was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Copied {
    /// Bytes of records that the database may not have.
    pub waiting_bytes: u64,
}

/// Copies the journals under `root`, and what was set aside, into the empty directory `to`.
///
/// # Errors
/// Those of reading and writing. That there is no journal is not an error.
pub fn copy_journals(root: &Path, to: &Path) -> io::Result<Copied> {
    let mut copied = Copied::default();
    files::make_dir(to)?;
    for dir in present(claim::journals(root))?.unwrap_or_default() {
        let Some(name) = dir.file_name() else { continue };
        copied.waiting_bytes += copy_journal(&dir, &to.join(name))?;
    }
    // Behind the journals: bytes move from there to here.
    copy_set_aside(&root.join(set_aside::DIR), &to.join(set_aside::DIR))?;
    Ok(copied)
}

/// `None` for what was delivered and removed meanwhile.
fn present<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

fn copy_journal(dir: &Path, to: &Path) -> io::Result<u64> {
    let at = checkpoint::read(dir);
    let numbers = present(segment::list(dir))?.unwrap_or_default();
    let mut bytes = 0;
    for number in numbers.into_iter().filter(|number| *number >= at.segment) {
        let Some(mut file) = present(File::open(segment::path(dir, number)))? else { continue };
        let end = whole(&mut BufReader::new(&file), file.metadata()?.len())?;
        let begin = if number == at.segment { at.offset } else { 0 };
        let waiting = end.saturating_sub(begin.max(HEADER as u64));
        if waiting == 0 {
            continue;
        }
        fs::create_dir_all(to)?;
        io::Seek::rewind(&mut file)?;
        write(&segment::path(to, number), &mut file.take(end))?;
        bytes += waiting;
    }
    if bytes > 0 && at > Position::default() {
        checkpoint::write(to, at)?;
    }
    Ok(bytes)
}

/// The end of the last complete frame; a frame that is being written lies beyond it. Damage ends
/// the search, and the complete file is copied then.
fn whole(segment: &mut BufReader<&File>, length: u64) -> io::Result<u64> {
    let mut at = HEADER as u64;
    if length <= at {
        return Ok(length);
    }
    segment.seek_relative(i64::try_from(at).map_err(io::Error::other)?)?;
    loop {
        let mut head = Vec::with_capacity(frame::HEAD);
        segment.by_ref().take(frame::HEAD as u64).read_to_end(&mut head)?;
        let frame = match frame::read(&head) {
            FoundFrame::Short(bytes) => bytes as u64,
            FoundFrame::Frame(_) => frame::HEAD as u64,
            FoundFrame::Damaged => return Ok(length),
        };
        if head.len() < frame::HEAD || at + frame > length {
            return Ok(at);
        }
        at += frame;
        let payload = frame - frame::HEAD as u64;
        segment.seek_relative(i64::try_from(payload).map_err(io::Error::other)?)?;
    }
}

fn copy_set_aside(dir: &Path, to: &Path) -> io::Result<()> {
    let Some(entries) = present(fs::read_dir(dir))? else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        // A `.new` file is not complete.
        if entry.file_type()?.is_file() && entry.path().extension().is_none_or(|end| end != "new") {
            fs::create_dir_all(to)?;
            write(&to.join(entry.file_name()), &mut File::open(entry.path())?)?;
        }
    }
    Ok(())
}

fn write(path: &Path, from: &mut dyn Read) -> io::Result<()> {
    let mut file = files::private().write(true).create_new(true).open(path)?;
    io::copy(from, &mut file)?;
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::segment::{header, sample};

    /// A journal of three records; where each ends.
    fn journal(dir: &Path) -> Vec<u64> {
        fs::create_dir_all(dir).unwrap();
        let (mut bytes, mut frame, mut ends) = (header().to_vec(), Vec::new(), Vec::new());
        for number in 0..3 {
            frame::encode(&sample(number), &mut frame).unwrap();
            bytes.extend_from_slice(&frame);
            ends.push(bytes.len() as u64);
        }
        fs::write(segment::path(dir, 4), bytes).unwrap();
        ends
    }

    #[test]
    fn whole_frames_behind_the_checkpoint_are_copied_and_a_torn_one_is_not() {
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("journal"), root.path().join("copy"));
        let dir = from.join(uuid::Uuid::now_v7().to_string());
        let copy = to.join(dir.file_name().unwrap());
        let ends = journal(&dir);
        let file = File::options().write(true).open(segment::path(&dir, 4)).unwrap();
        for cut in [1, 5, ends[2] - ends[1] - 1] {
            file.set_len(ends[2] - cut).unwrap();
            let copied = copy_journals(&from, &to).unwrap();
            assert_eq!(copied.waiting_bytes, ends[1] - HEADER as u64, "cut by {cut}");
            assert_eq!(fs::metadata(segment::path(&copy, 4)).unwrap().len(), ends[1]);
            fs::remove_dir_all(&to).unwrap();
        }
        // All of it is in the database, or the first record is.
        checkpoint::write(&dir, Position { segment: 4, offset: ends[1] }).unwrap();
        assert_eq!(copy_journals(&from, &to).unwrap(), Copied::default());
        assert!(!copy.exists());
        let at = Position { segment: 4, offset: ends[0] };
        checkpoint::write(&dir, at).unwrap();
        fs::remove_dir_all(&to).unwrap();
        assert_eq!(copy_journals(&from, &to).unwrap().waiting_bytes, ends[1] - ends[0]);
        assert_eq!(checkpoint::read(&copy), at);
    }

    #[test]
    fn damage_is_copied_as_it_is_and_so_is_what_was_set_aside() {
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("journal"), root.path().join("copy"));
        let dir = from.join(uuid::Uuid::now_v7().to_string());
        let ends = journal(&dir);
        let path = segment::path(&dir, 4);
        let mut bytes = fs::read(&path).unwrap();
        bytes[usize::try_from(ends[0]).unwrap()] ^= 1;
        fs::write(&path, &bytes).unwrap();
        fs::create_dir(from.join("set-aside")).unwrap();
        fs::write(from.join("set-aside/x.corrupt"), "x").unwrap();
        fs::write(from.join("set-aside/y.corrupt.new"), "y").unwrap();
        copy_journals(&from, &to).unwrap();
        assert_eq!(fs::read(segment::path(&to.join(dir.file_name().unwrap()), 4)).unwrap(), bytes);
        assert!(
            to.join("set-aside/x.corrupt").exists() && !to.join("set-aside/y.corrupt.new").exists()
        );
        assert_eq!(copy_journals(&root.path().join("none"), &to).unwrap(), Copied::default());
    }
}
