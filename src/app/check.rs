//! `tollgate check` and `tollgate migrate`: the parts that can fail at a start, tried without serving.

use anyhow::Context;

use super::{counting, parts, secrets};
use crate::config::Config;
use crate::counters;
use crate::state::{Events, State};

/// Tries Redis, the data directory, the database with its schema, and the upstream credentials. Changes nothing.
///
/// # Errors
/// The first fault.
pub fn check(config: &Config) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        if let Some(redis) = &config.redis {
            counters::probe(&counting::server(redis)?).await.map_err(|e| anyhow::anyhow!("Redis (redis.url): {e}"))?;
        }
        if !config.data_dir.exists() {
            return Ok(());
        }
        let store = parts::store(config).await?;
        store.check_schema().await.context("the database (tollgate migrate brings it up to date)")?;
        let state = State::open(store, secrets::vault(config)?, Events::default()).await?;
        let faults = state.snapshot().faults.join("; ");
        anyhow::ensure!(faults.is_empty(), faults);
        Ok(())
    })
}

/// Brings the database's schema up to date; gives the names of the migrations that were applied.
///
/// # Errors
/// When the database cannot be reached, or is newer than this program.
pub fn migrate(config: &Config) -> anyhow::Result<Vec<String>> {
    runtime()?.block_on(async {
        secrets::data_dir(config)?;
        let store = parts::store(config).await?;
        store.migrate().await.context("migrating the database")
    })
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().context("starting the runtime")
}
