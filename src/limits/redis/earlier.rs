//! The layout of names before this one (up to version 1, names without a hash tag), during an
//! upgrade of node after node.
//!
//! Nodes of both layouts count in one Redis side by side, each in its own names: no value of one is
//! read by the other. What the nodes of the earlier layout settle is in the ledger. When the last
//! of them is gone, a node of this layout rebuilds the counters from there, once, and removes
//! the earlier names. So does the first node of this layout after a return to the earlier one.

use redis::aio::MultiplexedConnection;

use super::Shared;
use super::link::{Fault, TIME_LIMIT, within};

/// Whether gateways of the earlier layout have counted in this Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Earlier {
    /// None has, or what it left was taken over.
    No,
    /// At least one sends heartbeats.
    Counts,
    /// All are gone; the names are still there.
    Gone,
}

impl Shared {
    /// Looks for nodes of the earlier layout.
    pub(super) async fn earlier(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<Earlier, Fault> {
        let epoch = format!("{}:epoch", self.settings.prefix);
        let found: bool =
            within(TIME_LIMIT, redis::cmd("EXISTS").arg(epoch).query_async(connection)).await?;
        if !found {
            return Ok(Earlier::No);
        }
        let nodes = format!("{}:nodes", self.settings.prefix);
        let alive = live_nodes(connection, &nodes).await?;
        Ok(if alive > 0 { Earlier::Counts } else { Earlier::Gone })
    }

    /// Whether these counters may lack what gateways of the earlier layout spent, because none of
    /// this layout counts now to take it over.
    pub(super) async fn was_away(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<bool, Fault> {
        match self.earlier(connection).await? {
            Earlier::No => Ok(false),
            Earlier::Gone => Ok(true),
            Earlier::Counts => {
                let nodes = format!("{}nodes", self.space);
                Ok(live_nodes(connection, &nodes).await? == 0)
            }
        }
    }

    /// Removes the names of the earlier layout, if no node uses them.
    pub(super) async fn forget_earlier(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), Fault> {
        if self.earlier(connection).await? != Earlier::Gone {
            return Ok(());
        }
        let prefix = &self.settings.prefix;
        for name in ["e-*", "dead:*", "seq:*"] {
            unlink(connection, &format!("{prefix}:{name}"), |_| true).await?;
        }
        let mut unlink = redis::cmd("UNLINK");
        unlink.arg(format!("{prefix}:nodes")).arg(format!("{prefix}:epoch"));
        within(TIME_LIMIT, unlink.query_async::<i64>(connection)).await.map(|_| ())
    }
}

/// How many nodes of a set have not missed their heartbeat, by the clock of Redis.
pub(super) async fn live_nodes(
    connection: &mut MultiplexedConnection,
    nodes: &str,
) -> Result<i64, Fault> {
    let (seconds, _): (i64, i64) =
        within(TIME_LIMIT, redis::cmd("TIME").query_async(connection)).await?;
    let mut count = redis::cmd("ZCOUNT");
    count.arg(nodes).arg(seconds.saturating_mul(1_000)).arg("+inf");
    within(TIME_LIMIT, count.query_async(connection)).await
}

/// Removes the names that match a pattern and that `which` accepts, some at a time.
pub(super) async fn unlink(
    connection: &mut MultiplexedConnection,
    pattern: &str,
    which: impl Fn(&[u8]) -> bool,
) -> Result<(), Fault> {
    let mut cursor = 0_u64;
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(1_000);
        let (next, mut names): (u64, Vec<Vec<u8>>) =
            within(TIME_LIMIT, scan.query_async(connection)).await?;
        names.retain(|name| which(name));
        if !names.is_empty() {
            let mut unlink = redis::cmd("UNLINK");
            within(TIME_LIMIT, unlink.arg(names).query_async::<i64>(connection)).await?;
        }
        cursor = next;
        if cursor == 0 {
            return Ok(());
        }
    }
}
