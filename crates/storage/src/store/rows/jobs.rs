//! Jobs that one node at a time does for all: the holder, the due time that was served last, and
//! its report.
//!
//! A node holds a job for a limited time, and renews the hold by taking the job again; if the node
//! dies, the job is free when the time is over. Two nodes whose clocks differ may overlap: a job
//! must be safe to run twice.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::domain::clock::Timestamp;
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;

/// The state of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job<R> {
    /// The node that has it, until `held_until`.
    pub holder: String,
    /// When the hold ends, unless it is renewed; zero if the job was released.
    pub held_until: Timestamp,
    /// The due time that was served last; zero if none was.
    pub done_for: Timestamp,
    /// The report of the current or the last run; the default before the first.
    pub report: R,
}

impl<R> Job<R> {
    /// Whether a node holds the job. Nodes hold it for `hold_ms`: a hold that ends much later is
    /// from a clock that was ahead.
    #[must_use]
    pub fn is_held(&self, now: Timestamp, hold_ms: i64) -> bool {
        now < self.held_until && self.held_until <= now.plus_ms(hold_ms.saturating_mul(2))
    }
}

impl Store {
    /// Takes a job until `until`, or keeps it; `false` if another node has it. As [`Job::is_held`],
    /// a hold that ends much later than `until` counts as over.
    pub async fn take_job(
        &self,
        name: &str,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut values = Values::default();
        values.text(name).text(holder).time(until).time(now);
        values.time(until.plus_ms(until.since(now)));
        let sql = "INSERT INTO jobs (name, holder, held_until, done_for, report) \
                   VALUES ($1, $2, $3, 0, 'null') ON CONFLICT (name) DO UPDATE \
                   SET holder = excluded.holder, held_until = excluded.held_until \
                   WHERE jobs.held_until <= $4 OR jobs.holder = excluded.holder \
                   OR jobs.held_until > $5";
        let done = sqlx::query_with(sql, values.into_arguments())
            .execute(&mut *self.writer().await?)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    /// Stores the job's report.
    pub async fn report_job<R: Serialize + Sync>(
        &self,
        name: &str,
        report: &R,
    ) -> Result<(), StoreError> {
        let mut values = Values::default();
        values.json(report).text(name);
        let sql = "UPDATE jobs SET report = $1 WHERE name = $2";
        sqlx::query_with(sql, values.into_arguments()).execute(&mut *self.writer().await?).await?;
        Ok(())
    }

    /// Releases a job that `holder` has; `done_for` is the due time that was served, if one was.
    pub async fn leave_job(
        &self,
        name: &str,
        holder: &str,
        done_for: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let mut values = Values::default();
        values.opt_time(done_for).text(name).text(holder);
        let sql = "UPDATE jobs SET held_until = 0, done_for = COALESCE($1, done_for) \
                   WHERE name = $2 AND holder = $3";
        sqlx::query_with(sql, values.into_arguments()).execute(&mut *self.writer().await?).await?;
        Ok(())
    }

    /// The state of a job; `None` if it was never taken.
    pub async fn job<R: DeserializeOwned + Default>(
        &self,
        name: &str,
    ) -> Result<Option<Job<R>>, StoreError> {
        let mut values = Values::default();
        values.text(name);
        let sql = "SELECT holder, held_until, done_for, report FROM jobs WHERE name = $1";
        let query = sqlx::query_with(sql, values.into_arguments());
        let Some(row) = query.fetch_optional(&mut *self.reader().await?).await? else {
            return Ok(None);
        };
        let fields = Fields { row: &row, table: "jobs" };
        Ok(Some(Job {
            holder: fields.text("holder")?,
            held_until: fields.time("held_until")?,
            done_for: fields.time("done_for")?,
            report: fields.json::<Option<R>>("report")?.unwrap_or_default(),
        }))
    }

    /// Claims the sending of a message until it is due again; `false` if a node has claimed it
    /// already. As [`Store::take_job`], a claim that ends much later than `until` counts as over.
    pub async fn claim_notice(
        &self,
        name: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut values = Values::default();
        values.text(name).time(until).time(now).time(until.plus_ms(until.since(now)));
        let sql = "INSERT INTO sent_notices (name, expires_at) VALUES ($1, $2) \
                   ON CONFLICT (name) DO UPDATE SET expires_at = excluded.expires_at \
                   WHERE sent_notices.expires_at <= $3 OR sent_notices.expires_at > $4";
        let done = sqlx::query_with(sql, values.into_arguments())
            .execute(&mut *self.writer().await?)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    /// Removes expired claims; returns their number.
    pub async fn prune_notices(&self, now: Timestamp) -> Result<u64, StoreError> {
        let mut values = Values::default();
        values.time(now);
        let sql = "DELETE FROM sent_notices WHERE expires_at <= $1";
        let done = sqlx::query_with(sql, values.into_arguments())
            .execute(&mut *self.writer().await?)
            .await?;
        Ok(done.rows_affected())
    }
}
