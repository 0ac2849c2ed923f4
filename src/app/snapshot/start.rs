//! The first steps of a start that need the database: with it, or with its snapshot.

use std::sync::Arc;

use anyhow::Context as _;

use super::is_on;
use super::spending::Known;
use crate::config::{Config, DatabaseTarget};
use crate::crypto::vault::Vault;
use crate::domain::clock::{Clock, Timestamp};
use crate::limits::Counters;
use crate::setup::{database, journal, secrets, unfinished_restore};
use crate::state::saved::{self, Saved, SavedFile};
use crate::state::{Events, State};
use crate::store::{Everything, SpendRow, SpendSeen, Store, StoreError};

/// A start without the database.
pub(in crate::app) struct Started {
    /// When the snapshot was read from the database.
    pub(super) taken_at: Timestamp,
    /// Past spending, once [`Started::count`] has read it.
    pub(super) known: Known,
    /// What is still to be read: the journals, for which the counters must exist.
    unread: SpendSeen,
}

/// Opens the database, migrates it and loads the configuration; if the server is away, loads the
/// snapshot instead, and holds the store.
///
/// # Errors
/// The step that fails. The error of a server that is away says too why the snapshot cannot be
/// used, if there is one.
pub(in crate::app) async fn begin(
    config: &Config,
    clock: &dyn Clock,
    upgrade: bool,
    events: &Events,
) -> anyhow::Result<(Store, Arc<State>, Option<Started>)> {
    let (store, away) = find(config).await?;
    if let Some(away) = away {
        let connecting = || "connecting to PostgreSQL";
        let Some(vault) = secrets::kept_vault(config)? else {
            return Err(away).with_context(connecting);
        };
        let (everything, started) =
            from_disk(config, &vault, clock.now(), away).await.with_context(connecting)?;
        store.hold();
        let state = State::of(store.clone(), vault, events.clone(), everything, started.taken_at)?;
        return Ok((store, state, Some(started)));
    }
    database::prepare(config, &store, clock).await?;
    let vault = secrets::vault(config, &store.sealed_texts().await?.0)?;
    if !upgrade && let Err(error) = saved::remove_unfinished(&config.data_dir) {
        tracing::warn!(%error, "what an interrupted write left cannot be removed");
    }
    let state = State::open(store.clone(), vault, events.clone()).await?;
    Ok((store, state, None))
}

/// The database; with the reason if it is a server that is away.
async fn find(config: &Config) -> anyhow::Result<(Store, Option<StoreError>)> {
    match config.database_target() {
        DatabaseTarget::Sqlite { .. } => Ok((database::store(config).await?, None)),
        DatabaseTarget::Postgres(url) => {
            unfinished_restore::refuse(&config.data_dir)?;
            let found = Store::find_postgres(url, config.database.max_connections);
            let (store, away) = found.await.context("connecting to PostgreSQL")?;
            Ok((database::with_replica(config, store)?, away))
        }
    }
}

/// Reads the snapshot. `away` is the error if there is none.
async fn from_disk(
    config: &Config,
    vault: &Vault,
    now: Timestamp,
    away: StoreError,
) -> anyhow::Result<(Everything, Started)> {
    if !is_on(config, vault) {
        return Err(away.into());
    }
    let oldest = now.plus_ms(-i64::try_from(config.database.snapshot_max_age_ms).unwrap_or(0));
    let unusable = |part: SavedFile, why: String| {
        anyhow::anyhow!("{away}. The snapshot cannot be used: {} {why}", part.name())
    };
    let dir = &config.data_dir;
    let configuration: Option<Saved<Everything>> =
        saved::read(dir, SavedFile::Configuration, vault, oldest)
            .map_err(|error| unusable(SavedFile::Configuration, error.to_string()))?;
    let Some(configuration) = configuration else { return Err(away.into()) };
    let spending: Saved<SpendSeen> = saved::read(dir, SavedFile::Spending, vault, oldest)
        .map_err(|error| unusable(SavedFile::Spending, error.to_string()))?
        .ok_or_else(|| unusable(SavedFile::Spending, "is missing".to_owned()))?;
    let taken_at = configuration.taken_at;
    tracing::error!(
        error = %away, snapshot = taken_at.to_iso(), spending = spending.taken_at.to_iso(),
        version = configuration.content.version,
        "the database cannot be reached: starting with the snapshot of its configuration. \
         Requests are served, the journal keeps their records, and nothing can be changed. Restore \
         the database: this process then goes on with it"
    );
    let started = Started { taken_at, known: Known::default(), unread: spending.content };
    Ok((configuration.content, started))
}

impl Started {
    /// Counts past spending, as far as it is known here; returns the opening balances in it.
    pub(in crate::app) async fn count(
        &mut self,
        counters: &Counters,
        config: &Config,
        now: Timestamp,
    ) -> anyhow::Result<Vec<SpendRow>> {
        let (seen, journals) = (std::mem::take(&mut self.unread), journal::root(config));
        let recent_from = counters.replay_from(now);
        let read =
            tokio::task::spawn_blocking(move || Known::read(seen, &journals, recent_from)).await;
        self.known = read?.context("reading the journals")?;
        self.known.load(counters, now);
        Ok(self.known.opening().to_vec())
    }
}
