//! The usage log's filters, pages and cursor, compared with the same filter applied in the test.

use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::{KeyId, ProviderId, UserId};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::Record;
use tollgate::store::{LogFilter, LogPage, LogPageAsk, Store, StoreError};

use super::make::{NOON, bare_record, varied_record};
use super::{Place, on_both};

on_both!(
    filters_give_what_they_say,
    pages_by_number_and_by_cursor_are_the_same,
    a_pruned_log_counts_only_what_it_holds,
    an_empty_log_is_an_empty_page,
    what_only_the_log_knows_is_counted_within_bounds,
);

const HOUR: i64 = 3_600_000;

fn matches(filter: &LogFilter, record: &Record) -> bool {
    let is = |wanted: &Option<String>, found: Option<&str>| {
        wanted.as_deref().is_none_or(|text| found == Some(text))
    };
    filter.start.is_none_or(|start| record.started_at >= start)
        && filter.end.is_none_or(|end| record.started_at < end)
        && is(&filter.model, Some(&record.model))
        && is(&filter.endpoint, Some(&record.endpoint))
        && is(&filter.session_id, record.session_id.as_ref().map(|id| id.as_str()))
        && filter.status_code.is_none_or(|status| record.status_code == status)
        && filter.user_id.is_none_or(|id| record.user_id == Some(id))
        && filter.scope.is_none_or(|id| record.user_id == Some(id))
        && filter.key_id.is_none_or(|id| record.key_id == Some(id))
        && filter.provider_id.is_none_or(|id| record.provider_id == Some(id))
        && filter.min_retry_count.is_none_or(|count| record.attempts.saturating_sub(1) >= count)
        && !(filter.exclude_status_200 && record.status_code == 200)
}

fn filters() -> Vec<LogFilter> {
    let none = LogFilter::default;
    let text = |text: &str| Some(text.to_owned());
    let mut filters = vec![
        none(),
        LogFilter { model: text("model-1"), ..none() },
        LogFilter { model: text("no such"), ..none() },
        LogFilter { model: text("' OR 1=1 --"), ..none() },
        LogFilter { status_code: Some(200), ..none() },
        LogFilter { status_code: Some(429), ..none() },
        LogFilter { exclude_status_200: true, ..none() },
        LogFilter { exclude_status_200: true, status_code: Some(500), ..none() },
        LogFilter { user_id: Some(UserId(2)), ..none() },
        LogFilter { scope: Some(UserId(1)), ..none() },
        LogFilter { scope: Some(UserId(1)), user_id: Some(UserId(2)), ..none() },
        LogFilter { key_id: Some(KeyId(3)), ..none() },
        LogFilter { provider_id: Some(ProviderId(1)), ..none() },
        LogFilter { session_id: text("s4"), ..none() },
        LogFilter { endpoint: text("/v1/responses"), ..none() },
        LogFilter { min_retry_count: Some(0), ..none() },
        LogFilter { min_retry_count: Some(2), ..none() },
        LogFilter {
            scope: Some(UserId(1)),
            status_code: Some(200),
            model: text("model-0"),
            ..none()
        },
    ];
    let times =
        [i64::MIN, 0, 1, HOUR - 1, HOUR, HOUR + 1, 2 * HOUR, 9 * HOUR + 77, 20 * HOUR, i64::MAX];
    for start in times {
        for end in times {
            let at = |ms: i64| Some(Timestamp(NOON.0.saturating_add(ms)));
            filters.push(LogFilter {
                start: at(start),
                end: at(end),
                user_id: Some(UserId(2)),
                ..none()
            });
            filters.push(LogFilter {
                start: at(start),
                end: at(end),
                exclude_status_200: true,
                ..none()
            });
        }
        filters.push(LogFilter { start: Some(NOON.plus_ms(start)), ..none() });
        filters.push(LogFilter { end: Some(NOON.plus_ms(start)), ..none() });
    }
    filters
}

async fn get(store: &Store, filter: &LogFilter, page: u32, page_size: u32) -> LogPage {
    store.usage_logs(filter, &LogPageAsk { page, page_size, cursor: None }).await.unwrap()
}

async fn filters_give_what_they_say(place: Place) {
    let store = place.ready().await;
    let records: Vec<Record> = (0..120).map(varied_record).collect();
    store.append_records(&records).await.unwrap();
    for filter in filters() {
        let expected: Vec<&Record> =
            records.iter().rev().filter(|record| matches(&filter, record)).collect();
        let page = get(&store, &filter, 1, 1_000).await;
        assert!(page.rows.iter().map(|row| &row.record).eq(expected.iter().copied()), "{filter:?}");
        assert_eq!(page.total, expected.len() as u64, "{filter:?}");
        assert_eq!(page.next_cursor, None);
        let summary = page.summary;
        assert_eq!(
            summary.cost,
            expected.iter().map(|r| r.cost.unwrap_or_default()).sum::<NanoUsd>(),
            "{filter:?}"
        );
        let sum = |of: fn(&Record) -> u64| expected.iter().map(|record| of(record)).sum::<u64>();
        assert_eq!(summary.errors, sum(|r| u64::from(r.status_code != 200)), "{filter:?}");
        assert_eq!(summary.limit_refusals, sum(|r| u64::from(r.is_limit_refusal())), "{filter:?}");
        assert_eq!(summary.unpriced, sum(|r| u64::from(r.cost.is_none())), "{filter:?}");
        assert_eq!(summary.input_tokens, sum(|r| r.usage.input), "{filter:?}");
        assert_eq!(summary.output_tokens, sum(|r| r.usage.output), "{filter:?}");
        assert_eq!(summary.cache_read_tokens, sum(|r| r.usage.cache_read), "{filter:?}");
        assert_eq!(summary.duration_ms, sum(|r| r.duration_ms), "{filter:?}");
    }
}

async fn pages_by_number_and_by_cursor_are_the_same(place: Place) {
    let store = place.ready().await;
    // five of each moment, so that pages break between rows of the same time
    let records: Vec<Record> = (0..100)
        .map(|n| Record {
            started_at: NOON.plus_ms(n / 5),
            attempts: u32::try_from(n).unwrap(),
            ..bare_record()
        })
        .collect();
    store.append_records(&records).await.unwrap();
    let filter = LogFilter { model: Some("model-a".to_owned()), ..LogFilter::default() };
    let (mut by_number, mut by_cursor, mut cursor) = (Vec::new(), Vec::new(), None);
    for page in 1..=15 {
        let numbered = get(&store, &filter, page, 7).await;
        let ask = LogPageAsk { page: 1, page_size: 7, cursor };
        let next = store.usage_logs(&filter, &ask).await.unwrap();
        assert_eq!((numbered.total, next.total), (100, 100));
        assert_eq!(numbered.next_cursor, next.next_cursor);
        by_number.extend(numbered.rows);
        by_cursor.extend(next.rows);
        cursor = next.next_cursor;
        assert_eq!(cursor.is_none(), page == 15);
    }
    assert_eq!(by_number, by_cursor);
    let mut attempts: Vec<u32> = by_cursor.iter().map(|row| row.record.attempts).collect();
    assert!(by_cursor.is_sorted_by_key(|row| std::cmp::Reverse((row.record.started_at, row.id))));
    attempts.sort_unstable();
    assert!(attempts.into_iter().eq(0..100));
    assert!(get(&store, &filter, u32::MAX, 100).await.rows.is_empty());
    assert_eq!(get(&store, &filter, 0, 7).await.rows, by_number[..7]);
    for bad in ["", "x", "1", "1_", "_1", "1_2_3", "1_2 OR 1=1"] {
        let ask = LogPageAsk { page: 1, page_size: 7, cursor: Some(bad.to_owned()) };
        let error = store.usage_logs(&filter, &ask).await.unwrap_err();
        assert!(matches!(error, StoreError::Missing { .. }), "{bad}: {error}");
    }
}

async fn a_pruned_log_counts_only_what_it_holds(place: Place) {
    let store = place.ready().await;
    let records: Vec<Record> = (0..120).map(varied_record).collect();
    store.append_records(&records).await.unwrap();
    place
        .meddle(
            "DELETE FROM request_log WHERE started_at <= (SELECT MIN(started_at) \
            FROM request_log) + 36000000",
        )
        .await;
    let left =
        records.iter().filter(|record| record.started_at.since(NOON) > 36_000_000).count() as u64;
    assert!(left > 0 && left < 120);
    let page = get(&store, &LogFilter::default(), 1, 1_000).await;
    assert_eq!((page.rows.len() as u64, page.total), (left, left));
}

async fn an_empty_log_is_an_empty_page(place: Place) {
    let store = place.ready().await;
    for filter in filters() {
        let page = get(&store, &filter, 1, 50).await;
        assert!(page.rows.is_empty() && page.total == 0 && page.next_cursor.is_none());
    }
}

async fn what_only_the_log_knows_is_counted_within_bounds(place: Place) {
    let store = place.ready().await;
    let record = |n: i64| Record { started_at: NOON.plus_ms(n), attempts: 2, ..bare_record() };
    for from in (0..20_500).step_by(500) {
        store.append_records(&(from..from + 500).map(record).collect::<Vec<_>>()).await.unwrap();
    }
    let retried = LogFilter { min_retry_count: Some(1), ..LogFilter::default() };
    let endpoint = LogFilter { endpoint: Some("/v1/messages".to_owned()), ..LogFilter::default() };
    let page = get(&store, &retried, 1, 10).await;
    assert_eq!((page.total, page.total_is_exact, page.rows.len()), (20_000, false, 10));
    let page = get(&store, &endpoint, 1, 10).await;
    assert_eq!((page.total, page.total_is_exact), (20_500, true));
    let page =
        get(&store, &LogFilter { min_retry_count: Some(2), ..LogFilter::default() }, 1, 10).await;
    assert_eq!((page.total, page.total_is_exact), (0, true));
}
