//! Records: every field kept, exactly once, and summed.

use std::collections::BTreeMap;

use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::{KeyId, ProviderId, RequestId, SessionId, UserId};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::{Record, RequestOutcome};
use tollgate::domain::usage::Usage;
use tollgate::store::{LogFilter, LogPageAsk, Store};

use super::make::{NOON, bare_record, full_record, varied_record};
use super::{Place, on_both};
use crate::support::spent::Spent as _;

on_both!(
    every_field_of_a_record_comes_back,
    every_outcome_comes_back,
    hostile_records_are_kept_within_bounds,
    records_are_written_exactly_once,
    concurrent_writers_of_the_same_records_write_them_once,
    hourly_sums_equal_the_sum_of_the_rows,
    the_ledger_holds_what_the_log_holds,
    spending_by_minute_and_in_all,
    spending_between_two_times_is_what_the_minutes_hold,
    recent_requests_are_those_that_were_admitted_and_ended_lately,
);

pub async fn all_rows(store: &Store) -> Vec<Record> {
    let ask = LogPageAsk { page: 1, page_size: 10_000, cursor: None };
    let page = store.usage_logs(&LogFilter::default(), &ask).await.unwrap();
    page.rows.into_iter().map(|row| row.record).collect()
}

async fn every_field_of_a_record_comes_back(place: Place) {
    let store = place.ready().await;
    let (full, bare) = (full_record(), bare_record());
    assert_eq!(store.append_records(&[full.clone(), bare.clone()]).await.unwrap(), 2);
    assert_eq!(all_rows(&store).await, [full, bare]);
    assert_eq!(store.append_records(&[]).await.unwrap(), 0);
}

async fn every_outcome_comes_back(place: Place) {
    let store = place.ready().await;
    let records: Vec<Record> =
        RequestOutcome::ALL.iter().map(|&outcome| Record { outcome, ..bare_record() }).collect();
    store.append_records(&records).await.unwrap();
    let ask = LogPageAsk { page: 1, page_size: 50, cursor: None };
    let page = store.usage_logs(&LogFilter::default(), &ask).await.unwrap();
    assert_eq!(page.total, 7);
    assert_eq!(page.summary.errors, 5, "completed and client_aborted are none");
    assert!(records.iter().all(|record| page.rows.iter().any(|row| row.record == *record)));
}

async fn hostile_records_are_kept_within_bounds(place: Place) {
    let store = place.ready().await;
    let huge = Usage { input: u64::MAX, output: u64::MAX, ..Usage::default() };
    let hostile = || Record {
        request_id: RequestId::new(),
        started_at: NOON,
        model: format!("a\0{}", "ü".repeat(1_000_000)).into(),
        session_id: Some(SessionId("\u{1f30a}".repeat(5_000).into())),
        upstream_model: Some("x".repeat(100_000).into()),
        endpoint: "/".repeat(100_000).into(),
        error_message: Some("\0".repeat(100_000)),
        usage: huge,
        cost: Some(NanoUsd(i64::MAX)),
        duration_ms: u64::MAX,
        first_byte_ms: Some(u64::MAX),
        overhead_us: u64::MAX,
        attempts: u32::MAX,
        status_code: u16::MAX,
        ..full_record()
    };
    let records: Vec<Record> = (0..30).map(|_| hostile()).collect();
    assert_eq!(store.append_records(&records[..15]).await.unwrap(), 15);
    assert_eq!(store.append_records(&records[15..]).await.unwrap(), 15);
    let rows = all_rows(&store).await;
    assert_eq!(rows.len(), 30);
    assert!(rows[0].model.starts_with("a\u{fffd}ü") && rows[0].model.len() < 1_000);
    assert!(rows[0].usage.input >= 1_000_000_000_000);
    assert_eq!((rows[0].attempts, rows[0].status_code), (u32::MAX, u16::MAX));
    assert_eq!(store.spend_totals().await.unwrap()[0].cost, NanoUsd::usd(10_000_000 * 30));
    for started_at in [i64::MIN, i64::MAX, -1] {
        let record = Record { started_at: Timestamp(started_at), ..bare_record() };
        assert_eq!(store.append_records(&[record]).await.unwrap(), 1, "{started_at}");
    }
}

async fn records_are_written_exactly_once(place: Place) {
    let store = place.ready().await;
    let records: Vec<Record> = (0..250).map(varied_record).collect();
    let twice: Vec<Record> = records[..120].iter().chain(&records[..60]).cloned().collect();
    assert_eq!(store.append_records(&twice).await.unwrap(), 120);
    assert_eq!(store.append_records(&twice).await.unwrap(), 0);
    // of two with one id the first stands
    let other = Record { cost: Some(NanoUsd::usd(99)), ..records[200].clone() };
    let rest: Vec<Record> = records[100..].iter().cloned().chain([other]).collect();
    assert_eq!(store.append_records(&rest).await.unwrap(), 130);
    check_sums(&store, &records).await;
}

async fn concurrent_writers_of_the_same_records_write_them_once(place: Place) {
    let stores = [place.ready().await, place.open().await];
    let records: Vec<Record> = (0..300).map(varied_record).collect();
    let reversed: Vec<Record> = records.iter().rev().cloned().collect();
    let counts = tokio::join!(
        stores[0].append_records(&records),
        stores[1].append_records(&reversed),
        stores[0].append_records(&reversed[..150]),
        stores[1].append_records(&records[..150]),
    );
    let total = counts.0.unwrap() + counts.1.unwrap() + counts.2.unwrap() + counts.3.unwrap();
    assert_eq!(total, 300);
    check_sums(&stores[0], &records).await;
}

async fn hourly_sums_equal_the_sum_of_the_rows(place: Place) {
    let store = place.ready().await;
    let records: Vec<Record> = (0..500).map(varied_record).collect();
    for batch in records.chunks(77) {
        store.append_records(batch).await.unwrap();
    }
    check_sums(&store, &records).await;
    // the same, computed by the database: the check refuses the row unless nothing differs
    place
        .meddle(
            "CREATE TABLE proof (differing BIGINT CHECK (differing = 0)); \
             INSERT INTO proof SELECT COUNT(*) FROM ( \
               SELECT hour, key_id, user_id, provider_id, model, endpoint, status_code, requests, \
               errors, unpriced, input_tokens, output_tokens, cache_read_tokens, cost, duration_ms \
               FROM hourly_sums \
               EXCEPT \
               SELECT (started_at / 3600000) * 3600000, COALESCE(key_id, 0), COALESCE(user_id, 0), \
                 COALESCE(provider_id, 0), model, endpoint, status_code, COUNT(*), \
                 SUM(CASE WHEN outcome = 'completed' THEN 0 ELSE 1 END), \
                 SUM(CASE WHEN cost IS NULL THEN 1 ELSE 0 END), SUM(input_tokens), \
                 SUM(output_tokens), SUM(cache_read_tokens), COALESCE(SUM(cost), 0), \
                 SUM(duration_ms) FROM ledger GROUP BY (started_at / 3600000) * 3600000, \
                 COALESCE(key_id, 0), COALESCE(user_id, 0), COALESCE(provider_id, 0), model, \
                 endpoint, status_code) AS differences",
        )
        .await;
}

/// SQLite derives the ledger's rows from the log's; PostgreSQL gets both. A batch with records that
/// are stored already is written one by one.
async fn the_ledger_holds_what_the_log_holds(place: Place) {
    const COLUMNS: &str = "request_id, started_at, key_id, user_id, provider_id, model, \
        upstream_model, endpoint, status_code, outcome, input_tokens, output_tokens, \
        cache_write_5m_tokens, cache_write_1h_tokens, cache_read_tokens, reasoning_tokens, \
        image_input_tokens, image_output_tokens, usage_extra, price_model, cost, cost_multiplier, \
        estimated, duration_ms";
    let store = place.ready().await;
    let mut records: Vec<Record> = (0..333).map(varied_record).collect();
    records.extend((0..10).map(|_| full_record()));
    assert_eq!(store.append_records(&records[..222]).await.unwrap(), 222);
    assert_eq!(store.append_records(&records[200..]).await.unwrap(), 121);
    let differing = |one: &str, other: &str| {
        format!(
            "INSERT INTO proof SELECT COUNT(*) FROM (SELECT {COLUMNS} FROM {one} EXCEPT \
             SELECT {COLUMNS} FROM {other}) AS d;"
        )
    };
    place
        .meddle(&format!(
            "CREATE TABLE proof (differing BIGINT CHECK (differing = 0)); {} {} \
             INSERT INTO proof SELECT COUNT(*) - 343 FROM request_log; INSERT INTO proof \
             SELECT COUNT(*) - 343 FROM ledger",
            differing("ledger", "request_log"),
            differing("request_log", "ledger")
        ))
        .await;
    let found = store.usage_log(records[300].request_id).await.unwrap().unwrap();
    assert_eq!(found.record, records[300]);
    assert!(store.usage_log(RequestId::new()).await.unwrap().is_none());
}

/// Compares the log's sums (from the hourly sums) and lifetime totals with the records themselves.
async fn check_sums(store: &Store, records: &[Record]) {
    let ask = LogPageAsk { page: 1, page_size: 1, cursor: None };
    let summary = store.usage_logs(&LogFilter::default(), &ask).await.unwrap().summary;
    let cost = |record: &Record| record.cost.unwrap_or_default();
    assert_eq!(summary.requests, records.len() as u64);
    assert_eq!(summary.cost, records.iter().map(cost).sum());
    assert_eq!(summary.input_tokens, records.iter().map(|r| r.usage.input).sum::<u64>());
    assert_eq!(summary.unpriced, records.iter().filter(|r| r.cost.is_none()).count() as u64);
    let mut by_holder: BTreeMap<_, NanoUsd> = BTreeMap::new();
    for record in records.iter().filter(|record| record.cost.is_some()) {
        *by_holder.entry((record.key_id, record.user_id, record.provider_id)).or_default() +=
            cost(record);
    }
    let totals = store.spend_totals().await.unwrap();
    let totals: BTreeMap<_, _> =
        totals.iter().map(|t| ((t.key_id, t.user_id, t.provider_id), t.cost)).collect();
    assert_eq!(totals, by_holder);
}

async fn spending_by_minute_and_in_all(place: Place) {
    let store = place.ready().await;
    assert!(store.spend_since(Timestamp(0)).await.unwrap().is_empty());
    assert!(store.spend_totals().await.unwrap().is_empty());
    let spent = |at_ms: i64, key: Option<i64>, cost: Option<i64>| Record {
        request_id: RequestId::new(),
        started_at: NOON.plus_ms(at_ms),
        key_id: key.map(KeyId),
        user_id: key.map(UserId),
        provider_id: Some(ProviderId(5)),
        cost: cost.map(NanoUsd),
        ..bare_record()
    };
    let records = [
        spent(-1, Some(1), Some(1_000)),
        spent(0, Some(1), Some(1)),
        spent(59_999, Some(1), Some(2)),
        spent(60_000, Some(1), Some(4)),
        spent(1, None, Some(8)),
        spent(2, Some(1), None),
        spent(2, Some(2), Some(0)),
    ];
    store.append_records(&records).await.unwrap();
    let mut rows: Vec<(i64, Option<KeyId>, i64)> = store
        .spend_since(NOON)
        .await
        .unwrap()
        .iter()
        .map(|row| {
            assert_eq!(
                (row.provider_id, row.user_id),
                (Some(ProviderId(5)), row.key_id.map(|id| UserId(id.0)))
            );
            (row.minute.since(NOON), row.key_id, row.cost.0)
        })
        .collect();
    rows.sort_unstable();
    assert_eq!(rows, [(0, None, 8), (0, Some(KeyId(1)), 3), (60_000, Some(KeyId(1)), 4)]);
    let totals = store.spend_totals().await.unwrap();
    let totals: Vec<_> = totals.iter().map(|total| (total.key_id, total.cost.0)).collect();
    assert_eq!(totals, [(None, 8), (Some(KeyId(1)), 1_007)]);
}

async fn spending_between_two_times_is_what_the_minutes_hold(place: Place) {
    let store = place.ready().await;
    let records: Vec<Record> = (0..120).map(varied_record).collect();
    store.append_records(&records).await.unwrap();
    let hour = 3_600_000;
    for from in [-hour, 0, 1, hour, 5 * hour + 1_800_000, 100 * hour] {
        for until in
            [-hour, 0, 60_000, hour, 5 * hour + 1_860_000, 9 * hour, 30 * hour + 1, 1_000 * hour]
        {
            let (from, until) = (NOON.plus_ms(from), NOON.plus_ms(until));
            let inside = |record: &&Record| record.started_at >= from && record.started_at < until;
            let mut expected: BTreeMap<_, NanoUsd> = BTreeMap::new();
            for record in records.iter().filter(inside).filter(|record| record.cost.is_some()) {
                let holder = (record.key_id, record.user_id, record.provider_id);
                *expected.entry(holder).or_default() += record.cost.unwrap_or_default();
            }
            let mut found: BTreeMap<_, NanoUsd> = BTreeMap::new();
            for row in store.spend_between(from, until).await.unwrap() {
                assert!(row.minute >= from.plus_ms(-59_999) && row.minute < until, "{row:?}");
                *found.entry((row.key_id, row.user_id, row.provider_id)).or_default() += row.cost;
            }
            assert_eq!(found, expected, "{from:?} to {until:?}");
        }
    }
}

async fn recent_requests_are_those_that_were_admitted_and_ended_lately(place: Place) {
    let store = place.ready().await;
    let at = |seconds: i64, took_ms: u64| Record {
        request_id: RequestId::new(),
        started_at: NOON.plus_ms(seconds * 1000),
        duration_ms: took_ms,
        outcome: RequestOutcome::Completed,
        endpoint: "/v1/messages".into(),
        ..full_record()
    };
    let kept = [at(-50, 60_000), at(1, 10), at(2, 10)];
    let others = [
        at(-50, 10),
        Record { outcome: RequestOutcome::Refused, ..at(3, 10) },
        Record { endpoint: "/v1/messages/count_tokens".into(), ..at(3, 10) },
        Record { endpoint: "/v1beta/models/m:countTokens".into(), ..at(3, 10) },
        Record { key_id: None, user_id: None, ..at(3, 10) },
        Record { session_id: None, ..at(3, 10) },
    ];
    let all: Vec<Record> = kept.iter().rev().chain(&others).cloned().collect();
    store.append_records(&all).await.unwrap();
    let found = store.recent_requests(NOON).await.unwrap();
    let seen: Vec<_> = found.iter().map(|r| (r.started_at, r.ended_at, r.cost)).collect();
    let wanted =
        kept.map(|r| (r.counts_at(), r.started_at.plus_ms(r.duration_ms as i64), r.cost.unwrap()));
    assert_eq!(seen, wanted);
    assert_eq!(found[0].session.as_str(), kept_session(&full_record()));
}

fn kept_session(record: &Record) -> &str {
    record.session_id.as_ref().unwrap().as_str()
}
