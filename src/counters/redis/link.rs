//! The connection to Redis, as requests see it: there, or not. Nobody waits longer than the bound, and after the first one who
//! waited in vain nobody waits at all until the keeper has the connection back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Script, Value};
use tokio::sync::Notify;

use super::scripts::{Call, Scope};
use crate::domain::secret::Secret;

/// How long connecting, and what no request waits for, may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// Why Redis did not do as asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    #[error(transparent)]
    Redis(#[from] redis::RedisError),
    /// The counters were made anew, or this node was taken for dead.
    #[error("the counters have moved on without this node")]
    Gone,
    #[error("an answer that makes no sense")]
    Odd,
    #[error("the ledger cannot be read: {0}")]
    Ledger(String),
    #[error("{0}")]
    Broken(&'static str),
}

/// A connection over which this node counts, under a name of its own for as long as it lasts.
pub(super) struct Up {
    pub(super) connection: MultiplexedConnection,
    pub(super) epoch: String,
    pub(super) node: String,
}

impl Up {
    pub(super) fn scope<'a>(&'a self, prefix: &'a str) -> Scope<'a> {
        Scope { prefix, epoch: &self.epoch, node: &self.node }
    }
}

pub(super) struct Link {
    client: Client,
    up: ArcSwapOption<Up>,
    /// Tells the keeper that somebody waited in vain.
    pub(super) given_up: Notify,
    /// Resolves waits for the connection.
    pub(super) changed: Notify,
    pub(super) errors: AtomicU64,
    pub(super) losses: AtomicU64,
}

impl Link {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            up: ArcSwapOption::empty(),
            given_up: Notify::new(),
            changed: Notify::new(),
            errors: AtomicU64::new(0),
            losses: AtomicU64::new(0),
        }
    }

    pub(super) fn get(&self) -> Option<Arc<Up>> {
        self.up.load_full()
    }

    pub(super) fn is_up(&self) -> bool {
        self.up.load().is_some()
    }

    pub(super) fn set(&self, up: Option<Arc<Up>>) {
        self.up.store(up);
        self.changed.notify_waiters();
    }

    /// As [`ask`], for requests: a failure takes the connection away from everybody.
    pub(super) async fn ask(&self, up: &Arc<Up>, call: Call<'_>, bound: Duration) -> Option<Vec<Value>> {
        match ask(&mut up.connection.clone(), call, bound).await {
            Ok(answer) => Some(answer),
            Err(fault) => {
                self.errors.fetch_add(1, Ordering::Relaxed);
                // Only whoever finds it still in place takes it away.
                let before = self.up.compare_and_swap(up, None);
                if before.as_ref().is_some_and(|before| Arc::ptr_eq(before, up)) {
                    tracing::warn!(error = %fault, "a request found the shared counters out of reach");
                    self.given_up.notify_one();
                }
                None
            }
        }
    }

    pub(super) async fn connect(&self) -> Result<MultiplexedConnection, Fault> {
        let config = AsyncConnectionConfig::new().set_connection_timeout(Some(PATIENCE)).set_response_timeout(None);
        let connecting = self.client.get_multiplexed_async_connection_with_config(&config);
        let mut connection = within(PATIENCE, connecting).await?;
        // A server that hangs still lets its kernel accept.
        within(PATIENCE, redis::cmd("PING").query_async::<Value>(&mut connection)).await?;
        Ok(connection)
    }

    pub(super) async fn subscribe(&self, channel: &str) -> Result<redis::aio::PubSub, Fault> {
        let mut listening = within(PATIENCE, self.client.get_async_pubsub()).await?;
        within(PATIENCE, listening.subscribe(channel)).await?;
        Ok(listening)
    }
}

pub(super) async fn within<T>(bound: Duration, work: impl Future<Output = redis::RedisResult<T>>) -> Result<T, Fault> {
    match tokio::time::timeout(bound, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Fault::TimedOut(bound)),
    }
}

/// Runs a script. What follows its `ok` (or `denied`, `blocked`, with that word first).
pub(super) async fn ask(
    connection: &mut MultiplexedConnection,
    call: Call<'_>,
    bound: Duration,
) -> Result<Vec<Value>, Fault> {
    let answer: Vec<Value> = within(bound, call.0.invoke_async(connection)).await?;
    match answer.first() {
        Some(Value::BulkString(word)) if word == b"gone" => Err(Fault::Gone),
        Some(Value::BulkString(_)) => Ok(answer),
        _ => Err(Fault::Odd),
    }
}

/// Whether the Redis of an address can be used: it answers, lets us in, and runs scripts.
///
/// # Errors
/// Why not, in words that do not hold the address.
pub async fn probe(url: &Secret) -> Result<(), String> {
    let client = Client::open(url.expose()).map_err(|e| e.to_string())?;
    let mut connection = Link::new(client).connect().await.map_err(|e| e.to_string())?;
    let script = Script::new("return cmsgpack.unpack(cmsgpack.pack(7))");
    let ran = within(PATIENCE, script.prepare_invoke().invoke_async::<i64>(&mut connection)).await;
    ran.map(|_| ()).map_err(|e| e.to_string())
}
