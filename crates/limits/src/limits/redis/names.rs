//! The names in Redis. The number in braces is the version of the layout: a change of what a value
//! means is made in two releases (docs/operating.md, "Stored forms").
//!
//! ```text
//! tollgate:{3}:epoch, lock, nodes, news, seq:<node>  of all epochs
//! tollgate:{3}:<epoch>:n:<node>                a node's in-flight requests; empty field: its fence
//! tollgate:{3}:<epoch>:u:<user>  p:<provider>  packed values: lua/record.lua, sessions.lua
//! tollgate:{3}:<epoch>:ub: kb: pb:             buckets of minutes, a day back
//! tollgate:{3}:<epoch>:uz: kz: pz: z           live sessions, by when they may end
//! tollgate:{3}:<epoch>:ur:                     further requests of the minute
//! tollgate:{3}:<epoch>:meta  seen              what the ledger had when it was read
//! ```
//!
//! The braces are a hash tag: all names of one space of counters are in one slot of a cluster, so
//! that no script touches two. In a cluster the prefix is the hash tag.
//!
//! See docs/decisions/25-packed-holders.md.

/// The layout, in its hash tag.
const LAYOUT: &str = "{3}";

/// What the names of all epochs begin with, colon included.
pub(super) fn space(prefix: &str) -> String {
    format!("{prefix}:{LAYOUT}:")
}

/// The names that a node uses in one epoch.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) epoch: String,
    pub(super) node: String,
    /// What the epoch's names begin with, colon included.
    pub(super) counters: String,
    /// The hash of what the node runs.
    pub(super) running: String,
    /// The number of the node's last batch or heartbeat.
    pub(super) seq: String,
}

impl Names {
    /// `space` as [`space`] returns it.
    pub(super) fn new(space: &str, epoch: &str, node: &str) -> Self {
        let counters = format!("{space}{epoch}:");
        let (running, seq) = (format!("{counters}n:{node}"), format!("{space}seq:{node}"));
        Self { epoch: epoch.to_owned(), node: node.to_owned(), counters, running, seq }
    }

    /// The hash of a user.
    pub(super) fn user(&self, id: i64) -> String {
        format!("{}u:{id}", self.counters)
    }

    /// The hash of a provider.
    pub(super) fn provider(&self, id: i64) -> String {
        format!("{}p:{id}", self.counters)
    }
}
