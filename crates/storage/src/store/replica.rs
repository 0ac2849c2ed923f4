//! The read replica of PostgreSQL that reports read from (`database.read_url`).
//!
//! Only reports do: pages and sums of the usage log, statistics, the overview. All that must be
//! current is read from the primary. A check every few seconds decides whether the replica is used:
//! it must be a standby of the same database, with this schema, and not far behind. While it is
//! not, or a report fails on it, reports read from the primary.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::{Any, AnyConnection, AnyPool, Transaction};
use tokio::time::{Instant, timeout};

use super::engine::column::Fields;
use super::engine::connect;
use super::engine::error::StoreError;
use super::{Backend, Store};
use crate::domain::secret::Secret;

/// Bound of the wait for a connection to the replica; twice that, of each server's part of a check.
const PATIENCE: Duration = Duration::from_secs(2);
/// The primary's positions that are kept: one of each check, for longer than the largest lag.
const POSITIONS: usize = 64;

/// The state of the read replica, as of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplicaState {
    /// Reports read from it. At most this much of the primary's latest changes is not in it yet.
    Used(Duration),
    /// Reports read from the primary, for this reason.
    Unused(String),
}

/// The connections to the replica, and what the checks found.
#[derive(Clone)]
pub(super) struct Replica {
    pool: AnyPool,
    largest_lag: Duration,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    usable: AtomicBool,
    /// Positions in the primary's log, with the time at which it had reached them; oldest first.
    positions: Mutex<VecDeque<(Instant, i64)>>,
}

/// The database and its schema: the same on the primary and its standbys, on no other.
#[derive(PartialEq, Eq)]
struct Identity {
    system: String,
    database: String,
    schema: i64,
}

const IDENTITY: &str = "SELECT CAST(system_identifier AS TEXT) AS system, \
    CAST(current_database() AS TEXT) AS base, \
    (SELECT COALESCE(MAX(version), 0) FROM _sqlx_migrations) AS schema FROM pg_control_system()";
const WRITTEN: &str =
    "SELECT CAST(pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS BIGINT) AS position";
/// Null: no standby.
const REPLAYED: &str = "SELECT CAST(pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0') AS BIGINT) AS position \
     FROM (SELECT pg_is_in_recovery() AS is_standby) AS server WHERE is_standby";

impl Store {
    /// The same store, with a replica for its reports, unless that is further behind than
    /// `largest_lag`. Connects when it is first checked.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] when the address is invalid.
    pub fn with_replica(
        mut self,
        url: &Secret,
        max_connections: u32,
        largest_lag: Duration,
    ) -> Result<Self, StoreError> {
        let pool = connect::replica(url, max_connections, PATIENCE)?;
        self.replica = Some(Replica { pool, largest_lag, shared: Arc::default() });
        Ok(self)
    }

    /// Checks the replica, and decides whether reports read from it. `None`: there is none.
    ///
    /// # Errors
    /// [`StoreError`] of the primary; the replica is not used then.
    pub async fn check_replica(&self) -> Result<Option<ReplicaState>, StoreError> {
        let Some(replica) = &self.replica else { return Ok(None) };
        let state = self.compare(replica).await;
        let is_used = matches!(state, Ok(ReplicaState::Used(_)));
        replica.shared.usable.store(is_used, Ordering::Release);
        state.map(Some)
    }

    async fn compare(&self, replica: &Replica) -> Result<ReplicaState, StoreError> {
        let ours = self.look_at_primary(replica).await?;
        let late = "it does not answer in time";
        let (theirs, replayed) = match timeout(PATIENCE * 2, replica.look()).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => return Ok(ReplicaState::Unused(error.to_string())),
            Err(_) => return Ok(ReplicaState::Unused(late.to_owned())),
        };
        let Some(replayed) = replayed else {
            return Ok(ReplicaState::Unused("it is not a standby".to_owned()));
        };
        if theirs != ours {
            let why = "it is not a standby of this database, or has another schema";
            return Ok(ReplicaState::Unused(why.to_owned()));
        }
        match replica.lag(replayed) {
            Some(lag) if lag <= replica.largest_lag => Ok(ReplicaState::Used(lag)),
            Some(lag) => Ok(ReplicaState::Unused(format!("it is {} s behind", lag.as_secs()))),
            None => Ok(ReplicaState::Unused("it is behind the first check".to_owned())),
        }
    }

    /// Notes the primary's position. The wait for a connection to it has the pool's own bound.
    async fn look_at_primary(&self, replica: &Replica) -> Result<Identity, StoreError> {
        let mut primary = self.reader().await?;
        let asked = Instant::now();
        let look = async {
            let written = position(&mut primary, WRITTEN).await?;
            Ok((written, identity(&mut primary).await?))
        };
        let late =
            |_| Err(StoreError::Unreachable { what: "it does not answer in time".to_owned() });
        let (written, ours) = timeout(PATIENCE * 2, look).await.unwrap_or_else(late)?;
        replica.note(asked, written.unwrap_or(0));
        Ok(ours)
    }

    /// A transaction for a report on the replica; `None`: read from the primary.
    pub(super) async fn on_replica(&self) -> Option<Transaction<'static, Any>> {
        let replica = self.replica.as_ref()?;
        if self.hold.check().is_err() || !replica.shared.usable.load(Ordering::Acquire) {
            return None;
        }
        let begun = replica.pool.begin_with(Backend::Postgres.begin_report()).await;
        if begun.is_err() {
            self.replica_failed();
        }
        begun.ok()
    }

    /// After a failed report: until the next check, reports read from the primary.
    pub(super) fn replica_failed(&self) {
        if let Some(replica) = &self.replica {
            replica.shared.usable.store(false, Ordering::Release);
        }
    }
}

impl Replica {
    fn note(&self, at: Instant, position: i64) {
        let mut positions = self.shared.positions.lock();
        positions.push_back((at, position));
        if positions.len() > POSITIONS {
            positions.pop_front();
        }
    }

    /// The age of the oldest state of the primary that the replica has not reached; `None`: it has
    /// reached none of the known ones.
    fn lag(&self, replayed: i64) -> Option<Duration> {
        let positions = self.shared.positions.lock();
        let reached = positions.iter().rev().find(|(_, position)| *position <= replayed)?;
        let is_newest = positions.back().is_some_and(|newest| newest.1 <= replayed);
        Some(if is_newest { Duration::ZERO } else { reached.0.elapsed() })
    }

    async fn look(&self) -> Result<(Identity, Option<i64>), StoreError> {
        let acquired = self.pool.acquire().await;
        let mut connection = acquired.map_err(|error| Backend::Postgres.acquire_error(error))?;
        let replayed = position(&mut connection, REPLAYED).await?;
        Ok((identity(&mut connection).await?, replayed))
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
    }
}

async fn position(
    connection: &mut AnyConnection,
    sql: &'static str,
) -> Result<Option<i64>, StoreError> {
    let row = sqlx::query(sql).fetch_optional(connection).await?;
    row.map_or(Ok(None), |row| {
        Fields { row: &row, table: "pg_stat_replication" }.opt_int("position")
    })
}

async fn identity(connection: &mut AnyConnection) -> Result<Identity, StoreError> {
    let row = sqlx::query(IDENTITY).fetch_one(connection).await?;
    let fields = Fields { row: &row, table: "pg_control_system" };
    Ok(Identity {
        system: fields.text("system")?,
        database: fields.text("base")?,
        schema: fields.int("schema")?,
    })
}

/// Runs a report, given as an expression of a transaction, on the replica; if that fails, or there
/// is none, on the primary.
macro_rules! report {
    ($store:expr, |$tx:ident| $report:expr) => {
        'report: {
            if let Some($tx) = $store.on_replica().await {
                match $report.await {
                    Ok(done) => break 'report Ok(done),
                    // The caller's mistake, on both.
                    Err(error @ (StoreError::Missing { .. } | StoreError::Slow)) => {
                        break 'report Err(error);
                    }
                    Err(_) => $store.replica_failed(),
                }
            }
            let $tx = $store.report().await?;
            $report.await
        }
    };
}
pub(in crate::store) use report;
