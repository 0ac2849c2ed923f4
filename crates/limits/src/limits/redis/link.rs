//! The state of the connection to Redis for requests: usable or not.
//!
//! ```text
//!             a call timed out                no answer for [`TIME_LIMIT`]
//!   QUICK ─────────────────────────► SLOW ─────────────────────────────► LOST
//!     ▲ ▲                             │                                 ▲  │
//!     │ └──── it answers in time ─────┘        the connection broke ────┘  │
//!     └───────────────── connected again, all sent ([`super::connection`]) ─────┘
//! ```
//!
//! If another node has rebuilt the counters, this is not a loss (state `MOVED`, between the last
//! two): the connection task follows within milliseconds, and requests wait for it, within their
//! bound.
//!
//! No request waits longer than the bound. While Redis is slow or lost, no request waits at all.
//! One late answer does not close the connection: this node counts locally for as long as
//! [`super::backoff`] says, and sends what it counted over the same connection.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{Client, Value};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::calls::Begun;
use super::names::Names;
use super::reply;
use super::scripts::{self, ScriptCall};
use crate::domain::clock::Timestamp;
use crate::redis::{Primary, Server, another, names_moved};

/// Time-out of connecting, and of calls that no request waits for.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Why a call to Redis failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkFault {
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    #[error(transparent)]
    Redis(#[from] redis::RedisError),
    /// The counters were rebuilt, or this node was treated as dead.
    #[error("the counters have moved on without this node")]
    Gone,
    /// The call carried a time that differs from Redis' time, which is this.
    #[error("the clocks of this node and of Redis differ")]
    Clock(Timestamp),
    #[error("an answer that makes no sense")]
    Odd,
    #[error("the ledger cannot be read: {0}")]
    Ledger(String),
    #[error("{0}")]
    Broken(&'static str),
}

impl LinkFault {
    /// Redis answered, and has not executed the call.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Gone | Self::Clock(_)) || self.is_unknown_script()
    }

    /// Redis does not know the script, and has not executed the call.
    pub(super) fn is_unknown_script(&self) -> bool {
        matches!(self, Self::Redis(error) if scripts::is_unknown(error))
    }

    /// Another server has the counters, or is about to have them.
    pub(super) fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Redis(error) if names_moved(error))
    }
}

/// A connection over which this node counts. It has its own name for as long as it lasts.
pub(super) struct Up {
    pub(super) connection: MultiplexedConnection,
    pub(super) names: Names,
    requests: OnceLock<Requests>,
    /// Calls that failed: Redis may still execute them, until this node counts under another name.
    doubtful: Mutex<Vec<Begun>>,
}

/// The connection for the calls that requests share.
struct Requests {
    client: Client,
    key: String,
    is_begun: AtomicBool,
    connection: OnceLock<MultiplexedConnection>,
}

impl Up {
    pub(super) fn new(connection: MultiplexedConnection, names: Names) -> Self {
        let (requests, doubtful) = Default::default();
        Self { connection, names, requests, doubtful }
    }

    /// A call failed. It does not end before this name: nothing that follows it is sent.
    pub(super) fn doubt(&self, call: Begun) {
        self.doubtful.lock().push(call);
    }

    /// Requests will have a connection of their own, to the same server. `key`: see [`Link::new`].
    pub(super) fn serve_requests(&self, client: Client, key: String) {
        let (is_begun, connection) = Default::default();
        let _ = self.requests.set(Requests { client, key, is_begun, connection });
    }

    /// The connection for the calls that requests share. The first call makes it, on the runtime of
    /// the requests: then a call passes no thread between its request and the socket. Until it is
    /// there, or if it cannot be made, that of the connection task.
    pub(super) fn for_requests(self: &Arc<Self>) -> MultiplexedConnection {
        if let Some(requests) = self.requests.get()
            && requests.connection.get().is_none()
            && !requests.is_begun.swap(true, Ordering::Relaxed)
        {
            Handle::current().spawn(Arc::clone(self).connect_requests());
        }
        self.of_requests()
    }

    /// The connection that requests use now.
    pub(super) fn of_requests(&self) -> MultiplexedConnection {
        let own = self.requests.get().and_then(|requests| requests.connection.get());
        own.unwrap_or(&self.connection).clone()
    }

    /// A heartbeat on the connection of requests: no server or firewall closes it as idle, and one
    /// that broke is noticed before a request uses it.
    pub(super) async fn keep_alive(&self) -> Result<(), LinkFault> {
        let mut connection = self.of_requests();
        within(TIME_LIMIT, redis::cmd("PING").query_async(&mut connection)).await
    }

    async fn connect_requests(self: Arc<Self>) {
        let Some(requests) = self.requests.get() else { return };
        match another(requests.client.clone(), &requests.key, TIME_LIMIT).await {
            Ok(connection) => {
                let _ = requests.connection.set(connection);
            }
            Err(error) => tracing::warn!(%error, "requests get no own connection to Redis"),
        }
    }
}

#[derive(Default)]
pub(super) struct Link {
    server: Server,
    /// A name that all counters share a server with.
    pub(super) key: String,
    /// Set while Redis is quick.
    up: ArcSwapOption<Up>,
    /// The counters have moved; the time until which requests wait for the connection task to
    /// follow.
    moved: Mutex<Option<Instant>>,
    /// There is a connection: changes of requests in flight arrive.
    hears: AtomicBool,
    /// How often the connection task went through the requests in flight: once for each name.
    names: AtomicU64,
    /// A call timed out.
    pub(super) late: Notify,
    /// A call found the connection unusable.
    pub(super) broken: Notify,
    /// Another server has the counters, or is about to have them.
    pub(super) elsewhere: AtomicBool,
    /// Ends the waits for the connection.
    pub(super) changed: Notify,
    /// Calls that timed out or failed.
    pub(super) errors: AtomicU64,
    /// How often the connection was lost.
    pub(super) losses: AtomicU64,
    /// How often it was slow.
    pub(super) backoffs: AtomicU64,
}

impl Link {
    /// `key`: a name that all counters share a server with.
    pub(super) fn new(server: Server, key: String) -> Self {
        Self { server, key, ..Self::default() }
    }

    /// The connection, while Redis is quick.
    pub(super) fn get(&self) -> Option<Arc<Up>> {
        self.up.load_full()
    }

    /// As [`Self::get`], after a wait if the counters have just moved.
    pub(super) async fn ready(&self, until: Instant) -> Option<Arc<Up>> {
        if let Some(up) = self.get() {
            return Some(up);
        }
        let until = (*self.moved.lock())?.min(until);
        let back = async {
            loop {
                let changed = self.changed.notified();
                let up = self.get();
                if up.is_some() || self.moved.lock().is_none() {
                    return up;
                }
                changed.await;
            }
        };
        tokio::time::timeout_at(until, back).await.ok().flatten()
    }

    pub(super) fn is_up(&self) -> bool {
        self.up.load().is_some()
    }

    /// The counters were rebuilt, or this node was treated as dead: no request calls Redis until
    /// the connection task has followed.
    pub(super) fn set_moved(&self, bound: Duration) {
        let _ = self.moved.lock().get_or_insert(Instant::now() + bound);
        self.up.store(None);
    }

    /// Whether changes of requests in flight reach Redis under this node's current name: there is a
    /// connection, or one is being made and the connection task has not gone through the requests
    /// in flight yet.
    pub(super) fn hears(&self) -> bool {
        self.hears.load(Ordering::SeqCst)
    }

    /// The connection task has a connection, and will go through the requests in flight.
    pub(super) fn begin(&self) {
        self.names.fetch_add(1, Ordering::SeqCst);
        self.hears.store(true, Ordering::SeqCst);
    }

    /// Changes when this node counts under another name: earlier calls may not be known under it.
    pub(super) fn name(&self) -> u64 {
        self.names.load(Ordering::SeqCst)
    }

    /// Redis is quick: requests may call it.
    pub(super) fn open(&self, up: &Arc<Up>) {
        self.up.store(Some(Arc::clone(up)));
        *self.moved.lock() = None;
        self.changed.notify_waiters();
    }

    /// Redis is lost.
    pub(super) fn close(&self) {
        self.up.store(None);
        *self.moved.lock() = None;
        self.hears.store(false, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// As [`ask`], for requests: a failure makes the connection unavailable to all requests.
    /// `bound`: how long requests wait.
    pub(super) async fn ask(
        &self,
        up: &Arc<Up>,
        call: ScriptCall,
        until: Instant,
        bound: Duration,
    ) -> Result<Vec<Value>, LinkFault> {
        let answer =
            ask(&mut up.connection.clone(), call, until.saturating_duration_since(Instant::now()))
                .await;
        if let Err(fault) = &answer {
            self.note(up, fault, bound);
        }
        answer
    }

    /// Notes that a request's call failed.
    pub(super) fn note(&self, up: &Arc<Up>, fault: &LinkFault, bound: Duration) {
        // The connection is as good as before.
        if matches!(fault, LinkFault::Clock(_)) || fault.is_unknown_script() {
            return;
        }
        // Only the call that finds it still in place removes it.
        let before = self.up.compare_and_swap(up, None);
        let first = before.as_ref().is_some_and(|before| Arc::ptr_eq(before, up));
        match fault {
            LinkFault::Gone if first => {
                self.set_moved(bound);
                self.broken.notify_one();
            }
            LinkFault::Gone => {}
            LinkFault::TimedOut(_) => {
                self.errors.fetch_add(1, Ordering::Relaxed);
                if first {
                    self.late.notify_one();
                }
            }
            fault => {
                self.errors.fetch_add(1, Ordering::Relaxed);
                // Of a connection that was replaced meanwhile: nothing is known of the new one.
                if !first && self.is_up() {
                    return;
                }
                self.elsewhere.fetch_or(fault.is_elsewhere(), Ordering::Relaxed);
                if first {
                    tracing::warn!(error = %fault, "a request found the shared counters out of reach");
                }
                self.broken.notify_one();
            }
        }
    }

    /// Why requests cannot use the connection any more.
    pub(super) fn why_broken(&self) -> LinkFault {
        let moved = self.moved.lock().is_some();
        if moved { LinkFault::Gone } else { LinkFault::Broken("a request found it out of reach") }
    }

    /// Connects to the server that has the counters.
    pub(super) async fn connect(&self) -> Result<Primary, LinkFault> {
        Ok(self.server.primary(&self.key, TIME_LIMIT).await?)
    }

    /// Subscribes to a channel of the server.
    pub(super) async fn subscribe(
        &self,
        client: &Client,
        channel: &str,
    ) -> Result<redis::aio::PubSub, LinkFault> {
        let mut listening = within(TIME_LIMIT, client.get_async_pubsub()).await?;
        within(TIME_LIMIT, listening.subscribe(channel)).await?;
        Ok(listening)
    }
}

pub(super) async fn within<T>(
    bound: Duration,
    work: impl Future<Output = redis::RedisResult<T>>,
) -> Result<T, LinkFault> {
    match tokio::time::timeout(bound, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(LinkFault::TimedOut(bound)),
    }
}

/// Runs a script. Returns its answer, whose first word is `ok`.
pub(super) async fn ask(
    connection: &mut MultiplexedConnection,
    call: ScriptCall,
    bound: Duration,
) -> Result<Vec<Value>, LinkFault> {
    read(within(bound, call.run(connection)).await?)
}

/// What a script gives after its `ok`, with that word first.
pub(super) fn read(answer: Value) -> Result<Vec<Value>, LinkFault> {
    let Value::Array(answer) = answer else {
        return Err(LinkFault::Odd);
    };
    match answer.first() {
        Some(Value::BulkString(word)) if word == b"gone" => Err(LinkFault::Gone),
        Some(Value::BulkString(word)) if word == b"time" => Err(reply::int(answer.get(1))
            .map_or(LinkFault::Odd, |now| LinkFault::Clock(Timestamp(now)))),
        Some(Value::BulkString(_)) => Ok(answer),
        _ => Err(LinkFault::Odd),
    }
}
