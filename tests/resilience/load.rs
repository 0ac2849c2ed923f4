//! Clients that send requests without pause until they are stopped, and count the results.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::proxy::fixture::{Fixture, request};
use crate::support::wait;

#[derive(Default)]
struct Counts {
    stop: AtomicBool,
    whole: AtomicU64,
    slowest_ms: AtomicU64,
    failures: Mutex<Vec<String>>,
}

/// Running clients; every other one requests streams.
pub struct Load {
    counts: Arc<Counts>,
    clients: Vec<JoinHandle<()>>,
}

/// The results.
pub struct Outcome {
    /// Replies with status 200 that arrived completely.
    pub whole: u64,
    /// Everything else.
    pub failures: Vec<String>,
    pub slowest: Duration,
}

impl Load {
    /// Each client has its own session and sends the next request soon after its answer.
    pub fn start(fixture: &Fixture, clients: usize) -> Self {
        Self::of(fixture, clients, |n| n % 2 == 0)
    }

    /// As [`Load::start`], without streams.
    pub fn of_answers(fixture: &Fixture, clients: usize) -> Self {
        Self::of(fixture, clients, |_| false)
    }

    fn of(fixture: &Fixture, clients: usize, streamed: impl Fn(usize) -> bool) -> Self {
        let counts = Arc::new(Counts::default());
        let clients = (0..clients)
            .map(|n| {
                let ask = fixture
                    .post("/v1/messages", &request("native", streamed(n)))
                    .header("x-session-id", format!("load-{n}"));
                tokio::spawn(client(ask, Arc::clone(&counts)))
            })
            .collect();
        Self { counts, clients }
    }

    pub fn whole(&self) -> u64 {
        self.counts.whole.load(Ordering::SeqCst)
    }

    pub fn failed(&self) -> usize {
        self.counts.failures.lock().len()
    }

    /// Waits until this many more replies have arrived.
    pub async fn more(&self, replies: u64) {
        let goal = self.whole() + replies;
        self.until(|load| load.whole() >= goal).await;
    }

    /// Waits until this many more requests have failed.
    pub async fn more_failures(&self, failures: usize) {
        let goal = self.failed() + failures;
        self.until(|load| load.failed() >= goal).await;
    }

    async fn until(&self, reached: impl Fn(&Self) -> bool) {
        let instead = || {
            let (whole, failures) = (self.whole(), self.counts.failures.lock().last().cloned());
            format!("the load stands still at {whole}, last failure {failures:?}")
        };
        wait::until(instead, async || reached(self)).await;
    }

    /// Waits for each client's last answer.
    pub async fn end(self) -> Outcome {
        self.counts.stop.store(true, Ordering::SeqCst);
        for client in self.clients {
            client.await.unwrap();
        }
        Outcome {
            whole: self.counts.whole.load(Ordering::SeqCst),
            failures: std::mem::take(&mut self.counts.failures.lock()),
            slowest: Duration::from_millis(self.counts.slowest_ms.load(Ordering::SeqCst)),
        }
    }
}

async fn client(ask: reqwest::RequestBuilder, counts: Arc<Counts>) {
    while !counts.stop.load(Ordering::SeqCst) {
        let began = Instant::now();
        match once(&ask).await {
            Ok(()) => counts.whole.fetch_add(1, Ordering::SeqCst),
            Err(why) => {
                counts.failures.lock().push(why);
                0
            }
        };
        let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        counts.slowest_ms.fetch_max(took, Ordering::SeqCst);
        // Sleeps: clients that never pause would take the processor from what is tested.
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}

async fn once(ask: &reqwest::RequestBuilder) -> Result<(), String> {
    let answer = ask.try_clone().unwrap().send().await.map_err(|e| format!("{e:?}"))?;
    let status = answer.status();
    let text = answer.text().await.map_err(|e| format!("{status}, then {e:?}"))?;
    if status == 200 && !text.contains("event: error") {
        Ok(())
    } else {
        Err(format!("{status}: {text}"))
    }
}

/// The number of rows in the usage log, and how many of them are complete replies.
pub async fn rows(fixture: &Fixture) -> (u64, u64) {
    let count = async |filter: serde_json::Value| {
        fixture.gateway.admin("usage-logs/getUsageLogs", filter).await["total"].as_u64().unwrap()
    };
    let all = count(serde_json::json!({"pageSize": 1})).await;
    (all, count(serde_json::json!({"pageSize": 1, "statusCode": 200})).await)
}

/// Waits until the journal is empty, then compares: each complete reply one row, and nothing else
/// with status 200.
pub async fn nothing_lost(fixture: &Fixture, whole: u64) {
    fixture
        .gateway
        .metric_shows("tollgate_journal_pending_records", |pending| pending == 0.0)
        .await;
    fixture.gateway.metric_shows("tollgate_journal_held_records", |held| held == 0.0).await;
    assert_eq!(rows(fixture).await.1, whole, "rows of whole replies");
    assert_eq!(fixture.gateway.metric("tollgate_journal_lost_records_total").await, 0.0);
}
