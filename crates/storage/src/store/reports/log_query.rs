//! Turns a log filter into conditions on the request log or the hourly sums.

use std::fmt::Write as _;

use super::log_filter::LogFilter;
use super::log_one;
use crate::domain::clock::Timestamp;
use crate::store::engine::column::Values;
use crate::store::ledger::days::Cut;

/// A `WHERE` clause and its values; `$n` are numbered as they are added.
#[derive(Default)]
pub(super) struct Conditions {
    text: String,
    pub(super) values: Values,
}

/// From the first (inclusive) to the second (exclusive) time; `None` = open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct Span {
    pub(super) from: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
}

/// Which of the shared conditions may choose the index. SQLite counts conditions and not rows, so
/// it would read all rows of a user to find those of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Indexes {
    All,
    /// Another condition comes with the user's: few requests were tried again.
    UserOnly,
    /// Another condition leaves few rows: those of a session, or one.
    None,
}

impl Indexes {
    fn of(filter: &LogFilter) -> Self {
        let is_retried = filter.min_retry_count.is_some_and(|count| count > 0);
        let is_of_user = filter.scope.is_some() || filter.user_id.is_some();
        if filter.session_id.is_some() || filter.request_id.is_some() {
            Self::None
        } else if is_retried && is_of_user {
            Self::UserOnly
        } else {
            Self::All
        }
    }
}

impl Conditions {
    /// The conditions on a row of the request log.
    pub(super) fn on_log(filter: &LogFilter, span: Span) -> Self {
        let mut conditions = Self::default();
        conditions.span("started_at", span).shared(filter, Indexes::of(filter));
        if let Some(session) = &filter.session_id {
            conditions.text("session_id =", session);
        }
        if let Some(request) = filter.request_id {
            // The log has no index of ids: the ledger's key gives the time, which is indexed.
            conditions.values.bytes(request.0.as_bytes());
            let at = conditions.values.count();
            conditions.add(&log_one::by_id(at));
        }
        if let Some(retries) = filter.min_retry_count.filter(|&count| count > 0) {
            // The words of a partial index: SQLite takes one only if a condition repeats them.
            let of_user = Indexes::of(filter) == Indexes::UserOnly;
            conditions
                .fixed(if retries > 1 && !of_user { "attempts > 2" } else { "attempts > 1" })
                .int("attempts >", i64::from(retries));
        }
        conditions
    }

    /// The conditions on a row of the hourly sums; for filters that sums can answer.
    pub(super) fn on_sums(filter: &LogFilter, span: Span) -> Self {
        let mut conditions = Self::default();
        conditions.span("hour", span).shared(filter, Indexes::All);
        conditions
    }

    /// The conditions on a row of the hourly sums that belongs to requests refused by a limit.
    pub(super) fn on_refused(filter: &LogFilter, span: Span) -> Self {
        let mut conditions = Self::default();
        conditions
            .fixed("provider_id = 0")
            .fixed("status_code IN (402, 429)")
            .span("hour", span)
            .shared(filter, Indexes::All);
        conditions
    }

    /// The conditions on a row of the summed days, with a grouping that fits the filter.
    pub(super) fn on_days(filter: &LogFilter, span: Span, cut: Cut) -> Self {
        let mut conditions = Self::default();
        conditions.add(&format!("cut = {}", cut.number()));
        conditions.span("day", span).shared(filter, Indexes::All);
        conditions
    }

    /// The conditions on a row of the lifetime sums; for filters that they can answer.
    pub(super) fn on_totals(filter: &LogFilter) -> Self {
        let mut conditions = Self::default();
        conditions.shared(filter, Indexes::All);
        conditions
    }

    /// Rows that follow this one on the pages: older, or as old with a lower row number.
    pub(super) fn after(&mut self, started_at: Timestamp, id: i64) {
        self.values.time(started_at).int(id);
        let last = self.values.count();
        self.add(&format!("(started_at, id) < (${}, ${last})", last - 1));
    }

    /// The clause with its `WHERE`, or nothing.
    pub(super) fn clause(&self) -> &str {
        &self.text
    }

    fn span(&mut self, column: &str, span: Span) -> &mut Self {
        if let Some(from) = span.from {
            self.int(&format!("{column} >="), from.0);
        }
        if let Some(until) = span.until {
            self.int(&format!("{column} <"), until.0);
        }
        self
    }

    /// The columns that the request log and all sums have.
    fn shared(&mut self, filter: &LogFilter, indexes: Indexes) -> &mut Self {
        // `+` and `|| ''` keep a condition from choosing the index.
        let (user, others, texts) = match indexes {
            Indexes::All => ("", "", ""),
            Indexes::UserOnly => ("", "+", " || ''"),
            Indexes::None => ("+", "+", " || ''"),
        };
        let ids = [
            (user, "user_id", filter.scope.map(|id| id.0)),
            (user, "user_id", filter.user_id.map(|id| id.0)),
            (others, "key_id", filter.key_id.map(|id| id.0)),
            (others, "provider_id", filter.provider_id.map(|id| id.0)),
        ];
        for (sign, column, id) in ids {
            if let Some(id) = id {
                self.int(&format!("{sign}{column} ="), id);
            }
        }
        for (column, text) in [("model", &filter.model), ("endpoint", &filter.endpoint)] {
            if let Some(text) = text {
                self.text(&format!("{column}{texts} ="), text);
            }
        }
        if let Some(status) = filter.status_code {
            self.int("status_code =", i64::from(status));
        }
        // Written like the partial indexes' conditions: only then do the planners use them.
        if filter.exclude_status_200 || filter.status_code.is_some_and(|status| status != 200) {
            self.fixed("status_code <> 200");
        }
        self
    }

    fn fixed(&mut self, condition: &str) -> &mut Self {
        self.add(condition);
        self
    }

    fn int(&mut self, condition: &str, value: i64) -> &mut Self {
        self.values.int(value);
        self.numbered(condition);
        self
    }

    fn text(&mut self, condition: &str, value: &str) -> &mut Self {
        self.values.text(value);
        self.numbered(condition);
        self
    }

    fn numbered(&mut self, condition: &str) {
        let condition = format!("{condition} ${}", self.values.count());
        self.add(&condition);
    }

    fn add(&mut self, condition: &str) {
        let word = if self.text.is_empty() { "WHERE" } else { " AND" };
        // Writing to a String cannot fail.
        let _ = write!(self.text, "{word} {condition}");
    }
}
