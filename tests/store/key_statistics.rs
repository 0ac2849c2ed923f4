//! Use by key and model, compared with sums calculated in the test from the records.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::{KeyId, ProviderId, RequestId, UserId};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::provider::Provider;
use tollgate::domain::record::Record;
use tollgate::domain::usage::Usage;
use tollgate::store::{KeyStatistics, ModelStatistics, Store};

use super::make::{NOON, bare_record, key, provider, user, varied_record};
use super::{Place, on_both};

on_both!(
    keys_are_summed_between_any_two_times,
    the_latest_request_names_the_provider,
    deleted_keys_and_those_of_others_are_left_out,
);

const HOUR: i64 = 3_600_000;

/// A user with this many keys.
async fn holder(store: &Store, keys: usize) -> (UserId, Vec<KeyId>) {
    let mut tx = store.begin().await.unwrap();
    let id = tx.insert_user(&user()).await.unwrap();
    let mut ids = Vec::new();
    for n in 0..keys {
        ids.push(tx.insert_key(&key(id, &format!("key {n}"))).await.unwrap());
    }
    tx.commit().await.unwrap();
    (id, ids)
}

async fn provider_named(store: &Store, name: &str) -> ProviderId {
    let mut tx = store.begin().await.unwrap();
    let stored = Provider { name: name.to_owned(), ..provider() };
    let id = tx.insert_provider(&stored, "sealed").await.unwrap();
    tx.commit().await.unwrap();
    id
}

fn by_hand(
    records: &[Record],
    key: KeyId,
    from: Timestamp,
    until: Timestamp,
) -> Vec<ModelStatistics> {
    let mut models: BTreeMap<&str, ModelStatistics> = BTreeMap::new();
    let own = records
        .iter()
        .filter(|r| r.key_id == Some(key) && r.started_at >= from && r.started_at < until);
    for record in own {
        let sum = models.entry(&record.model).or_default();
        sum.model = record.model.to_string();
        sum.requests += 1;
        sum.input_tokens += record.usage.input;
        sum.output_tokens += record.usage.output;
        sum.cache_write_tokens += record.usage.cache_write_5m + record.usage.cache_write_1h;
        sum.cache_read_tokens += record.usage.cache_read;
        sum.cost += record.cost.unwrap_or_default();
    }
    let mut models: Vec<ModelStatistics> = models.into_values().collect();
    models.sort_by_key(|model| Reverse(model.cost));
    models
}

async fn keys_are_summed_between_any_two_times(place: Place) {
    let store = place.ready().await;
    let (user, keys) = holder(&store, 4).await;
    assert_eq!(keys, [1, 2, 3, 4].map(KeyId), "the keys that the records name");
    let records: Vec<Record> = (0..200)
        .map(|n| {
            let record = varied_record(n);
            let usage = Usage { cache_write_5m: n % 3, cache_write_1h: n % 5, ..record.usage };
            // The last key is never used.
            let key_id = record.key_id.filter(|key| *key != KeyId(4));
            Record { usage, key_id, user_id: key_id.and(Some(user)), ..record }
        })
        .collect();
    store.append_records(&records).await.unwrap();
    // Ends at the hour, half past it, a quarter to it, and at a millisecond beside them.
    let spans = [
        (0, 24 * HOUR),
        (-HOUR / 2, 47 * HOUR / 2),
        (HOUR / 2, 49 * HOUR / 2),
        (3 * HOUR / 4, 99 * HOUR / 4),
        (1, 24 * HOUR + 1),
        (HOUR - 1, 2 * HOUR - 1),
        (HOUR / 2, 3 * HOUR / 2),
        (HOUR + 1, HOUR + HOUR / 2),
        (-30 * HOUR, -HOUR),
        (5 * HOUR, 5 * HOUR),
        (5 * HOUR, HOUR),
        (-HOUR, 1_000 * HOUR),
    ];
    for (from, until) in spans {
        let (from, until) = (NOON.plus_ms(from), NOON.plus_ms(until));
        let found = store.key_statistics(user, from, until).await.unwrap();
        assert_eq!(found.iter().map(|key| key.key_id).collect::<Vec<_>>(), keys);
        for key in found {
            let own = || records.iter().filter(|record| record.key_id == Some(key.key_id));
            let expected = KeyStatistics {
                key_id: key.key_id,
                models: by_hand(&records, key.key_id, from, until),
                total_cost: own().filter_map(|record| record.cost).sum(),
                last_used_at: own().map(|record| record.started_at).max(),
                last_provider: None,
            };
            assert_eq!(key, expected, "{from:?} to {until:?}");
        }
    }
    let day = store.key_statistics(user, NOON, NOON.plus_ms(24 * HOUR)).await.unwrap();
    assert!(
        day[0].models.len() == 3 && day[0].models[0].requests > 1,
        "the day holds something to sum: {day:?}"
    );
    assert_eq!(
        (day[3].models.len(), day[3].total_cost, day[3].last_used_at),
        (0, NanoUsd::ZERO, None)
    );
}

async fn the_latest_request_names_the_provider(place: Place) {
    let store = place.ready().await;
    let (user, keys) = holder(&store, 3).await;
    let (east, west) = (provider_named(&store, "east").await, provider_named(&store, "wést").await);
    let used = |key: usize, at_ms: i64, provider: Option<ProviderId>| Record {
        request_id: RequestId::new(),
        started_at: NOON.plus_ms(at_ms),
        key_id: Some(keys[key]),
        user_id: Some(user),
        provider_id: provider,
        ..bare_record()
    };
    let records = [
        // written out of order, and not of the asked day
        used(0, -50 * HOUR, Some(west)),
        used(0, -90 * HOUR, Some(east)),
        // the latest reached no provider
        used(1, 10, Some(east)),
        used(1, 11, None),
        // two of one millisecond: the later id
        used(2, 5, Some(east)),
        used(2, 5, Some(west)),
    ];
    store.append_records(&records).await.unwrap();
    let latest = |found: Vec<KeyStatistics>| -> Vec<(Option<i64>, Option<String>)> {
        found
            .into_iter()
            .map(|key| (key.last_used_at.map(|at| at.since(NOON)), key.last_provider))
            .collect()
    };
    let found = store.key_statistics(user, NOON, NOON.plus_ms(24 * HOUR)).await.unwrap();
    assert_eq!(found.iter().map(|key| key.models.len()).collect::<Vec<_>>(), [0, 1, 1]);
    let west = || Some("wést".to_owned());
    assert_eq!(latest(found), [(Some(-50 * HOUR), west()), (Some(11), None), (Some(5), west())]);
}

async fn deleted_keys_and_those_of_others_are_left_out(place: Place) {
    let store = place.ready().await;
    let (ann, anns) = holder(&store, 2).await;
    let (bob, bobs) = holder(&store, 1).await;
    let spent = |user: UserId, key: KeyId, cost: i64| Record {
        request_id: RequestId::new(),
        key_id: Some(key),
        user_id: Some(user),
        cost: Some(NanoUsd(cost)),
        ..bare_record()
    };
    let records = [spent(ann, anns[0], 1), spent(ann, anns[1], 2), spent(bob, bobs[0], 4)];
    store.append_records(&records).await.unwrap();
    let mut tx = store.begin().await.unwrap();
    let gone = tx.key(anns[0]).await.unwrap().unwrap();
    tx.update_key(&tollgate::domain::key::Key { deleted_at: Some(NOON), ..gone }).await.unwrap();
    tx.commit().await.unwrap();
    // from within the hour, and whole hours
    for from in [NOON, NOON.plus_ms(-1)] {
        for (user, key, cost) in [(ann, anns[1], 2), (bob, bobs[0], 4)] {
            let found = store.key_statistics(user, from, NOON.plus_ms(HOUR / 2)).await.unwrap();
            assert_eq!(found.iter().map(|key| key.key_id).collect::<Vec<_>>(), [key]);
            assert_eq!(
                (found[0].total_cost, found[0].models[0].cost),
                (NanoUsd(cost), NanoUsd(cost))
            );
        }
    }
    assert!(store.key_statistics(UserId(999), NOON, NOON.plus_ms(HOUR)).await.unwrap().is_empty());
}
