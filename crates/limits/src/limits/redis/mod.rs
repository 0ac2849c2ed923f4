//! Counters that all nodes share, in Redis, with this node's own counters as the fallback.
//!
//! - **Admission** is one round trip: a script makes the thirteen checks and counts the request, or
//!   does neither (`lua/admit.lua`). It takes the place at the provider that is tried first too. A
//!   place at another provider with limits is another round trip (`lua/enter.lua`). Requests that
//!   wait at the same time share such calls ([`batcher`]). Everything else is queued ([`queue`])
//!   and sent in numbered batches that Redis applies once.
//! - **A holder is one packed value** (`lua/record.lua`), read and written once by each script.
//! - **A request in flight** is noted in Redis under its node's name. A node sends heartbeats; if
//!   none arrives for the lease, another node takes back what the requests held (`lua/bury.lua`).
//! - **The replica**: each node counts in its own memory what it admits, and receives from Redis
//!   what others settled. If Redis does not answer in time, the node continues with that, in the
//!   configured mode ([`OnRedisLoss`]). No request waits again until Redis answers in time
//!   ([`link`], [`backoff`]), or is lost and back ([`connection`]).
//! - **The epoch**: the counters in Redis have a name. If Redis comes back empty, or with less than
//!   it confirmed, one node builds new counters from the ledger ([`rebuild`]). The other nodes
//!   notice by the name, and send again what the ledger may not have had. Nothing is counted twice:
//!   a batch has a number, a request that the ledger had is recognised by its id, and a cost that
//!   it had late by the number of its transaction.
//!
//! Not here: circuits and configuration changes (`state::peers`). Which server of a cluster or of
//! Sentinels has the counters: [`crate::redis`]; all names are in one slot ([`names`]).
//!
//! See docs/decisions/23-one-suite-for-counters.md.

mod admit;
mod backoff;
mod batch;
mod batcher;
mod calls;
mod connection;
mod enter;
mod examine;
#[cfg(fuzzing)]
mod fuzz;
mod link;
mod made;
mod names;
mod operations;
mod queue;
mod rebuild;
mod reconcile;
mod replica;
mod reply;
mod running;
mod scripts;
mod time;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use chrono_tz::Tz;
use parking_lot::{Mutex, RwLock};

use crate::redis::Server;
pub use connection::ConnectionTask;
pub use examine::{RedisFacts, SharedState, examine, rebuild_shared};
#[cfg(fuzzing)]
pub use fuzz::answer as fuzz_answer;
pub(super) use operations::AskedHolder;
pub use rebuild::CounterSource;
pub use time::{TOLERATED_MS, TimeSource};

use super::charge::Charge;
use super::memory::Memory;
use super::settings::CounterSettings;
use crate::domain::clock::Timestamp;
use crate::limits::OnRedisLoss;
use batcher::Batcher;
use link::{Link, Up};
use queue::{ChargeKind, Op, Queue};
use running::Running;
use scripts::{AHEAD_MS, Present, Script, ScriptCall, Spans};
use time::Agreement;

/// Operations that may wait to be sent to Redis: some tens of megabytes.
pub const MOST_WAITING: usize = 200_000;
/// Earlier names of this node whose news may still arrive.
const NAMES: usize = 16;

/// How the shared counters are reached.
#[derive(Debug, Clone)]
pub struct SharedSettings {
    /// The Redis server, cluster or Sentinels.
    pub server: Server,
    /// Prefix of every name in Redis, so that several gateways can share one server.
    pub prefix: String,
    /// How long a request waits for Redis.
    pub timeout: Duration,
    /// If a node sends no heartbeat for this long, its requests in flight are taken back.
    pub lease: Duration,
    /// What this node does while Redis is unreachable.
    pub on_loss: OnRedisLoss,
    /// How many operations may wait to be sent to Redis ([`MOST_WAITING`]); beyond it the counters
    /// are rebuilt from the ledger.
    pub most_waiting: usize,
    /// The clock of shared windows.
    pub time: TimeSource,
    /// The previous process did not stop cleanly: what it counted last may be only in the ledger.
    pub unclean: bool,
}

/// The counters that all nodes share.
pub(super) struct Shared {
    /// This node's own counters.
    pub(super) memory: Memory,
    settings: SharedSettings,
    /// What the names in Redis begin with ([`names::space`]).
    space: String,
    link: Arc<Link>,
    queue: Queue,
    /// Admissions, which share calls.
    batcher: Arc<Batcher>,
    /// Requests that enter a provider; they share others.
    entries: Arc<Batcher>,
    running: Running,
    /// Held to count a settlement and to queue it, and alone to take over counters that were made
    /// from the ledger: each settlement is either queued by then, or counted afterwards.
    settling: RwLock<()>,
    /// The last reads of the ledger for this node's own counters, the newest first; of each, the
    /// requests that the earlier ones did not have.
    known: Mutex<VecDeque<replica::Read>>,
    agreement: Agreement,
    spans: Mutex<Option<Spans>>,
    /// The names under which this process counted: news from them is already counted here.
    names: Mutex<VecDeque<String>>,
}

impl Shared {
    /// Does not connect yet.
    pub(super) fn new(
        settings: CounterSettings,
        shared: SharedSettings,
    ) -> Result<Arc<Self>, String> {
        shared.server.check()?;
        let prefix = shared.server.names(&shared.prefix)?;
        let space = names::space(&prefix);
        let link = Arc::new(Link::new(shared.server.clone(), format!("{space}epoch")));
        let batcher = Batcher::new(Arc::clone(&link), shared.timeout);
        Ok(Arc::new(Self {
            agreement: Agreement::new(shared.time, settings.time_zone),
            entries: batcher.beside(),
            batcher,
            link,
            queue: Queue::holding(shared.most_waiting),
            memory: Memory::new(settings),
            space,
            settings: SharedSettings { prefix, ..shared },
            running: Running::new(),
            settling: RwLock::new(()),
            known: Mutex::default(),
            spans: Mutex::new(None),
            names: Mutex::default(),
        }))
    }

    /// A name of all epochs.
    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.space)
    }

    /// From now on this node counts under another name.
    fn call_oneself(&self, name: String) {
        let mut names = self.names.lock();
        names.push_back(name);
        if names.len() > NAMES {
            names.pop_front();
        }
    }

    /// Resolves when Redis has everything that this node counted.
    pub(super) async fn flushed(&self) {
        self.queue.emptied().await;
    }

    /// Resolves when the connection is there.
    pub(super) async fn connected(&self) {
        loop {
            let changed = self.link.changed.notified();
            if self.link.is_up() {
                return;
            }
            changed.await;
        }
    }

    /// A time of this node by Redis' clock, which everything in this module uses.
    pub(super) fn time(&self, own: Timestamp) -> Timestamp {
        self.agreement.time(own)
    }

    /// The time zone of the shared windows.
    pub(super) fn zone(&self) -> Tz {
        self.agreement.zone()
    }

    /// The settings, with the time zone of the shared windows.
    fn counting(&self) -> CounterSettings {
        CounterSettings { time_zone: self.zone(), ..self.memory.settings }
    }

    /// A time by Redis' clock, unless the clock moves only when a test sets it.
    fn present_of(&self, now: Timestamp) -> Option<Timestamp> {
        (!self.agreement.is_callers()).then_some(now)
    }

    fn spans(&self, now: Timestamp) -> Spans {
        let mut spans = self.spans.lock();
        match *spans {
            Some(known) if known.hold(now) => known,
            _ => *spans.insert(Spans::at(now, &self.counting())),
        }
    }

    fn present(&self, now: Timestamp) -> Present {
        Present {
            now,
            is_set: self.agreement.is_callers(),
            ttl_ms: self.memory.settings.session_ttl_ms,
            spans: self.spans(now.plus_ms(-AHEAD_MS)),
        }
    }

    fn call<'k>(
        &self,
        script: &'static Script,
        up: &Up,
        now: Timestamp,
        keys: impl IntoIterator<Item = &'k str, IntoIter: ExactSizeIterator>,
    ) -> ScriptCall {
        ScriptCall::new(script, &up.names, &self.present(now), keys.into_iter())
    }

    fn push(&self, kind: ChargeKind, charge: &Charge, now: Timestamp) {
        let after = self.batcher.calls.given_up();
        self.queue.push(Op::new(kind, charge.clone(), now).after(after));
    }
}
