//! Jobs on the stored data that no request waits for: removing old log entries, pricing requests
//! whose price arrived late, summing days that are over, and keeping PostgreSQL's partitions.
//!
//! One node at a time does each, by a job in the database ([`crate::store::Job`]; the partitions by
//! a lock). All work in small batches and pause for as long as each took, so that the ledger's
//! writer gets its turn. The stored data is the only state: if a node stops or dies, the next check
//! finds the remaining work.

mod cleanup;
mod days;
mod partitions;
pub mod reconcile;
mod reprice;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chrono_tz::Tz;
use tokio::sync::{Mutex, Notify};

pub use cleanup::{Cleanup, CleanupReport};

use crate::domain::clock::Timestamp;
use crate::state::Node;
use crate::store::StoreError;

/// How often the schedule is checked, and the database is searched for requests without a price.
const TICK: Duration = Duration::from_secs(20);
/// How many of these pass between two searches for parts of requests without a price: an hour.
const PARTS: u32 = 180;
/// How long a node holds a job; it renews the hold with every batch.
const HOLD_MS: i64 = 60_000;
/// How long a stop waits for requests that are being priced.
const LAST: Duration = Duration::from_secs(5);

/// The parts that the work needs.
pub struct JobParts {
    /// The database with the table of jobs; counters and metrics learn of late prices.
    pub node: Arc<Node>,
    /// The database's server decides what is due and what is too old, if there is one; otherwise
    /// the node's clock. So a node whose clock is wrong removes nothing that is kept, and puts off
    /// no schedule of the others.
    pub by_server: bool,
    /// Decides when a day ends, and when the daily clean-up is due.
    pub time_zone: Tz,
}

/// A handle to the jobs; clones share them.
#[derive(Clone)]
pub struct Jobs(Arc<JobsShared>);

struct JobsShared {
    parts: JobParts,
    /// This process's name in the jobs' table.
    name: String,
    clean: Notify,
    price: Notify,
    /// Held from the commit of late costs until the counters have them.
    counting: Mutex<()>,
}

impl Jobs {
    /// Prepares the jobs under a new name; [`Self::run`] starts them.
    pub fn new(parts: JobParts) -> Self {
        let name = uuid::Uuid::new_v4().to_string();
        let (clean, price, counting) = (Notify::new(), Notify::new(), Mutex::new(()));
        Self(Arc::new(JobsShared { parts, name, clean, price, counting }))
    }

    /// Runs until `shutdown` resolves.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let mut pricing = std::pin::pin!(self.pricing());
        tokio::select! {
            () = shutdown => {}
            () = self.cleaning() => {}
            () = &mut pricing => {}
            () = self.summing() => {}
            () = self.partitioning() => {}
        }
        // Costs that the ledger gets must reach the counters, too.
        let counted = tokio::time::timeout(LAST, self.0.counting.lock());
        tokio::select! {
            () = pricing => {}
            counted = counted => if counted.is_err() {
                tracing::error!("the database does not say whether requests were priced: limits \
                    may lack their cost until the counters are next built from the ledger");
            },
        }
        // Other work in progress was either committed or rolled back; other nodes need not wait for
        // this one.
        let leaving = async {
            for job in [cleanup::JOB, reprice::JOB, days::JOB] {
                let _ = self.0.parts.node.store.leave_job(job, &self.0.name, None).await;
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(1), leaving).await;
    }

    /// The present.
    async fn now(&self) -> Result<Timestamp, StoreError> {
        let parts = &self.0.parts;
        let own = parts.node.clock.now();
        if parts.by_server { parts.node.store.shared_time(own).await } else { Ok(own) }
    }

    async fn cleaning(&self) {
        loop {
            tokio::select! {
                () = self.0.clean.notified() => self.clean_as_asked().await,
                () = tokio::time::sleep(TICK) => self.clean_if_due().await,
            }
        }
    }

    async fn summing(&self) {
        loop {
            if let Err(error) = self.sum_days().await {
                tracing::warn!(%error, "days could not be summed; the next look tries again");
            }
            tokio::time::sleep(TICK).await;
        }
    }

    async fn pricing(&self) {
        let mut looks = 0_u32;
        loop {
            let priced = match looks % PARTS {
                0 => self.reprice().await,
                _ => self.reprice_requests().await,
            };
            if let Err(error) = priced {
                tracing::warn!(%error, "requests without a price could not be priced; the next \
                    look tries again");
                looks = PARTS - 1;
            }
            tokio::select! {
                () = self.0.price.notified() => looks = 0,
                () = tokio::time::sleep(TICK) => looks = looks.wrapping_add(1),
            }
        }
    }
}
