//! Writes the snapshot while the database can be reached: the configuration when it changed, and
//! what was spent about once a minute.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::app::drain::stopped;
use crate::domain::clock::Timestamp;
use crate::state::Node;
use crate::state::saved::{self, Saved, SavedFile};
use crate::store::{SpendLook, SpendSeen, StoreError};

/// How often the configuration's version is compared, in memory.
const LOOK: Duration = Duration::from_millis(200);
/// Least time between two writes of the configuration.
const PAUSE: Duration = Duration::from_secs(5);
/// An unchanged configuration is written again after this time: the file's age is the time since
/// it was last equal to the database's.
const AGAIN: Duration = Duration::from_secs(600);
/// Time between two writes of what was spent, and between two that sum all of it; or this many
/// times as long as one took, so that it is not a load on the database.
const SPENDING: Duration = Duration::from_secs(60);
const ALL_SPENDING: Duration = Duration::from_secs(3600);
const SHARE: u32 = 100;
/// A write between these sums the requests that began since the one before, or shortly earlier.
const LATE_MS: i64 = 15 * MINUTE_MS;
const MINUTE_MS: i64 = 60_000;
/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(30);
/// Bound of a write: a connection may have failed silently.
const BOUND: Duration = Duration::from_secs(300);
/// Bound of the last write, at a stop.
const LAST: Duration = Duration::from_secs(5);

/// The task that writes the snapshot.
pub(in crate::app) struct Saver {
    pub dir: PathBuf,
    pub node: Arc<Node>,
}

/// When what was spent is written next, and when all of it is summed again.
struct Spending {
    due: Instant,
    all_due: Instant,
}

/// The last write, once the journal is delivered: the next start then knows everything. `task`
/// writes no more then.
pub(in crate::app) async fn at_stop(saver: Option<Saver>, task: Option<JoinHandle<()>>) {
    let (Some(saver), Some(mut task)) = (saver, task) else { return };
    // An aborted task gives its connection back: closing the store waits for that.
    if saver.is_database_away() {
        return task.abort();
    }
    if tokio::time::timeout(LAST, &mut task).await.is_err() {
        task.abort();
        return saver.failed(&anyhow::anyhow!("the database does not answer"));
    }
    let all = async {
        saver.configuration().await?;
        saver.spending(false).await
    };
    match tokio::time::timeout(LAST, all).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => saver.failed(&error),
        Err(_) => saver.failed(&anyhow::anyhow!("the database does not answer")),
    }
}

async fn bounded(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let late = |_| Err(anyhow::anyhow!("the database does not answer"));
    tokio::time::timeout(BOUND, work).await.unwrap_or_else(late)
}

impl Saver {
    /// Runs until `stop` is set.
    pub(in crate::app) async fn run(self, stop: watch::Receiver<bool>) {
        let mut stop = std::pin::pin!(stopped(stop));
        // Of the last write: the configuration's version and the keys; and when the next is due.
        let mut written = None;
        let mut spending = Spending { due: Instant::now(), all_due: Instant::now() };
        let (mut changed, mut again) = (Instant::now(), Instant::now());
        let mut failing = false;
        loop {
            tokio::select! {
                () = &mut stop => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            if self.is_database_away() {
                continue;
            }
            let now = Instant::now();
            let present =
                Some((self.node.state.peek().version, self.node.state.vault().ring().ids()));
            let mut done = Ok(());
            if now >= again || (present != written && now >= changed) {
                done = bounded(self.configuration()).await;
                (changed, again) = (now + PAUSE, now + AGAIN);
                if done.is_ok() {
                    written = present;
                }
            }
            if done.is_ok() && now >= spending.due {
                done = bounded(self.spending_due(&mut spending)).await;
            }
            match done {
                Ok(()) if failing => {
                    tracing::info!("the snapshot of the database can be written again");
                    failing = false;
                }
                Ok(()) => {}
                Err(error) => {
                    // A database that is lost right now is reported by its own watch.
                    let is_lost = matches!(
                        error.downcast_ref::<StoreError>(),
                        Some(StoreError::Unreachable { .. })
                    );
                    if !is_lost && std::mem::replace(&mut failing, true) {
                        self.node.metrics.node.snapshot_failed();
                    } else if !is_lost {
                        self.failed(&error);
                    }
                    (changed, spending.due) = (now + RETRY, now + RETRY);
                    again = again.min(now + RETRY);
                }
            }
        }
    }

    fn is_database_away(&self) -> bool {
        self.node.store.is_held() || self.node.conditions.database().is_some()
    }

    async fn configuration(&self) -> anyhow::Result<()> {
        let taken_at = self.node.clock.now();
        let former = self.node.state.snapshot();
        let content = self.node.store.load_all_after(&former.prices).await?;
        self.write(SavedFile::Configuration, Saved { taken_at, content }).await?;
        self.node.metrics.node.snapshot_saved(taken_at);
        Ok(())
    }

    async fn spending_due(&self, next: &mut Spending) -> anyhow::Result<()> {
        let (began, all) = (Instant::now(), Instant::now() >= next.all_due);
        self.spending(all).await?;
        let pause = |least: Duration| Instant::now() + least.max(began.elapsed() * SHARE);
        next.due = pause(SPENDING);
        if all {
            next.all_due = pause(ALL_SPENDING);
        }
        Ok(())
    }

    async fn spending(&self, all: bool) -> anyhow::Result<()> {
        let taken_at = self.node.clock.now();
        let last = if all { None } else { self.last_spending().await };
        let content = match last {
            Some(last) => self.added(last, taken_at).await?,
            None => self.node.counters.past(&self.node.store, taken_at).await?,
        };
        self.write(SavedFile::Spending, Saved { taken_at, content }).await
    }

    /// The sums of the last write, with what the ledger has of the time since.
    async fn added(
        &self,
        last: Saved<SpendSeen>,
        taken_at: Timestamp,
    ) -> anyhow::Result<SpendSeen> {
        let since = (last.taken_at.0 - LATE_MS).div_euclid(MINUTE_MS) * MINUTE_MS;
        let since = Timestamp(since);
        let look = SpendLook { stretches: Vec::new(), recent: since, ended_since: None };
        let SpendSeen { rows: fresh, totals, ended, opening, late } =
            self.node.store.spend_seen(&look).await?;
        let oldest = self.node.counters.rebuild_from(taken_at);
        let mut rows = last.content.rows;
        rows.retain(|row| row.minute >= oldest && row.minute < since);
        rows.extend(fresh);
        Ok(SpendSeen { rows, totals, ended, opening, late })
    }

    /// `None`: all is to be summed.
    async fn last_spending(&self) -> Option<Saved<SpendSeen>> {
        let (dir, state) = (self.dir.clone(), Arc::clone(&self.node.state));
        let read = move || saved::read(&dir, SavedFile::Spending, state.vault(), Timestamp(0));
        tokio::task::spawn_blocking(read).await.ok()?.ok()?
    }

    async fn write<T>(&self, part: SavedFile, saved: Saved<T>) -> anyhow::Result<()>
    where
        T: serde::Serialize + Send + 'static,
    {
        let (dir, state) = (self.dir.clone(), Arc::clone(&self.node.state));
        let writing = move || saved::write(&dir, part, state.vault(), &saved);
        tokio::task::spawn_blocking(writing).await?.context(part.name())
    }

    fn failed(&self, error: &anyhow::Error) {
        self.node.metrics.node.snapshot_failed();
        tracing::error!(
            error = format!("{error:#}"),
            "the snapshot of the database cannot be written: a start without the database would \
             use an older one, or none"
        );
    }
}
