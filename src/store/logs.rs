//! The usage log: filtered pages, newest first, with a total and sums over all that the filter matches.
//!
//! Counting millions of rows takes seconds, so the total comes from the hourly sums wherever the filter asks only what they
//! know (everything but sessions and retries): whole hours from there, the broken hours at both ends from the log. That is exact as
//! long as the log is pruned from its old end only, since the span is first cut to what the log still holds. A year of hours takes too
//! long as well: the whole of a log that was never pruned is known from the lifetime sums. For what neither knows, the newest
//! twenty thousand rows are counted, and the answer says so.

use sqlx::{AnyConnection, AssertSqlSafe};

use super::column::{Fields, Values};
use super::error::StoreError;
use super::log_query::{Conditions, Span};
use super::log_row::{self, LogRow};
use super::sums::{HOUR_MS, hour_of};
use super::{Store, sql};
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, UserId};
use crate::domain::money::NanoUsd;

/// Rows that are counted and summed at most, where only the log itself can tell.
pub const COUNTED: u64 = 20_000;
/// Beyond it hourly sums that no index puts in order are not added up.
const LONG_MS: i64 = 32 * 24 * HOUR_MS;

/// Which requests; every field that is set must match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogFilter {
    /// Started at this time or later.
    pub start: Option<Timestamp>,
    /// Started before this time.
    pub end: Option<Timestamp>,
    /// The model that the client asked for, exactly.
    pub model: Option<String>,
    pub status_code: Option<u16>,
    pub user_id: Option<UserId>,
    pub key_id: Option<KeyId>,
    pub provider_id: Option<ProviderId>,
    pub session_id: Option<String>,
    /// The request's path, exactly.
    pub endpoint: Option<String>,
    /// At least so many attempts beyond the first.
    pub min_retry_count: Option<u32>,
    pub exclude_status_200: bool,
    /// The only user whose rows may be seen, whatever else is asked; `None` = everyone's.
    pub scope: Option<UserId>,
}

/// Which page: by number, or (better for deep ones) the one after a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPageAsk {
    /// From 1; not used when there is a cursor.
    pub page: u32,
    pub page_size: u32,
    /// A [`LogPage::next_cursor`].
    pub cursor: Option<String>,
}

/// One page.
#[derive(Debug, Clone, PartialEq)]
pub struct LogPage {
    /// Newest first.
    pub rows: Vec<LogRow>,
    /// Rows on all pages.
    pub total: u64,
    /// Whether that, and the sums, are of all rows; else of the newest [`COUNTED`].
    pub total_is_exact: bool,
    pub summary: LogSummary,
    /// Asks for the page after this one; `None` on the last.
    pub next_cursor: Option<String>,
}

/// Sums over all pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogSummary {
    pub requests: u64,
    /// Requests that failed or were refused.
    pub errors: u64,
    /// Requests whose model had no price.
    pub unpriced: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_write_5m_tokens: u64,
    pub cache_write_1h_tokens: u64,
    pub cache_read_tokens: u64,
    pub reasoning_tokens: u64,
    pub cost: NanoUsd,
    pub duration_ms: u64,
}

impl LogFilter {
    /// Whether the hourly sums can answer for whole hours. By endpoint they are in no order: a long time is too much of them.
    fn fits_sums(&self) -> bool {
        let long = match (self.start, self.end) {
            (Some(start), Some(end)) => end.since(start) > LONG_MS,
            _ => true,
        };
        self.session_id.is_none()
            && self.min_retry_count.is_none_or(|count| count == 0)
            && !(self.endpoint.is_some() && long)
    }

    /// Whether the lifetime sums can answer, of a log that was never pruned.
    fn fits_totals(&self) -> bool {
        self.fits_sums() && self.endpoint.is_none() && self.start.is_none() && self.end.is_none()
    }

    fn span(&self) -> Span {
        Span { from: self.start, until: self.end }
    }
}

impl Store {
    /// One page of the usage log, with its total and sums, all as of one moment.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when the cursor is not one of ours.
    pub async fn usage_logs(&self, filter: &LogFilter, ask: &LogPageAsk) -> Result<LogPage, StoreError> {
        let cursor = ask.cursor.as_deref().map(parse_cursor).transpose()?;
        let size = usize::try_from(ask.page_size).unwrap_or(usize::MAX);
        let mut tx = self.read().await?;
        let summary = summary(&mut tx, filter).await?;
        let rows = match summary.requests {
            // The search for rows that are not there would read the whole log.
            0 => Vec::new(),
            _ => page(&mut tx, filter, ask, cursor).await?,
        };
        tx.commit().await?;
        // One more than the page was read, to learn whether there is a next one.
        let more = rows.len() > size;
        let rows: Vec<LogRow> = rows.into_iter().take(size).collect();
        let next_cursor = rows.last().filter(|_| more).map(cursor_after);
        let total = summary.requests;
        let total_is_exact = filter.fits_sums() || total < COUNTED;
        Ok(LogPage { rows, total, total_is_exact, summary, next_cursor })
    }
}

async fn page(
    connection: &mut AnyConnection,
    filter: &LogFilter,
    ask: &LogPageAsk,
    cursor: Option<(Timestamp, i64)>,
) -> Result<Vec<LogRow>, StoreError> {
    let (sql, values) = page_sql(filter, ask, cursor);
    let rows = sqlx::query_with(AssertSqlSafe(sql), values.into_arguments()).fetch_all(connection).await?;
    rows.iter().map(log_row::read).collect()
}

/// The statement of one page, and its values.
pub(super) fn page_sql(filter: &LogFilter, ask: &LogPageAsk, cursor: Option<(Timestamp, i64)>) -> (String, Values) {
    let mut conditions = Conditions::on_log(filter, filter.span());
    let size = i64::from(ask.page_size);
    let offset = match cursor {
        Some((started_at, id)) => {
            conditions.after(started_at, id);
            0
        }
        None => i64::from(ask.page).saturating_sub(1).max(0).saturating_mul(size),
    };
    let mut values = std::mem::take(&mut conditions.values);
    values.int(size.saturating_add(1)).int(offset);
    let last = values.count();
    let rest = format!(
        "{} ORDER BY started_at DESC, id DESC LIMIT ${} OFFSET ${last}",
        conditions.clause(),
        last.saturating_sub(1)
    );
    (sql::select("request_log", log_row::LOG_COLUMNS, &rest), values)
}

/// Sums over everything that matches.
async fn summary(connection: &mut AnyConnection, filter: &LogFilter) -> Result<LogSummary, StoreError> {
    if !filter.fits_sums() {
        return sum_newest(connection, filter).await;
    }
    let oldest =
        "SELECT (SELECT MIN(started_at) FROM request_log) AS oldest, (SELECT MIN(started_at) FROM ledger) AS first";
    let row = sqlx::query(oldest).fetch_one(&mut *connection).await?;
    let fields = Fields { row: &row, table: "request_log" };
    let Some(oldest) = fields.opt_time("oldest")? else {
        return Ok(LogSummary::default());
    };
    if filter.fits_totals() && fields.opt_time("first")? == Some(oldest) {
        return sum_totals(connection, filter).await;
    }
    let from = filter.start.map_or(oldest, |start| start.max(oldest));
    let first_whole = Timestamp(hour_of(from.0.saturating_add(HOUR_MS - 1)));
    let end_whole = filter.end.map(|end| Timestamp(hour_of(end.0)));
    if end_whole.is_some_and(|end| end <= first_whole) {
        return sum_log(connection, filter, Span { from: Some(from), until: filter.end }).await;
    }
    let head = sum_log(connection, filter, Span { from: Some(from), until: Some(first_whole) }).await?;
    let whole = sum_hours(connection, filter, Span { from: Some(first_whole), until: end_whole }).await?;
    let tail = match filter.end {
        Some(end) => sum_log(connection, filter, Span { from: end_whole, until: Some(end) }).await?,
        None => LogSummary::default(),
    };
    Ok(head.plus(&whole).plus(&tail))
}

const SUM_HOURS: &str = "SELECT COALESCE(CAST(SUM(requests) AS BIGINT), 0) AS requests, \
    COALESCE(CAST(SUM(errors) AS BIGINT), 0) AS errors, COALESCE(CAST(SUM(unpriced) AS BIGINT), 0) AS unpriced";
const SUM_LOG: &str = "SELECT COUNT(*) AS requests, \
    COALESCE(CAST(SUM(CASE WHEN outcome IN ('completed', 'client_aborted') THEN 0 ELSE 1 END) AS BIGINT), 0) AS errors, \
    COALESCE(CAST(SUM(CASE WHEN cost IS NULL THEN 1 ELSE 0 END) AS BIGINT), 0) AS unpriced";
const SUM_BOTH: &str = "COALESCE(CAST(SUM(input_tokens) AS BIGINT), 0) AS input_tokens, \
    COALESCE(CAST(SUM(output_tokens) AS BIGINT), 0) AS output_tokens, \
    COALESCE(CAST(SUM(cache_write_5m_tokens) AS BIGINT), 0) AS cache_write_5m_tokens, \
    COALESCE(CAST(SUM(cache_write_1h_tokens) AS BIGINT), 0) AS cache_write_1h_tokens, \
    COALESCE(CAST(SUM(cache_read_tokens) AS BIGINT), 0) AS cache_read_tokens, \
    COALESCE(CAST(SUM(reasoning_tokens) AS BIGINT), 0) AS reasoning_tokens, \
    COALESCE(CAST(SUM(cost) AS BIGINT), 0) AS cost, COALESCE(CAST(SUM(duration_ms) AS BIGINT), 0) AS duration_ms";

/// Sums over the newest rows that match: for what only the log itself knows.
async fn sum_newest(connection: &mut AnyConnection, filter: &LogFilter) -> Result<LogSummary, StoreError> {
    let conditions = Conditions::on_log(filter, filter.span());
    let newest = format!(
        "(SELECT * FROM request_log {} ORDER BY started_at DESC, id DESC LIMIT {COUNTED}) AS newest",
        conditions.clause()
    );
    sum(connection, format!("{SUM_LOG}, {SUM_BOTH} FROM {newest}"), conditions).await
}

async fn sum_log(connection: &mut AnyConnection, filter: &LogFilter, span: Span) -> Result<LogSummary, StoreError> {
    let conditions = Conditions::on_log(filter, span);
    sum(connection, format!("{SUM_LOG}, {SUM_BOTH} FROM request_log {}", conditions.clause()), conditions).await
}

async fn sum_hours(connection: &mut AnyConnection, filter: &LogFilter, span: Span) -> Result<LogSummary, StoreError> {
    let conditions = Conditions::on_sums(filter, span);
    sum(connection, format!("{SUM_HOURS}, {SUM_BOTH} FROM hourly_sums {}", conditions.clause()), conditions).await
}

async fn sum_totals(connection: &mut AnyConnection, filter: &LogFilter) -> Result<LogSummary, StoreError> {
    let conditions = Conditions::on_totals(filter);
    sum(connection, format!("{SUM_HOURS}, {SUM_BOTH} FROM usage_totals {}", conditions.clause()), conditions).await
}

async fn sum(connection: &mut AnyConnection, sql: String, conditions: Conditions) -> Result<LogSummary, StoreError> {
    let query = sqlx::query_with(AssertSqlSafe(sql), conditions.values.into_arguments());
    let row = query.fetch_one(connection).await?;
    let fields = Fields { row: &row, table: "request_log" };
    Ok(LogSummary {
        requests: fields.number("requests")?,
        errors: fields.number("errors")?,
        unpriced: fields.number("unpriced")?,
        input_tokens: fields.number("input_tokens")?,
        output_tokens: fields.number("output_tokens")?,
        cache_write_5m_tokens: fields.number("cache_write_5m_tokens")?,
        cache_write_1h_tokens: fields.number("cache_write_1h_tokens")?,
        cache_read_tokens: fields.number("cache_read_tokens")?,
        reasoning_tokens: fields.number("reasoning_tokens")?,
        cost: NanoUsd(fields.int("cost")?),
        duration_ms: fields.number("duration_ms")?,
    })
}

impl LogSummary {
    fn plus(self, other: &Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            errors: self.errors + other.errors,
            unpriced: self.unpriced + other.unpriced,
            input_tokens: self.input_tokens + other.input_tokens,
            output_tokens: self.output_tokens + other.output_tokens,
            cache_write_5m_tokens: self.cache_write_5m_tokens + other.cache_write_5m_tokens,
            cache_write_1h_tokens: self.cache_write_1h_tokens + other.cache_write_1h_tokens,
            cache_read_tokens: self.cache_read_tokens + other.cache_read_tokens,
            reasoning_tokens: self.reasoning_tokens + other.reasoning_tokens,
            cost: self.cost + other.cost,
            duration_ms: self.duration_ms + other.duration_ms,
        }
    }
}

/// The last row's time and number, in letters that need no escaping anywhere.
fn cursor_after(row: &LogRow) -> String {
    format!("{}_{}", row.record.started_at.0, row.id)
}

fn parse_cursor(text: &str) -> Result<(Timestamp, i64), StoreError> {
    let parts = text.split_once('_').and_then(|(time, id)| Some((Timestamp(time.parse().ok()?), id.parse().ok()?)));
    parts.ok_or_else(|| StoreError::Missing { what: "page at this cursor".to_owned() })
}
