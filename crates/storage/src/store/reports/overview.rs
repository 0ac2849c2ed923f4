//! The figures of the current day, and the users, models and providers behind them: a few
//! statements over one day of sums, all as of one moment.
//!
//! Whole hours come from the sums per hour; if a day does not begin on a whole hour of UTC, its
//! first part comes from the ledger. Of the day before, the hour that is cut counts in proportion:
//! close enough for a comparison, without reading the ledger.

use std::collections::HashSet;

use sqlx::{Any, AnyConnection, AssertSqlSafe, Transaction};

use crate::domain::clock::Timestamp;
use crate::domain::ids::{RequestId, UserId};
use crate::domain::money::NanoUsd;
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::ledger::sums::{HOUR_MS, hour_of};
use crate::store::replica::report;

/// The query.
#[derive(Debug, Clone, Copy)]
pub struct OverviewAsk<'a> {
    /// The only user who counts; `None` = all, and the admin token's traffic.
    pub scope: Option<UserId>,
    /// When the day began.
    pub today: Timestamp,
    /// When the day before began.
    pub yesterday: Timestamp,
    /// The end of the day so far; `last_minute` ends here.
    pub now: Timestamp,
    /// How many entries of each kind to return.
    pub top: u32,
    /// Requests whose presence in the figures is to be reported.
    pub pending: &'a [RequestId],
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OverviewFound {
    /// The day so far.
    pub today: Figures,
    /// From the start of yesterday, for as long as today has lasted so far.
    pub yesterday: Figures,
    /// Requests that began and ended within the last minute.
    pub last_minute: u64,
    /// Today's most expensive, in descending order.
    pub users: Vec<TopEntry>,
    /// Today's most expensive models, in descending order.
    pub models: Vec<TopEntry>,
    /// Today's most expensive providers, in descending order.
    pub providers: Vec<TopEntry>,
    /// Those of the pending requests that are in these figures.
    pub counted: HashSet<RequestId>,
}

/// Sums over requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Requests of every outcome.
    pub requests: u64,
    /// Failed or refused, also by a limit.
    pub errors: u64,
    /// Refused by a limit.
    pub limited: u64,
    /// Unpriced requests count as zero.
    pub cost: NanoUsd,
    /// Milliseconds, the sum over all requests.
    pub duration_ms: u64,
}

/// One of the most expensive entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopEntry {
    /// Of a user or provider; `None` for a model, the admin token's traffic, and requests that
    /// reached no provider.
    pub id: Option<i64>,
    /// `None` if there is no such record, or no longer.
    pub name: Option<String>,
    /// Requests of every outcome.
    pub requests: u64,
    /// Nano-USD; unpriced requests count as zero.
    pub cost: NanoUsd,
}

impl Figures {
    /// The sums of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            errors: self.errors + other.errors,
            limited: self.limited + other.limited,
            cost: self.cost + other.cost,
            duration_ms: self.duration_ms + other.duration_ms,
        }
    }

    /// The share `part` of `whole`.
    fn part(self, part: i64, whole: i64) -> Self {
        let of = |value: i64| {
            let scaled = i128::from(value) * i128::from(part) / i128::from(whole.max(1));
            i64::try_from(scaled).unwrap_or(i64::MAX)
        };
        let count =
            |value: u64| u64::try_from(of(i64::try_from(value).unwrap_or(i64::MAX))).unwrap_or(0);
        Self {
            requests: count(self.requests),
            errors: count(self.errors),
            limited: count(self.limited),
            cost: NanoUsd(of(self.cost.0)),
            duration_ms: count(self.duration_ms),
        }
    }
}

/// The rows of a time range: `$1` its first whole hour, `$2` its end (a whole hour), `$3` its
/// start.
macro_rules! rows {
    ($on_sums:literal, $on_ledger:literal) => {
        concat!(
            "(SELECT user_id, provider_id, model, requests, errors, cost, duration_ms \
             FROM hourly_sums WHERE hour >= $1 AND hour < $2",
            $on_sums,
            " UNION ALL SELECT COALESCE(user_id, 0), COALESCE(provider_id, 0), model, 1, CASE WHEN \
             outcome IN ('completed', 'client_aborted') THEN 0 ELSE 1 END, COALESCE(cost, 0), \
             duration_ms FROM ledger WHERE started_at >= $3 AND started_at < $1",
            $on_ledger,
            ") AS counted"
        )
    };
}

const EVERYONE: &str = rows!("", "");
/// The same, grouped by user only.
const EVERY_USER: &str = "(SELECT user_id, requests, errors, cost, duration_ms FROM hourly_users \
    WHERE hour >= $1 AND hour < $2 UNION ALL \
    SELECT COALESCE(user_id, 0), 1, CASE WHEN outcome IN ('completed', 'client_aborted') THEN 0 \
    ELSE 1 END, COALESCE(cost, 0), duration_ms FROM ledger \
    WHERE started_at >= $3 AND started_at < $1) AS counted";
/// The ledger has no index of a user's rows by time, but of each key's.
const ONE_USER: &str =
    rows!(" AND user_id = $4", " AND key_id IN (SELECT id FROM api_keys WHERE user_id = $4)");

/// A time range, and whose requests.
#[derive(Clone, Copy)]
struct OverviewRange {
    scope: Option<UserId>,
    from: Timestamp,
    /// A whole hour.
    until: Timestamp,
}

impl OverviewRange {
    fn rows(self) -> &'static str {
        if self.scope.is_some() { ONE_USER } else { EVERYONE }
    }

    fn rows_by_user(self) -> &'static str {
        if self.scope.is_some() { ONE_USER } else { EVERY_USER }
    }

    fn values(self) -> Values {
        let mut values = Values::default();
        values
            .int(hour_of(self.from.0.saturating_add(HOUR_MS - 1)))
            .time(self.until)
            .time(self.from);
        if let Some(user) = self.scope {
            values.int(user.0);
        }
        values
    }
}

impl Store {
    /// The day so far.
    pub async fn overview(&self, ask: &OverviewAsk<'_>) -> Result<OverviewFound, StoreError> {
        report!(self, |tx| overview(tx, ask))
    }
}

async fn overview(
    mut tx: Transaction<'static, Any>,
    ask: &OverviewAsk<'_>,
) -> Result<OverviewFound, StoreError> {
    let end = Timestamp(hour_of(ask.now.0).saturating_add(HOUR_MS));
    let today = OverviewRange { scope: ask.scope, from: ask.today, until: end };
    let found = OverviewFound {
        today: figures(&mut tx, today).await?,
        yesterday: yesterday(&mut tx, ask).await?,
        last_minute: last_minute(&mut tx, ask).await?,
        users: top(&mut tx, today, ask.top, BY_USER).await?,
        models: top(&mut tx, today, ask.top, BY_MODEL).await?,
        providers: top(&mut tx, today, ask.top, BY_PROVIDER).await?,
        counted: counted(&mut tx, ask.pending).await?,
    };
    tx.commit().await?;
    Ok(found)
}

async fn figures(
    connection: &mut AnyConnection,
    stretch: OverviewRange,
) -> Result<Figures, StoreError> {
    if stretch.until <= stretch.from {
        return Ok(Figures::default());
    }
    let sql = format!(
        "SELECT COALESCE(CAST(SUM(requests) AS BIGINT), 0) AS requests, COALESCE(CAST(SUM(errors) \
         AS BIGINT), 0) AS errors, COALESCE(CAST(SUM(cost) AS BIGINT), 0) AS cost, \
         COALESCE(CAST(SUM(duration_ms) AS BIGINT), 0) AS duration_ms FROM {}",
        stretch.rows_by_user()
    );
    let query = sqlx::query_with(AssertSqlSafe(sql), stretch.values().into_arguments());
    let row = query.fetch_one(&mut *connection).await?;
    let limited = limited(connection, stretch).await?;
    let fields = Fields { row: &row, table: "hourly_sums" };
    Ok(Figures {
        requests: fields.number("requests")?,
        errors: fields.number("errors")?,
        limited,
        cost: NanoUsd(fields.int("cost")?),
        duration_ms: fields.number("duration_ms")?,
    })
}

/// Requests refused by a limit: the statuses of limits without a provider (a provider may answer
/// 429 too, but is recorded).
macro_rules! limited {
    ($on_sums:literal, $on_ledger:literal) => {
        concat!(
            "SELECT COALESCE(CAST(SUM(requests) AS BIGINT), 0) AS limited FROM (SELECT requests \
             FROM hourly_sums WHERE hour >= $1 AND hour < $2 AND provider_id = 0 \
             AND status_code IN (402, 429)",
            $on_sums,
            " UNION ALL SELECT 1 AS requests FROM ledger \
             WHERE started_at >= $3 AND started_at < $1 AND provider_id IS NULL \
             AND status_code IN (402, 429) AND outcome = 'refused'",
            $on_ledger,
            ") AS counted"
        )
    };
}

const LIMITED: &str = limited!("", "");
const LIMITED_OF_USER: &str =
    limited!(" AND user_id = $4", " AND key_id IN (SELECT id FROM api_keys WHERE user_id = $4)");

async fn limited(
    connection: &mut AnyConnection,
    stretch: OverviewRange,
) -> Result<u64, StoreError> {
    let sql = if stretch.scope.is_some() { LIMITED_OF_USER } else { LIMITED };
    let row =
        sqlx::query_with(sql, stretch.values().into_arguments()).fetch_one(connection).await?;
    Fields { row: &row, table: "hourly_sums" }.number("limited")
}

/// Yesterday's whole hours, and its share of the hour that is cut.
async fn yesterday(
    connection: &mut AnyConnection,
    ask: &OverviewAsk<'_>,
) -> Result<Figures, StoreError> {
    let until = ask.yesterday.plus_ms(ask.now.since(ask.today)).min(ask.today);
    let cut = Timestamp(hour_of(until.0)).max(ask.yesterday);
    let whole =
        OverviewRange { scope: ask.scope, from: ask.yesterday, until: Timestamp(hour_of(until.0)) };
    let begun = OverviewRange {
        scope: ask.scope,
        from: cut,
        until: Timestamp(hour_of(until.0).saturating_add(HOUR_MS)),
    };
    let begun_figures =
        figures(connection, begun).await?.part(until.since(cut), begun.until.since(cut));
    Ok(figures(connection, whole).await?.plus(begun_figures))
}

/// The condition is in a sub-query that only selects: SQLite, whose ledger is a view, does not take
/// it into an aggregate's parts.
pub(super) const LAST_MINUTE_OF_USER: &str = "SELECT COUNT(*) AS requests FROM \
    (SELECT request_id FROM ledger WHERE started_at > $1 \
    AND key_id IN (SELECT id FROM api_keys WHERE user_id = $2)) AS counted";

async fn last_minute(
    connection: &mut AnyConnection,
    ask: &OverviewAsk<'_>,
) -> Result<u64, StoreError> {
    let mut values = Values::default();
    values.time(ask.now.plus_ms(-60_000));
    let sql = match ask.scope {
        None => "SELECT COUNT(*) AS requests FROM ledger WHERE started_at > $1",
        Some(user) => {
            values.int(user.0);
            LAST_MINUTE_OF_USER
        }
    };
    let row = sqlx::query_with(sql, values.into_arguments()).fetch_one(connection).await?;
    Fields { row: &row, table: "ledger" }.number("requests")
}

/// How one kind of entry is found: its grouping, and the source of its name.
#[derive(Clone, Copy)]
struct EntryBy {
    columns: &'static str,
    group: &'static str,
    rows: fn(OverviewRange) -> &'static str,
}

const BY_USER: EntryBy = EntryBy {
    columns: "user_id AS id, (SELECT name FROM users WHERE users.id = counted.user_id) AS name",
    group: "user_id",
    rows: OverviewRange::rows_by_user,
};
const BY_PROVIDER: EntryBy = EntryBy {
    columns: "provider_id AS id, (SELECT name FROM providers \
              WHERE providers.id = counted.provider_id) AS name",
    group: "provider_id",
    rows: OverviewRange::rows,
};
const BY_MODEL: EntryBy = EntryBy {
    columns: "CAST(0 AS BIGINT) AS id, model AS name",
    group: "model",
    rows: OverviewRange::rows,
};

async fn top(
    connection: &mut AnyConnection,
    stretch: OverviewRange,
    number: u32,
    by: EntryBy,
) -> Result<Vec<TopEntry>, StoreError> {
    let mut values = stretch.values();
    values.int(i64::from(number));
    let sql = format!(
        "SELECT {}, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(cost) AS BIGINT) AS cost \
         FROM {} GROUP BY {} ORDER BY SUM(cost) DESC, SUM(requests) DESC, {} LIMIT ${}",
        by.columns,
        (by.rows)(stretch),
        by.group,
        by.group,
        values.count()
    );
    let rows =
        sqlx::query_with(AssertSqlSafe(sql), values.into_arguments()).fetch_all(connection).await?;
    let read = |row| {
        let fields = Fields { row, table: "hourly_sums" };
        Ok(TopEntry {
            id: Some(fields.int("id")?).filter(|&id| id != 0),
            name: fields.opt_text("name")?,
            requests: fields.number("requests")?,
            cost: NanoUsd(fields.int("cost")?),
        })
    };
    rows.iter().map(read).collect()
}

/// Those of the requests that are in the ledger.
async fn counted(
    connection: &mut AnyConnection,
    pending: &[RequestId],
) -> Result<HashSet<RequestId>, StoreError> {
    let mut counted = HashSet::new();
    for chunk in pending.chunks(500) {
        let mut values = Values::default();
        let mut list = String::new();
        for id in chunk {
            values.bytes(id.0.as_bytes());
            list.push_str(if list.is_empty() { "$" } else { ", $" });
            list.push_str(&values.count().to_string());
        }
        let sql =
            AssertSqlSafe(format!("SELECT request_id FROM ledger WHERE request_id IN ({list})"));
        for row in
            &sqlx::query_with(sql, values.into_arguments()).fetch_all(&mut *connection).await?
        {
            let id = Fields { row, table: "ledger" }.bytes("request_id")?;
            counted.insert(RequestId(uuid::Uuid::from_bytes(id)));
        }
    }
    Ok(counted)
}
