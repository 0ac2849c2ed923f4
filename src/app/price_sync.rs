//! Fetches the price list each day (`prices.sync`): one node for all, beside the requests, which
//! never wait for it. What it does is [`sync::daily`].

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::admin::Context;
use crate::admin::actions::prices::sync::{self, JOB, SyncReport};
use crate::config::PriceUpdates;
use crate::domain::clock::Timestamp;
use crate::policy::window::DAY_MS;
use crate::store::StoreError;

/// How often it is checked whether a sync is due.
const TICK: Duration = Duration::from_secs(20);
/// How long a node holds the job: longer than a fetch may take.
const HOLD_MS: i64 = 120_000;
/// After a failure the next one is due earlier.
const RETRY_MS: i64 = 3_600_000;

pub(super) struct PriceSync {
    ctx: Arc<Context>,
    node: String,
}

impl PriceSync {
    pub(super) fn new(ctx: Arc<Context>) -> Self {
        Self { ctx, node: uuid::Uuid::new_v4().to_string() }
    }

    /// Runs until `shutdown` resolves. A sync in progress is dropped then: it changes the prices
    /// in one transaction.
    pub(super) async fn run(self, shutdown: impl Future<Output = ()>) {
        tokio::select! {
            () = shutdown => {}
            () = self.looking() => {}
        }
    }

    async fn looking(&self) {
        loop {
            if self.ctx.node.live.load().price_sync == PriceUpdates::Daily
                && let Err(error) = self.look().await
            {
                tracing::warn!(%error, "could not determine whether a price sync is due");
            }
            tokio::time::sleep(TICK).await;
        }
    }

    async fn look(&self) -> Result<(), StoreError> {
        let store = &self.ctx.node.store;
        let now = store.shared_time(self.ctx.node.clock.now()).await?;
        let job = store.job::<SyncReport>(JOB).await?;
        let served = job.as_ref().map_or(Timestamp(0), |job| job.done_for);
        let is_served = (now.plus_ms(1 - DAY_MS)..=now).contains(&served);
        if is_served || job.is_some_and(|job| job.is_held(now, HOLD_MS)) {
            return Ok(());
        }
        if !store.take_job(JOB, &self.node, now, now.plus_ms(HOLD_MS)).await? {
            return Ok(());
        }
        let report = sync::daily(&self.ctx, now).await;
        let served = if report.error.is_none() { now } else { now.plus_ms(RETRY_MS - DAY_MS) };
        store.report_job(JOB, &report).await?;
        store.leave_job(JOB, &self.node, Some(served)).await
    }
}
