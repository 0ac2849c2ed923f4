//! Work on the stored data that no request waits for: old log entries are removed, requests are
//! priced whose price came late, and days that are over are summed.
//!
//! One node at a time does each, by a job in the database ([`crate::store::Job`]); all go in small
//! batches and pause for as long as they worked, so that the ledger's writer gets its turn. What is
//! stored is the only state: a node that stops, or dies, leaves nothing undone that the next look
//! does not find.

mod cleanup;
mod days;
mod reprice;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chrono_tz::Tz;
use tokio::sync::Notify;

pub use cleanup::{Cleanup, CleanupReport};

use crate::domain::clock::Clock;
use crate::limits::Counters;
use crate::store::Store;
use crate::telemetry::Metrics;

/// How often the schedule is looked at, and whether something awaits a price.
const TICK: Duration = Duration::from_secs(20);
/// How long a job is treated as; it is taken again with every batch.
const HOLD_MS: i64 = 60_000;

/// What the work needs.
pub struct JobParts {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub counters: Counters,
    pub metrics: Arc<Metrics>,
    pub time_zone: Tz,
}

/// A handle on the work; clones are the same.
#[derive(Clone)]
pub struct Jobs(Arc<Shared>);

struct Shared {
    parts: JobParts,
    /// This process, for the jobs' table.
    node: String,
    clean: Notify,
    price: Notify,
}

impl Jobs {
    #[must_use]
    pub fn new(parts: JobParts) -> Self {
        let node = uuid::Uuid::new_v4().to_string();
        Self(Arc::new(Shared { parts, node, clean: Notify::new(), price: Notify::new() }))
    }

    /// Works until `shutdown` resolves.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        tokio::select! {
            () = shutdown => {}
            () = self.cleaning() => {}
            () = self.pricing() => {}
            () = self.summing() => {}
        }
        // What was in progress is undone or done; nobody needs to wait for this node.
        for job in [cleanup::JOB, reprice::JOB, days::JOB] {
            let leaving = self.0.parts.store.leave_job(job, &self.0.node, None);
            let _ = tokio::time::timeout(Duration::from_secs(1), leaving).await;
        }
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
        loop {
            if let Err(error) = self.reprice().await {
                tracing::warn!(%error, "requests without a price could not be priced; the next look tries again");
            }
            tokio::select! {
                () = self.0.price.notified() => {}
                () = tokio::time::sleep(TICK) => {}
            }
        }
    }
}
