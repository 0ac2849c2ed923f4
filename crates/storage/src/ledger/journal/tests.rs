//! The write side on a disk with injected faults.

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::*;
use crate::ledger::reader::JournalReader;
use crate::ledger::segment::sample;
use crate::ledger::set_aside::SetAside;

/// The disk's behaviour; shared with the files that it created.
#[derive(Default)]
struct Faults {
    /// Bytes that it still accepts.
    room: AtomicU64,
    cut_fails: AtomicBool,
    create_fails: AtomicBool,
    /// This many syncs fail from now on.
    sync_failures: AtomicU64,
    synced: AtomicU64,
}

struct FaultyDisk(Arc<Faults>);

struct FaultyFile {
    file: File,
    faults: Arc<Faults>,
}

fn failing(flag: &AtomicBool) -> io::Result<()> {
    if flag.load(Ordering::SeqCst) { Err(io::Error::other("scripted")) } else { Ok(()) }
}

impl Disk for FaultyDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn SegmentFile>> {
        failing(&self.0.create_fails)?;
        let file = File::options().write(true).create_new(true).open(path)?;
        Ok(Arc::new(FaultyFile { file, faults: Arc::clone(&self.0) }))
    }
}

impl SegmentFile for FaultyFile {
    /// Writes as much as fits, like a full disk.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let room = self.faults.room.load(Ordering::SeqCst);
        let taken = bytes.len().min(usize::try_from(room).unwrap());
        self.faults.room.store(room - taken as u64, Ordering::SeqCst);
        self.file.write_at(&bytes[..taken], offset)?;
        if taken < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn cut(&self, length: u64) -> io::Result<()> {
        failing(&self.faults.cut_fails)?;
        self.file.cut(length)
    }

    fn sync(&self) -> io::Result<()> {
        let left = self.faults.sync_failures.load(Ordering::SeqCst);
        if left > 0 {
            self.faults.sync_failures.store(left - 1, Ordering::SeqCst);
            return Err(io::Error::other("scripted"));
        }
        self.faults.synced.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

struct Bench {
    root: tempfile::TempDir,
    faults: Arc<Faults>,
    tally: Arc<JournalTally>,
    journal: Journal,
}

impl Bench {
    fn new(segment_bytes: u64) -> Self {
        let root = tempfile::tempdir().unwrap();
        let faults = Arc::new(Faults { room: AtomicU64::new(1 << 30), ..Faults::default() });
        let tally = Arc::new(JournalTally::default());
        let settings = LedgerSettings {
            segment_bytes,
            max_bytes: 1 << 30,
            batch_rows: 500,
            flush_interval_ms: 200,
            sync_interval_ms: 1_000,
            drain_ms: 10_000,
        };
        let disk = Box::new(FaultyDisk(Arc::clone(&faults)));
        let journal = Journal::create_on(disk, root.path(), settings, Arc::clone(&tally)).unwrap();
        Self { root, faults, tally, journal }
    }

    /// The numbers of the records that a reader finds, and the number of damaged stretches.
    fn read(&self, end: Option<Position>) -> (Vec<i64>, u64) {
        let tally = Arc::new(JournalTally::default());
        let set_aside = SetAside::beside(self.root.path(), Arc::clone(&tally));
        let reader = JournalReader { dir: self.root.path(), end, set_aside: Some(&set_aside) };
        let batch = reader.read(Position::default(), 1_000).unwrap();
        let numbers = batch.records.iter().map(|record| record.started_at.0).collect();
        (numbers, tally.damaged_ranges.load(Ordering::SeqCst))
    }
}

#[test]
fn a_full_disk_leaves_no_half_frame_and_what_was_held_follows_when_there_is_room() {
    let bench = Bench::new(1 << 20);
    bench.journal.append(&sample(1)).unwrap();
    bench.faults.room.store(100, Ordering::SeqCst);
    for number in 2..=4 {
        let error = bench.journal.append(&sample(number)).unwrap_err();
        assert!(matches!(error, LedgerError::Held(AppendRefused::DiskFull)), "{error}");
        assert!(!bench.journal.has_room());
    }
    assert_eq!(bench.read(None), (vec![1], 0), "the half frame was cut off");
    assert!(!bench.journal.retry_held());
    bench.faults.room.store(1 << 20, Ordering::SeqCst);
    assert!(bench.journal.retry_held());
    assert!(bench.journal.has_room());
    bench.journal.append(&sample(5)).unwrap();
    assert_eq!(bench.read(None), (vec![1, 2, 3, 4, 5], 0));
    assert_eq!(bench.read(Some(bench.journal.end().at)), (vec![1, 2, 3, 4, 5], 0));
    assert_eq!(bench.tally.appended_records.load(Ordering::SeqCst), 5);
}

#[test]
fn a_file_that_cannot_be_cut_back_is_not_written_again() {
    let bench = Bench::new(1 << 20);
    bench.journal.append(&sample(1)).unwrap();
    bench.faults.room.store(100, Ordering::SeqCst);
    bench.faults.cut_fails.store(true, Ordering::SeqCst);
    bench.journal.append(&sample(2)).unwrap_err();
    bench.faults.create_fails.store(true, Ordering::SeqCst);
    bench.faults.room.store(1 << 20, Ordering::SeqCst);
    bench.journal.append(&sample(3)).unwrap_err();
    bench.faults.create_fails.store(false, Ordering::SeqCst);
    bench.journal.append(&sample(4)).unwrap();
    assert_eq!(segment::list(bench.root.path()).unwrap(), [1, 2]);
    assert_eq!(bench.read(None), (vec![1, 2, 3, 4], 1), "the half frame is seen as what it is");
}

#[test]
fn a_segment_grows_on_when_no_new_one_can_be_made() {
    let bench = Bench::new(2_048);
    bench.faults.create_fails.store(true, Ordering::SeqCst);
    for number in 1..=8 {
        bench.journal.append(&sample(number)).unwrap();
    }
    assert_eq!(segment::list(bench.root.path()).unwrap(), [1]);
    bench.faults.create_fails.store(false, Ordering::SeqCst);
    for number in 9..=12 {
        bench.journal.append(&sample(number)).unwrap();
    }
    assert!(segment::list(bench.root.path()).unwrap().len() > 1);
    assert_eq!(bench.read(None), ((1..=12).collect(), 0));
}

#[test]
fn a_sync_covers_every_segment_written_since_the_last() {
    let bench = Bench::new(2_048);
    for number in 1..=30 {
        bench.journal.append(&sample(number)).unwrap();
    }
    let segments = segment::list(bench.root.path()).unwrap().len() as u64;
    assert!(segments > 2);
    bench.journal.sync().unwrap();
    assert_eq!(bench.faults.synced.load(Ordering::SeqCst), segments);
    bench.journal.sync().unwrap();
    assert_eq!(bench.faults.synced.load(Ordering::SeqCst), segments, "nothing was written since");
    bench.journal.append(&sample(31)).unwrap();
    bench.faults.sync_failures.store(2, Ordering::SeqCst);
    bench.journal.sync().unwrap_err();
}

#[test]
fn what_a_failed_sync_leaves_in_doubt_is_written_to_a_new_segment_and_synced_there() {
    let bench = Bench::new(1 << 20);
    for number in 1..=3 {
        bench.journal.append(&sample(number)).unwrap();
    }
    bench.journal.sync().unwrap();
    for number in 4..=5 {
        bench.journal.append(&sample(number)).unwrap();
    }
    bench.faults.sync_failures.store(1, Ordering::SeqCst);
    bench.journal.sync().unwrap();
    assert_eq!(bench.tally.sync_errors.load(Ordering::SeqCst), 1);
    assert!(bench.journal.has_room(), "the new segment is synced");
    assert_eq!(segment::list(bench.root.path()).unwrap(), [1, 2]);
    assert_eq!(
        bench.read(None),
        (vec![1, 2, 3, 4, 5, 4, 5], 0),
        "what was synced before is not written again"
    );
    bench.journal.append(&sample(6)).unwrap();
    let synced = bench.faults.synced.load(Ordering::SeqCst);
    bench.journal.sync().unwrap();
    assert_eq!(
        bench.faults.synced.load(Ordering::SeqCst),
        synced + 1,
        "the failed segment is not synced again"
    );
    assert_eq!(segment::list(bench.root.path()).unwrap(), [1, 2]);
}

#[test]
fn a_disk_that_does_not_sync_at_all_has_no_room_until_it_does() {
    let bench = Bench::new(1 << 20);
    for number in 1..=3 {
        bench.journal.append(&sample(number)).unwrap();
    }
    bench.faults.sync_failures.store(4, Ordering::SeqCst);
    for _ in 0..2 {
        bench.journal.sync().unwrap_err();
        assert!(!bench.journal.has_room());
    }
    // Requests in flight can still be recorded.
    bench.journal.append(&sample(4)).unwrap();
    bench.journal.sync().unwrap();
    assert!(bench.journal.has_room());
    let (mut numbers, damaged) = bench.read(None);
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!((numbers, damaged), (vec![1, 2, 3, 4], 0));
}

#[test]
fn a_directory_that_does_not_sync_leaves_all_in_doubt() {
    let bench = Bench::new(1 << 20);
    bench.journal.append(&sample(1)).unwrap();
    let (here, away) = (bench.root.path().to_owned(), bench.root.path().with_extension("away"));
    std::fs::rename(&here, &away).unwrap();
    bench.journal.sync().unwrap_err();
    assert!(!bench.journal.has_room());
    std::fs::rename(&away, &here).unwrap();
    bench.journal.append(&sample(2)).unwrap();
    bench.journal.sync().unwrap();
    assert!(bench.journal.has_room());
}
