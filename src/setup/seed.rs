//! The price table of a new gateway: read from a file once, if the database has no prices at all.

use anyhow::Context;

use crate::config::{BUILT_IN_PRICES, Config};
use crate::domain::clock::Timestamp;
use crate::domain::price::{Price, PriceSource};
use crate::policy::cost;
use crate::store::{Store, Tx};

/// Loads the seed prices into an empty table. Returns how many were loaded.
///
/// # Errors
/// When the file cannot be read or is not a JSON object, or the store fails. An invalid entry is
/// logged and left out.
pub(crate) async fn prices(
    config: &Config,
    store: &Store,
    now: Timestamp,
) -> anyhow::Result<usize> {
    let mut tx = store.begin().await?;
    let loaded = prices_into(config, &mut tx, now).await?;
    if loaded > 0 {
        tx.commit().await?;
    }
    Ok(loaded)
}

/// The same within a transaction, which the caller commits.
///
/// # Errors
/// As [`prices`].
pub(crate) async fn prices_into(
    config: &Config,
    tx: &mut Tx,
    now: Timestamp,
) -> anyhow::Result<usize> {
    if !tx.prices().await?.is_empty() {
        return Ok(0);
    }
    let text = match &config.prices.seed_file {
        Some(path) => std::fs::read_to_string(path)
            .with_context(|| format!("prices.seed_file {}", path.display()))?,
        None => BUILT_IN_PRICES.to_owned(),
    };
    let table: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&text).context("the seed price table is not a JSON object")?;
    let mut prices = Vec::with_capacity(table.len());
    for (model, data) in table {
        match cost::rates_from_json(&data, cost::Belief::Usual) {
            Ok(rates) => prices.push(Price::new(model, PriceSource::Seed, &data, rates, now)),
            Err(e) => tracing::warn!(model, error = %e, "a seed price is left out"),
        }
    }
    tx.upsert_prices(&prices).await?;
    Ok(prices.len())
}
