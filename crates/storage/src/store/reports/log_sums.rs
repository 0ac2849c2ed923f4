//! The usage log's total, and sums over all that a filter matches, without counting millions of
//! rows.
//!
//! They come from the ledger's sums: whole days if those are grouped as the filter needs, the hours
//! of the rest, and the partial hours at both ends from the log. That is exact if the log is pruned
//! from its old end only, since the range is first cut to what the log still contains. If days are
//! not grouped that way (a user's requests for a model at a provider), the lifetime sums cover a
//! log that was never pruned. If none of them can answer, or only by very many hours, the newest
//! twenty thousand rows are counted, and the answer says so.

use sqlx::{AnyConnection, AssertSqlSafe};

use super::log_filter::LogFilter;
use super::log_query::{Conditions, Span};
use super::pieces::{PieceSource, RangePiece, pieces};
use crate::domain::clock::Timestamp;
use crate::domain::money::NanoUsd;
use crate::store::engine::column::Fields;
use crate::store::engine::error::StoreError;
use crate::store::ledger::days::{self, Cut, DayQuery};
use crate::store::ledger::sums::{HOUR_MS, hour_of};

/// Maximum rows that are counted and summed if only the log itself can answer.
pub(in crate::store) const COUNTED: u64 = 20_000;
/// A longer time is read from hourly sums only if they are known to be few.
const LONG_MS: i64 = 32 * 24 * HOUR_MS;
/// Maximum hourly sums that are added up for such a time.
const MOST_HOURS: u64 = 50_000;

/// Sums over all pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogSummary {
    /// Requests of every outcome.
    pub requests: u64,
    /// Requests that failed or were refused.
    pub errors: u64,
    /// Those of them that were refused by a limit of a key or a user.
    pub limit_refusals: u64,
    /// Requests whose model had no price.
    pub unpriced: u64,
    /// Input that was neither read from nor written to a cache.
    pub input_tokens: u64,
    /// All output, including reasoning.
    pub output_tokens: u64,
    /// Input written to the five-minute prompt cache.
    pub cache_write_5m_tokens: u64,
    /// Input written to the one-hour prompt cache.
    pub cache_write_1h_tokens: u64,
    /// Input read from a prompt cache.
    pub cache_read_tokens: u64,
    /// The part of the output that was reasoning.
    pub reasoning_tokens: u64,
    /// Nano-USD; unpriced requests count as zero.
    pub cost: NanoUsd,
    /// Milliseconds, the sum over all requests.
    pub duration_ms: u64,
}

impl LogFilter {
    /// Whether sums can answer the filter.
    fn fits_sums(&self) -> bool {
        self.session_id.is_none()
            && self.request_id.is_none()
            && self.min_retry_count.is_none_or(|count| count == 0)
    }

    /// Whether the lifetime sums can answer, for a log that was never pruned.
    fn fits_totals(&self) -> bool {
        self.endpoint.is_none() && self.start.is_none() && self.end.is_none()
    }

    fn asked(&self) -> DayQuery {
        DayQuery {
            holder: self.scope.is_some() || self.user_id.is_some() || self.key_id.is_some(),
            provider: self.provider_id.is_some(),
            model: self.model.is_some(),
            endpoint: self.endpoint.is_some(),
        }
    }
}

/// Sums over everything that matches, and whether they are exact.
pub(in crate::store) async fn summary(
    connection: &mut AnyConnection,
    filter: &LogFilter,
) -> Result<(LogSummary, bool), StoreError> {
    if !filter.fits_sums() {
        return sum_newest(connection, filter).await;
    }
    let row = sqlx::query(ENDS).fetch_one(&mut *connection).await?;
    let fields = Fields { row: &row, table: "request_log" };
    let (Some(oldest), Some(newest)) = (fields.opt_time("oldest")?, fields.opt_time("newest")?)
    else {
        return Ok((LogSummary::default(), true));
    };
    let from = filter.start.map_or(oldest, |start| start.max(oldest));
    let end = Timestamp(hour_of(newest.0)).plus_ms(HOUR_MS);
    let until = filter.end.map_or(end, |until| until.min(end));
    let cut = Cut::of(filter.asked());
    let days = match cut {
        Some(_) => days::summed(connection, from, until).await?,
        None => Vec::new(),
    };
    let pieces = pieces(from.0, until.0, &days);
    if hours_in(&pieces) > LONG_MS {
        if filter.fits_totals() && fields.opt_time("first")? == Some(oldest) {
            let conditions = Conditions::on_totals(filter);
            return Ok((
                sum_of(connection, "usage_totals", REFUSED_IN_HOURS, conditions).await?,
                true,
            ));
        }
        if hourly_sums_of(connection, filter, Span { from: Some(from), until: Some(until) }).await?
            > MOST_HOURS
        {
            return sum_newest(connection, filter).await;
        }
    }
    let mut sums = LogSummary::default();
    for piece in &pieces {
        sums = sums.plus(&sum_piece(connection, filter, cut, piece).await?);
    }
    Ok((sums, true))
}

/// Where the log begins and ends, and where the ledger begins.
pub(super) const ENDS: &str = "SELECT (SELECT MIN(started_at) \
                    FROM request_log) AS oldest, (SELECT MAX(started_at) \
                    FROM request_log) AS newest, (SELECT started_at FROM ledger \
                    ORDER BY started_at LIMIT 1) AS first";

/// The length of the time that is read from hours.
fn hours_in(pieces: &[RangePiece]) -> i64 {
    let hours = pieces.iter().filter(|piece| piece.source == PieceSource::Hours);
    hours.map(|piece| piece.until.saturating_sub(piece.from)).fold(0, i64::saturating_add)
}

/// How many hourly sums an index has for the requested holder (for all, if none is given),
/// estimated from the summed days.
async fn hourly_sums_of(
    connection: &mut AnyConnection,
    filter: &LogFilter,
    span: Span,
) -> Result<u64, StoreError> {
    let (scope, user_id, key_id) = (filter.scope, filter.user_id, filter.key_id);
    let holder = LogFilter { scope, user_id, key_id, ..LogFilter::default() };
    let cut = if filter.asked().holder { Cut::Holder } else { Cut::Whole };
    let conditions = Conditions::on_days(&holder, span, cut);
    let sql = format!(
        "SELECT COALESCE(CAST(SUM(hours) AS BIGINT), 0) AS hours FROM daily_sums {}",
        conditions.clause()
    );
    let query = sqlx::query_with(AssertSqlSafe(sql), conditions.values.into_arguments());
    Fields { row: &query.fetch_one(connection).await?, table: "daily_sums" }.number("hours")
}

const SUM_HOURS: &str = "SELECT COALESCE(CAST(SUM(requests) AS BIGINT), 0) AS requests, \
                         COALESCE(CAST(SUM(errors) AS BIGINT), 0) AS errors, \
                         COALESCE(CAST(SUM(unpriced) AS BIGINT), 0) AS unpriced";
/// Refused by a limit: the statuses of limits without a provider (a provider may answer 429 too).
const REFUSED_IN_HOURS: &str = "COALESCE(CAST(SUM(CASE WHEN provider_id = 0 AND status_code IN \
    (402, 429) THEN requests ELSE 0 END) AS BIGINT), 0) AS limit_refusals";
/// Days are not grouped by provider and status together: the missing part is read from the hours of
/// refusals.
const REFUSED_IN_DAYS: &str = "0 AS limit_refusals";
/// What these read of the log. PostgreSQL's index of retried requests has all of it, so that the
/// sums of a page of them read no rows.
const SUMMED: &str = "outcome, provider_id, status_code, cost, input_tokens, output_tokens, \
                      cache_write_5m_tokens, cache_write_1h_tokens, cache_read_tokens, \
                      reasoning_tokens, duration_ms";
const SUM_LOG: &str = "SELECT COUNT(*) AS requests, COALESCE(CAST(SUM(CASE WHEN outcome IN \
                       ('completed', 'client_aborted') THEN 0 ELSE 1 END) AS BIGINT), 0) AS \
                       errors, COALESCE(CAST(SUM(CASE WHEN provider_id IS NULL \
                       AND status_code IN (402, 429) \
                       AND outcome = 'refused' THEN 1 ELSE 0 END) AS BIGINT), 0) AS \
                       limit_refusals, COALESCE(CAST(SUM(CASE WHEN cost IS NULL THEN 1 ELSE 0 END) \
                       AS BIGINT), 0) AS unpriced";
const SUM_BOTH: &str = "COALESCE(CAST(SUM(input_tokens) AS BIGINT), 0) AS input_tokens, \
                        COALESCE(CAST(SUM(output_tokens) AS BIGINT), 0) AS output_tokens, \
                        COALESCE(CAST(SUM(cache_write_5m_tokens) AS BIGINT), 0) AS \
                        cache_write_5m_tokens, COALESCE(CAST(SUM(cache_write_1h_tokens) AS \
                        BIGINT), 0) AS cache_write_1h_tokens, COALESCE(CAST(SUM(cache_read_tokens) \
                        AS BIGINT), 0) AS cache_read_tokens, COALESCE(CAST(SUM(reasoning_tokens) \
                        AS BIGINT), 0) AS reasoning_tokens, COALESCE(CAST(SUM(cost) AS BIGINT), 0) \
                        AS cost, COALESCE(CAST(SUM(duration_ms) AS BIGINT), 0) AS duration_ms";

async fn sum_piece(
    connection: &mut AnyConnection,
    filter: &LogFilter,
    cut: Option<Cut>,
    piece: &RangePiece,
) -> Result<LogSummary, StoreError> {
    let span = Span { from: Some(Timestamp(piece.from)), until: Some(Timestamp(piece.until)) };
    match (piece.source, cut) {
        (PieceSource::Days, Some(cut)) => {
            let conditions = Conditions::on_days(filter, span, cut);
            let sums = sum_of(connection, "daily_sums", REFUSED_IN_DAYS, conditions).await?;
            Ok(LogSummary { limit_refusals: refused_in(connection, filter, *piece).await?, ..sums })
        }
        (PieceSource::Rows, _) => sum_rows(connection, filter, span).await,
        (PieceSource::Hours | PieceSource::Days, _) => {
            sum_of(connection, "hourly_sums", REFUSED_IN_HOURS, Conditions::on_sums(filter, span))
                .await
        }
    }
}

async fn sum_of(
    connection: &mut AnyConnection,
    table: &str,
    refused: &str,
    conditions: Conditions,
) -> Result<LogSummary, StoreError> {
    let sql = format!("{SUM_HOURS}, {refused}, {SUM_BOTH} FROM {table} {}", conditions.clause());
    sum(connection, sql, conditions).await
}

async fn sum_rows(
    connection: &mut AnyConnection,
    filter: &LogFilter,
    span: Span,
) -> Result<LogSummary, StoreError> {
    let conditions = Conditions::on_log(filter, span);
    let sql = format!("{SUM_LOG}, {SUM_BOTH} FROM request_log {}", conditions.clause());
    sum(connection, sql, conditions).await
}

/// Refusals by limits in whole days: of the few hourly sums without a provider, by the index of
/// providers (`hourly_sums_provider`). If days do not begin on a whole hour of UTC, the cut hours
/// come from the log.
async fn refused_in(
    connection: &mut AnyConnection,
    filter: &LogFilter,
    piece: RangePiece,
) -> Result<u64, StoreError> {
    if filter.provider_id.is_some() {
        return Ok(0);
    }
    let (first, last) = (hour_of(piece.from.saturating_add(HOUR_MS - 1)), hour_of(piece.until));
    let mut refused = 0;
    for (from, until) in [(piece.from, first), (last, piece.until)] {
        if from < until {
            let span = Span { from: Some(Timestamp(from)), until: Some(Timestamp(until)) };
            refused += sum_rows(connection, filter, span).await?.limit_refusals;
        }
    }
    let span = Span { from: Some(Timestamp(first)), until: Some(Timestamp(last)) };
    let conditions = Conditions::on_refused(filter, span);
    let sql = format!(
        "SELECT COALESCE(CAST(SUM(requests) AS BIGINT), 0) AS refused FROM hourly_sums {}",
        conditions.clause()
    );
    let query = sqlx::query_with(AssertSqlSafe(sql), conditions.values.into_arguments());
    let summed: u64 = Fields { row: &query.fetch_one(connection).await?, table: "hourly_sums" }
        .number("refused")?;
    Ok(refused + summed)
}

/// Sums over the newest matching rows, if only the log can answer.
async fn sum_newest(
    connection: &mut AnyConnection,
    filter: &LogFilter,
) -> Result<(LogSummary, bool), StoreError> {
    let conditions = Conditions::on_log(filter, filter.span());
    let newest = format!(
        "(SELECT {SUMMED} FROM request_log {} ORDER BY started_at DESC, id DESC \
         LIMIT {COUNTED}) AS newest",
        conditions.clause()
    );
    let sums = sum(connection, format!("{SUM_LOG}, {SUM_BOTH} FROM {newest}"), conditions).await?;
    Ok((sums, sums.requests < COUNTED))
}

async fn sum(
    connection: &mut AnyConnection,
    sql: String,
    conditions: Conditions,
) -> Result<LogSummary, StoreError> {
    let query = sqlx::query_with(AssertSqlSafe(sql), conditions.values.into_arguments());
    let row = query.fetch_one(connection).await?;
    let fields = Fields { row: &row, table: "request_log" };
    Ok(LogSummary {
        requests: fields.number("requests")?,
        errors: fields.number("errors")?,
        limit_refusals: fields.number("limit_refusals")?,
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
            limit_refusals: self.limit_refusals + other.limit_refusals,
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
