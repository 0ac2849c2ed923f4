//! Removes request log entries that are older than the configured retention, once a day or on
//! request.
//!
//! The cutoff is computed when a run begins. If no node was up at the scheduled time, the run takes
//! place as soon as one is. The ledger and its sums stay: figures and limits do not change.

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{HOLD_MS, Jobs};
use crate::domain::clock::Timestamp;
use crate::domain::limits::{DailyReset, ResetMode};
use crate::domain::settings::SystemSettings;
use crate::policy::window::{DAY_MS, Window};
use crate::store::StoreError;

pub(super) const JOB: &str = "cleanup";
/// Rows of each table per statement: a few hundredths of a second on the embedded database.
const BATCH: u32 = 500;

/// The report of a run, during and after it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanupReport {
    /// When the run began; zero before the first run.
    pub started_at: Timestamp,
    /// `None`: not finished.
    pub finished_at: Option<Timestamp>,
    /// Entries older than this are removed.
    pub cutoff: Timestamp,
    /// Entries removed so far, in all batches.
    pub removed: u64,
    /// Why it ended early, if it did.
    pub error: Option<String>,
}

/// The state of the clean-up, on any node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleanup {
    /// Whether a node holds the job now.
    pub running: bool,
    /// The current or the last run; `None` before the first.
    pub report: Option<CleanupReport>,
}

impl Jobs {
    /// Reserves the job for a run that [`Self::start_cleanup`] starts, unless one is in progress.
    /// Returns whether it did.
    pub async fn take_cleanup(&self) -> Result<bool, StoreError> {
        let parts = &self.0.parts;
        let now = self.now().await?;
        let job = parts.node.store.job::<CleanupReport>(JOB).await?;
        let held = job.is_some_and(|job| job.is_held(now, HOLD_MS));
        if held || !parts.node.store.take_job(JOB, &self.0.name, now, now.plus_ms(HOLD_MS)).await? {
            return Ok(false);
        }
        let report = Self::begin(now, &parts.node.store.settings().await?);
        parts.node.store.report_job(JOB, &report).await?;
        Ok(true)
    }

    /// Starts the run for which the job is reserved.
    pub fn start_cleanup(&self) {
        self.0.clean.notify_one();
    }

    /// Releases the job without a run.
    pub async fn give_up_cleanup(&self) {
        if let Err(error) = self.0.parts.node.store.leave_job(JOB, &self.0.name, None).await {
            tracing::warn!(%error, "the job of the clean-up could not be released");
        }
    }

    /// The present state.
    pub async fn cleanup(&self) -> Result<Cleanup, StoreError> {
        let parts = &self.0.parts;
        let Some(job) = parts.node.store.job::<Option<CleanupReport>>(JOB).await? else {
            return Ok(Cleanup { running: false, report: None });
        };
        Ok(Cleanup { running: job.is_held(self.now().await?, HOLD_MS), report: job.report })
    }

    /// Runs if the settings enable it and today's time has passed.
    pub async fn clean_if_due(&self) {
        if let Err(error) = self.look().await {
            tracing::warn!(%error, "could not determine whether the request log is to be cleaned up");
        }
    }

    async fn look(&self) -> Result<(), StoreError> {
        let parts = &self.0.parts;
        let now = self.now().await?;
        let settings = parts.node.store.settings().await?;
        let daily = DailyReset { mode: ResetMode::Fixed, time: settings.cleanup_schedule };
        let due = Window::Daily(daily).start(now, parts.time_zone);
        let job = parts.node.store.job::<CleanupReport>(JOB).await?;
        let served = job.as_ref().map_or(Timestamp(0), |job| job.done_for);
        // A time ahead of the present was noted while a clock was ahead: it is none that was
        // served.
        if (due..=now).contains(&served) || job.is_some_and(|job| job.is_held(now, HOLD_MS)) {
            return Ok(());
        }
        if !parts.node.store.take_job(JOB, &self.0.name, now, now.plus_ms(HOLD_MS)).await? {
            return Ok(());
        }
        // Disabled, or the first check ever: missed runs are not made up for.
        if !settings.enable_auto_cleanup || served == Timestamp(0) {
            return parts.node.store.leave_job(JOB, &self.0.name, Some(due)).await;
        }
        self.clean(&settings, Some(due)).await
    }

    /// The run that [`Self::start_cleanup`] took the job for.
    pub(super) async fn clean_as_asked(&self) {
        let cleaned = async { self.clean(&self.0.parts.node.store.settings().await?, None).await };
        if let Err(error) = cleaned.await {
            tracing::warn!(%error, "the request log could not be cleaned up");
        }
    }

    fn begin(now: Timestamp, settings: &SystemSettings) -> CleanupReport {
        let cutoff = now.plus_ms(-DAY_MS * i64::from(settings.cleanup_retention_days));
        CleanupReport { started_at: now, cutoff, ..CleanupReport::default() }
    }

    async fn clean(
        &self,
        settings: &SystemSettings,
        due: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let parts = &self.0.parts;
        let mut report = Self::begin(self.now().await?, settings);
        let done = self.batches(&mut report).await;
        report.finished_at = Some(self.now().await.unwrap_or(report.started_at));
        report.error = done.as_ref().err().map(ToString::to_string);
        match &report.error {
            None => {
                tracing::info!(removed = report.removed, before = %report.cutoff.to_iso(), "the request log was cleaned up")
            }
            Some(error) => tracing::warn!(
                error,
                removed = report.removed,
                "cleaning up the request log ended early"
            ),
        }
        let reported = parts.node.store.report_job(JOB, &report).await;
        let served = due.filter(|_| done.is_ok());
        if let Err(error) =
            reported.and(parts.node.store.leave_job(JOB, &self.0.name, served).await)
        {
            tracing::warn!(%error, "the end of the request log's cleaning could not be noted");
        }
        Ok(())
    }

    async fn batches(&self, report: &mut CleanupReport) -> Result<(), StoreError> {
        let parts = &self.0.parts;
        parts.node.store.prune_notices(report.started_at).await?;
        loop {
            let now = self.now().await?;
            if !parts.node.store.take_job(JOB, &self.0.name, now, now.plus_ms(HOLD_MS)).await? {
                return Err(StoreError::Busy { what: "another node took over".to_owned() });
            }
            let began = Instant::now();
            let removed = parts.node.store.prune_requests(report.cutoff, BATCH).await?;
            if removed == 0 {
                return Ok(());
            }
            report.removed += removed;
            parts.node.metrics.jobs.pruned.inc_by(removed);
            parts.node.store.report_job(JOB, report).await?;
            tokio::time::sleep(began.elapsed()).await;
        }
    }
}
