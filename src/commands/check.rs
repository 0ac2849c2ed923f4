//! `tollgate check` and `tollgate migrate`: run the parts of a start that can fail, without
//! serving.

use anyhow::Context;

use super::runtime::runtime;
use crate::config::Config;
use crate::limits;
use crate::setup::{certificates, database, file_modes, secrets, validity, warnings as found};
use crate::state::{Events, State};

/// Tests the certificates, Redis, the data directory, the database with its schema, and the
/// upstream credentials.
/// Changes nothing. Returns warnings: what is not an error but worth knowing.
pub fn check(config: &Config) -> anyhow::Result<Vec<String>> {
    certificates::usable(config)?;
    runtime()?.block_on(async {
        if let Some(redis) = &config.redis {
            let examined = limits::examine(&redis.server()?, &redis.prefix).await;
            examined.map_err(|error| anyhow::anyhow!("Redis (redis.url): {error}"))?;
        }
        if let Some(fault) = file_modes::not_writable(&config.data_dir) {
            anyhow::bail!("a start would fail: {fault}");
        }
        if config.auth.admin_token.is_none() {
            secrets::kept_admin_token(config)?;
        }
        let mut warnings = file_modes::warnings(config);
        warnings.extend(validity::warnings(config));
        if !database::exists(config)? {
            return Ok(warnings);
        }
        let store = database::store(config).await?;
        if store.schema_version().await.context("the database")? == 0 {
            warnings.push("the database is empty: the first start migrates it".to_owned());
            return Ok(warnings);
        }
        store
            .check_schema()
            .await
            .context("the database (tollgate migrate brings it up to date)")?;
        let (stored, _) = store.sealed_texts().await?;
        secrets::not_lost(config, &stored)?;
        let vault = match secrets::kept_vault(config)? {
            Some(vault) => vault,
            None => secrets::fleeting_vault()?,
        };
        warnings.extend(super::rotate::check(&stored, &vault)?);
        let state = State::open(store, vault, Events::default()).await?;
        let snapshot = state.snapshot();
        warnings.extend(found::prices(&snapshot));
        warnings.extend(found::without_instructions(config, &snapshot));
        warnings
            .extend(snapshot.faults.iter().map(|fault| format!("{fault}; it gets no requests")));
        Ok(warnings)
    })
}

/// Brings the database's schema up to date; returns the names of the migrations that were applied.
///
/// # Errors
/// When the database cannot be reached, or is newer than this program.
pub fn migrate(config: &Config) -> anyhow::Result<Vec<String>> {
    runtime()?.block_on(async {
        secrets::data_dir(config)?;
        let store = database::store(config).await?;
        store.migrate().await.context("migrating the database")
    })
}
