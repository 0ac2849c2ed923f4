//! The mock's records: bounded records of requests, and counts that tests can wait for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::request::Parts;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, Semaphore, watch};

/// Maximum requests kept.
const MAX_RECORDS: usize = 512;
/// Maximum bytes of all bodies kept.
const MAX_RECORDED_BYTES: usize = 64 << 20;
/// Maximum bytes kept of one body.
const MAX_BODY: usize = 4 << 20;

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExchangeState {
    Running,
    Finished,
    Dropped,
}

#[derive(Debug)]
struct Record {
    serial: u64,
    parts: Parts,
    body: Bytes,
    body_bytes: usize,
    status: Option<u16>,
    state: ExchangeState,
}

/// Counts since the start.
#[derive(Debug, Default)]
struct MockCounts {
    started: AtomicU64,
    finished: AtomicU64,
    dropped: AtomicU64,
    connections: AtomicU64,
}

/// Records and counts of one mock instance.
#[derive(Debug)]
pub(super) struct Records {
    kept: Mutex<VecDeque<Record>>,
    counts: MockCounts,
    changed: Notify,
    closing: watch::Sender<bool>,
    /// How many held streams may continue.
    words: Arc<Semaphore>,
}

impl Default for Records {
    fn default() -> Self {
        let (closing, _) = watch::channel(false);
        Self {
            kept: Mutex::default(),
            counts: MockCounts::default(),
            changed: Notify::new(),
            closing,
            words: Arc::new(Semaphore::new(0)),
        }
    }
}

impl Records {
    /// A request has begun; the guard reports its end.
    pub(super) fn start(self: &Arc<Self>) -> Exchange {
        let serial = self.counts.started.fetch_add(1, Ordering::Relaxed) + 1;
        self.changed.notify_waiters();
        Exchange { records: Arc::clone(self), serial, ended: false }
    }

    /// A peer has connected.
    pub(super) fn connected(&self) {
        self.counts.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// From now on every stall and every pause before a head ends.
    pub(super) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// This many streams may continue: held ones, or the next ones to hold.
    pub(super) fn go_on(&self, streams: usize) {
        let room = Semaphore::MAX_PERMITS - self.words.available_permits();
        self.words.add_permits(streams.min(room));
    }

    fn keep(&self, record: Record) {
        let mut kept = self.kept.lock();
        kept.push_back(record);
        let mut bytes: usize = kept.iter().map(|record| record.body.len()).sum();
        while kept.len() > MAX_RECORDS || (bytes > MAX_RECORDED_BYTES && kept.len() > 1) {
            bytes -= kept.pop_front().map_or(0, |record| record.body.len());
        }
    }

    fn update(&self, serial: u64, change: impl FnOnce(&mut Record)) {
        if let Some(record) =
            self.kept.lock().iter_mut().rev().find(|record| record.serial == serial)
        {
            change(record);
        }
    }

    /// The last `last` requests, oldest first.
    pub(super) fn last(&self, last: usize) -> Value {
        let kept = self.kept.lock();
        Value::Array(kept.iter().skip(kept.len().saturating_sub(last)).map(shown).collect())
    }

    /// Drops records; counts stay.
    pub(super) fn clear(&self) {
        self.kept.lock().clear();
    }

    pub(super) fn counts(&self) -> Value {
        let [started, finished, dropped, connections] = self.numbers();
        json!({"started": started, "finished": finished, "dropped": dropped, "connections": connections})
    }

    fn numbers(&self) -> [u64; 4] {
        let counts = &self.counts;
        [&counts.started, &counts.finished, &counts.dropped, &counts.connections]
            .map(|n| n.load(Ordering::Relaxed))
    }

    /// Returns once started, finished, dropped and connections are at least `least`.
    pub(super) async fn reach(&self, least: [u64; 4]) {
        loop {
            let mut changed = Box::pin(self.changed.notified());
            changed.as_mut().enable();
            if self.numbers().iter().zip(least).all(|(is, want)| *is >= want) {
                return;
            }
            changed.await;
        }
    }
}

/// The guard of one exchange: dropped unfinished, it counts as dropped by the peer.
pub(super) struct Exchange {
    records: Arc<Records>,
    serial: u64,
    ended: bool,
}

impl Exchange {
    /// The request's number at this instance, from 1.
    pub(super) const fn serial(&self) -> u64 {
        self.serial
    }

    /// Stores the received request.
    pub(super) fn keep(&self, parts: Parts, body: &Bytes) {
        let shown = body.slice(..body.len().min(MAX_BODY));
        let serial = self.serial;
        let state = ExchangeState::Running;
        self.records.keep(Record {
            serial,
            parts,
            body: shown,
            body_bytes: body.len(),
            status: None,
            state,
        });
    }

    /// Notes the status that is being sent.
    pub(super) fn answered(&self, status: u16) {
        self.records.update(self.serial, |record| record.status = Some(status));
    }

    /// The mock has sent its complete answer.
    pub(super) fn finish(&mut self) {
        self.end(ExchangeState::Finished);
    }

    fn end(&mut self, state: ExchangeState) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let counts = &self.records.counts;
        let count =
            if state == ExchangeState::Finished { &counts.finished } else { &counts.dropped };
        self.records.update(self.serial, |record| record.state = state);
        count.fetch_add(1, Ordering::Relaxed);
        self.records.changed.notify_waiters();
    }

    /// Resolves when the operator continues this stream, or the mock closes.
    pub(super) fn told_to_go_on(&self) -> impl Future<Output = ()> + Send + 'static {
        let (words, closing) = (Arc::clone(&self.records.words), self.closing());
        async move {
            tokio::select! {
                word = words.acquire() => {
                    // Never closed: a permit is always available in the end, and is used once.
                    if let Ok(word) = word {
                        word.forget();
                    }
                }
                () = closing => {}
            }
        }
    }

    /// Resolves when the mock closes.
    pub(super) fn closing(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut closing = self.records.closing.subscribe();
        async move {
            // An error means that the sender is gone: closed as well.
            let _ = closing.wait_for(|closed| *closed).await;
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.end(ExchangeState::Dropped);
    }
}

fn shown(record: &Record) -> Value {
    let mut headers = Map::new();
    for (name, value) in &record.parts.headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        match headers.get_mut(name.as_str()) {
            Some(Value::String(before)) => {
                before.push_str(", ");
                before.push_str(&value);
            }
            _ => {
                headers.insert(name.as_str().to_owned(), json!(value));
            }
        }
    }
    let body = serde_json::from_slice(&record.body)
        .unwrap_or_else(|_| json!(String::from_utf8_lossy(&record.body)));
    let state = match record.state {
        ExchangeState::Running => "running",
        ExchangeState::Finished => "finished",
        ExchangeState::Dropped => "dropped",
    };
    json!({
        "number": record.serial, "method": record.parts.method.as_str(), "path": record.parts.uri.path(),
        "query": record.parts.uri.query().unwrap_or_default(), "version": format!("{:?}", record.parts.version),
        "headers": headers, "body": body, "body_bytes": record.body_bytes, "status": record.status, "state": state,
    })
}
