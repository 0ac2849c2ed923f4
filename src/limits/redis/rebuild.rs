//! Builds the counters in Redis from the ledger: if Redis is empty, if it came back with less than
//! it had confirmed, or if a process ended without sending everything that it had counted.
//!
//! One node does it, under a lock, into names of a new epoch; then the epoch takes effect at once.
//! Requests that ended shortly before are loaded by id, so that what nodes send again is counted
//! once.

use std::pin::Pin;
use std::time::Duration;

use futures_util::future::try_join_all;
use redis::aio::MultiplexedConnection;

use super::super::memory::Memory;
use super::super::rebuild::{SpendRow, SpendTotal};
use super::super::spend::Sums;
use super::Shared;
use super::link::{Fault, TIME_LIMIT, ask, within};
use super::outbox::KEEP_MS;
use super::scripts::{FLIP, LOAD, Scope, ScriptCall};
use crate::domain::clock::Timestamp;
use crate::domain::ids::RequestId;

/// How long the lock holds without renewal by its node; longer than a rebuild takes.
const LOCK: Duration = Duration::from_secs(120);
/// Requests known by id reach back to this long before the connection was lost.
const MARGIN_MS: i64 = KEEP_MS + 30_000;
const SEEN_TTL: Duration = Duration::from_secs(24 * 3600);
/// Concurrent calls.
const AT_ONCE: usize = 64;

/// The ledger's figures, from one read.
#[derive(Debug, Default)]
pub struct LedgerSums {
    /// Spending by minute, for the windows.
    pub rows: Vec<SpendRow>,
    /// Spending in total.
    pub totals: Vec<SpendTotal>,
    /// Ids of the requests that ended since the given time.
    pub ids: Vec<RequestId>,
}

/// The source of the counters. `Err` says why it cannot be read.
pub trait Ledger: Send + Sync {
    /// Reads the sums of all records that the ledger has. `now` decides which windows are read;
    /// `ids` are those of the requests that ended at `ended_since` or later.
    ///
    /// # Errors
    /// Why the ledger cannot be read, for the log. The rebuild is tried again later.
    fn read(
        &self,
        now: Timestamp,
        ended_since: Timestamp,
    ) -> Pin<Box<dyn Future<Output = Result<LedgerSums, String>> + Send + '_>>;
}

/// A rebuild in progress.
pub(super) struct Rebuild<'a> {
    pub(super) shared: &'a Shared,
    pub(super) connection: MultiplexedConnection,
    /// The new epoch.
    pub(super) epoch: &'a str,
    /// The node that holds the lock.
    pub(super) node: &'a str,
    pub(super) now: Timestamp,
}

impl Rebuild<'_> {
    /// `false`: another node has the lock.
    pub(super) async fn lock(&mut self) -> Result<bool, Fault> {
        let mut set = redis::cmd("SET");
        set.arg(self.name("lock")).arg(self.node).arg("NX").arg("PX").arg(LOCK.as_millis() as u64);
        let taken: Option<String> =
            within(TIME_LIMIT, set.query_async(&mut self.connection)).await?;
        Ok(taken.is_some())
    }

    /// Loads everything and puts it into effect. `lost_at`: since when this node could not send
    /// anything to Redis.
    pub(super) async fn run(
        mut self,
        ledger: &dyn Ledger,
        lost_at: Timestamp,
    ) -> Result<(), Fault> {
        let ended_since = lost_at.plus_ms(-MARGIN_MS);
        let sums = ledger.read(self.now, ended_since).await.map_err(Fault::Ledger)?;
        let ids = sums.ids.clone();
        let made = Memory::of_ledger(self.shared.counting(), sums, self.now);
        let holders = made.holders();
        tracing::info!(
            holders = holders.len(),
            "the shared counters are made anew from the ledger"
        );
        for some in holders.chunks(AT_ONCE) {
            try_join_all(some.iter().map(|(holder, sums)| self.load(holder, sums))).await?;
        }
        self.load_ids(&ids).await?;
        self.shared.memory.adopt(made, self.now);
        let flip = self.call(&FLIP).int(ended_since.0).int(self.now.0);
        ask(&mut self.connection.clone(), flip, TIME_LIMIT).await?;
        self.forget_others().await
    }

    async fn load(&self, holder: &str, sums: &Sums) -> Result<(), Fault> {
        let mut call =
            self.call(&LOAD).text(holder).int(sums.total.0).int(sums.weekly.0).int(sums.monthly.0);
        for (minute, amount) in &sums.minutes {
            call = call.int(*minute).int(amount.0);
        }
        ask(&mut self.connection.clone(), call, LOCK).await.map(|_| ())
    }

    async fn load_ids(&mut self, ids: &[RequestId]) -> Result<(), Fault> {
        let name = format!("{}:{}:seen", self.shared.settings.prefix, self.epoch);
        for some in ids.chunks(1_000) {
            let mut add = redis::cmd("SADD");
            add.arg(&name);
            for id in some {
                add.arg(id.0.as_bytes().as_slice());
            }
            within(LOCK, add.query_async::<i64>(&mut self.connection)).await?;
        }
        let mut expire = redis::cmd("PEXPIRE");
        expire.arg(&name).arg(SEEN_TTL.as_millis() as u64);
        within(TIME_LIMIT, expire.query_async::<i64>(&mut self.connection)).await?;
        Ok(())
    }

    /// Drops the counters of earlier epochs.
    async fn forget_others(&mut self) -> Result<(), Fault> {
        let (all, ours) = (self.name("e-*:*"), self.name(self.epoch) + ":");
        let mut cursor = 0_u64;
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(&all).arg("COUNT").arg(1_000);
            let (next, mut names): (u64, Vec<Vec<u8>>) =
                within(TIME_LIMIT, scan.query_async(&mut self.connection)).await?;
            names.retain(|name| !name.starts_with(ours.as_bytes()));
            if !names.is_empty() {
                within(
                    TIME_LIMIT,
                    redis::cmd("UNLINK").arg(names).query_async::<i64>(&mut self.connection),
                )
                .await?;
            }
            cursor = next;
            if cursor == 0 {
                return Ok(());
            }
        }
    }

    fn name(&self, name: &str) -> String {
        format!("{}:{name}", self.shared.settings.prefix)
    }

    fn call<'a>(&'a self, script: &'a redis::Script) -> ScriptCall<'a> {
        let scope =
            Scope { prefix: &self.shared.settings.prefix, epoch: self.epoch, node: self.node };
        let ttl_ms = self.shared.memory.settings.session_ttl_ms;
        // The present is the time when the ledger was read, however long that takes.
        ScriptCall::new(
            script,
            scope,
            &format!("={}", self.now.0),
            ttl_ms,
            &self.shared.spans(self.now),
        )
    }
}
