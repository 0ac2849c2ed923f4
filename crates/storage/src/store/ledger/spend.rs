//! Past spending, from which the counters start: per minute, per hour, and in total.

use serde::{Deserialize, Serialize};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};

use super::sums::{HOUR_MS, hour_of};
use super::{late, opening};
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, RequestId, UserId};
use crate::domain::money::NanoUsd;
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;

/// Spending of one minute (or hour) by one key at one provider. `None` ids: the admin token, or no
/// provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpendRow {
    /// The start of the minute, or of the hour if that is the granularity.
    pub minute: Timestamp,
    /// The key that was used; `None` for traffic of the admin token.
    pub key_id: Option<KeyId>,
    /// The owner of the key; `None` for traffic of the admin token.
    pub user_id: Option<UserId>,
    /// The provider that answered or was tried last; `None` if none was tried.
    pub provider_id: Option<ProviderId>,
    /// Nano-USD, never 0: rows without a cost are left out.
    pub cost: NanoUsd,
}

/// Lifetime spending by one key at one provider. `None` ids as in [`SpendRow`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpendTotal {
    /// The key that was used; `None` for traffic of the admin token.
    pub key_id: Option<KeyId>,
    /// The owner of the key; `None` for traffic of the admin token.
    pub user_id: Option<UserId>,
    /// The provider that answered or was tried last; `None` if none was tried.
    pub provider_id: Option<ProviderId>,
    /// Nano-USD, never 0: sums of nothing are left out.
    pub cost: NanoUsd,
}

/// What to read of the ledger for the counters' start.
#[derive(Debug, Clone)]
pub struct SpendLook {
    /// Spending by hour (by minute at the ends) within each of these.
    pub stretches: Vec<(Timestamp, Timestamp)>,
    /// Spending by minute from this time on.
    pub recent: Timestamp,
    /// If set, also returns which requests ended since then.
    pub ended_since: Option<Timestamp>,
}

/// The answer to a [`SpendLook`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpendSeen {
    /// Spending since `recent`, then that of each stretch. Stretches may overlap: their rows are
    /// not merged.
    pub rows: Vec<SpendRow>,
    /// Spending over all time, including that of `rows`.
    pub totals: Vec<SpendTotal>,
    /// Requests with a cost that ended at `ended_since` or later; empty if that is not set.
    pub ended: Vec<RequestId>,
    /// Opening balances of all time, not summed. Neither `rows` nor `totals` contain them.
    pub opening: Vec<SpendRow>,
    /// The number of the last [`LateCosts`](super::late::LateCosts) in the sums; 0 if there is
    /// none.
    #[serde(default)]
    pub late: i64,
}

/// Ids in one statement.
const KNOWN_CHUNK: usize = 500;
/// The longest request that [`SpendLook::ended_since`] finds, from its admission. A request whose
/// body took long may be found although it ended that much earlier.
const LONGEST_MS: i64 = 26 * HOUR_MS;

impl Store {
    /// Everything that counters start from, as of one moment.
    pub async fn spend_seen(&self, look: &SpendLook) -> Result<SpendSeen, StoreError> {
        let mut tx = self.read().await?;
        let mut rows = by_minute(&mut tx, look.recent, Timestamp(i64::MAX)).await?;
        for (from, until) in &look.stretches {
            rows.append(&mut between(&mut tx, *from, *until).await?);
        }
        let totals = totals(&mut tx).await?;
        let ended = match look.ended_since {
            Some(since) => ended_since(&mut tx, since).await?,
            None => Vec::new(),
        };
        let opening = opening::all(&mut tx).await?;
        let late = late::last(&mut tx).await?;
        tx.commit().await?;
        Ok(SpendSeen { rows, totals, ended, opening, late })
    }

    /// Those of the requests that the ledger has.
    pub async fn known_requests(
        &self,
        requests: &[RequestId],
    ) -> Result<Vec<RequestId>, StoreError> {
        let mut tx = self.read().await?;
        let mut known = Vec::new();
        for some in requests.chunks(KNOWN_CHUNK) {
            let mut values = Values::default();
            for id in some {
                values.bytes(id.0.as_bytes());
            }
            let places: Vec<String> = (1..=some.len()).map(|n| format!("${n}")).collect();
            let sql = format!(
                "SELECT request_id FROM ledger WHERE request_id IN ({})",
                places.join(", ")
            );
            let query = sqlx::query_with(AssertSqlSafe(sql), values.into_arguments());
            let rows = query.persistent(false).fetch_all(&mut *tx).await?;
            for row in &rows {
                known.push(request_id(row)?);
            }
        }
        tx.commit().await?;
        Ok(known)
    }
}

/// Spending from `from` to just before `until`: by hour, and by minute in the partial hours at both
/// ends, so that no row extends beyond either end whatever the time zone. Unordered.
async fn between(
    connection: &mut AnyConnection,
    from: Timestamp,
    until: Timestamp,
) -> Result<Vec<SpendRow>, StoreError> {
    let first_whole = Timestamp(hour_of(from.0.saturating_add(HOUR_MS - 1)));
    let end_whole = Timestamp(hour_of(until.0));
    if first_whole >= end_whole {
        return by_minute(connection, from, until).await;
    }
    let mut rows = by_minute(connection, from, first_whole).await?;
    rows.append(&mut by_hour(connection, first_whole, end_whole).await?);
    rows.append(&mut by_minute(connection, end_whole, until).await?);
    Ok(rows)
}

async fn ended_since(
    connection: &mut AnyConnection,
    since: Timestamp,
) -> Result<Vec<RequestId>, StoreError> {
    let mut values = Values::default();
    values.time(since.plus_ms(-LONGEST_MS)).time(since);
    let sql = "SELECT request_id FROM ledger \
               WHERE started_at >= $1 AND started_at + duration_ms >= $2 AND cost <> 0";
    let rows = sqlx::query_with(sql, values.into_arguments()).fetch_all(connection).await?;
    rows.iter().map(request_id).collect()
}

fn request_id(row: &AnyRow) -> Result<RequestId, StoreError> {
    Ok(RequestId(uuid::Uuid::from_bytes(Fields { row, table: "ledger" }.bytes("request_id")?)))
}

async fn totals(connection: &mut AnyConnection) -> Result<Vec<SpendTotal>, StoreError> {
    let sql = "SELECT key_id, user_id, provider_id, CAST(SUM(cost) AS BIGINT) AS cost \
               FROM usage_totals GROUP BY key_id, user_id, provider_id HAVING SUM(cost) <> 0 \
               ORDER BY key_id, user_id, provider_id";
    let rows = sqlx::query(sql).fetch_all(connection).await?;
    let read = |row| {
        let fields = Fields { row, table: "usage_totals" };
        Ok(SpendTotal {
            key_id: some_id(fields, "key_id")?.map(KeyId),
            user_id: some_id(fields, "user_id")?.map(UserId),
            provider_id: some_id(fields, "provider_id")?.map(ProviderId),
            cost: NanoUsd(fields.int("cost")?),
        })
    };
    rows.iter().map(read).collect()
}

async fn by_minute(
    connection: &mut AnyConnection,
    from: Timestamp,
    until: Timestamp,
) -> Result<Vec<SpendRow>, StoreError> {
    let mut values = Values::default();
    values.time(from).time(until);
    let sql = "SELECT started_at / 60000 AS minute, key_id, user_id, provider_id, CAST(SUM(cost) \
               AS BIGINT) AS cost FROM ledger \
               WHERE started_at >= $1 AND started_at < $2 AND cost IS NOT NULL AND cost <> 0 \
               GROUP BY started_at / 60000, key_id, user_id, provider_id \
               ORDER BY started_at / 60000";
    let rows = sqlx::query_with(sql, values.into_arguments()).fetch_all(connection).await?;
    let read = |row| {
        let fields = Fields { row, table: "ledger" };
        let minute = Timestamp(fields.int("minute")?.saturating_mul(60_000));
        spend_row(fields, minute, NanoUsd(fields.int("cost")?))
    };
    rows.iter().map(read).collect()
}

async fn by_hour(
    connection: &mut AnyConnection,
    from: Timestamp,
    until: Timestamp,
) -> Result<Vec<SpendRow>, StoreError> {
    let mut values = Values::default();
    values.time(from).time(until);
    let sql = "SELECT hour, key_id, user_id, provider_id, CAST(SUM(cost) AS BIGINT) AS cost \
               FROM hourly_sums WHERE hour >= $1 AND hour < $2 AND cost <> 0 \
               GROUP BY hour, key_id, user_id, provider_id";
    let rows = sqlx::query_with(sql, values.into_arguments()).fetch_all(connection).await?;
    let read = |row| {
        let fields = Fields { row, table: "hourly_sums" };
        spend_row(fields, fields.time("hour")?, NanoUsd(fields.int("cost")?))
    };
    rows.iter().map(read).collect()
}

/// A row of these holders.
pub(super) fn spend_row(
    fields: Fields<'_>,
    minute: Timestamp,
    cost: NanoUsd,
) -> Result<SpendRow, StoreError> {
    Ok(SpendRow {
        minute,
        key_id: some_id(fields, "key_id")?.map(KeyId),
        user_id: some_id(fields, "user_id")?.map(UserId),
        provider_id: some_id(fields, "provider_id")?.map(ProviderId),
        cost,
    })
}

/// An id; in sums 0 means none.
fn some_id(fields: Fields<'_>, column: &'static str) -> Result<Option<i64>, StoreError> {
    Ok(fields.opt_int(column)?.filter(|&id| id != 0))
}
