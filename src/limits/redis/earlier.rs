//! The layouts of names before this one ([`EARLIER`]), during an upgrade of node after node.
//!
//! Nodes of all layouts count in one Redis side by side, each in its own names: no value of one is
//! read by another. What the nodes of an earlier layout settle is in the ledger. When the last
//! of them is gone, a node of this layout rebuilds the counters from there, once, and removes
//! the earlier names. So does the first node of this layout after a return to an earlier one.

use redis::aio::MultiplexedConnection;

use super::Shared;
use super::link::{Fault, TIME_LIMIT, within};
use super::names::EARLIER;

/// Whether gateways of an earlier layout have counted in this Redis.
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
    /// Looks for nodes of the earlier layouts.
    pub(super) async fn earlier(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<Earlier, Fault> {
        let mut found = Earlier::No;
        for layout in EARLIER {
            match self.earlier_of(layout, connection).await? {
                Earlier::No => {}
                Earlier::Gone => found = Earlier::Gone,
                Earlier::Counts => return Ok(Earlier::Counts),
            }
        }
        Ok(found)
    }

    async fn earlier_of(
        &self,
        layout: &str,
        connection: &mut MultiplexedConnection,
    ) -> Result<Earlier, Fault> {
        let epoch = format!("{}:{layout}epoch", self.settings.prefix);
        let found: bool =
            within(TIME_LIMIT, redis::cmd("EXISTS").arg(epoch).query_async(connection)).await?;
        if !found {
            return Ok(Earlier::No);
        }
        let nodes = format!("{}:{layout}nodes", self.settings.prefix);
        let alive = live_nodes(connection, &nodes).await?;
        Ok(if alive > 0 { Earlier::Counts } else { Earlier::Gone })
    }

    /// Whether these counters may lack what gateways of an earlier layout spent, because none of
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

    /// Removes the names of each earlier layout that no node uses.
    pub(super) async fn forget_earlier(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), Fault> {
        let prefix = &self.settings.prefix;
        for layout in EARLIER {
            if self.earlier_of(layout, connection).await? != Earlier::Gone {
                continue;
            }
            // Without a hash tag, other names have the same beginning.
            let (patterns, names): (&[&str], &[&str]) = if layout.is_empty() {
                (&["e-*", "dead:*", "seq:*"], &["nodes", "epoch"])
            } else {
                (&["*:*"], &["nodes", "lock", "servers", "epoch"])
            };
            for name in patterns {
                unlink(connection, &format!("{prefix}:{layout}{name}"), |_| true).await?;
            }
            let mut unlink = redis::cmd("UNLINK");
            for name in names {
                unlink.arg(format!("{prefix}:{layout}{name}"));
            }
            within(TIME_LIMIT, unlink.query_async::<i64>(connection)).await?;
        }
        Ok(())
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
