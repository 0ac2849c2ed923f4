//! The use of each key of a user: a time range by model, all spending, and the latest request.
//!
//! A few statements for all keys together, whatever the number of keys and models. Each uses an
//! index that begins with the key: whole hours come from the hourly sums, the partial hours at both
//! ends (in zones that are not whole hours from UTC) from the ledger's rows. Nothing is read from
//! the request log, which may be pruned.

use std::collections::BTreeMap;

use sqlx::AnyConnection;

use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, UserId};
use crate::domain::money::NanoUsd;
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::ledger::sums::{HOUR_MS, hour_of};

/// One key's use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyStatistics {
    /// The key; one that is not deleted.
    pub key_id: KeyId,
    /// The use in the requested time range, most expensive model first.
    pub models: Vec<ModelStatistics>,
    /// Everything that the key has spent.
    pub total_cost: NanoUsd,
    /// The start of its latest request.
    pub last_used_at: Option<Timestamp>,
    /// The present name of the provider of that request; `None` if it reached none.
    pub last_provider: Option<String>,
}

/// The requests of one key for one model. Tokens are split as in [`crate::domain::usage::Usage`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelStatistics {
    /// The model that the client asked for.
    pub model: String,
    /// Requests of every outcome.
    pub requests: u64,
    /// Input that was neither read from nor written to a cache.
    pub input_tokens: u64,
    /// All output, including reasoning.
    pub output_tokens: u64,
    /// Input written to prompt caches of any lifetime.
    pub cache_write_tokens: u64,
    /// Input read from a prompt cache.
    pub cache_read_tokens: u64,
    /// Unpriced requests count as zero.
    pub cost: NanoUsd,
}

/// Of each key: all spending and the latest request. Sub-queries, which no planner turns into a
/// scan of the ledger. Latest time first, as SQLite would otherwise sort all rows of the key to
/// find the last by time and id; by order and not by `MAX`, as SQLite's ledger is a view.
pub(super) const KEYS: &str = "SELECT api_keys.id AS key_id, (SELECT COALESCE(CAST(SUM(cost) AS BIGINT), 0) \
                    FROM usage_totals WHERE user_id = api_keys.user_id \
                    AND key_id = api_keys.id) AS total_cost, (SELECT started_at FROM ledger \
                    WHERE key_id = api_keys.id ORDER BY started_at DESC LIMIT 1) AS last_used_at, \
                    (SELECT name FROM providers WHERE id = (SELECT provider_id FROM \
                    (SELECT provider_id, request_id FROM ledger WHERE key_id = api_keys.id \
                    AND started_at = (SELECT newest.started_at FROM ledger AS newest \
                    WHERE newest.key_id = api_keys.id ORDER BY newest.started_at DESC LIMIT 1) \
                    ORDER BY request_id DESC LIMIT 1) AS latest)) AS last_provider FROM api_keys \
                    WHERE user_id = $1 AND deleted_at IS NULL ORDER BY id";

/// Sums that the hourly sums and the ledger have in common. The condition is in a sub-query that
/// only selects: SQLite, whose ledger is a view, does not take it into an aggregate's parts.
macro_rules! by_model {
    ($requests:literal, $table:literal, $time:literal) => {
        concat!(
            "SELECT key_id, model, CAST(",
            $requests,
            " AS BIGINT) AS requests, CAST(SUM(input_tokens) AS BIGINT) AS input_tokens, \
             CAST(SUM(output_tokens) AS BIGINT) AS output_tokens, CAST(SUM(cache_write_5m_tokens + \
             cache_write_1h_tokens) AS BIGINT) AS cache_write_tokens, CAST(SUM(cache_read_tokens) \
             AS BIGINT) AS cache_read_tokens, COALESCE(CAST(SUM(cost) AS BIGINT), 0) AS cost FROM \
             (SELECT * FROM ",
            $table,
            " WHERE key_id IN (SELECT id FROM api_keys \
             WHERE user_id = $1 AND deleted_at IS NULL) AND ",
            $time,
            " >= $2 AND ",
            $time,
            " < $3) AS counted GROUP BY key_id, model"
        )
    };
}

const HOURS: &str = by_model!("SUM(requests)", "hourly_sums", "hour");
pub(super) const ROWS: &str = by_model!("COUNT(*)", "ledger", "started_at");

/// A statement and the time range that it covers.
struct TimedStatement {
    sql: &'static str,
    from: Timestamp,
    until: Timestamp,
}

/// The results so far, by key and model.
type Found = BTreeMap<(i64, String), ModelStatistics>;

impl Store {
    /// The use of each of the user's keys that are not deleted, oldest key first: by model for the
    /// requests that started from `from` to just before `until`, and in total. Everything as of one
    /// moment.
    pub async fn key_statistics(
        &self,
        user: UserId,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<KeyStatistics>, StoreError> {
        let mut tx = self.report().await?;
        let mut found = Found::new();
        for part in parts(from, until) {
            add_part(&mut tx, user, &part, &mut found).await?;
        }
        let mut keys = keys_of(&mut tx, user).await?;
        tx.commit().await?;
        for ((key, _), model) in found {
            if let Ok(at) = keys.binary_search_by_key(&key, |key| key.key_id.0)
                && let Some(key) = keys.get_mut(at)
            {
                key.models.push(model);
            }
        }
        for key in &mut keys {
            // They are ordered by name, and stay so if they cost the same.
            key.models.sort_by_key(|model| std::cmp::Reverse(model.cost));
        }
        Ok(keys)
    }
}

/// Whole hours, and the rest at both ends.
fn parts(from: Timestamp, until: Timestamp) -> impl Iterator<Item = TimedStatement> {
    let first_whole = Timestamp(hour_of(from.0.saturating_add(HOUR_MS - 1)));
    let end_whole = Timestamp(hour_of(until.0));
    let parts = match first_whole < end_whole {
        true => vec![
            (ROWS, from, first_whole),
            (HOURS, first_whole, end_whole),
            (ROWS, end_whole, until),
        ],
        false => vec![(ROWS, from, until)],
    };
    parts
        .into_iter()
        .filter(|(_, from, until)| from < until)
        .map(|(sql, from, until)| TimedStatement { sql, from, until })
}

async fn keys_of(
    connection: &mut AnyConnection,
    user: UserId,
) -> Result<Vec<KeyStatistics>, StoreError> {
    let rows = sqlx::query(KEYS).bind(user.0).fetch_all(connection).await?;
    let read = |row| {
        let fields = Fields { row, table: "api_keys" };
        Ok(KeyStatistics {
            key_id: KeyId(fields.int("key_id")?),
            models: Vec::new(),
            total_cost: NanoUsd(fields.int("total_cost")?),
            last_used_at: fields.opt_time("last_used_at")?,
            last_provider: fields.opt_text("last_provider")?,
        })
    };
    rows.iter().map(read).collect()
}

/// Adds what one statement finds between two times.
async fn add_part(
    connection: &mut AnyConnection,
    user: UserId,
    part: &TimedStatement,
    found: &mut Found,
) -> Result<(), StoreError> {
    let mut values = Values::default();
    values.int(user.0).time(part.from).time(part.until);
    for row in &sqlx::query_with(part.sql, values.into_arguments()).fetch_all(connection).await? {
        let fields = Fields { row, table: "hourly_sums" };
        let model = fields.text("model")?;
        let sum = found.entry((fields.int("key_id")?, model.clone())).or_default();
        sum.model = model;
        sum.requests += fields.number::<u64>("requests")?;
        sum.input_tokens += fields.number::<u64>("input_tokens")?;
        sum.output_tokens += fields.number::<u64>("output_tokens")?;
        sum.cache_write_tokens += fields.number::<u64>("cache_write_tokens")?;
        sum.cache_read_tokens += fields.number::<u64>("cache_read_tokens")?;
        sum.cost += NanoUsd(fields.int("cost")?);
    }
    Ok(())
}
