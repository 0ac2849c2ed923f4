//! Random records, their days, and comparisons of the log's totals and of the charts with them.

use std::collections::BTreeMap;

use chrono_tz::Tz;
use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::{KeyId, ProviderId, UserId};
use tollgate::domain::limits::DailyReset;
use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::{Record, RequestOutcome};
use tollgate::domain::usage::Usage;
use tollgate::policy::window::Window;
use tollgate::store::{GroupBy, LogFilter, LogPageAsk, SeriesAsk, Store, SummedDay};

use crate::store::make::bare_record;

pub const HOUR: i64 = 3_600_000;

pub const DAY: i64 = 24 * HOUR;

/// A time in UTC, from RFC 3339.
pub fn at(text: &str) -> Timestamp {
    Timestamp::from(text.parse::<chrono::DateTime<chrono::Utc>>().unwrap())
}

/// `count` records within `days` days from `first`, of any kind.
pub fn records(
    random: &mut fastrand::Rng,
    first: Timestamp,
    days: i64,
    count: usize,
) -> Vec<Record> {
    let one = |random: &mut fastrand::Rng| {
        let key = random.i64(0..4);
        let status = [200, 200, 200, 429, 402, 500][random.usize(0..6)];
        let provider_id = random.bool().then(|| ProviderId(random.i64(1..3)));
        let refused = provider_id.is_none() && matches!(status, 402 | 429);
        Record {
            started_at: first.plus_ms(random.i64(0..days * DAY)),
            key_id: (key > 0).then_some(KeyId(key)),
            user_id: (key > 0).then_some(UserId(1 + key % 2)),
            provider_id,
            model: format!("model-{}", random.u8(0..3)).into(),
            endpoint: if random.bool() { "/v1/messages".into() } else { "/v1/responses".into() },
            status_code: status,
            outcome: match status {
                200 => RequestOutcome::Completed,
                _ if refused => RequestOutcome::Refused,
                _ => RequestOutcome::UpstreamFailed,
            },
            cost: (random.u8(0..10) > 0).then(|| NanoUsd(random.i64(0..1_000_000))),
            usage: Usage {
                input: random.u64(0..1_000),
                output: random.u64(0..100),
                ..Usage::default()
            },
            duration_ms: random.u64(0..10_000),
            ..bare_record()
        }
    };
    (0..count).map(|_| one(random)).collect()
}

/// The calendar's days from the one of `first` to the one of `last`.
pub fn days(first: Timestamp, last: Timestamp, tz: Tz) -> Vec<SummedDay> {
    let day = |at| Window::Daily(DailyReset::default()).calendar(at, tz);
    let mut days = vec![day(first)];
    while days[days.len() - 1].end <= last {
        days.push(day(days[days.len() - 1].end));
    }
    days.into_iter().map(|span| SummedDay { from: span.start, until: span.end }).collect()
}

/// Sums each of these days.
pub async fn sum_all(store: &Store, days: &[SummedDay]) {
    for day in days {
        store.sum_day(*day).await.unwrap();
    }
}

fn filters() -> Vec<LogFilter> {
    let none = LogFilter::default;
    let text = |text: &str| Some(text.to_owned());
    vec![
        none(),
        LogFilter { user_id: Some(UserId(2)), ..none() },
        LogFilter { scope: Some(UserId(1)), ..none() },
        LogFilter { scope: Some(UserId(1)), user_id: Some(UserId(2)), ..none() },
        LogFilter { key_id: Some(KeyId(3)), ..none() },
        LogFilter { scope: Some(UserId(2)), key_id: Some(KeyId(3)), ..none() },
        LogFilter { scope: Some(UserId(1)), key_id: Some(KeyId(3)), ..none() },
        LogFilter { provider_id: Some(ProviderId(1)), status_code: Some(200), ..none() },
        LogFilter { model: text("model-1"), exclude_status_200: true, ..none() },
        LogFilter { endpoint: text("/v1/messages"), ..none() },
        LogFilter { endpoint: text("model-1"), ..none() },
        LogFilter { status_code: Some(429), ..none() },
        LogFilter { provider_id: Some(ProviderId(2)), model: text("model-2"), ..none() },
        LogFilter { model: text("model-2"), endpoint: text("/v1/responses"), ..none() },
        LogFilter { provider_id: Some(ProviderId(2)), endpoint: text("/v1/responses"), ..none() },
        LogFilter {
            scope: Some(UserId(1)),
            model: text("model-0"),
            status_code: Some(200),
            ..none()
        },
        LogFilter {
            key_id: Some(KeyId(2)),
            provider_id: Some(ProviderId(1)),
            exclude_status_200: true,
            ..none()
        },
        LogFilter {
            user_id: Some(UserId(2)),
            provider_id: Some(ProviderId(1)),
            model: text("model-0"),
            ..none()
        },
        LogFilter { user_id: Some(UserId(2)), endpoint: text("/v1/messages"), ..none() },
    ]
}

fn matches(filter: &LogFilter, record: &Record) -> bool {
    let is =
        |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|text| found == text);
    filter.start.is_none_or(|start| record.started_at >= start)
        && filter.end.is_none_or(|end| record.started_at < end)
        && is(&filter.model, &record.model)
        && is(&filter.endpoint, &record.endpoint)
        && filter.status_code.is_none_or(|status| record.status_code == status)
        && filter.user_id.is_none_or(|id| record.user_id == Some(id))
        && filter.scope.is_none_or(|id| record.user_id == Some(id))
        && filter.key_id.is_none_or(|id| record.key_id == Some(id))
        && filter.provider_id.is_none_or(|id| record.provider_id == Some(id))
        && !(filter.exclude_status_200 && record.status_code == 200)
}

/// Compares the log's totals with the records, for every filter and between these times.
pub async fn check_log(store: &Store, records: &[Record], times: &[Option<Timestamp>]) {
    for filter in filters() {
        for (start, end) in
            times.iter().flat_map(|start| times.iter().map(move |end| (*start, *end)))
        {
            let filter = LogFilter { start, end, ..filter.clone() };
            let ask = LogPageAsk { page: 1, page_size: 1, cursor: None };
            let page = store.usage_logs(&filter, &ask).await.unwrap();
            let found: Vec<&Record> =
                records.iter().filter(|record| matches(&filter, record)).collect();
            let sum = |of: fn(&Record) -> u64| found.iter().map(|record| of(record)).sum::<u64>();
            let summary = page.summary;
            assert!(page.total_is_exact);
            assert_eq!(page.total, found.len() as u64, "{filter:?}");
            assert_eq!(
                summary.cost,
                found.iter().map(|r| r.cost.unwrap_or_default()).sum(),
                "{filter:?}"
            );
            assert_eq!(summary.errors, sum(|r| u64::from(r.status_code != 200)), "{filter:?}");
            assert_eq!(
                summary.limit_refusals,
                sum(|r| u64::from(r.is_limit_refusal())),
                "{filter:?}"
            );
            assert_eq!(summary.unpriced, sum(|r| u64::from(r.cost.is_none())), "{filter:?}");
            assert_eq!(summary.input_tokens, sum(|r| r.usage.input), "{filter:?}");
            assert_eq!(summary.output_tokens, sum(|r| r.usage.output), "{filter:?}");
            assert_eq!(summary.duration_ms, sum(|r| r.duration_ms), "{filter:?}");
        }
    }
}

/// The values that distinguish a line.
fn line(by: GroupBy, record: &Record) -> (i64, Option<String>) {
    match by {
        GroupBy::User => (record.user_id.map_or(0, |id| id.0), None),
        GroupBy::Key => (record.key_id.map_or(0, |id| id.0), None),
        GroupBy::Provider => (record.provider_id.map_or(0, |id| id.0), None),
        GroupBy::Model => (0, Some(record.model.to_string())),
    }
}

/// Compares every chart of these days with the records.
pub async fn check_charts(
    store: &Store,
    records: &[Record],
    days: &[SummedDay],
    scopes: &[Option<UserId>],
) {
    let mut boundaries: Vec<Timestamp> = days.iter().map(|day| day.from).collect();
    boundaries.extend(days.last().map(|day| day.until));
    for by in [GroupBy::User, GroupBy::Key, GroupBy::Model, GroupBy::Provider] {
        for &scope in scopes {
            let mut expected: BTreeMap<_, Vec<(u64, NanoUsd)>> = BTreeMap::new();
            for record in records.iter().filter(|r| scope.is_none() || r.user_id == scope) {
                let place = days
                    .iter()
                    .position(|day| day.from <= record.started_at && record.started_at < day.until);
                let points = expected
                    .entry(line(by, record))
                    .or_insert_with(|| vec![Default::default(); days.len()]);
                points[place.unwrap()].0 += 1;
                points[place.unwrap()].1 += record.cost.unwrap_or_default();
            }
            let found = store
                .series(&SeriesAsk { scope, by, boundaries: boundaries.clone() })
                .await
                .unwrap();
            let found: BTreeMap<_, _> =
                found.into_iter().map(|s| ((s.id, s.name), s.points)).collect();
            assert_eq!(found, expected, "{by:?} {scope:?}");
        }
    }
}
