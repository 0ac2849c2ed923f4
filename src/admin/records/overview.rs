//! The day's figures, as shown.

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

use super::problem::Problem;
use super::{Exact, Iso};
use crate::ledger::JournalStats;
use crate::store::{Figures, OverviewFound, TopEntry};

/// The calendar day in the gateway's time zone so far. Figures of other nodes are at most ten
/// seconds old.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverviewRecord {
    /// Sessions with a request running, or one that ended a short while ago.
    pub concurrent_sessions: u64,
    /// Requests of today, whatever became of them.
    pub today_requests: u64,
    /// USD.
    pub today_cost: Exact,
    /// Milliseconds from a request's start to the end of its reply, on average over today.
    pub avg_response_time: u64,
    /// Percent of today's requests that failed or were refused, with two digits after the point.
    /// Those that a limit refused are left out, of the errors and of the requests.
    pub today_error_rate: Exact,
    /// Today's requests that a limit of a key or a user refused.
    pub today_limit_refusals: u64,
    /// Requests of yesterday, up to this time of day.
    pub yesterday_same_period_requests: u64,
    /// USD of yesterday, up to this time of day.
    pub yesterday_same_period_cost: Exact,
    /// Milliseconds from a request's start to the end of its reply, on average over the same part
    /// of yesterday.
    pub yesterday_same_period_avg_response_time: u64,
    /// Percent of yesterday's requests up to this time of day, counted as `todayErrorRate` is.
    pub yesterday_same_period_error_rate: Exact,
    /// Requests of yesterday, up to this time of day, that a limit of a key or a user refused.
    pub yesterday_same_period_limit_refusals: u64,
    /// Requests that began within the last minute.
    pub recent_minute_requests: u64,
    /// Today's most expensive users, most expensive first.
    pub top_users: Vec<TopRecord>,
    /// Today's most expensive models, most expensive first.
    pub top_models: Vec<TopRecord>,
    /// Today's most expensive providers, most expensive first.
    pub top_providers: Vec<TopRecord>,
    /// What may need an administrator's attention; `null` for users.
    pub attention: Option<Attention>,
}

/// What may need an administrator's attention.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attention {
    /// What is wrong on the node that answers, the worst first.
    pub problems: Vec<Problem>,
    /// Keys, users and providers that have spent 80 percent or more of a limit, nearest first, at
    /// most 20. At most ten seconds old; where more than 500 of them have limits, correspondingly
    /// older.
    pub near_limits: Vec<NearLimit>,
    /// How many more there are than `nearLimits` has.
    pub more_near_limits: usize,
    /// The journal of the node that answers.
    pub journal: JournalRecord,
}

/// The spending limit of which most is used up.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NearLimit {
    /// `key`, `user` or `provider`.
    pub kind: &'static str,
    /// The id of the key, user or provider, see `kind`.
    pub id: i64,
    /// The name of the key, user or provider.
    pub name: String,
    /// Whose the key is.
    pub user_id: Option<i64>,
    /// `5h`, `daily`, `weekly`, `monthly` or `total`.
    pub window: &'static str,
    /// USD spent; running requests are not in it.
    pub current: Exact,
    /// USD.
    pub limit: Exact,
    /// As in `getKeyLimitUsage`.
    pub reset_at: Option<Iso>,
}

/// Records on their way to the database.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JournalRecord {
    /// Records that the database does not have yet.
    pub pending_records: u64,
    /// Milliseconds that the oldest of them has waited.
    pub oldest_age_ms: u64,
    /// The database did not take the last batch.
    pub failing: bool,
    /// Bytes that the journal uses on disk.
    pub disk_bytes: u64,
    /// Bytes that the journal may use (`ledger.max_bytes`). When they are used up, new requests are
    /// refused.
    pub max_bytes: u64,
    /// Records in memory, because the disk accepts none. They are lost if the process ends.
    pub held_records: u64,
    /// Records that are neither on disk nor in memory, but in the log only; since the start.
    pub lost_records: u64,
    /// Records and damaged parts of the journal that were set aside for the operator, since the
    /// start.
    pub set_aside: u64,
}

impl From<JournalStats> for JournalRecord {
    fn from(stats: JournalStats) -> Self {
        Self {
            pending_records: stats.pending_records,
            oldest_age_ms: stats.oldest_age_ms,
            failing: stats.writer_failing,
            disk_bytes: stats.disk_bytes,
            max_bytes: stats.max_bytes,
            held_records: stats.held_records,
            lost_records: stats.lost_records,
            set_aside: stats.refused_records.saturating_add(stats.damaged_ranges),
        }
    }
}

/// Limits that are named.
const NAMED: usize = 20;

impl Attention {
    /// `near_limits`, nearest first: of those above 20 only the number is kept.
    pub fn new(
        problems: Vec<Problem>,
        mut near_limits: Vec<NearLimit>,
        journal: JournalStats,
    ) -> Self {
        let more_near_limits = near_limits.len().saturating_sub(NAMED);
        near_limits.truncate(NAMED);
        Self { problems, near_limits, more_near_limits, journal: journal.into() }
    }
}

/// One of the most expensive.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopRecord {
    /// Of the user or provider; `null` for a model, for the administrator token's requests, and for
    /// those that no provider was asked for.
    pub id: Option<i64>,
    /// `null` = there is no such record, or no longer.
    pub name: Option<String>,
    /// Today's requests, whatever became of them.
    pub requests: u64,
    /// USD.
    pub cost: Exact,
}

impl OverviewRecord {
    /// `more`: what `found` does not count yet.
    pub fn new(
        found: &OverviewFound,
        more: Figures,
        sessions: u64,
        attention: Option<Attention>,
    ) -> Self {
        let (today, yesterday) = (found.today.plus(more), found.yesterday);
        let top = |entries: &[TopEntry]| entries.iter().map(TopRecord::from).collect();
        Self {
            concurrent_sessions: sessions,
            today_requests: today.requests,
            today_cost: Exact::usd(today.cost),
            avg_response_time: average_ms(today),
            today_error_rate: error_rate(today),
            today_limit_refusals: today.limited,
            yesterday_same_period_requests: yesterday.requests,
            yesterday_same_period_cost: Exact::usd(yesterday.cost),
            yesterday_same_period_avg_response_time: average_ms(yesterday),
            yesterday_same_period_error_rate: error_rate(yesterday),
            yesterday_same_period_limit_refusals: yesterday.limited,
            recent_minute_requests: found.last_minute + more.requests,
            top_users: top(&found.users),
            top_models: top(&found.models),
            top_providers: top(&found.providers),
            attention,
        }
    }
}

fn average_ms(figures: Figures) -> u64 {
    (figures.duration_ms + figures.requests / 2).checked_div(figures.requests).unwrap_or(0)
}

fn error_rate(figures: Figures) -> Exact {
    let (errors, requests) = (
        figures.errors.saturating_sub(figures.limited),
        figures.requests.saturating_sub(figures.limited),
    );
    let percent = Decimal::from(errors) * Decimal::ONE_HUNDRED;
    Exact(percent.checked_div(Decimal::from(requests)).unwrap_or_default().round_dp(2))
}

impl From<&TopEntry> for TopRecord {
    fn from(entry: &TopEntry) -> Self {
        let TopEntry { id, name, requests, cost } = entry.clone();
        Self { id, name, requests, cost: Exact::usd(cost) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_averages_stand_nothing_and_are_rounded() {
        let figures = |requests, errors, duration_ms| Figures {
            requests,
            errors,
            duration_ms,
            ..Figures::default()
        };
        assert_eq!(
            (average_ms(figures(0, 0, 0)), error_rate(figures(0, 0, 0))),
            (0, Exact(Decimal::ZERO))
        );
        assert_eq!(average_ms(figures(2, 0, 5)), 3);
        assert_eq!(error_rate(figures(3, 1, 0)), Exact(Decimal::new(3333, 2)));
        assert_eq!(error_rate(figures(4, 4, 0)), Exact(Decimal::ONE_HUNDRED));
        let limited = Figures { limited: 6, ..figures(10, 7, 0) };
        assert_eq!(
            error_rate(limited),
            Exact(Decimal::new(25, 0)),
            "one of four, the six of limits left out"
        );
    }
}
