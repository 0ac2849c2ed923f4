//! Maintains the connection to Redis. It connects, reconciles both sides, sends the queue, listens
//! for news, sends heartbeats and removes dead nodes. If the connection breaks, it starts again.
//! One task for the life of the process.
//!
//! Each connection counts under a new name. The state of the previous name is settled first: its
//! last batch is sent again under its number, its requests in flight are taken back and noted again
//! under the new name. So the result does not depend on what Redis did with calls whose answers
//! were lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use redis::aio::{MultiplexedConnection, PubSub};
use tokio::time::Instant;

use super::super::memory::Memory;
use super::super::settings::CounterSettings;
use super::Shared;
use super::link::{Fault, TIME_LIMIT, Up, ask, within};
use super::outbox::{Kind, Op};
use super::rebuild::{Ledger, Rebuild};
use super::reply;
use super::scripts::{BATCH, BEAT, BURY, ScriptCall};
use crate::domain::clock::{Clock, Timestamp};

/// Pause between two attempts to connect: doubled each time, up to the second figure.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];
/// How often counters that moved are followed without a pause.
const FOLLOWED: u32 = 4;
/// A connection that lasted this long counts as stable.
const STEADY: Duration = Duration::from_secs(10);
/// How often a batch is sent again because the clocks differ.
const COMPARED: u32 = 20;
/// Interval between two checks whether another node has built the counters.
const LOOK: Duration = Duration::from_millis(100);

/// The task that keeps the shared counters; see the file.
pub struct Keeper {
    shared: Arc<Shared>,
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    /// The epoch of the counters that this process uses.
    epoch: Option<String>,
    /// The name under which it last counted, and the batches that were confirmed under it.
    name: Option<String>,
    batches: u64,
    /// The counters in Redis are not reliable, whichever node built them.
    must_rebuild: bool,
    /// Since when nothing could be sent.
    lost_at: Timestamp,
}

impl Keeper {
    pub(in super::super) fn new(
        shared: Arc<Shared>,
        ledger: Arc<dyn Ledger>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (must_rebuild, lost_at) = (shared.settings.unclean, shared.time(clock.now()));
        Self { shared, ledger, clock, epoch: None, name: None, batches: 0, must_rebuild, lost_at }
    }

    /// Runs until `stop` resolves; then sends the queue, for two seconds at most.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let (mut pause, mut complained, mut followed) = (PAUSES[0], false, 0);
        loop {
            let stood = tokio::select! {
                () = &mut stop => return,
                stood = self.stand() => stood,
            };
            match stood {
                Ok((up, listening)) => {
                    tracing::info!(name = up.node, "counting in Redis, together with all nodes");
                    complained = false;
                    let since = Instant::now();
                    let fault = tokio::select! {
                        () = &mut stop => return self.leave(&up).await,
                        fault = self.serve(&up, listening) => fault,
                    };
                    // A connection that breaks at once is not retried more often than a refused
                    // one.
                    if since.elapsed() > STEADY {
                        (pause, followed) = (PAUSES[0], 0);
                    }
                    self.lost_at = self.now();
                    if matches!(fault, Fault::Gone) && followed < FOLLOWED {
                        tracing::info!(
                            "the shared counters were made anew, or this node was taken for dead"
                        );
                        self.shared.link.has_moved(self.shared.settings.timeout);
                        followed += 1;
                        continue;
                    }
                    self.shared.link.close();
                    self.shared.link.losses.fetch_add(1, Ordering::Relaxed);
                    let on_loss = self.shared.settings.on_loss;
                    tracing::error!(error = %fault, ?on_loss, "Redis is lost: this node counts for itself");
                }
                Err(fault) => {
                    self.shared.link.close();
                    if !std::mem::replace(&mut complained, true) {
                        tracing::error!(error = %fault, "the shared counters cannot be reached; trying on");
                    }
                }
            }
            tokio::select! {
                () = &mut stop => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(PAUSES[1]);
        }
    }

    /// Connects, and sends everything that was counted so far.
    async fn stand(&mut self) -> Result<(Arc<Up>, PubSub), Fault> {
        let mut connection = self.shared.link.connect().await?;
        let listening = self.shared.link.subscribe(&self.key("news")).await?;
        self.shared.compare_clocks(&mut connection, &*self.clock).await?;
        self.must_rebuild |= self.shared.agree_on_zone(&mut connection).await?;
        let node = uuid::Uuid::new_v4().simple().to_string();
        let epoch = self.agree(&mut connection, &node).await?;
        self.shared.call_oneself(node.clone());
        (self.epoch, self.name, self.batches) = (Some(epoch.clone()), Some(node.clone()), 0);
        let up = Arc::new(Up { connection, epoch, node });
        self.beat(&up).await?;
        let now = self.now();
        // In this order: a request that begins now is either queued, or found here.
        self.shared.link.begin();
        self.shared.running.each(|charge, at| {
            self.shared.outbox.push(Op { kind: Kind::Running { at }, charge: charge.clone(), now });
        });
        for _ in 0..=self.shared.outbox.len() {
            if !self.send(&up).await? {
                break;
            }
        }
        // Late answers of the previous connection do not count.
        let _ = self.shared.link.late.notified().now_or_never();
        let _ = self.shared.link.broken.notified().now_or_never();
        self.shared.link.open(&up);
        Ok((up, listening))
    }

    /// Finds the counters in effect, or builds them. Returns their name.
    async fn agree(
        &mut self,
        connection: &mut MultiplexedConnection,
        node: &str,
    ) -> Result<String, Fault> {
        let mut lost_data = false;
        self.must_rebuild |= self.shared.outbox.has_overflowed();
        loop {
            let found = self.get(connection, "epoch").await?;
            match &found {
                Some(found)
                    if !self.must_rebuild && !lost_data && self.epoch.as_ref() == Some(found) =>
                {
                    if self.finish(connection, found).await? {
                        return Ok(found.clone());
                    }
                    tracing::error!("Redis came back with less than it had confirmed");
                    lost_data = true;
                    continue;
                }
                // Another node has built them since.
                Some(found) if !self.must_rebuild && self.epoch.as_ref() != Some(found) => {
                    self.shared.outbox.replay();
                    return Ok(found.clone());
                }
                _ => {}
            }
            if let Some(epoch) = self.rebuild(connection, node, found.as_deref()).await? {
                return Ok(epoch);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Rebuilds the counters, unless another node does, or did since `found` was seen.
    async fn rebuild(
        &mut self,
        connection: &mut MultiplexedConnection,
        node: &str,
        found: Option<&str>,
    ) -> Result<Option<String>, Fault> {
        let epoch = format!("e-{}", uuid::Uuid::new_v4().simple());
        let now = self.now();
        let mut rebuild = Rebuild {
            shared: &self.shared,
            connection: connection.clone(),
            epoch: &epoch,
            node,
            now,
        };
        if !rebuild.lock().await? {
            return Ok(None);
        }
        let still = self.get(connection, "epoch").await?;
        let made = if still.as_deref() == found {
            Some(rebuild.run(&*self.ledger, self.lost_at).await)
        } else {
            None
        };
        match made {
            Some(Ok(())) => {
                self.must_rebuild = false;
                self.shared.outbox.replay();
                Ok(Some(epoch))
            }
            other => {
                let mut unlock = redis::cmd("DEL");
                unlock.arg(self.key("lock"));
                within(TIME_LIMIT, unlock.query_async::<i64>(connection)).await?;
                other.map_or(Ok(None), |made| made.map(|()| None))
            }
        }
    }

    /// Settles the state of the previous name. `false`: Redis has lost data that it had confirmed.
    async fn finish(
        &mut self,
        connection: &mut MultiplexedConnection,
        epoch: &str,
    ) -> Result<bool, Fault> {
        let Some(name) = self.name.clone() else { return Ok(true) };
        let before = Up { connection: connection.clone(), epoch: epoch.to_owned(), node: name };
        if self.shared.outbox.is_sending() {
            match self.send(&before).await {
                Ok(_) => {}
                Err(Fault::Gone) => self.shared.outbox.not_sent(),
                Err(fault) => return Err(fault),
            }
        }
        let applied = self.get(connection, &format!("seq:{}", before.node)).await?;
        if applied.and_then(|number| number.parse().ok()).unwrap_or(0) < self.batches {
            return Ok(false);
        }
        self.bury(&before, &before.node).await?;
        Ok(true)
    }

    /// Serves until the connection breaks.
    async fn serve(&mut self, up: &Arc<Up>, listening: PubSub) -> Fault {
        let (shared, clock, ledger) =
            (Arc::clone(&self.shared), Arc::clone(&self.clock), Arc::clone(&self.ledger));
        let mut news = listening.into_on_message();
        let mut beat = tokio::time::interval(shared.settings.lease / 3);
        let mut lost = std::pin::pin!(shared.link.watch(up, shared.settings.timeout));
        // What other nodes settled while there was no connection.
        let now = || shared.time(clock.now());
        let mut caught_up = std::pin::pin!(shared.catch_up(&*ledger, now()).fuse());
        loop {
            let done = tokio::select! {
                fault = &mut lost => Err(fault),
                heard = news.next() => match heard.and_then(|news| news.get_payload::<String>().ok()) {
                    Some(heard) => match heard.strip_prefix("moved ") {
                        Some(epoch) if epoch != up.epoch => Err(Fault::Gone),
                        Some(_) => Ok(()),
                        None => {
                            shared.apply_news(&heard, now());
                            Ok(())
                        }
                    },
                    None => Err(Fault::Broken("the connection ended")),
                },
                () = shared.outbox.filled() => self.send(up).await.map(|_| ()),
                _ = beat.tick() => self.beat(up).await,
                () = &mut caught_up => Ok(()),
            };
            match done {
                // The clocks are compared again with the next heartbeat.
                Ok(()) | Err(Fault::Clock(_)) => {}
                Err(fault) => return fault,
            }
        }
    }

    /// A clean stop: sends the queue and removes this name's lease.
    async fn leave(&mut self, up: &Arc<Up>) {
        let last = async {
            while self.send(up).await? {}
            self.bury(up, &up.node).await
        };
        if !matches!(tokio::time::timeout(TIME_LIMIT, last).await, Ok(Ok(()))) {
            tracing::error!(
                "Redis was not told all: the next start makes the shared counters anew"
            );
        }
    }

    /// Sends one batch. Returns whether there was one.
    async fn send(&mut self, up: &Up) -> Result<bool, Fault> {
        let ops = self.shared.outbox.batch();
        if ops.is_empty() {
            return Ok(false);
        }
        let number = i64::try_from(self.batches + 1).unwrap_or(i64::MAX);
        let mut connection = up.connection.clone();
        for _ in 0..COMPARED {
            let call =
                ops.iter().fold(self.shared.call(&BATCH, up, self.now()).int(number), append);
            match ask(&mut connection, call, TIME_LIMIT).await {
                // This node's clock was set; or it is ahead by less than the correction threshold
                // and a week begins.
                Err(Fault::Clock(_)) => {
                    tokio::time::sleep(PAUSES[0]).await;
                    self.shared.compare_clocks(&mut connection, &*self.clock).await?;
                }
                Err(fault) => return Err(fault),
                Ok(_) => {
                    self.batches += 1;
                    self.shared.outbox.confirmed(self.now());
                    return Ok(true);
                }
            }
        }
        Err(Fault::Broken("the clocks of this node and of Redis do not stay together"))
    }

    /// Sends a heartbeat, and checks the other nodes, the clock and the time zone.
    async fn beat(&mut self, up: &Up) -> Result<(), Fault> {
        let mut connection = up.connection.clone();
        self.shared.compare_clocks(&mut connection, &*self.clock).await?;
        if self.shared.agree_on_zone(&mut connection).await? {
            self.must_rebuild = true;
            return Err(Fault::Gone);
        }
        let lease = i64::try_from(self.shared.settings.lease.as_millis()).unwrap_or(i64::MAX);
        let call = self.shared.call(&BEAT, up, self.now()).int(lease);
        let answer = ask(&mut connection, call, TIME_LIMIT).await?;
        for dead in answer
            .iter()
            .skip(1)
            .map(|name| reply::text(Some(name)))
            .filter(|name| *name != up.node)
        {
            tracing::warn!(
                name = dead,
                "a node gave no sign of life: what its requests held is given back"
            );
            self.bury(up, dead).await?;
        }
        Ok(())
    }

    async fn bury(&self, up: &Up, dead: &str) -> Result<(), Fault> {
        loop {
            let call = self.shared.call(&BURY, up, self.now()).text(dead);
            let answer = ask(&mut up.connection.clone(), call, TIME_LIMIT).await?;
            if reply::int(answer.get(1)) == Some(0) {
                return Ok(());
            }
        }
    }

    async fn get(
        &self,
        connection: &mut MultiplexedConnection,
        name: &str,
    ) -> Result<Option<String>, Fault> {
        within(TIME_LIMIT, redis::cmd("GET").arg(self.key(name)).query_async(connection)).await
    }

    /// The time by Redis' clock.
    fn now(&self) -> Timestamp {
        self.shared.time(self.clock.now())
    }

    fn key(&self, name: &str) -> String {
        format!("{}:{name}", self.shared.settings.prefix)
    }
}

/// The thirteen fields of one operation.
fn append<'a>(call: ScriptCall<'a>, op: &Op) -> ScriptCall<'a> {
    let (kind, cost, provider) = match op.kind {
        Kind::Settled { cost, served } => ("S", cost.0, served),
        Kind::Late { cost, served } => ("L", cost.0, served),
        Kind::Withdrawn { from } => ("W", 0, Some(from)),
        Kind::GivenBack => ("G", 0, None),
        Kind::Entered { at } => ("E", 0, Some(at)),
        Kind::Running { at } => ("R", 0, at),
    };
    let charge = &op.charge;
    let call =
        call.text(kind).bytes(charge.request.0.as_bytes()).maybe(charge.user.map(|user| user.0));
    let call = call
        .maybe(charge.slot.key.map(|key| key.0))
        .text(charge.slot.session.as_str())
        .int(charge.started.0);
    let call = call
        .int(charge.reserved.0)
        .int(cost)
        .maybe(provider.map(|provider| provider.0))
        .int(op.now.0);
    let (model, format) =
        charge.asks.as_ref().map_or(("", ""), |asks| (&*asks.model, asks.format.as_str()));
    call.int(charge.admitted.0).text(model).text(format)
}

impl Shared {
    /// Updates the mirror from the ledger. If the ledger cannot be read, the mirror stays as it is.
    async fn catch_up(&self, ledger: &dyn Ledger, now: Timestamp) {
        match ledger.read(now, now).await {
            Ok(sums) => self.memory.adopt(Memory::of_ledger(self.counting(), sums, now), now),
            Err(e) => tracing::warn!(error = e, "what other nodes spent meanwhile cannot be read"),
        }
    }
}

impl Memory {
    /// The state that this node's own counters would have after a start.
    #[must_use]
    pub(super) fn of_ledger(
        settings: CounterSettings,
        sums: super::LedgerSums,
        now: Timestamp,
    ) -> Self {
        let made = Self::new(settings);
        made.rebuild(sums.rows, sums.totals, now);
        made
    }
}
