//! Sums the days that are over, newest first: charts and the usage log's totals read them instead
//! of hours.
//!
//! A day is summed some time after its end, so that requests that ended after it are included.
//! Anything that arrives or is priced later removes the day again (`store/ledger/days.rs`), and the
//! next check finds it. No progress is stored: the missing days are the calendar's without those in
//! the database. After an upgrade that is a year of days; figures are correct meanwhile, though
//! slower.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::{HOLD_MS, Jobs};
use crate::domain::clock::Timestamp;
use crate::domain::limits::DailyReset;
use crate::policy::window::Window;
use crate::store::{StoreError, SummedDay};

pub(super) const JOB: &str = "sum_days";
/// How long a day must be over before it is summed.
const SETTLED_MS: i64 = 10 * 60_000;

impl Jobs {
    /// Sums every day that is due and not summed yet; returns their number.
    ///
    /// # Errors
    /// [`StoreError`]; days that were summed before it stay summed.
    pub async fn sum_days(&self) -> Result<u64, StoreError> {
        let parts = &self.0.parts;
        let mut summed = 0;
        let lacking = self.lacking().await?;
        for day in &lacking {
            let now = self.now().await?;
            if !parts.node.store.take_job(JOB, &self.0.name, now, now.plus_ms(HOLD_MS)).await? {
                return Ok(summed);
            }
            let began = Instant::now();
            parts.node.store.sum_day(*day).await?;
            summed += 1;
            tokio::time::sleep(began.elapsed()).await;
        }
        if summed > 0 {
            tracing::debug!(days = summed, "days were summed");
            parts.node.store.leave_job(JOB, &self.0.name, None).await?;
        }
        Ok(summed)
    }

    /// The days that are over and not summed, newest first.
    async fn lacking(&self) -> Result<Vec<SummedDay>, StoreError> {
        let parts = &self.0.parts;
        let Some(first) = parts.node.store.first_used().await? else { return Ok(Vec::new()) };
        let day = |at| Window::Daily(DailyReset::default()).calendar(at, parts.time_zone);
        // The day that is not over, or only just.
        let mut next = day(self.now().await?.plus_ms(-SETTLED_MS));
        let there = parts.node.store.summed_days(Timestamp(i64::MIN), Timestamp(i64::MAX)).await?;
        let there: BTreeSet<SummedDay> = there.into_iter().collect();
        let mut lacking = Vec::new();
        while next.start > first {
            next = day(next.start.plus_ms(-1));
            let day = SummedDay { from: next.start, until: next.end };
            if !there.contains(&day) {
                lacking.push(day);
            }
        }
        Ok(lacking)
    }
}
