//! Opens the journal of this process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use crate::config::Config;
use crate::domain::clock::Clock;
use crate::ledger::{Ledger, LedgerSettings};
use crate::store::Store;

/// How long the ledger's writer may take at a stop to write the remaining records to the database.
const DRAIN: Duration = Duration::from_secs(15);

/// The journal, after delivering what an earlier process left in it.
pub(crate) async fn delivered(
    config: &Config,
    clock: &Arc<dyn Clock>,
    store: &Store,
) -> anyhow::Result<Arc<Ledger>> {
    let ledger = open(config, clock)?;
    Arc::clone(&ledger).run(store.clone(), std::future::ready(())).await;
    Ok(ledger)
}

/// The journal of this process.
///
/// # Errors
/// When its directory cannot be created or locked.
pub(crate) fn open(config: &Config, clock: &Arc<dyn Clock>) -> anyhow::Result<Arc<Ledger>> {
    Ledger::open(&root(config), settings(config), Arc::clone(clock)).context("opening the journal")
}

/// The directory of the journals of all processes on this data directory.
pub(crate) fn root(config: &Config) -> PathBuf {
    config.data_dir.join("journal")
}

fn settings(config: &Config) -> LedgerSettings {
    let from = config.ledger;
    LedgerSettings {
        segment_bytes: from.segment_bytes,
        max_bytes: from.max_bytes,
        batch_rows: config.batch_rows(),
        flush_interval_ms: from.flush_interval_ms,
        sync_interval_ms: from.sync_interval_ms,
        drain_ms: u64::try_from(DRAIN.as_millis()).unwrap_or(u64::MAX),
    }
}
