//! The settings of notifications, and the daily figures that they report.

use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use crate::domain::clock::Timestamp;
use crate::domain::ids::UserId;
use crate::domain::money::NanoUsd;
use crate::domain::notifications::NotificationSettings;
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::engine::tx::Tx;
use crate::store::ledger::sums::hour_of;

/// The settings as stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoredNotifications {
    /// The settings, with defaults for those that are not stored.
    pub settings: NotificationSettings,
    /// The key that messages are signed with, sealed; `None` = they are not signed.
    pub secret_cipher: Option<String>,
}

/// The sum of one user's requests in a time range; `None`: the admin token's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserSum {
    /// The user, present or removed; `None` = the admin token.
    pub user_id: Option<UserId>,
    /// Requests of every outcome.
    pub requests: u64,
    /// Input of all kinds and output together.
    pub tokens: u64,
    /// Nano-USD; unpriced requests count as zero.
    pub cost: NanoUsd,
}

pub(super) async fn settings(
    connection: &mut AnyConnection,
) -> Result<StoredNotifications, StoreError> {
    let sql = "SELECT data, secret_cipher FROM notification_settings WHERE id = 1";
    let Some(row) = sqlx::query(sql).fetch_optional(connection).await? else {
        return Ok(StoredNotifications::default());
    };
    let fields = Fields { row: &row, table: "notification_settings" };
    Ok(StoredNotifications {
        settings: fields.json("data")?,
        secret_cipher: fields.opt_text("secret_cipher")?,
    })
}

impl Store {
    /// The settings of notifications.
    pub async fn notifications(&self) -> Result<StoredNotifications, StoreError> {
        settings(&mut *self.reader().await?).await
    }

    /// Each user's requests that started from `from` to just before `until`, most expensive first.
    /// Whole hours come from the hourly sums; with partial ones (a zone that is off by half an
    /// hour) the ledger itself is read.
    pub async fn user_sums(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<UserSum>, StoreError> {
        let whole = [from, until].into_iter().all(|at| hour_of(at.0) == at.0);
        let sql = if whole {
            "SELECT user_id, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(cost) AS BIGINT) \
             AS cost, CAST(SUM(input_tokens + output_tokens + cache_write_5m_tokens + \
             cache_write_1h_tokens + cache_read_tokens) AS BIGINT) AS tokens FROM hourly_sums \
             WHERE hour >= $1 AND hour < $2 GROUP BY user_id"
        } else {
            "SELECT COALESCE(user_id, 0) AS user_id, COUNT(*) AS requests, \
             CAST(COALESCE(SUM(cost), 0) AS BIGINT) AS cost, CAST(SUM(input_tokens + output_tokens \
             + cache_write_5m_tokens + cache_write_1h_tokens + cache_read_tokens) AS BIGINT) AS \
             tokens FROM ledger WHERE started_at >= $1 AND started_at < $2 \
             GROUP BY COALESCE(user_id, 0)"
        };
        let mut values = Values::default();
        values.time(from).time(until);
        let rows = sqlx::query_with(sql, values.into_arguments())
            .fetch_all(&mut *self.reader().await?)
            .await?;
        let mut sums = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        sums.sort_by_key(|sum| {
            (std::cmp::Reverse(sum.cost), std::cmp::Reverse(sum.requests), sum.user_id)
        });
        Ok(sums)
    }
}

fn read(row: &AnyRow) -> Result<UserSum, StoreError> {
    let fields = Fields { row, table: "hourly_sums" };
    Ok(UserSum {
        user_id: Some(fields.int("user_id")?).filter(|id| *id != 0).map(UserId),
        requests: fields.number("requests")?,
        tokens: fields.number("tokens")?,
        cost: NanoUsd(fields.int("cost")?),
    })
}

impl Tx {
    /// The settings of notifications.
    pub async fn notifications(&mut self) -> Result<StoredNotifications, StoreError> {
        settings(&mut self.inner).await
    }

    /// Replaces the settings of notifications.
    pub async fn save_notifications(
        &mut self,
        stored: &StoredNotifications,
    ) -> Result<(), StoreError> {
        let mut values = Values::default();
        values.json(&stored.settings).opt_text(stored.secret_cipher.as_deref());
        let sql = "INSERT INTO notification_settings (id, data, secret_cipher) VALUES (1, $1, $2) \
                   ON CONFLICT (id) DO UPDATE \
                   SET data = excluded.data, secret_cipher = excluded.secret_cipher";
        sqlx::query_with(sql, values.into_arguments()).execute(&mut *self.inner).await?;
        Ok(())
    }
}
