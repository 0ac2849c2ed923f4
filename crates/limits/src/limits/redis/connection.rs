//! Maintains the connection to Redis. It connects, reconciles both sides, sends the queue, listens
//! for news, sends heartbeats and removes dead nodes. If the connection breaks, it starts again.
//! One task for the life of the process.
//!
//! Each connection counts under a new name. The state of the previous name is settled first: its
//! last batch is sent again under its number, its requests in flight are taken back and noted again
//! under the new name. So the result does not depend on what Redis did with calls whose answers
//! were lost.
//!
//! See docs/decisions/26-connection-names.md.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use redis::AsyncCommands as _;
use redis::aio::{MultiplexedConnection, PubSub};
use tokio::time::Instant;

use super::Shared;
use super::link::{LinkFault, TIME_LIMIT, Up, ask, within};
use super::names::Names;
use super::queue::{ChargeKind, Op};
use super::rebuild::CounterSource;
use super::reply;
use super::scripts::{BEAT, BURY};
use crate::domain::clock::{Clock, Timestamp};
use crate::redis::Primary;

/// Pause between two attempts to connect: doubled each time, up to the second figure.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];
/// Most reconnections in a row without a pause, after another node rebuilt the counters.
const FOLLOWED: u32 = 4;
/// A connection that lasted this long counts as stable.
const STEADY: Duration = Duration::from_secs(10);
/// Most attempts to send a batch that Redis refuses because the clocks differ.
const COMPARED: u32 = 20;

/// The task that maintains the shared counters; see the file's header.
pub struct ConnectionTask {
    pub(super) shared: Arc<Shared>,
    pub(super) ledger: Arc<dyn CounterSource>,
    pub(super) clock: Arc<dyn Clock>,
    /// The epoch of the counters that this process uses.
    pub(super) epoch: Option<String>,
    /// The name under which it last counted, and the number of the last batch or heartbeat that was
    /// confirmed under it.
    pub(super) name: Option<String>,
    pub(super) number: i64,
    /// The number of the last heartbeat under it, also if its answer never came.
    beaten: i64,
    /// The counters in Redis are not reliable, whichever node built them.
    pub(super) must_rebuild: bool,
    /// The address of the server that had the counters last.
    server: Option<String>,
    /// The counters of this epoch may lack something: another server has them now, or is about to.
    /// A replica lacks the last writes of its primary; while a slot moves, a script can break off.
    pub(super) is_doubtful: bool,
    /// The server may have been started again, with older data, since this node last counted there.
    pub(super) may_be_older: bool,
    /// Since when nothing could be sent.
    pub(super) lost_at: Timestamp,
}

impl ConnectionTask {
    pub(in super::super) fn new(
        shared: Arc<Shared>,
        ledger: Arc<dyn CounterSource>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (must_rebuild, lost_at) = (shared.settings.unclean, shared.time(clock.now()));
        Self {
            shared,
            ledger,
            clock,
            epoch: None,
            name: None,
            number: 0,
            beaten: 0,
            must_rebuild,
            server: None,
            is_doubtful: false,
            may_be_older: true,
            lost_at,
        }
    }

    /// Runs until `stop` resolves; then sends the queue, for two seconds at most. Returns whether
    /// Redis has everything that the ledger has or will have of this process.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> bool {
        self.count(stop).await;
        let queue = &self.shared.queue;
        let is_sent = queue.len() == 0 && !queue.has_overflowed();
        is_sent && !self.must_rebuild && !self.is_doubtful
    }

    async fn count(&mut self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let (mut pause, mut complained, mut followed) = (PAUSES[0], false, 0);
        loop {
            let stood = tokio::select! {
                () = &mut stop => return,
                stood = self.stand() => stood,
            };
            match stood {
                Ok((up, listening)) => {
                    tracing::info!(
                        name = up.names.node,
                        "counting in Redis, together with all nodes"
                    );
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
                    self.is_doubtful |= fault.is_elsewhere();
                    if matches!(fault, LinkFault::Gone) && followed < FOLLOWED {
                        tracing::info!(
                            "another node rebuilt the shared counters, or declared this node dead"
                        );
                        self.shared.link.set_moved(self.shared.settings.timeout);
                        followed += 1;
                        continue;
                    }
                    self.shared.link.close();
                    self.shared.link.losses.fetch_add(1, Ordering::Relaxed);
                    let on_loss = self.shared.settings.on_loss;
                    tracing::error!(error = %fault, ?on_loss, "Redis is lost: this node counts for itself");
                }
                Err(fault) => {
                    self.is_doubtful |= fault.is_elsewhere();
                    self.shared.link.close();
                    if !std::mem::replace(&mut complained, true) {
                        tracing::error!(error = %fault, "this node cannot count in Redis: it retries");
                    }
                }
            }
            self.may_be_older = true;
            tokio::select! {
                () = &mut stop => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(PAUSES[1]);
        }
    }

    /// Connects, and sends everything that was counted so far.
    async fn stand(&mut self) -> Result<(Arc<Up>, PubSub), LinkFault> {
        let Primary { client, mut connection } = self.shared.link.connect().await?;
        let server = client.get_connection_info().addr().to_string();
        if self.server.as_ref().is_some_and(|before| *before != server) {
            tracing::warn!("another server has the shared counters now");
            self.is_doubtful = true;
        }
        self.server = Some(server);
        let listening = self.shared.link.subscribe(&client, &self.shared.name("news")).await?;
        self.shared.compare_clocks(&mut connection, &*self.clock).await?;
        self.must_rebuild |= self.shared.agree_on_zone(&mut connection).await?;
        let node = uuid::Uuid::new_v4().simple().to_string();
        let epoch = self.agree(&mut connection, &node).await?;
        (self.is_doubtful, self.may_be_older) = (false, false);
        self.shared.call_oneself(node.clone());
        let names = Names::new(&self.shared.space, &epoch, &node);
        let up = Arc::new(Up::new(connection, names));
        (self.epoch, self.name) = (Some(epoch), Some(node));
        (self.number, self.beaten) = (0, 0);
        up.serve_requests(client, self.shared.link.key.clone());
        self.beat(&up, true).await?;
        let now = self.now();
        // In this order: a request that begins now is either queued, or found here.
        self.shared.link.begin();
        self.shared.running.each(|charge, at| {
            self.shared.queue.push(Op::new(ChargeKind::Running { at }, charge.clone(), now));
        });
        for _ in 0..=self.shared.queue.len() {
            if !self.send(&up, |_| true).await? {
                break;
            }
        }
        // Late answers of the previous connection do not count.
        let _ = self.shared.link.late.notified().now_or_never();
        let _ = self.shared.link.broken.notified().now_or_never();
        self.shared.link.open(&up);
        Ok((up, listening))
    }

    /// Serves until the connection breaks.
    async fn serve(&mut self, up: &Arc<Up>, listening: PubSub) -> LinkFault {
        let (shared, clock, ledger) =
            (Arc::clone(&self.shared), Arc::clone(&self.clock), Arc::clone(&self.ledger));
        let mut news = listening.into_on_message();
        let mut beat = tokio::time::interval(shared.settings.lease / 3);
        let mut lost = std::pin::pin!(shared.link.watch(up, shared.settings.timeout));
        // What other nodes settled while there was no connection.
        let now = || shared.time(clock.now());
        let mut caught_up = std::pin::pin!(shared.catch_up(&*ledger, &now).fuse());
        let have_ended = |call| shared.batcher.calls.have_ended(call);
        let ripe = || async {
            shared.queue.ripe().await;
            shared.batcher.calls.end(shared.queue.waits_for()).await;
        };
        loop {
            let done = tokio::select! {
                fault = &mut lost => Err(fault),
                heard = news.next() => match heard.and_then(|news| news.get_payload::<Vec<u8>>().ok()) {
                    Some(heard) => match heard.strip_prefix(b"moved ") {
                        Some(epoch) if epoch != up.names.epoch.as_bytes() => Err(LinkFault::Gone),
                        Some(_) => Ok(()),
                        None => {
                            shared.apply_news(&heard, now());
                            Ok(())
                        }
                    },
                    None => Err(LinkFault::Broken("the connection ended")),
                },
                () = ripe() => self.send(up, have_ended).await.map(|_| ()),
                _ = beat.tick() => self.beat(up, false).await,
                () = &mut caught_up => Ok(()),
            };
            match done {
                // The clocks are compared again with the next heartbeat.
                Ok(()) | Err(LinkFault::Clock(_)) => {}
                Err(fault) => return fault,
            }
        }
    }

    /// A clean stop: sends the queue and removes this name's lease.
    async fn leave(&mut self, up: &Arc<Up>) {
        let last = async {
            let calls = &self.shared.batcher.calls;
            calls.end(calls.given_up()).await;
            while self.send(up, |_| true).await? {}
            self.bury(up).await
        };
        if !matches!(tokio::time::timeout(TIME_LIMIT, last).await, Ok(Ok(()))) {
            tracing::error!(
                "not everything was sent to Redis: the next start rebuilds the shared counters"
            );
        }
    }

    /// Sends one batch. Returns whether there was one. `have_ended`: see [`Queue::batch`].
    ///
    /// [`Queue::batch`]: super::queue::Queue::batch
    pub(super) async fn send(
        &mut self,
        up: &Up,
        have_ended: impl Fn(u64) -> bool,
    ) -> Result<bool, LinkFault> {
        let number = self.next_number();
        for _ in 0..COMPARED {
            let now = self.now();
            let ops = self.shared.queue.batch(self.shared.present_of(now), &have_ended);
            if ops.is_empty() {
                return Ok(false);
            }
            let call = self.shared.batch_call(up, &ops, number, now);
            match ask(&mut up.connection.clone(), call, TIME_LIMIT).await {
                // This node's clock was set; or it is ahead by less than the correction threshold
                // and a week begins.
                Err(LinkFault::Clock(_)) => {
                    tokio::time::sleep(PAUSES[0]).await;
                    let mut connection = up.connection.clone();
                    self.shared.compare_clocks(&mut connection, &*self.clock).await?;
                }
                Err(fault) => return Err(fault),
                Ok(_) => {
                    self.number = number;
                    self.shared.queue.confirmed(self.now());
                    return Ok(true);
                }
            }
        }
        Err(LinkFault::Broken("the clocks of this node and of Redis do not stay together"))
    }

    /// A number that neither a batch nor a heartbeat has had. A heartbeat that a stop cut off may
    /// have reached Redis.
    fn next_number(&self) -> i64 {
        self.number.max(self.beaten) + 1
    }

    /// Sends a heartbeat, and checks the other nodes, the clock and the time zone. The first one
    /// under a name lets it count. Its number is one of those of batches: none is being sent now.
    async fn beat(&mut self, up: &Up, is_first: bool) -> Result<(), LinkFault> {
        let mut connection = up.connection.clone();
        self.shared.compare_clocks(&mut connection, &*self.clock).await?;
        if self.shared.agree_on_zone(&mut connection).await? {
            self.must_rebuild = true;
            return Err(LinkFault::Gone);
        }
        if !is_first {
            up.keep_alive().await?;
        }
        if !is_first && self.must_rebuild && self.ledger.is_complete() {
            tracing::info!("the ledger can be read: rebuilding the shared counters from it");
            return Err(LinkFault::Gone);
        }
        let lease = i64::try_from(self.shared.settings.lease.as_millis()).unwrap_or(i64::MAX);
        let keys = [
            self.shared.name("epoch"),
            self.shared.name("nodes"),
            up.names.seq.clone(),
            self.shared.name("lock"),
        ];
        let call = self.shared.call(&BEAT, up, self.now(), keys.each_ref().map(String::as_str));
        let call = call.int(lease).text(if is_first { "1" } else { "0" }).text(&up.names.epoch);
        self.beaten = self.next_number();
        let answer = ask(&mut connection, call.int(self.beaten), TIME_LIMIT).await?;
        self.number = self.beaten;
        self.shared.queue.keep_all(reply::int(answer.get(1)) == Some(1));
        for dead in answer
            .iter()
            .skip(2)
            .map(|name| reply::text(Some(name)))
            .filter(|name| *name != up.names.node)
        {
            tracing::warn!(
                name = dead,
                "a node sent no heartbeat for the lease: what its requests held is released"
            );
            let dead = Names::new(&self.shared.space, &up.names.epoch, dead);
            self.bury(&Up::new(connection.clone(), dead)).await?;
        }
        Ok(())
    }

    /// Releases what the requests of a dead node's name held, and removes the name.
    pub(super) async fn bury(&self, dead: &Up) -> Result<(), LinkFault> {
        let nodes = self.shared.name("nodes");
        loop {
            let call = self.shared.call(&BURY, dead, self.now(), [nodes.as_str()]);
            let answer = ask(&mut dead.connection.clone(), call, TIME_LIMIT).await?;
            if reply::int(answer.get(1)) == Some(0) {
                return Ok(());
            }
        }
    }

    pub(super) async fn get(
        &self,
        connection: &mut MultiplexedConnection,
        name: &str,
    ) -> Result<Option<String>, LinkFault> {
        within(TIME_LIMIT, connection.get(self.shared.name(name))).await
    }

    /// The time by Redis' clock.
    pub(super) fn now(&self) -> Timestamp {
        self.shared.time(self.clock.now())
    }
}
