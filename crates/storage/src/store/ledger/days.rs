//! Sums of whole days, in the groupings that charts and the usage log's totals need; and which days
//! are summed.
//!
//! Once a day is over, jobs sum it from the hourly sums. The ledger's writer does not: it would
//! cost every record. A record that arrives or is priced late removes its day from `summed_days` in
//! its own transaction; the day is then read from its hours until it is summed again. So
//! `summed_days` is always correct, whatever its time zone and the number of nodes. Readers use the
//! days that lie within the requested time, and hours for the rest.
//!
//! On PostgreSQL a lock separates the writers of sums from the task that sums a day; SQLite has one
//! writer anyway.

use std::collections::BTreeMap;

use sqlx::{AnyConnection, Executor};

use super::sums::{hour_of, whole_hours};
use crate::domain::clock::Timestamp;
use crate::store::engine::column::{Collect, Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::{Backend, Store};

/// A summed day: its start and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SummedDay {
    /// Midnight in the time zone that was configured when the day was summed; inclusive.
    pub from: Timestamp,
    /// The next midnight of that time zone; exclusive. The day may have 23 or 25 hours.
    pub until: Timestamp,
}

/// A grouping of days: the columns by which its rows differ, in addition to the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
pub(in crate::store) enum Cut {
    Whole,
    /// By user and key.
    Holder,
    Provider,
    Model,
    Endpoint,
    /// By provider, model and endpoint.
    Routes,
    /// By user, key and model.
    HolderModel,
    /// By user, key and provider.
    HolderProvider,
}

/// What a query groups or filters by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::store) struct DayQuery {
    /// User or key.
    pub(in crate::store) holder: bool,
    pub(in crate::store) provider: bool,
    pub(in crate::store) model: bool,
    pub(in crate::store) endpoint: bool,
}

impl Cut {
    const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The coarsest grouping with everything that is asked for; `None`: none has it.
    pub(in crate::store) fn of(asked: DayQuery) -> Option<Self> {
        let DayQuery { holder, provider, model, endpoint } = asked;
        Some(match (holder, provider, model, endpoint) {
            (false, false, false, false) => Self::Whole,
            (true, false, false, false) => Self::Holder,
            (false, true, false, false) => Self::Provider,
            (false, false, true, false) => Self::Model,
            (false, false, false, true) => Self::Endpoint,
            (false, ..) => Self::Routes,
            (true, false, true, false) => Self::HolderModel,
            (true, true, false, false) => Self::HolderProvider,
            (true, ..) => return None,
        })
    }

    /// Its number in the table.
    pub(in crate::store) const fn number(self) -> i64 {
        match self {
            Self::Whole => 1,
            Self::Holder => 2,
            Self::Provider => 3,
            Self::Model => 4,
            Self::Endpoint => 5,
            Self::Routes => 6,
            Self::HolderModel => 7,
            Self::HolderProvider => 8,
        }
    }

    /// The expressions for `user_id`, `key_id`, `provider_id`, `model` and `endpoint`, and the
    /// grouping, in addition to the status.
    const fn columns(self) -> (&'static str, &'static str) {
        match self {
            Self::Whole => ("0, 0, 0, '', ''", ""),
            Self::Holder => ("user_id, key_id, 0, '', ''", "user_id, key_id, "),
            Self::Provider => ("0, 0, provider_id, '', ''", "provider_id, "),
            Self::Model => ("0, 0, 0, model, ''", "model, "),
            Self::Endpoint => ("0, 0, 0, '', endpoint", "endpoint, "),
            Self::Routes => {
                ("0, 0, provider_id, model, endpoint", "provider_id, model, endpoint, ")
            }
            Self::HolderModel => ("user_id, key_id, 0, model, ''", "user_id, key_id, model, "),
            Self::HolderProvider => {
                ("user_id, key_id, provider_id, '', ''", "user_id, key_id, provider_id, ")
            }
        }
    }
}

/// Held by writers of hourly sums (shared) and by the task that sums a day (exclusive); any
/// otherwise unused number.
const LOCK_SHARED: &str = "SELECT CAST(pg_advisory_xact_lock_shared(7215836403) AS TEXT)";
const LOCK_ALONE: &str = "SELECT CAST(pg_advisory_xact_lock(7215836403) AS TEXT)";

/// Removes the days that overlap the time from `$1` to `$2`, inclusive.
const TAKE_OUT: &str = "DELETE FROM summed_days WHERE until > $1 AND day <= $2";

/// Rows of the ledger, in the form of sums.
macro_rules! of_ledger {
    ($time:literal) => {
        concat!(
            " UNION ALL SELECT COALESCE(user_id, 0), COALESCE(key_id, 0), COALESCE(provider_id, \
             0), model, endpoint, status_code, 1, CASE WHEN outcome IN ('completed', \
             'client_aborted') THEN 0 ELSE 1 END, CASE WHEN cost IS NULL THEN 1 ELSE 0 END, \
             input_tokens, output_tokens, cache_write_5m_tokens, cache_write_1h_tokens, \
             cache_read_tokens, reasoning_tokens, COALESCE(cost, 0), duration_ms FROM ledger \
             WHERE ",
            $time
        )
    };
}

/// All of a day: `$1` its first whole hour and `$2` the end of its last, `$3` its start and `$4`
/// its end.
const ROWS: &str = concat!(
    "SELECT user_id, key_id, provider_id, model, endpoint, status_code, requests, errors, \
     unpriced, input_tokens, output_tokens, cache_write_5m_tokens, cache_write_1h_tokens, \
     cache_read_tokens, reasoning_tokens, cost, duration_ms FROM hourly_sums \
     WHERE hour >= $1 AND hour < $2",
    of_ledger!("started_at >= $3 AND started_at < $1"),
    of_ledger!("started_at >= $2 AND started_at < $4")
);

/// The summed columns, in the order of the table's columns.
const SUMMED: &str = "SUM(requests), SUM(errors), SUM(unpriced), SUM(input_tokens), \
                      SUM(output_tokens), SUM(cache_write_5m_tokens), SUM(cache_write_1h_tokens), \
                      SUM(cache_read_tokens), SUM(reasoning_tokens), SUM(cost), SUM(duration_ms), \
                      COUNT(*)";

impl Store {
    /// Sums one day, or sums it again.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was changed, unless the connection broke during the commit.
    pub async fn sum_day(&self, day: SummedDay) -> Result<(), StoreError> {
        let SummedDay { from, until } = day;
        let mut tx = self.write().await?;
        if self.backend() == Backend::Postgres {
            tx.execute(LOCK_ALONE).await?;
        }
        // Also removes days of another time zone.
        let mut old = Values::default();
        old.time(from).int(until.0.saturating_sub(1));
        sqlx::query_with(TAKE_OUT, old.into_arguments()).execute(&mut *tx).await?;
        for &cut in Cut::ALL {
            let mut values = Values::default();
            values.int(cut.number()).time(from).time(until);
            let sql = "DELETE FROM daily_sums WHERE cut = $1 AND day >= $2 AND day < $3";
            sqlx::query_with(sql, values.into_arguments()).execute(&mut *tx).await?;
            let (first_whole, end_whole) = whole_hours(from.0, until.0);
            let mut values = Values::default();
            values.int(first_whole).int(end_whole).time(from).time(until);
            let (columns, group) = cut.columns();
            let number = cut.number();
            let sql = format!(
                "INSERT INTO daily_sums SELECT {number}, $3, {columns}, status_code, {SUMMED} \
                 FROM ({ROWS}) AS counted GROUP BY {group}status_code"
            );
            sqlx::query_with(sqlx::AssertSqlSafe(sql), values.into_arguments())
                .execute(&mut *tx)
                .await?;
        }
        let mut values = Values::default();
        values.time(until).time(from);
        let sql = "INSERT INTO summed_days (until, day) VALUES ($1, $2)";
        sqlx::query_with(sql, values.into_arguments()).execute(&mut *tx).await?;
        Ok(tx.commit().await?)
    }

    /// The summed days that lie within a stretch of time, in order.
    pub async fn summed_days(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<SummedDay>, StoreError> {
        summed(&mut *self.reader().await?, from, until).await
    }

    /// The start of the first hour with any use; `None` if there is none.
    pub async fn first_used(&self) -> Result<Option<Timestamp>, StoreError> {
        let sql = "SELECT MIN(hour) AS hour FROM hourly_sums";
        let row = sqlx::query(sql).fetch_one(&mut *self.reader().await?).await?;
        Fields { row: &row, table: "hourly_sums" }.opt_time("hour")
    }
}

/// As [`Store::summed_days`], as of the moment of a transaction.
pub(in crate::store) async fn summed(
    connection: &mut AnyConnection,
    from: Timestamp,
    until: Timestamp,
) -> Result<Vec<SummedDay>, StoreError> {
    let mut values = Values::default();
    values.time(from).time(until);
    let sql = "SELECT day, until FROM summed_days WHERE until > $1 AND until <= $2 AND day >= $1 \
               ORDER BY until";
    let rows = sqlx::query_with(sql, values.into_arguments()).fetch_all(connection).await?;
    let read = |row| {
        let fields = Fields { row, table: "summed_days" };
        Ok(SummedDay { from: fields.time("day")?, until: fields.time("until")? })
    };
    rows.iter().map(read).collect()
}

/// Before hourly sums are changed in a transaction: excludes the summing of days until its end.
pub(in crate::store) const fn lock(backend: Backend) -> Option<&'static str> {
    match backend {
        Backend::Postgres => Some(LOCK_SHARED),
        Backend::Sqlite => None,
    }
}

/// After hourly sums were changed for requests that began at these times: the statements that
/// remove their days, with their values. One for each affected hour.
pub(in crate::store) fn take_out<A: Collect + Default>(
    times: impl Iterator<Item = Timestamp>,
) -> impl Iterator<Item = (&'static str, Values<A>)> {
    let mut hours: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    for Timestamp(time) in times {
        let (first, last) = hours.entry(hour_of(time)).or_insert((time, time));
        (*first, *last) = ((*first).min(time), (*last).max(time));
    }
    hours.into_values().map(|(first, last)| {
        let mut values = Values::of(A::default());
        values.int(first).int(last);
        (TAKE_OUT, values)
    })
}
