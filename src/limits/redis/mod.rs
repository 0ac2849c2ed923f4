//! Counters that all nodes share, in Redis, with this node's own counters as the fallback.
//!
//! - **Admission** is one round trip: a script makes the thirteen checks and counts the request, or
//!   does neither (`lua/admit.lua`). It takes the place at the provider that is tried first too, if
//!   that has limits; another place is another round trip (`lua/enter.lua`). Everything else is
//!   queued ([`outbox`]) and sent in numbered batches that Redis applies once.
//! - **A holder is one packed value** (`lua/record.lua`), read and written once by each script.
//! - **A request in flight** is noted in Redis under its node's name. A node sends heartbeats; if
//!   none arrives for the lease, another node takes back what the requests held (`lua/bury.lua`).
//! - **The mirror**: each node counts in its own memory what it admits, and receives from Redis
//!   what others settled. If Redis does not answer in time, the node continues with that, in the
//!   configured mode ([`OnRedisLoss`]). No request waits again until Redis answers in time ([`link`],
//!   [`spell`]), or is lost and back ([`keeper`]).
//! - **The epoch**: the counters in Redis have a name. If Redis comes back empty, or with less than
//!   it confirmed, one node builds new counters from the ledger ([`rebuild`]). The other nodes
//!   notice by the name, and send again what the ledger may not have had. Nothing is counted twice:
//!   a batch has a number, and a request that the ledger had is recognised by its id.
//!
//! Not here: circuits and configuration changes (`state::peers`). Which server of a cluster or of
//! Sentinels has the counters: [`crate::redis`]; all names are in one slot ([`names`]).

mod admit;
mod batch;
mod books;
mod earlier;
mod examine;
#[cfg(fuzzing)]
mod fuzz;
mod keeper;
mod link;
mod marker;
mod mirror;
mod names;
mod outbox;
mod rebuild;
mod reconcile;
mod reply;
mod running;
mod scripts;
mod spell;
mod time;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono_tz::Tz;
use parking_lot::Mutex;

use crate::redis::Server;
pub(super) use books::Asked;
pub use examine::{RedisFacts, examine, rebuild_shared};
#[cfg(fuzzing)]
pub use fuzz::answer as fuzz_answer;
pub use keeper::Keeper;
pub(super) use marker::Marker;
pub use rebuild::Ledger;
pub use time::{TOLERATED_MS, TimeSource};

use super::charge::Charge;
use super::memory::Memory;
use super::settings::CounterSettings;
use crate::config::OnRedisLoss;
use crate::domain::clock::Timestamp;
use link::{Link, Up};
use outbox::{Kind, Op, Outbox};
use running::Running;
use scripts::{Present, Script, ScriptCall, Spans};
use time::Agreement;

/// Operations that may wait to be sent to Redis: some tens of megabytes.
pub const MOST_WAITING: usize = 200_000;
/// Earlier names of this node whose news may still arrive.
const NAMES: usize = 16;

/// How the shared counters are reached.
#[derive(Debug, Clone)]
pub struct SharedSettings {
    /// The Redis server. All nodes of a cluster use the same one.
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

/// The shared counters as operators see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedState {
    /// Requests are counted in Redis.
    pub up: bool,
    /// There is a connection, but its answers are too late.
    pub slow: bool,
    /// What this node does while `up` is false.
    pub on_loss: OnRedisLoss,
    /// Requests whose wait for Redis timed out.
    pub errors: u64,
    /// How often the connection was lost.
    pub losses: u64,
    /// How often answers were late for a while.
    pub spells: u64,
    /// What was counted and is not yet sent to Redis.
    pub waiting: usize,
    /// This node's clock minus Redis', in milliseconds.
    pub clock_off_ms: i64,
    /// The time zone of shared windows, if `TZ` is another.
    pub other_zone: Option<Tz>,
}

impl SharedState {
    /// What is wrong while requests are not counted in Redis, for operators.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let how = if self.slow { "answers too late" } else { "is lost" };
        let what = match self.on_loss {
            OnRedisLoss::Local => "this node counts for itself",
            OnRedisLoss::Open => "limits are not held",
            OnRedisLoss::Closed => "requests are refused",
        };
        (!self.up).then(|| format!("{how}: {what}"))
    }
}

pub(super) struct Shared {
    pub(super) memory: Memory,
    settings: SharedSettings,
    /// What the names in Redis begin with ([`names::space`]).
    space: String,
    link: Link,
    outbox: Outbox,
    running: Running,
    agreement: Agreement,
    spans: Mutex<Option<Spans>>,
    /// The names under which this process counted: news from them is already counted here.
    names: Mutex<VecDeque<String>>,
}

impl Shared {
    /// # Errors
    /// When the address is invalid.
    pub(super) fn new(
        settings: CounterSettings,
        shared: SharedSettings,
    ) -> Result<Arc<Self>, String> {
        shared.server.check()?;
        let prefix = shared.server.names(&shared.prefix)?;
        let space = names::space(&prefix);
        Ok(Arc::new(Self {
            memory: Memory::new(settings),
            agreement: Agreement::new(shared.time, settings.time_zone),
            link: Link::new(shared.server.clone(), format!("{space}epoch")),
            outbox: Outbox::holding(shared.most_waiting),
            space,
            settings: SharedSettings { prefix, ..shared },
            running: Running::new(),
            spans: Mutex::new(None),
            names: Mutex::default(),
        }))
    }

    pub(super) fn state(&self) -> SharedState {
        SharedState {
            up: self.link.is_up(),
            slow: !self.link.is_up() && self.link.hears(),
            on_loss: self.settings.on_loss,
            errors: self.link.errors.load(Ordering::Relaxed),
            losses: self.link.losses.load(Ordering::Relaxed),
            spells: self.link.spells.load(Ordering::Relaxed),
            waiting: self.outbox.len(),
            clock_off_ms: self.agreement.off_ms(),
            other_zone: self.agreement.other_zone(),
        }
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
        self.outbox.emptied().await;
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
            spans: self.spans(now),
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

    fn push(&self, kind: Kind, charge: &Charge, now: Timestamp) {
        self.outbox.push(Op::new(kind, charge.clone(), now));
    }
}
