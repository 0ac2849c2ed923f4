//! The mixed load: every format, answers and streams, converted or not, failing providers, clients
//! that leave, refusals, administration; by clients that keep some of their connections and many
//! sessions.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tollgate::domain::format::WireFormat;
use tollgate_bench::payload;
use tollgate_bench::response::Follower;

use super::fixture::{self, Fixture, MODELS};

/// Time-out of a request with its reply.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Requests on one connection, at most.
const KEPT: u64 = 50;

/// Counts over all clients.
#[derive(Default)]
pub struct Counts {
    pub answers: AtomicU64,
    pub streams: AtomicU64,
    /// Streams that the client aborted.
    pub left: AtomicU64,
    /// Expected refusals.
    pub refused: AtomicU64,
    pub administration: AtomicU64,
    /// Unexpected results.
    pub wrong: AtomicU64,
    pub last_wrong: Mutex<Option<String>>,
}

/// A kind of request.
enum Task {
    Answer { size: usize },
    Stream { events: u64, between_ms: u64 },
    Leave,
    Failing,
    Stranger,
    Poor,
    Administration,
}

pub struct Client {
    number: u64,
    fixture: Arc<Fixture>,
    counts: Arc<Counts>,
    random: fastrand::Rng,
    session: u64,
    kept: Option<(TcpStream, u64)>,
    buffer: Vec<u8>,
}

/// One request and its expected result.
struct Ask {
    bytes: Vec<u8>,
    /// Status of the reply; `None` where several are correct.
    status: Option<u16>,
    leave: bool,
}

impl Client {
    pub fn new(number: u64, fixture: Arc<Fixture>, counts: Arc<Counts>) -> Self {
        let random = fastrand::Rng::with_seed(number);
        Self { number, fixture, counts, random, session: 0, kept: None, buffer: vec![0; 32 << 10] }
    }

    /// Runs one task after the other, one per `pause` on average.
    pub async fn run(mut self, pause: Duration, end: Instant) {
        let mut next = tokio::time::Instant::now() + pause.mul_f64(self.random.f64());
        while Instant::now() < end {
            tokio::time::sleep_until(next).await;
            // At most one second of delay is made up for.
            next = (next + pause).max(tokio::time::Instant::now() - Duration::from_secs(1));
            let task = self.choose();
            let done = self.perform(&task).await;
            let counter = match (&done, &task) {
                (Err(_), _) => &self.counts.wrong,
                (Ok(()), Task::Answer { .. } | Task::Failing) => &self.counts.answers,
                (Ok(()), Task::Stream { .. }) => &self.counts.streams,
                (Ok(()), Task::Leave) => &self.counts.left,
                (Ok(()), Task::Stranger | Task::Poor) => &self.counts.refused,
                (Ok(()), Task::Administration) => &self.counts.administration,
            };
            counter.fetch_add(1, Ordering::Relaxed);
            if let Err(error) = done {
                *self.counts.last_wrong.lock() = Some(error.to_string());
            }
        }
    }

    fn choose(&mut self) -> Task {
        match self.random.u64(..100) {
            0..45 => Task::Answer { size: 2_000 },
            45..49 => Task::Answer { size: 100_000 },
            49..70 => Task::Stream { events: self.random.u64(3..40), between_ms: 0 },
            70..75 => Task::Stream { events: self.random.u64(3..20), between_ms: 20 },
            75..83 => Task::Leave,
            83..92 => Task::Failing,
            92..95 => Task::Stranger,
            95..98 => Task::Poor,
            _ => Task::Administration,
        }
    }

    async fn perform(&mut self, task: &Task) -> io::Result<()> {
        if matches!(task, Task::Administration) {
            return self.administer();
        }
        let ask = self.ask(task);
        tokio::time::timeout(TIME_LIMIT, self.exchange(&ask))
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    fn ask(&mut self, task: &Task) -> Ask {
        let format = WireFormat::ALL[self.random.usize(..4)];
        if self.random.u8(..3) == 0 {
            self.session += 1;
        }
        let key = match task {
            Task::Stranger => "sk-nobody",
            Task::Poor => &self.fixture.poor_key,
            _ => &self.fixture.keys[self.random.usize(..self.fixture.keys.len())],
        };
        let model = match task {
            Task::Failing => fixture::model(self.random.usize(..3)),
            _ => fixture::model(self.random.usize(3..MODELS)),
        };
        let (size, stream, mock) = match task {
            Task::Answer { size } => (*size, false, json!({"strict": false})),
            Task::Stream { events, between_ms } => (
                2_000,
                true,
                json!({"strict": false, "events": events, "between_events_ms": between_ms}),
            ),
            Task::Leave => (2_000, true, json!({"strict": false, "events": 20, "stall_after": 8})),
            _ => (2_000, false, json!({"strict": false})),
        };
        let mock = if matches!(task, Task::Failing) {
            String::new()
        } else {
            format!("x-mock: {mock}\r\n")
        };
        let extra = format!("x-session-id: {}-{}\r\n{mock}", self.number, self.session);
        let body = payload::body_of(format, &model, size, stream);
        let bytes = payload::request(&payload::path_of(format, &model, stream), key, &extra, &body);
        let status = match task {
            Task::Stranger => Some(401),
            // It is admitted until its first cost is known.
            Task::Poor => None,
            _ => Some(200),
        };
        Ask { bytes, status, leave: matches!(task, Task::Leave) }
    }

    async fn exchange(&mut self, ask: &Ask) -> io::Result<()> {
        let (mut tcp, used) = match self.kept.take() {
            Some(kept) => kept,
            None => (TcpStream::connect(self.fixture.proxy).await?, 0),
        };
        tcp.write_all(&ask.bytes).await?;
        let mut follower = Follower::default();
        while !follower.done() {
            let count = tcp.read(&mut self.buffer).await?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let began = follower.feed(&self.buffer[..count])?;
            if ask.leave && began && follower.status() == 200 {
                return Ok(());
            }
        }
        if let Some(wanted) = ask.status.filter(|wanted| *wanted != follower.status()) {
            return Err(io::Error::other(format!(
                "status {} in place of {wanted}",
                follower.status()
            )));
        }
        if follower.keep() && used < KEPT && self.random.u8(..10) > 0 {
            self.kept = Some((tcp, used + 1));
        }
        Ok(())
    }

    /// Mostly reads; sometimes a user is created and deleted.
    fn administer(&mut self) -> io::Result<()> {
        let call = |name: &str, body: serde_json::Value| {
            self.fixture.action(name, &body).map_err(io::Error::other)
        };
        match self.random.u8(..8) {
            0..3 => call("usage-logs/getUsageLogs", json!({"pageSize": 20})).map(drop),
            3 => call("users/getUsers", json!({})).map(drop),
            4 => call("providers/getProviders", json!({})).map(drop),
            5 | 6 => {
                self.fixture.metric("tollgate_requests_total").map(drop).map_err(io::Error::other)
            }
            _ => {
                let name = format!("guest-{}-{}", self.number, self.session);
                let made = call("users/addUser", json!({"name": name}))?;
                call("users/removeUser", json!({"userId": made["user"]["id"]})).map(drop)
            }
        }
    }
}
