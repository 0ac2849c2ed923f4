//! The ledger on real files: its guarantees when processes die, disks are full, databases are
//! unreachable, bits flip.

mod bounds;
mod damage;
mod delivery;
mod kill;
mod power;
mod store;

use std::collections::BTreeMap;
use std::fs;
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::support::wait;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tollgate::domain::clock::SystemClock;
use tollgate::domain::ids::RequestId;
use tollgate::domain::record::Record;
use tollgate::ledger::{JournalStats, Ledger, LedgerSettings, Sink, SinkError};

/// Time-out, longer than any test needs; only a failing test reaches it.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// A plausible record, the same for the same number.
pub fn sample(number: u64) -> Record {
    let text = include_str!("sample.json");
    let text =
        text.replace("\"@n\"", &number.to_string()).replace("@id", &format!("{number:012x}"));
    serde_json::from_str(&text).unwrap()
}

pub fn quick() -> LedgerSettings {
    LedgerSettings {
        segment_bytes: 16 << 20,
        max_bytes: 1 << 30,
        batch_rows: 500,
        flush_interval_ms: 5,
        sync_interval_ms: 1_000,
        drain_ms: 20_000,
    }
}

pub fn open(root: &Path, settings: LedgerSettings) -> Arc<Ledger> {
    Ledger::open(root, settings, Arc::new(SystemClock)).unwrap()
}

/// A running writer.
struct Running {
    ledger: Arc<Ledger>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    fn start(ledger: Arc<Ledger>, sink: &Rows) -> Self {
        let (stop, stopped) = oneshot::channel();
        let work = Arc::clone(&ledger).run(sink.clone(), async {
            let _ = stopped.await;
        });
        Self { ledger, stop, task: Handle::current().spawn(work) }
    }

    async fn stop(self) -> JournalStats {
        self.stop.send(()).unwrap();
        tokio::time::timeout(TIME_LIMIT, self.task).await.unwrap().unwrap();
        self.ledger.stats()
    }
}

/// What a process delivers that starts on this root, with a working database, and stops at once.
async fn recover(root: &Path, sink: &Rows) -> JournalStats {
    let ledger = open(root, quick());
    Arc::clone(&ledger).run(sink.clone(), ready(())).await;
    ledger.stats()
}

/// As [`recover`], once the lock of the journal before is free. A program that another test starts
/// meanwhile has a copy of the lock's file between fork and exec, and with it the lock.
async fn recover_once_free(root: &Path, sink: &Rows) -> JournalStats {
    let recovered = async || Some(recover(root, sink).await).filter(|stats| stats.adopted > 0);
    wait::within(TIME_LIMIT, recovered).await.expect("no journal was adopted")
}

/// Directories of journals under a root.
fn journals(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(root).unwrap().map(|e| e.unwrap().path()).collect();
    found.retain(|path| path.is_dir() && !path.ends_with("set-aside"));
    found.sort();
    found
}

/// Files that were set aside for the operator.
fn set_aside(root: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(root.join("set-aside")).map(|dir| dir.map(|e| e.unwrap().path()).collect());
    let mut found: Vec<PathBuf> = entries.unwrap_or_default();
    found.sort();
    found
}

/// A database in memory with unique request ids. It can fail in every way.
#[derive(Clone)]
struct Rows(Arc<Inner>);

type Refusal = fn(String) -> SinkError;

struct Inner {
    rows: Mutex<BTreeMap<RequestId, Record>>,
    mood: watch::Sender<Mood>,
    refused: Mutex<BTreeMap<RequestId, Refusal>>,
    /// Calls so far, and rows so far.
    seen: watch::Sender<(usize, usize)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Well,
    Down,
    /// Never answers, until the mood changes.
    Stalled,
    /// Writes, and then the connection breaks.
    LosesReplies,
}

impl Rows {
    fn new(mood: Mood) -> Self {
        let (mood, seen) = (watch::Sender::new(mood), watch::Sender::new((0, 0)));
        Self(Arc::new(Inner { rows: Mutex::default(), mood, refused: Mutex::default(), seen }))
    }

    fn set(&self, mood: Mood) {
        self.0.mood.send_replace(mood);
    }

    /// Refuses every batch with this record in it: `with` is `SinkError::Refused` or
    /// `SinkError::Doubtful`.
    fn refuse(&self, record: &Record, with: Refusal) {
        self.0.refused.lock().insert(record.request_id, with);
    }

    fn all(&self) -> Vec<Record> {
        self.0.rows.lock().values().cloned().collect()
    }

    /// The numbers of the samples that arrived, in order.
    fn numbers(&self) -> Vec<u64> {
        self.0
            .rows
            .lock()
            .values()
            .map(|record| u64::try_from(record.started_at.0).unwrap())
            .collect()
    }

    /// Waits until (calls, rows) are what is wanted.
    async fn seen(&self, wanted: impl FnMut(&(usize, usize)) -> bool) {
        let mut seen = self.0.seen.subscribe();
        tokio::time::timeout(TIME_LIMIT, seen.wait_for(wanted)).await.unwrap().unwrap();
    }
}

impl Sink for Rows {
    async fn append_records(&self, records: &[Record]) -> Result<u64, SinkError> {
        self.0.seen.send_modify(|(calls, _)| *calls += 1);
        let mut moods = self.0.mood.subscribe();
        let mood = *moods.wait_for(|mood| *mood != Mood::Stalled).await.unwrap();
        if mood == Mood::Down {
            return Err(SinkError::Unavailable("scripted".into()));
        }
        let refused = self.0.refused.lock();
        if let Some(error) = records.iter().find_map(|record| refused.get(&record.request_id)) {
            return Err(error("a scripted constraint".to_owned()));
        }
        drop(refused);
        let mut rows = self.0.rows.lock();
        let before = rows.len();
        for record in records {
            rows.entry(record.request_id).or_insert_with(|| record.clone());
        }
        let (before, after) = (before as u64, rows.len() as u64);
        drop(rows);
        self.0.seen.send_modify(|(_, rows)| *rows = usize::try_from(after).unwrap());
        match mood {
            Mood::LosesReplies => {
                Err(SinkError::Unavailable("connection reset after commit".into()))
            }
            _ => Ok(after - before),
        }
    }
}
