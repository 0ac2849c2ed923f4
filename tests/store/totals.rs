//! The coarser sums, compared with the same records added up in the test.

use std::collections::{BTreeMap, BTreeSet};

use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::{KeyId, UserId};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::Record;
use tollgate::store::{GroupBy, Series, SeriesAsk};

use super::make::{NOON, varied_record};
use super::{Place, on_both};

on_both!(
    lists_and_lifetime_figures_are_those_of_the_records,
    lines_are_those_of_the_records_wherever_time_is_cut
);

const HOUR: i64 = 3_600_000;

async fn lists_and_lifetime_figures_are_those_of_the_records(place: Place) {
    let store = place.ready().await;
    let records: Vec<Record> = (0..150).map(varied_record).collect();
    // In pieces, and some twice: each is counted once.
    for chunk in records.chunks(40) {
        store.append_records(chunk).await.unwrap();
        store.append_records(&chunk[..5]).await.unwrap();
    }
    for scope in [None, Some(UserId(1)), Some(UserId(2)), Some(UserId(77))] {
        let seen = records.iter().filter(|r| scope.is_none() || r.user_id == scope);
        let models: BTreeSet<String> = seen.clone().map(|r| r.model.to_string()).collect();
        let statuses: BTreeSet<u16> = seen.map(|r| r.status_code).collect();
        assert!(store.models_asked_for(scope).await.unwrap().into_iter().eq(models), "{scope:?}");
        assert!(
            store.statuses_answered(scope).await.unwrap().into_iter().eq(statuses),
            "{scope:?}"
        );
    }
    let mut unpriced: BTreeMap<String, u64> = BTreeMap::new();
    for record in records.iter().filter(|record| record.cost.is_none()) {
        *unpriced.entry(record.model.to_string()).or_default() += 1;
    }
    let found = store.unpriced_requests().await.unwrap();
    assert!(found.is_sorted_by_key(|(_, requests)| std::cmp::Reverse(*requests)));
    assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), unpriced);
    for (user, key) in [(1, 1), (1, 3), (2, 2), (2, 4), (1, 2)] {
        let of_key = |r: &&Record| r.user_id == Some(UserId(user)) && r.key_id == Some(KeyId(key));
        let mut expected: BTreeMap<String, (u64, u64, NanoUsd)> = BTreeMap::new();
        for record in records.iter().filter(of_key) {
            let sum = expected.entry(record.model.to_string()).or_default();
            *sum =
                (sum.0 + 1, sum.1 + record.usage.output, sum.2 + record.cost.unwrap_or_default());
        }
        let totals = store.key_totals(UserId(user), KeyId(key)).await.unwrap();
        assert!(totals.is_sorted_by_key(|total| std::cmp::Reverse(total.cost)));
        let found = totals.into_iter().map(|t| (t.model, (t.requests, t.output_tokens, t.cost)));
        assert_eq!(found.collect::<BTreeMap<_, _>>(), expected, "{user} {key}");
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

async fn lines_are_those_of_the_records_wherever_time_is_cut(place: Place) {
    let store = place.ready().await;
    let records: Vec<Record> = (0..150).map(varied_record).collect();
    store.append_records(&records).await.unwrap();
    let cuts: [&[i64]; 5] = [
        &[0, 24 * HOUR, 48 * HOUR],
        &[-HOUR / 2, 47 * HOUR / 2, 95 * HOUR / 2],
        &[HOUR / 4, HOUR / 2],
        &[-1_000 * HOUR, 1_000 * HOUR],
        &[5 * HOUR, 5 * HOUR + 60_000, 5 * HOUR + 25 * 60_000, 7 * HOUR],
    ];
    for cut in cuts {
        let boundaries: Vec<Timestamp> = cut.iter().map(|ms| NOON.plus_ms(*ms)).collect();
        for by in [GroupBy::User, GroupBy::Key, GroupBy::Model, GroupBy::Provider] {
            let mut expected: BTreeMap<_, Vec<(u64, NanoUsd)>> = BTreeMap::new();
            for record in &records {
                let place = boundaries
                    .windows(2)
                    .position(|w| w[0] <= record.started_at && record.started_at < w[1]);
                let Some(place) = place else { continue };
                let points = expected
                    .entry(line(by, record))
                    .or_insert_with(|| vec![Default::default(); cut.len() - 1]);
                points[place].0 += 1;
                points[place].1 += record.cost.unwrap_or_default();
            }
            let found = store
                .series(&SeriesAsk { scope: None, by, boundaries: boundaries.clone() })
                .await
                .unwrap();
            assert!(found.is_sorted_by_key(|series| std::cmp::Reverse(series.cost())));
            let key = |s: &Series| (s.id, s.name.clone());
            let found: BTreeMap<_, _> = found.into_iter().map(|s| (key(&s), s.points)).collect();
            assert_eq!(found, expected, "{by:?} {cut:?}");
        }
    }
}
