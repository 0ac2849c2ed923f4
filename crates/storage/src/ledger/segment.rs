//! Segment files of a journal directory: their names, their header, their order.
//!
//! `0000000001.seg`, `0000000002.seg`, …: sixteen bytes of header, then frames. Numbers only grow,
//! and a gap means that the segments in it were delivered and deleted.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"tg-jrnl\n";
/// The version of the header and of the frames; the records have one of their own (`encoding`).
const VERSION: u32 = 3;
/// Bytes of the header: magic, version, checksum of both.
pub(super) const HEADER: usize = 16;
const SUFFIX: &str = ".seg";

/// A place in a journal directory: everything before it has been delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Position {
    pub segment: u64,
    pub offset: u64,
}

impl Position {
    /// The position of the first frame of `segment`.
    pub(super) const fn start_of(segment: u64) -> Self {
        Self { segment, offset: HEADER as u64 }
    }
}

/// The result of reading a segment's first bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Header {
    Good,
    /// A version that this program cannot read.
    Foreign(u32),
    Damaged,
}

pub(super) fn header() -> [u8; HEADER] {
    with_version(VERSION)
}

fn with_version(version: u32) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    let sum = crc32fast::hash(&bytes[..12]);
    bytes[12..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

pub(super) fn read_header(bytes: [u8; HEADER]) -> Header {
    let [_, _, _, _, _, _, _, _, v0, v1, v2, v3, ..] = bytes;
    let version = u32::from_le_bytes([v0, v1, v2, v3]);
    match bytes == with_version(version) {
        true if version == VERSION => Header::Good,
        true => Header::Foreign(version),
        false => Header::Damaged,
    }
}

pub(super) fn path(dir: &Path, segment: u64) -> PathBuf {
    dir.join(format!("{segment:010}{SUFFIX}"))
}

/// The segments of a directory, in order.
pub(super) fn list(dir: &Path) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_suffix(SUFFIX))
            .and_then(|n| n.parse::<u64>().ok());
        found.extend(number);
    }
    found.sort_unstable();
    Ok(found)
}

/// Deletes the segments before `segment`; returns the freed bytes.
pub(super) fn delete_before(dir: &Path, segment: u64) -> io::Result<u64> {
    let mut freed = 0;
    for old in list(dir)?.into_iter().filter(|s| *s < segment) {
        let path = path(dir, old);
        let bytes = fs::metadata(&path)?.len();
        fs::remove_file(&path)?;
        freed += bytes;
    }
    Ok(freed)
}

/// Bytes of all segments of a directory.
pub(super) fn total_bytes(dir: &Path) -> io::Result<u64> {
    list(dir)?.into_iter().map(|segment| fs::metadata(path(dir, segment)).map(|m| m.len())).sum()
}

/// Syncs every segment of a directory, and the directory: for data that another process left
/// unsynced.
pub(super) fn sync_all(dir: &Path) -> io::Result<()> {
    for segment in list(dir)? {
        File::open(path(dir, segment))?.sync_all()?;
    }
    crate::files::sync_dir(dir)
}

/// A plausible record, the same for the same number: for the tests of this module.
#[cfg(test)]
pub(super) fn sample(number: u64) -> crate::domain::record::Record {
    let text = include_str!("../../../../tests/ledger/sample.json")
        .replace("\"@n\"", &number.to_string())
        .replace("@id", &format!("{number:012x}"));
    serde_json::from_str(&text).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_distinguished() {
        assert_eq!(read_header(header()), Header::Good);
        for foreign in [0, 2, 4] {
            assert_eq!(read_header(with_version(foreign)), Header::Foreign(foreign));
        }
        for byte in 0..HEADER {
            let mut bytes = header();
            bytes[byte] ^= 4;
            assert_eq!(read_header(bytes), Header::Damaged, "byte {byte}");
        }
    }

    #[test]
    fn segments_are_listed_in_order_and_others_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["0000000010.seg", "0000000002.seg", "checkpoint", "lock", "x.seg"] {
            fs::write(dir.path().join(name), "1234").unwrap();
        }
        assert_eq!(list(dir.path()).unwrap(), [2, 10]);
        assert_eq!(total_bytes(dir.path()).unwrap(), 8);
        assert_eq!(delete_before(dir.path(), 10).unwrap(), 4);
        assert_eq!(list(dir.path()).unwrap(), [10]);
    }
}
