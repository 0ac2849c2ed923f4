//! What was spent, for the counters to start from: per minute for the running windows, and in all.

use super::Store;
use super::column::{Fields, Values};
use super::error::StoreError;
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, UserId};
use crate::domain::money::NanoUsd;

/// Spending of one minute by one key at one provider. `None` ids: the admin token, or no provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpendRow {
    /// The minute's start.
    pub minute: Timestamp,
    pub key_id: Option<KeyId>,
    pub user_id: Option<UserId>,
    pub provider_id: Option<ProviderId>,
    pub cost: NanoUsd,
}

/// Lifetime spending by one key at one provider. `None` ids as in [`SpendRow`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpendTotal {
    pub key_id: Option<KeyId>,
    pub user_id: Option<UserId>,
    pub provider_id: Option<ProviderId>,
    pub cost: NanoUsd,
}

impl Store {
    /// Spending of the requests that started at `since` or later, by minute, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub async fn spend_since(&self, since: Timestamp) -> Result<Vec<SpendRow>, StoreError> {
        let mut values = Values::default();
        values.time(since);
        let sql = "SELECT started_at / 60000 AS minute, key_id, user_id, provider_id, CAST(SUM(cost) AS BIGINT) AS cost \
                   FROM ledger WHERE started_at >= $1 AND cost IS NOT NULL AND cost <> 0 \
                   GROUP BY started_at / 60000, key_id, user_id, provider_id ORDER BY started_at / 60000";
        let rows = sqlx::query_with(sql, values.into_arguments()).fetch_all(&mut *self.reader().await?).await?;
        let read = |row| {
            let fields = Fields { row, table: "ledger" };
            Ok(SpendRow {
                minute: Timestamp(fields.int("minute")?.saturating_mul(60_000)),
                key_id: fields.opt_int("key_id")?.map(KeyId),
                user_id: fields.opt_int("user_id")?.map(UserId),
                provider_id: fields.opt_int("provider_id")?.map(ProviderId),
                cost: NanoUsd(fields.int("cost")?),
            })
        };
        rows.iter().map(read).collect()
    }

    /// Spending since the beginning, from the hourly sums.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub async fn spend_totals(&self) -> Result<Vec<SpendTotal>, StoreError> {
        let sql = "SELECT key_id, user_id, provider_id, CAST(SUM(cost) AS BIGINT) AS cost FROM hourly_sums \
                   GROUP BY key_id, user_id, provider_id HAVING SUM(cost) <> 0 ORDER BY key_id, user_id, provider_id";
        let rows = sqlx::query(sql).fetch_all(&mut *self.reader().await?).await?;
        let read = |row| {
            let fields = Fields { row, table: "hourly_sums" };
            let id = |column| Ok::<_, StoreError>(Some(fields.int(column)?).filter(|&id| id != 0));
            Ok(SpendTotal {
                key_id: id("key_id")?.map(KeyId),
                user_id: id("user_id")?.map(UserId),
                provider_id: id("provider_id")?.map(ProviderId),
                cost: NanoUsd(fields.int("cost")?),
            })
        };
        rows.iter().map(read).collect()
    }
}
