//! Builds the counters in Redis from the ledger: if Redis is empty, if it came back with less than
//! it had confirmed, or if a process ended without sending everything that it had counted.
//!
//! One node does it, under a lock that it renews, into names of a new epoch; then the epoch takes
//! effect at once. Requests that ended shortly before are loaded by id, so that what nodes send
//! again is counted once. While there is a lock, nodes keep all settlements ([`super::queue`]).

use std::pin::Pin;
use std::time::Duration;

use chrono_tz::Tz;
use futures_util::future::try_join_all;
use redis::AsyncCommands as _;
use redis::aio::MultiplexedConnection;
use tokio::time::Instant;

use super::super::memory::Memory;
use super::super::rebuild::Owned;
use super::super::spend::Sums;
use super::Shared;
use super::link::{LinkFault, TIME_LIMIT, ask, within};
use super::names::Names;
use super::queue::KEEP_MS;
use super::replica::Read;
use super::reply;
use super::scripts::{FLIP, HOLD, LOAD, Numbers, Present, Script, ScriptCall};
use crate::domain::clock::{Clock, Timestamp};
use crate::domain::ids::RequestId;
use crate::store::SpendSeen;

/// How long the lock holds without renewal by its node, in leases, and at most.
const LOCK_LEASES: u32 = 8;
const LONGEST_LOCK: Duration = Duration::from_secs(120);
/// How often the lock is renewed while it holds.
const RENEWALS: u32 = 4;
/// A rebuild that takes longer is given up.
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// Time-out of calls that load counters.
const LOADED: Duration = Duration::from_secs(120);
/// What ended so long after the ledger was read is not in it: the clocks of the nodes differ.
const READ_MARGIN_MS: i64 = 5_000;
/// Requests known by id reach back to this long before the connection was lost.
pub(super) const MARGIN_MS: i64 = KEEP_MS + 30_000;
const SEEN_TTL: Duration = Duration::from_secs(24 * 3600);
/// Concurrent calls.
const AT_ONCE: usize = 64;

/// The source of the counters. `Err` says why it cannot be read.
pub trait CounterSource: Send + Sync {
    /// Reads the sums of all records that the ledger has. `zone` and `now` decide which windows are
    /// read; `ended` are the requests that ended at `ended_since` or later.
    ///
    /// # Errors
    /// Why the ledger cannot be read, for the log. The rebuild is tried again later.
    fn read(
        &self,
        zone: Tz,
        now: Timestamp,
        ended_since: Timestamp,
    ) -> Pin<Box<dyn Future<Output = Result<SpendSeen, String>> + Send + '_>>;

    /// Whether it can be read, and has what earlier processes of this node recorded. While it has
    /// not, counters that are in Redis are used as they are, and built again later.
    fn is_complete(&self) -> bool {
        true
    }
}

/// A rebuild in progress.
pub(super) struct Rebuild<'a> {
    pub(super) shared: &'a Shared,
    pub(super) connection: MultiplexedConnection,
    /// The names of the new epoch, for this node.
    pub(super) names: Names,
    pub(super) clock: &'a dyn Clock,
    /// When the ledger begins to be read.
    pub(super) now: Timestamp,
}

impl Rebuild<'_> {
    /// Gives the lock back, if this node still holds it.
    pub(super) async fn unlock(&self) -> Result<(), LinkFault> {
        self.hold(Duration::ZERO, TIME_LIMIT).await.map(|_| ())
    }

    /// Holds the lock for longer. `false`: this node does not have it.
    async fn hold(&self, long: Duration, bound: Duration) -> Result<bool, LinkFault> {
        let lock = self.shared.name("lock");
        let hold =
            ScriptCall::bare(&HOLD, &[lock.as_str()]).text(&self.names.node).int(millis(long));
        let held = within(bound, hold.run(&mut self.connection.clone())).await?;
        Ok(reply::int(Some(&held)) == Some(1))
    }

    /// Renews the lock. Resolves when that is not possible, or when the rebuild takes too long.
    async fn keep_lock(&self) -> LinkFault {
        let (began, pause) = (Instant::now(), self.lock_holds() / RENEWALS);
        while began.elapsed() < LONGEST {
            tokio::time::sleep(pause).await;
            match self.hold(self.lock_holds(), 2 * pause).await {
                Ok(true) => {}
                Ok(false) => return LinkFault::Gone,
                Err(fault) => return fault,
            }
        }
        LinkFault::TimedOut(LONGEST)
    }

    fn lock_holds(&self) -> Duration {
        LONGEST_LOCK.min(self.shared.settings.lease * LOCK_LEASES)
    }

    /// `false`: another node has the lock.
    pub(super) async fn lock(&mut self) -> Result<bool, LinkFault> {
        let mut set = redis::cmd("SET");
        set.arg(self.shared.name("lock")).arg(&self.names.node);
        set.arg("NX").arg("PX").arg(millis(self.lock_holds()));
        let taken: Option<String> =
            within(TIME_LIMIT, set.query_async(&mut self.connection)).await?;
        Ok(taken.is_some())
    }

    /// Loads everything, puts it into effect, and removes all other counters. The lock is held
    /// until then: counters that another node began to load would be removed. `lost_at`: since when
    /// this node could not send anything to Redis.
    pub(super) async fn run(
        &self,
        ledger: &dyn CounterSource,
        lost_at: Timestamp,
    ) -> Result<(), LinkFault> {
        tokio::select! {
            made = self.build(ledger, lost_at) => made,
            fault = self.keep_lock() => Err(fault),
        }
    }

    async fn build(&self, ledger: &dyn CounterSource, lost_at: Timestamp) -> Result<(), LinkFault> {
        let (began, ended_since) = (Instant::now(), lost_at.plus_ms(-MARGIN_MS));
        let zone = self.shared.zone();
        let past = ledger.read(zone, self.now, ended_since).await.map_err(LinkFault::Ledger)?;
        // The one stands still while the machine sleeps, the other may be set.
        let read_by = self.now.plus_ms(millis(began.elapsed()));
        let read_by = read_by.max(self.shared.time(self.clock.now())).plus_ms(READ_MARGIN_MS);
        let made = Memory::of_ledger(self.shared.counting(), &past, self.now);
        let holders = made.holders();
        let count = holders.len();
        tracing::info!(holders = count, "rebuilding the shared counters from the ledger");
        for some in holders.chunks(AT_ONCE) {
            try_join_all(some.iter().map(|(holder, sums)| self.load(*holder, sums))).await?;
        }
        self.load_ids(&past.ended).await?;
        let late = past.late;
        self.shared.adopt(made, Read::new(&past, self.now, ended_since));
        let mut connection = self.connection.clone();
        self.shared.set_checked(&mut connection, &self.names.epoch).await?;
        let keys = [self.shared.name("epoch"), self.shared.name("lock"), self.shared.name("nodes")];
        let flip = self.call(&FLIP, keys.iter().map(String::as_str));
        let flip = flip.int(ended_since.0).text(&self.names.epoch);
        let flip =
            flip.text(&self.shared.name("news")).text(&self.shared.space).int(read_by.0).int(late);
        ask(&mut connection, flip, TIME_LIMIT).await?;
        // After a pause another node may have built counters since.
        if !self.hold(self.lock_holds(), TIME_LIMIT).await? {
            return Ok(());
        }
        let (all, ours) = (self.shared.name("e-*"), self.names.counters.as_bytes());
        unlink(&mut connection, &all, |name| !name.starts_with(ours)).await
    }

    async fn load(&self, holder: Owned, sums: &Sums) -> Result<(), LinkFault> {
        let counters = &self.names.counters;
        let (hash, buckets, field) = match holder {
            Owned::User(user) => {
                (self.names.user(user.0), format!("{counters}ub:{user}"), "u".to_owned())
            }
            Owned::Key(user, key) => {
                (self.names.user(user.0), format!("{counters}kb:{key}"), format!("k{key}"))
            }
            Owned::Provider(id) => {
                (self.names.provider(id.0), format!("{counters}pb:{id}"), "p".to_owned())
            }
        };
        let numbers = Numbers::of(6).amount(sums.total);
        let numbers = sums.by_date.into_iter().fold(numbers, Numbers::amount);
        let keys = [hash.as_str(), buckets.as_str()];
        let mut call = self.call(&LOAD, keys.into_iter()).text(&field).numbers(numbers);
        for (minute, amount) in &sums.minutes {
            call = call.int(*minute).int(amount.0);
        }
        ask(&mut self.connection.clone(), call, LOADED).await.map(|_| ())
    }

    async fn load_ids(&self, ids: &[RequestId]) -> Result<(), LinkFault> {
        let name = format!("{}seen", self.names.counters);
        let mut connection = self.connection.clone();
        for some in ids.chunks(1_000) {
            let some: Vec<&[u8]> = some.iter().map(|id| id.0.as_bytes().as_slice()).collect();
            within(LOADED, connection.sadd::<_, _, i64>(&name, some)).await?;
        }
        within(TIME_LIMIT, connection.pexpire(&name, millis(SEEN_TTL))).await
    }

    /// Removes what a failed rebuild wrote, unless it took effect and the answer was lost. Call
    /// [`Self::unlock`] first: after that it cannot take effect any more.
    pub(super) async fn forget(&self) -> Result<(), LinkFault> {
        let mut connection = self.connection.clone();
        let epoch = self.shared.name("epoch");
        let found: Option<String> = within(TIME_LIMIT, connection.get(epoch)).await?;
        if found.as_ref() == Some(&self.names.epoch) {
            return Ok(());
        }
        unlink(&mut connection, &format!("{}*", self.names.counters), |_| true).await
    }

    fn call<'k>(
        &self,
        script: &'static Script,
        keys: impl ExactSizeIterator<Item = &'k str>,
    ) -> ScriptCall {
        // The present is the time when the ledger was read, however long that takes.
        let present = Present { is_set: true, ..self.shared.present(self.now) };
        ScriptCall::new(script, &self.names, &present, keys)
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Removes the names that match a pattern and that `which` accepts, some at a time.
async fn unlink(
    connection: &mut MultiplexedConnection,
    pattern: &str,
    which: impl Fn(&[u8]) -> bool,
) -> Result<(), LinkFault> {
    let mut cursor = 0_u64;
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(1_000);
        let (next, mut names): (u64, Vec<Vec<u8>>) =
            within(TIME_LIMIT, scan.query_async(connection)).await?;
        names.retain(|name| which(name));
        if !names.is_empty() {
            within(TIME_LIMIT, connection.unlink::<_, i64>(names)).await?;
        }
        cursor = next;
        if cursor == 0 {
            return Ok(());
        }
    }
}
