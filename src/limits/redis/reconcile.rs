//! What the keeper does before it counts over a new connection: finds the counters in effect, or
//! builds them, and settles the state of the previous connection.

use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::aio::MultiplexedConnection;

use super::earlier::Earlier;
use super::keeper::ServerKeeper;
use super::link::{Fault, Up};
use super::names::Names;
use super::rebuild::Rebuild;

/// Interval between two checks whether another node has built the counters.
const LOOK: Duration = Duration::from_millis(100);

impl ServerKeeper {
    /// Finds the counters in effect, or builds them. Returns their name.
    pub(super) async fn agree(
        &mut self,
        connection: &mut MultiplexedConnection,
        node: &str,
    ) -> Result<String, Fault> {
        self.is_doubtful |= self.shared.link.elsewhere.swap(false, Ordering::Relaxed);
        let mut lost_data = self.is_doubtful;
        self.must_rebuild |= self.took_over();
        self.must_rebuild |= self.shared.outbox.has_overflowed();
        let was_away = self.epoch.is_none() && self.shared.was_away(connection).await?;
        self.must_rebuild |= was_away;
        loop {
            // Asked each time: the node that takes them over removes their names.
            let earlier_gone =
                self.epoch.is_some() && self.shared.earlier(connection).await? == Earlier::Gone;
            let found = self.get(connection, "epoch").await?;
            let is_unsure = self.is_unsure(connection, found.as_deref()).await?;
            let must_rebuild =
                (self.must_rebuild || earlier_gone || is_unsure) && self.ledger.is_complete();
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
                    let server = self.shared.part.number();
                    tracing::error!(server, "Redis came back with less than it had confirmed");
                    lost_data = true;
                    continue;
                }
                // Another node has built them since.
                Some(found) if !must_rebuild && self.epoch.as_ref() != Some(found) => {
                    self.must_rebuild |= is_unsure || self.shared.outbox.has_overflowed();
                    self.shared.outbox.replay();
                    return Ok(found.clone());
                }
                _ => {}
            }
            if let Some(epoch) = self.rebuild(connection, node, found.as_deref()).await? {
                if was_away || earlier_gone {
                    self.rebuild_others();
                }
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
    ) -> Result<bool, Fault> {
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
    ) -> Result<Option<String>, Fault> {
        let epoch = format!("e-{}", uuid::Uuid::new_v4().simple());
        let mut rebuild = Rebuild {
            shared: &self.shared,
            connection: connection.clone(),
            epoch: &epoch,
            names: Names::new(&self.shared.space, &epoch, node),
            node,
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
                self.must_rebuild |= self.shared.outbox.take_overflow();
                // Before the first connection, the node's own clock was all that was known.
                let lost_at = self.lost_at.min(rebuild.now);
                rebuild.run(&self.ledger, lost_at).await.map(|()| true)
            }
            other => other.map(|_| false),
        };
        let unlocked = rebuild.unlock().await;
        let has_written = matches!(&made, Err(fault) if !matches!(fault, Fault::Ledger(_)));
        if has_written && unlocked.is_ok() {
            rebuild.forget().await?;
        }
        let is_made = made?;
        if is_made {
            // Else a heartbeat has them built again, once it is.
            self.must_rebuild = !is_complete || self.shared.outbox.has_overflowed();
            self.shared.outbox.replay();
        }
        unlocked?;
        Ok(is_made.then_some(epoch))
    }

    /// Has this node rebuild the counters on all other servers: what nodes of an earlier layout
    /// spent concerns these too, and they may have had all names on this one.
    fn rebuild_others(&mut self) {
        if self.shared.moves.fetch_add(1, Ordering::SeqCst) == self.moves {
            self.moves += 1;
        }
    }

    /// Settles the state of the previous name. `false`: Redis has lost data that it had confirmed.
    async fn finish(
        &mut self,
        connection: &mut MultiplexedConnection,
        epoch: &str,
    ) -> Result<bool, Fault> {
        let Some(name) = self.name.clone() else { return Ok(true) };
        let space = &self.shared.space;
        let before = Up::new(connection.clone(), space, epoch.to_owned(), name);
        // Before anything is sent: that would set a number that is missing.
        let applied = self.get(connection, &format!("seq:{}", before.node)).await?;
        if applied.and_then(|number| number.parse().ok()).unwrap_or(0) < self.number {
            return Ok(false);
        }
        if self.shared.outbox.is_sending() {
            match self.send(&before, |_| true).await {
                Ok(_) => {}
                Err(Fault::Gone) => self.shared.outbox.not_sent(),
                Err(fault) => return Err(fault),
            }
        }
        self.bury(&before).await?;
        Ok(true)
    }
}
