//! How providers were over time: one look every five minutes for a day, and the looks of each day
//! for 90 days.

use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;

/// Milliseconds between two looks.
pub const LOOK_MS: i64 = 300_000;
const DAY_MS: i64 = 86_400_000;
/// Days that are kept.
const DAYS: i64 = 90;

/// The looks at a provider in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderLooks {
    /// The provider.
    pub provider: ProviderId,
    /// The beginning of the five minutes, or of the day (UTC).
    pub starts_at: Timestamp,
    /// They are those of a day.
    pub is_day: bool,
    /// Looks at which a request could be expected to be answered.
    pub up: u64,
    /// Those at which it could not.
    pub down: u64,
}

const ADD: &str = "INSERT INTO provider_states (provider_id, starts_at, is_day, up, down) \
                   VALUES ($1, $2, $3, $4, $5) ON CONFLICT (provider_id, is_day, starts_at) ";

impl Store {
    /// Stores a look at providers: whether each is up. Only the first look of five minutes counts.
    /// What is too old is removed.
    ///
    /// # Errors
    /// [`StoreError`] of a write.
    pub async fn note_provider_states(
        &self,
        now: Timestamp,
        states: &[(ProviderId, bool)],
    ) -> Result<(), StoreError> {
        let start_of = |span: i64| Timestamp(now.0 - now.0.rem_euclid(span));
        let mut tx = self.begin().await?;
        for (provider, is_up) in states {
            let values = |starts_at, is_day| {
                let mut values = Values::default();
                values.int(provider.0).time(starts_at).flag(is_day);
                values.int(i64::from(*is_up)).int(i64::from(!*is_up));
                values.into_arguments()
            };
            let look = [ADD, "DO NOTHING"].concat();
            let look =
                sqlx::query_with(sqlx::AssertSqlSafe(look), values(start_of(LOOK_MS), false));
            if look.execute(&mut *tx.inner).await?.rows_affected() == 0 {
                continue;
            }
            let sum = "DO UPDATE SET up = provider_states.up + excluded.up, \
                       down = provider_states.down + excluded.down";
            let sum = [ADD, sum].concat();
            let day = sqlx::query_with(sqlx::AssertSqlSafe(sum), values(start_of(DAY_MS), true));
            day.execute(&mut *tx.inner).await?;
        }
        for (is_day, oldest) in
            [(false, now.plus_ms(-DAY_MS)), (true, start_of(DAY_MS).plus_ms(-DAYS * DAY_MS))]
        {
            let mut values = Values::default();
            values.flag(is_day).time(oldest);
            let sql = "DELETE FROM provider_states WHERE is_day = $1 AND starts_at < $2";
            sqlx::query_with(sql, values.into_arguments()).execute(&mut *tx.inner).await?;
        }
        tx.commit_record().await
    }

    /// All looks that are kept, the oldest first.
    ///
    /// # Errors
    /// [`StoreError`] of the query, or a row that cannot be read.
    pub async fn provider_states(&self) -> Result<Vec<ProviderLooks>, StoreError> {
        let sql = "SELECT provider_id, starts_at, is_day, up, down FROM provider_states \
                   ORDER BY starts_at";
        let rows = sqlx::query(sql).fetch_all(&mut *self.reader().await?).await?;
        let read = |row| {
            let fields = Fields { row, table: "provider_states" };
            Ok(ProviderLooks {
                provider: ProviderId(fields.int("provider_id")?),
                starts_at: fields.time("starts_at")?,
                is_day: fields.flag("is_day")?,
                up: fields.number("up")?,
                down: fields.number("down")?,
            })
        };
        rows.iter().map(read).collect()
    }
}
