//! `statistics/getUserStatistics`: requests and cost over time.

use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::Deserialize;
use strum::VariantArray;

use crate::admin::actions::overview;
use crate::admin::bodies::{Id, OneOf, Plain, Word};
use crate::admin::call::Call;
use crate::admin::envelope::ApiError;
use crate::admin::live::client;
use crate::admin::operation::{Operation, Permission};
use crate::admin::records::series::{StatisticsRecord, chart};
use crate::domain::clock::Timestamp;
use crate::domain::ids::UserId;
use crate::domain::limits::DailyReset;
use crate::policy::window::Window;
use crate::store::{GroupBy, Series, SeriesAsk};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
/// Maximum lines in one chart.
const LINES: usize = 500;

/// The word of a range of time.
#[derive(Debug, Clone, Copy)]
pub struct TimeRange(&'static str);

impl Word for TimeRange {
    const ALL: &'static [Self] = &[
        Self("hour"),
        Self("day"),
        Self("week"),
        Self("month"),
        Self("today"),
        Self("7days"),
        Self("30days"),
        Self("thisMonth"),
    ];

    fn word(self) -> &'static str {
        self.0
    }
}

impl Default for TimeRange {
    fn default() -> Self {
        Self("day")
    }
}

impl Word for GroupBy {
    const ALL: &'static [Self] = Self::VARIANTS;

    fn word(self) -> &'static str {
        self.into()
    }
}

/// The body of `statistics/getUserStatistics`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeriesQuery {
    /// `hour`: the last 60 minutes; `day`: the last 24 hours; `week`, `7days`: the last 7 days;
    /// `month`, `30days`: the last 30; `today` and `thisMonth` from their beginning. The present
    /// minute, hour or day is the last.
    #[serde(default)]
    pub time_range: OneOf<TimeRange>,
    /// The only user who counts.
    pub user_id: Option<Id>,
    /// What the lines are of. Of keys, users see their own only.
    #[serde(default)]
    pub group_by: OneOf<GroupBy>,
}

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action(
            "actions/statistics/getUserStatistics",
            Permission::User,
            get_user_statistics,
        )
        .report()
        .doc(
            "Requests and cost over time; users see their own, unless the system settings let them \
             see everybody's.",
        ),
    ]
}

async fn get_user_statistics(call: Call, body: SeriesQuery) -> Result<StatisticsRecord, ApiError> {
    let who = call.who()?;
    let asked = body.user_id.map(|id| UserId(id.0));
    let by = body.group_by.plain();
    // The names of keys belong to their users, whatever the system settings make visible.
    let visible = match by {
        GroupBy::Key => client::scope(who),
        _ => overview::visible(&call.ctx, client::scope(who)),
    };
    if let (Some(asked), Some(_)) = (asked, visible) {
        who.must_own(asked)?;
    }
    let scope = asked.or(visible);
    let time_range = body.time_range.0.word();
    let (resolution, boundaries) = stretches(time_range, call.now, call.ctx.time_zone);
    let prefix = by.word();
    let mode = match by {
        GroupBy::User => "users",
        GroupBy::Key => "keys",
        GroupBy::Model => "models",
        GroupBy::Provider => "providers",
    };
    let mut series = call
        .ctx
        .node
        .store
        .series(&SeriesAsk { scope, by, boundaries: boundaries.clone() })
        .await?;
    if let (Some(user), GroupBy::User, true) = (scope, by, series.is_empty()) {
        // The requested user has a line, even if it has only zeros.
        let name = call.ctx.node.state.snapshot().user(user).map(|user| user.name.clone());
        let points = vec![Default::default(); boundaries.len().saturating_sub(1)];
        series.push(Series { id: user.0, name, points });
    }
    series.truncate(LINES);
    let dates = boundaries.split_last().map_or(&[][..], |(_, dates)| dates);
    let (users, chart_data) = chart(prefix, dates, &series);
    Ok(StatisticsRecord { chart_data, users, time_range, resolution, mode })
}

/// The meaning of a point; the start of each, and the end of the last. Hours are complete hours of
/// UTC, as in the sums.
fn stretches(time_range: &str, now: Timestamp, tz: Tz) -> (&'static str, Vec<Timestamp>) {
    match time_range {
        "hour" => ("minute", steps(now, MINUTE_MS, 60)),
        "day" => ("hour", steps(now, HOUR_MS, 24)),
        "today" => {
            let today = Window::Daily(DailyReset::default()).calendar(now, tz).start;
            let end = Timestamp(now.0 - now.0.rem_euclid(HOUR_MS) + HOUR_MS);
            let whole = (1..)
                .map(|n| Timestamp(today.0 - today.0.rem_euclid(HOUR_MS)).plus_ms(n * HOUR_MS));
            let rest = whole.take_while(|at| *at <= end);
            ("hour", std::iter::once(today).chain(rest).collect())
        }
        "week" | "7days" => ("day", days(now, tz, |count, _| count < 7)),
        "thisMonth" => {
            let first = Window::Monthly.calendar(now, tz).start;
            ("day", days(now, tz, |_, start| start > first))
        }
        _ => ("day", days(now, tz, |count, _| count < 30)),
    }
}

/// `count` steps of `ms`, the last one around now.
fn steps(now: Timestamp, ms: i64, count: i64) -> Vec<Timestamp> {
    let end = now.0 - now.0.rem_euclid(ms) + ms;
    (0..=count).map(|n| Timestamp(end - (count - n) * ms)).collect()
}

/// Calendar days up to today, as long as `more` returns true for their number and the start of the
/// first.
pub(super) fn days(
    now: Timestamp,
    tz: Tz,
    more: impl Fn(usize, Timestamp) -> bool,
) -> Vec<Timestamp> {
    let day = |at| Window::Daily(DailyReset::default()).calendar(at, tz);
    let today = day(now);
    let mut starts = vec![today.end, today.start];
    while let Some(first) = starts.last().copied().filter(|first| more(starts.len() - 1, *first)) {
        starts.push(day(first.plus_ms(-1)).start);
    }
    starts.reverse();
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::from(text.parse::<chrono::DateTime<chrono::Utc>>().unwrap())
    }

    #[test]
    fn days_are_those_of_the_zone_also_when_the_clock_is_put_back() {
        let berlin = chrono_tz::Europe::Berlin;
        let now = at("2026-10-27T12:00:00Z");
        let (resolution, days) = stretches("week", now, berlin);
        assert_eq!((resolution, days.len()), ("day", 8));
        assert_eq!(days[0], at("2026-10-20T22:00:00Z"));
        assert_eq!(days[4], at("2026-10-24T22:00:00Z"), "the day of 25 hours");
        assert_eq!(days[5], at("2026-10-25T23:00:00Z"));
        assert_eq!(days[7], at("2026-10-27T23:00:00Z"));
        let (_, month) = stretches("thisMonth", now, berlin);
        assert_eq!((month.len(), month[0]), (28, at("2026-09-30T22:00:00Z")));
        assert_eq!(stretches("30days", now, berlin).1.len(), 31);
    }

    #[test]
    fn the_present_minute_and_hour_are_the_last() {
        let now = at("2026-10-27T12:34:56Z");
        let (resolution, minutes) = stretches("hour", now, Tz::UTC);
        assert_eq!((resolution, minutes.len()), ("minute", 61));
        assert_eq!(
            (minutes[0], minutes[60]),
            (at("2026-10-27T11:35:00Z"), at("2026-10-27T12:35:00Z"))
        );
        let (_, hours) = stretches("day", now, Tz::UTC);
        assert_eq!((hours.len(), hours[24]), (25, at("2026-10-27T13:00:00Z")));
        let (_, today) = stretches("today", now, chrono_tz::Asia::Kolkata);
        assert_eq!((today[0], today[1]), (at("2026-10-26T18:30:00Z"), at("2026-10-26T19:00:00Z")));
        assert_eq!(today.last(), Some(&at("2026-10-27T13:00:00Z")));
    }
}
