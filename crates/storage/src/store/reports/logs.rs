//! The usage log: filtered pages, newest first, with a total and sums over all that the filter
//! matches.
//!
//! Pages are read through an index in row order, and deep ones from a cursor. [`super::log_sums`]
//! computes the total without counting.

use sqlx::{Any, AnyConnection, AssertSqlSafe, Transaction};

use super::log_filter::LogFilter;
use super::log_query::{Conditions, Span};
use super::log_sums::{self, LogSummary};
use crate::domain::clock::Timestamp;
use crate::store::Store;
use crate::store::engine::column::Values;
use crate::store::engine::error::StoreError;
use crate::store::engine::sql;
use crate::store::ledger::log_row::{self, LogRow};
use crate::store::replica::report;

/// The requested page: by number, or (better for deep ones) the one after a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPageAsk {
    /// From 1; ignored if there is a cursor.
    pub page: u32,
    /// Maximum rows on the page. The callers bound it; the store does not.
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
    /// Whether that, and the sums, include all rows; else the newest [`log_sums::COUNTED`].
    pub total_is_exact: bool,
    /// Sums over the rows of all pages; `total` is its number of requests.
    pub summary: LogSummary,
    /// The cursor of the next page; `None` on the last.
    pub next_cursor: Option<String>,
}

/// The last row of the page before.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct LogCursor {
    pub started_at: Timestamp,
    pub id: i64,
}

impl LogFilter {
    pub(in crate::store) fn span(&self) -> Span {
        Span { from: self.start, until: self.end }
    }
}

impl Store {
    /// One page of the usage log, with its total and sums, all as of one moment.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when the cursor is invalid.
    pub async fn usage_logs(
        &self,
        filter: &LogFilter,
        ask: &LogPageAsk,
    ) -> Result<LogPage, StoreError> {
        let cursor = ask.cursor.as_deref().map(parse_cursor).transpose()?;
        report!(self, |tx| logs(tx, filter, ask, cursor))
    }
}

async fn logs(
    mut tx: Transaction<'static, Any>,
    filter: &LogFilter,
    ask: &LogPageAsk,
    cursor: Option<LogCursor>,
) -> Result<LogPage, StoreError> {
    let size = usize::try_from(ask.page_size).unwrap_or(usize::MAX);
    let (summary, total_is_exact) = log_sums::summary(&mut tx, filter).await?;
    let rows = match summary.requests {
        // A search for rows that do not exist would read the whole log.
        0 => Vec::new(),
        _ => page(&mut tx, filter, ask, cursor).await?,
    };
    tx.commit().await?;
    // One row more than the page is read, to find out whether there is a next one.
    let more = rows.len() > size;
    let rows: Vec<LogRow> = rows.into_iter().take(size).collect();
    let next_cursor = rows.last().filter(|_| more).map(cursor_after);
    Ok(LogPage { rows, total: summary.requests, total_is_exact, summary, next_cursor })
}

async fn page(
    connection: &mut AnyConnection,
    filter: &LogFilter,
    ask: &LogPageAsk,
    cursor: Option<LogCursor>,
) -> Result<Vec<LogRow>, StoreError> {
    let (sql, values) = page_sql(filter, ask, cursor);
    let rows =
        sqlx::query_with(AssertSqlSafe(sql), values.into_arguments()).fetch_all(connection).await?;
    rows.iter().map(log_row::read).collect()
}

/// The statement of one page, and its values.
pub(in crate::store) fn page_sql(
    filter: &LogFilter,
    ask: &LogPageAsk,
    cursor: Option<LogCursor>,
) -> (String, Values) {
    let mut conditions = Conditions::on_log(filter, filter.span());
    let size = i64::from(ask.page_size);
    let offset = match cursor {
        Some(last) => {
            conditions.after(last.started_at, last.id);
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

/// The last row's time and number, in characters that never need escaping.
fn cursor_after(row: &LogRow) -> String {
    format!("{}_{}", row.record.counts_at().0, row.id)
}

fn parse_cursor(text: &str) -> Result<LogCursor, StoreError> {
    let read = |(time, id): (&str, &str)| {
        Some(LogCursor { started_at: Timestamp(time.parse().ok()?), id: id.parse().ok()? })
    };
    text.split_once('_')
        .and_then(read)
        .ok_or_else(|| StoreError::Missing { what: "page at this cursor".to_owned() })
}
