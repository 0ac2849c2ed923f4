//! The snapshot on disk: a gateway on PostgreSQL that cannot reach it at its start serves with what
//! it last read from there. docs/failures.md describes it for operators.
//!
//! ```text
//! database reachable   saver ──► snapshot.configuration, snapshot.spending
//! start without it     start ──► state, counters; the store is held: every call on it fails
//! database is back     recovery: migrate, check, correct the counters, release the store
//! ```
//!
//! While the store is held, all tasks do what they do when the database is away in operation: the
//! journal keeps records, the administration answers 503. So there is no second mode of serving.
//!
//! See docs/decisions/33-start-without-database.md.

mod recovery;
mod saver;
mod spending;
mod start;

pub(super) use recovery::Recovery;
pub(super) use saver::{Saver, at_stop};
pub(super) use start::{Started, begin};

use crate::config::{Config, DatabaseTarget};
use crate::crypto::vault::Vault;
use crate::state::{Conditions, saved};
use crate::telemetry::{PartState, Readiness};

/// Whether snapshots are written and used. The file with the secret key is in the data directory,
/// where the snapshot is: encrypting with it would protect nothing.
pub(super) fn is_on(config: &Config, vault: &Vault) -> bool {
    matches!(config.database_target(), DatabaseTarget::Postgres(_))
        && config.database.snapshot
        && !vault.has_file()
}

/// Reports why there is no snapshot, and removes files of an earlier start.
pub(super) fn switched_off(config: &Config) {
    if matches!(config.database_target(), DatabaseTarget::Sqlite { .. }) {
        return;
    }
    if config.database.snapshot {
        tracing::info!(
            "no snapshot of the database is kept for a start without it: that needs a secret key \
             of your own (TOLLGATE_SECRET_KEY), because the key in the data directory would be \
             beside what it encrypts"
        );
    }
    if let Err(error) = saved::remove(&config.data_dir) {
        tracing::warn!(%error, "an old snapshot of the database cannot be removed");
    }
}

/// The snapshot in `/readyz`: named for as long as the node serves with it.
pub(super) fn readiness(conditions: &Conditions, readiness: Readiness) -> Readiness {
    let state: PartState = conditions.snapshot().map_or(Ok(()), |fault| Err(fault.text.clone()));
    readiness.with_optional("database_snapshot", state)
}
