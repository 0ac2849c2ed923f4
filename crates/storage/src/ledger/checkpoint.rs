//! How far a journal directory has been delivered, stored in the directory itself.
//!
//! One line of text, `segment offset checksum`, replaced by renaming. It is written after the
//! database has committed to its disk, so it is never ahead of the database, whichever reaches the
//! disk first.
//!
//! It is not synced. If a power failure undoes or tears a checkpoint, delivery only begins earlier,
//! and the database's unique request id drops what it already has. `tests/ledger/power` replays
//! each of these states.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use super::segment::Position;
use crate::files;

pub(super) const NAME: &str = "checkpoint";
pub(super) const NEW_NAME: &str = "checkpoint.new";

pub(super) fn write(dir: &Path, at: Position) -> io::Result<()> {
    let body = format!("{} {}", at.segment, at.offset);
    let mut file =
        files::private().write(true).create(true).truncate(true).open(dir.join(NEW_NAME))?;
    file.write_all(format!("{body} {:08x}\n", crc32fast::hash(body.as_bytes())).as_bytes())?;
    fs::rename(dir.join(NEW_NAME), dir.join(NAME))
}

/// The checkpoint of a directory; the very beginning if there is none, or none that is readable.
pub(super) fn read(dir: &Path) -> Position {
    match fs::read_to_string(dir.join(NAME)) {
        Ok(text) => parse(&text).unwrap_or_else(|| {
            tracing::warn!(dir = %dir.display(), "unreadable checkpoint: delivering this journal \
                from its beginning");
            Position::default()
        }),
        Err(_) => Position::default(),
    }
}

fn parse(text: &str) -> Option<Position> {
    let (body, sum) = text.strip_suffix('\n')?.rsplit_once(' ')?;
    if u32::from_str_radix(sum, 16).ok()? != crc32fast::hash(body.as_bytes()) {
        return None;
    }
    let (segment, offset) = body.split_once(' ')?;
    Some(Position { segment: segment.parse().ok()?, offset: offset.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_reads_back_and_a_damaged_one_means_the_beginning() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()), Position::default());
        let at = Position { segment: 3, offset: 4_711 };
        write(dir.path(), Position { segment: 2, offset: 16 }).unwrap();
        write(dir.path(), at).unwrap();
        assert_eq!(read(dir.path()), at);
        let text = fs::read_to_string(dir.path().join(NAME)).unwrap();
        for bad in [&text[..text.len() - 3], "", "3 9999 00000000\n", &text.replace('7', "8")] {
            fs::write(dir.path().join(NAME), bad).unwrap();
            assert_eq!(read(dir.path()), Position::default(), "{bad:?}");
        }
    }
}
