//! Reads the records that wait in the journals of other processes: for a start whose database is
//! away, which cannot deliver them first.

use std::io;
use std::path::Path;

use super::checkpoint;
use super::claim::Claim;
use super::reader::JournalReader;
use crate::domain::record::Record;

/// Records read at a time. At least a batch of the writer (`ledger.batch_rows` is at most this).
const ROWS: usize = 10_000;

/// Calls `each` with every record in the journals under `root`: of ended processes, and of running
/// ones, as far as they have written. The records stay there and are delivered later.
///
/// The second argument: whether the record may be in the database already, or soon. An ended
/// process may have delivered a batch and not noted that; a running one may deliver at any time.
///
/// # Errors
/// When a journal cannot be read. That there is none is not an error; damaged parts are left out.
pub fn each_left(root: &Path, each: &mut dyn FnMut(&Record, bool)) -> io::Result<()> {
    let (left, held) = match Claim::survey(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    for claim in &left {
        each_in(claim.path(), ROWS, each)?;
    }
    for running in &held {
        match each_in(running, usize::MAX, each) {
            // Its owner delivers, and has just removed what it delivered.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            read => read?,
        }
    }
    Ok(())
}

/// Calls `each` with every record in a journal. The first `doubtful` ones may be in the database.
fn each_in(dir: &Path, doubtful: usize, each: &mut dyn FnMut(&Record, bool)) -> io::Result<()> {
    let reader = JournalReader { dir, end: None, set_aside: None };
    let mut at = checkpoint::read(dir);
    let mut doubtful = doubtful;
    loop {
        let batch = reader.read(at, ROWS)?;
        for record in &batch.records {
            each(record, doubtful > 0);
            doubtful = doubtful.saturating_sub(1);
        }
        if batch.at_end {
            return Ok(());
        }
        at = batch.next;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::ledger::segment::{self, header, sample};
    use crate::ledger::{checkpoint, frame};

    #[test]
    fn records_behind_the_checkpoint_are_seen_and_stay() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join(uuid::Uuid::now_v7().to_string());
        fs::create_dir_all(&dir).unwrap();
        let (mut bytes, mut frame, mut ends) = (header().to_vec(), Vec::new(), Vec::new());
        for number in 0..3 {
            frame::encode(&sample(number), &mut frame).unwrap();
            bytes.extend_from_slice(&frame);
            ends.push(bytes.len() as u64);
        }
        fs::write(segment::path(&dir, 4), &bytes).unwrap();
        let seen = || {
            let mut ids = Vec::new();
            let mut note = |record: &Record, doubtful| ids.push((record.request_id, doubtful));
            each_left(root.path(), &mut note).unwrap();
            ids
        };
        let ids = [0, 1, 2].map(|number| (sample(number).request_id, true));
        assert_eq!(seen(), ids);
        let at = segment::Position { segment: 4, offset: ends[0] };
        checkpoint::write(&dir, at).unwrap();
        assert_eq!(seen(), ids[1..]);
        let held = Claim::survey(root.path()).unwrap().0;
        assert_eq!(seen(), ids[1..], "of a running process");
        // It has begun to write a record.
        fs::write(segment::path(&dir, 4), [&bytes[..], &frame[..9]].concat()).unwrap();
        assert_eq!(seen(), ids[1..]);
        fs::write(segment::path(&dir, 4), &bytes).unwrap();
        drop(held);
        assert_eq!(fs::read(segment::path(&dir, 4)).unwrap(), bytes);
        each_left(&root.path().join("none"), &mut |_, _| ()).unwrap();
    }
}
