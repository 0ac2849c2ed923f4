//! What the connection task does before it counts over a new connection: finds the counters in
//! effect, or builds them, and settles the state of the previous connection.

use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Script, Value};

use super::Shared;
use super::connection::ConnectionTask;
use super::link::{LinkFault, TIME_LIMIT, Up, within};
use super::names::Names;
use super::rebuild::Rebuild;

/// Interval between two checks whether another node has built the counters.
const LOOK: Duration = Duration::from_millis(100);

impl ConnectionTask {
    /// Finds the counters in effect, or builds them. Returns their name.
    pub(super) async fn agree(
        &mut self,
        connection: &mut MultiplexedConnection,
        node: &str,
    ) -> Result<String, LinkFault> {
        self.is_doubtful |= self.shared.link.elsewhere.swap(false, Ordering::Relaxed);
        let mut lost_data = self.is_doubtful;
        self.must_rebuild |= self.shared.queue.has_overflowed();
        loop {
            let found = self.get(connection, "epoch").await?;
            let is_unsure = self.is_unsure(connection, found.as_deref()).await?;
            let must_rebuild = (self.must_rebuild || is_unsure) && self.ledger.is_complete();
            match &found {
                Some(found)
                    if !must_rebuild && !lost_data && self.epoch.as_ref() == Some(found) =>
                {
                    if self.finish(connection, found).await? {
                        // Without a number of its own, it has compared nothing.
                        if !self.must_rebuild && self.number > 0 {
                            self.shared.set_checked(connection, found).await?;
                        }
                        return Ok(found.clone());
                    }
                    tracing::error!("Redis came back with less than it had confirmed");
                    lost_data = true;
                    continue;
                }
                // Another node has built them since.
                Some(found) if !must_rebuild && self.epoch.as_ref() != Some(found) => {
                    self.must_rebuild |= is_unsure || self.shared.queue.has_overflowed();
                    self.shared.queue.replay();
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

    /// Whether the counters of this epoch, on which this node did not count, may be those of a
    /// server that was started with older data.
    async fn is_unsure(
        &self,
        connection: &mut MultiplexedConnection,
        found: Option<&str>,
    ) -> Result<bool, LinkFault> {
        let has_counted = self.number > 0 && self.epoch.as_deref() == found;
        match found.filter(|_| self.may_be_older && !has_counted) {
            Some(epoch) => Ok(!self.shared.is_checked(connection, epoch).await?),
            None => Ok(false),
        }
    }

    /// Rebuilds the counters, unless another node does, or did since `found` was seen.
    async fn rebuild(
        &mut self,
        connection: &mut MultiplexedConnection,
        node: &str,
        found: Option<&str>,
    ) -> Result<Option<String>, LinkFault> {
        let epoch = format!("e-{}", uuid::Uuid::new_v4().simple());
        let mut rebuild = Rebuild {
            shared: &self.shared,
            connection: connection.clone(),
            names: Names::new(&self.shared.space, &epoch, node),
            clock: &*self.clock,
            now: self.now(),
        };
        if !rebuild.lock().await? {
            return Ok(None);
        }
        let is_complete = self.ledger.is_complete();
        let still = self.get(connection, "epoch").await;
        let made = match still {
            Ok(still) if still.as_deref() == found => {
                rebuild.now = self.now();
                // What is dropped from here on may be missing in what is read.
                self.must_rebuild |= self.shared.queue.take_overflow();
                // Before the first connection, the node's own clock was all that was known.
                let lost_at = self.lost_at.min(rebuild.now);
                rebuild.run(&*self.ledger, lost_at).await.map(|()| true)
            }
            other => other.map(|_| false),
        };
        let unlocked = rebuild.unlock().await;
        let has_written = matches!(&made, Err(fault) if !matches!(fault, LinkFault::Ledger(_)));
        if has_written && unlocked.is_ok() {
            rebuild.forget().await?;
        }
        let is_made = made?;
        if is_made {
            // Else a heartbeat has them built again, once it is.
            self.must_rebuild = !is_complete || self.shared.queue.has_overflowed();
            self.shared.queue.replay();
        }
        unlocked?;
        Ok(is_made.then_some(epoch))
    }

    /// Settles the state of the previous name. `false`: Redis has lost data that it had confirmed.
    async fn finish(
        &mut self,
        connection: &mut MultiplexedConnection,
        epoch: &str,
    ) -> Result<bool, LinkFault> {
        let Some(name) = self.name.clone() else { return Ok(true) };
        let names = Names::new(&self.shared.space, epoch, &name);
        let before = Up::new(connection.clone(), names);
        // Before anything is sent: that would set a number that is missing.
        let applied = self.get(connection, &format!("seq:{}", name)).await?;
        if applied.and_then(|number| number.parse().ok()).unwrap_or(0) < self.number {
            return Ok(false);
        }
        if self.shared.queue.is_sending() {
            match self.send(&before, |_| true).await {
                Ok(_) => {}
                Err(LinkFault::Gone) => self.shared.queue.not_sent(),
                Err(fault) => return Err(fault),
            }
        }
        self.bury(&before).await?;
        Ok(true)
    }
}

impl Shared {
    /// Whether a node has checked the counters of this epoch since the server's process began.
    ///
    /// A server that starts may have older data than it had before. A node that counted there
    /// notices: the number of its last batch or heartbeat is missing. A node that did not count
    /// there goes by the server's script cache, which ends with the process and is neither saved
    /// nor replicated. A node that built the counters, or found its own number in them, puts a
    /// script there whose text names their epoch. Without the script, a node that starts rebuilds
    /// the counters: needlessly if the cache was flushed, or if the server has none.
    pub(super) async fn is_checked(
        &self,
        connection: &mut MultiplexedConnection,
        epoch: &str,
    ) -> Result<bool, LinkFault> {
        let script = Script::new(&text(epoch));
        match self.call_script(connection, "EVALSHA", script.get_hash()).await {
            Err(fault) if fault.is_unknown_script() => Ok(false),
            answer => answer.map(|_| true),
        }
    }

    /// Notes that the counters of this epoch have everything that was confirmed.
    pub(super) async fn set_checked(
        &self,
        connection: &mut MultiplexedConnection,
        epoch: &str,
    ) -> Result<(), LinkFault> {
        self.call_script(connection, "EVAL", &text(epoch)).await.map(|_| ())
    }

    /// With a name of the counters, so that only their server runs it.
    async fn call_script(
        &self,
        connection: &mut MultiplexedConnection,
        command: &'static str,
        script: &str,
    ) -> Result<Value, LinkFault> {
        let mut call = redis::cmd(command);
        call.arg(script).arg(1).arg(self.name("epoch"));
        within(TIME_LIMIT, call.query_async(connection)).await
    }
}

/// The text of the script.
fn text(epoch: &str) -> String {
    format!("return '{}'", hex::encode(epoch))
}
