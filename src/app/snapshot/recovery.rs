//! After a start without the database: waits for it, prepares it as a start does, and lets all
//! tasks use it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::watch;

use super::start::Started;
use crate::app::drain::stopped;
use crate::config::Config;
use crate::setup::database;
use crate::state::Node;
use crate::store::{LateCosts, Store, StoreError};

/// Pause between two attempts.
const INTERVAL: Duration = Duration::from_secs(1);

/// The task that ends the service with a snapshot.
pub(in crate::app) struct Recovery {
    pub config: Config,
    /// Its store is held until the database is prepared.
    pub node: Arc<Node>,
    pub started: Started,
}

impl Recovery {
    /// Runs until the database is in use, or `stop` is set.
    pub(in crate::app) async fn run(self, stop: watch::Receiver<bool>) {
        let mut stop = std::pin::pin!(stopped(stop));
        let mut reported = None;
        loop {
            tokio::select! {
                () = &mut stop => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
            let attempt = tokio::select! {
                () = &mut stop => return,
                attempt = self.attempt() => attempt,
            };
            match attempt {
                Ok(true) => return,
                Ok(false) => self.report_change(&mut reported, None),
                Err(error) if is_away(&error) => self.report_change(&mut reported, None),
                Err(error) => self.report_change(&mut reported, Some(format!("{error:#}"))),
            }
        }
    }

    /// Whether the database is in use. An error is one that only an operator can remove.
    async fn attempt(&self) -> anyhow::Result<bool> {
        let store = self.node.store.beneath_hold();
        if self.node.store.is_held() {
            if store.ping().await.is_err() {
                return Ok(false);
            }
            // A start would set it up as a new one, and no key would be known any more.
            anyhow::ensure!(
                store.schema_version().await? > 0,
                "it is empty, so it is not the database of the snapshot: restore its data. To \
                 begin with an empty database, restart this process"
            );
            database::prepare(&self.config, &store, &*self.node.clock).await?;
            self.correct(&store).await.context("reading the ledger")?;
            // From here on the journal is delivered.
            self.node.store.release();
        }
        self.node.state.publish().await?;
        self.node.conditions.off_snapshot();
        self.node.metrics.node.on_snapshot(false);
        tracing::info!("the database is in use: the service with the snapshot has ended");
        Ok(true)
    }

    /// Counters in Redis are corrected by their connection task.
    async fn correct(&self, store: &Store) -> anyhow::Result<()> {
        if self.node.counters.shared_state().is_none() {
            let now = self.node.clock.now();
            let rows = self.started.known.difference(store, &self.node.counters, now).await?;
            self.node.counters.spent_late(&LateCosts::own(rows), now);
        }
        Ok(())
    }

    fn report_change(&self, reported: &mut Option<String>, why: Option<String>) {
        if *reported == why {
            return;
        }
        if let Some(error) = &why {
            tracing::error!(
                error,
                "the database answers and cannot be used: going on with the snapshot"
            );
        }
        self.report(why.as_deref());
        *reported = why;
    }

    /// Reports the service with the snapshot, and why the database cannot be used.
    pub(in crate::app) fn report(&self, why: Option<&str>) {
        let mut text = format!(
            "the database could not be reached at the start: this node serves with the snapshot \
             of {}",
            self.started.taken_at.to_iso()
        );
        if let Some(why) = why {
            text.push_str(&format!("; it answers now and cannot be used: {why}"));
        }
        self.node.conditions.on_snapshot(text, self.node.clock.now());
        self.node.metrics.node.on_snapshot(true);
    }
}

/// Whether the database was lost again meanwhile.
fn is_away(error: &anyhow::Error) -> bool {
    let lost = |error: &StoreError| {
        matches!(error, StoreError::Unreachable { .. } | StoreError::Busy { .. })
    };
    error.chain().any(|cause| cause.downcast_ref::<StoreError>().is_some_and(lost))
}
