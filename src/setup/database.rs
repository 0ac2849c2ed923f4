//! Opens the database and prepares it: migrations, prices, error rules, the form of stored
//! credentials.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use super::{seed, unfinished_restore};
use crate::config::{Config, DatabaseTarget};
use crate::domain::clock::Clock;
use crate::policy::builtin_rules::BUILTIN_RULES;
use crate::state::builtin;
use crate::store::Store;

/// Opens the database that the configuration names.
pub(crate) async fn store(config: &Config) -> anyhow::Result<Store> {
    unfinished_restore::refuse(&config.data_dir)?;
    match config.database_target() {
        DatabaseTarget::Sqlite { dir } => {
            Store::open_sqlite(dir).await.context("opening the embedded database")
        }
        DatabaseTarget::Postgres(url) => {
            let opened = Store::open_postgres(url, config.database.max_connections).await;
            with_replica(config, opened.context("connecting to PostgreSQL")?)
        }
    }
}

/// Whether the first start has made the database. Opening an embedded one would make it.
///
/// # Errors
/// When the data directory cannot be looked into, or a restore of it is not finished.
pub(crate) fn exists(config: &Config) -> anyhow::Result<bool> {
    unfinished_restore::refuse(&config.data_dir)?;
    match config.database_target() {
        DatabaseTarget::Postgres(_) => Ok(true),
        DatabaseTarget::Sqlite { dir } => exists_in(dir),
    }
}

/// For commands that work on what is stored: opening an embedded database would make an empty one.
///
/// # Errors
/// There is none, or as [`exists`].
pub(crate) fn ensure_exists(config: &Config) -> anyhow::Result<()> {
    anyhow::ensure!(
        exists(config)?,
        "there is no database in {} (data_dir): `tollgate migrate` makes one",
        config.data_dir.display()
    );
    Ok(())
}

/// As [`exists`], of an embedded one in this directory.
///
/// # Errors
/// As [`exists`].
pub(crate) fn exists_in(dir: &Path) -> anyhow::Result<bool> {
    Store::exists(dir).with_context(|| {
        format!("looking into {}: run this as the user of the gateway", dir.display())
    })
}

/// Reports do not read from a replica that is further behind.
const LARGEST_LAG: Duration = Duration::from_secs(30);

/// The store with the configured replica, if there is one. It is used once it was checked.
pub(crate) fn with_replica(config: &Config, store: Store) -> anyhow::Result<Store> {
    match &config.database.read_url {
        Some(url) => store
            .with_replica(url, config.database.max_connections, LARGEST_LAG)
            .context("database.read_url"),
        None => Ok(store),
    }
}

/// Migrates the database, and adds prices and error rules that it lacks.
///
/// # Errors
/// The step that fails. A database that is newer or half migrated is refused, unchanged.
pub(crate) async fn prepare(
    config: &Config,
    store: &Store,
    clock: &dyn Clock,
) -> anyhow::Result<()> {
    for name in store.migrate().await.context("migrating the database")? {
        tracing::info!(name, "migrated the database");
    }
    store.check_schema().await.context("the database")?;
    let seeded =
        seed::prices(config, store, clock.now()).await.context("loading the seed price table")?;
    if seeded > 0 {
        tracing::info!(models = seeded, "loaded the seed price table");
    }
    let rules = builtin::install(store, BUILTIN_RULES, clock.now())
        .await
        .context("loading the built-in error rules")?;
    if rules > 0 {
        tracing::info!(rules, "loaded built-in error rules");
    }
    Ok(())
}
