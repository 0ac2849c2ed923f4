//! Requests that were removed from the log: the ledger has them, and has them once.

use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::Record;
use tollgate::store::{Backend, UnpricedOf};

use super::accounting::all_rows;
use super::make::varied_record;
use super::schema::{earlier, names};
use super::{Place, on_both};

on_both!(
    a_request_that_the_log_has_no_more_stays_in_the_ledger_once,
    a_request_that_the_log_has_no_more_is_priced_late,
);

fn records() -> Vec<Record> {
    (0..60).map(varied_record).collect()
}

async fn a_request_that_the_log_has_no_more_stays_in_the_ledger_once(place: Place) {
    let (store, all) = (place.ready().await, records());
    assert_eq!(store.append_records(&all).await.unwrap(), 60);
    let since = all[0].started_at;
    let before = (store.spend_since(since).await.unwrap(), store.spend_totals().await.unwrap());
    while store.prune_requests(all[40].started_at, 7).await.unwrap() > 0 {}
    assert_eq!(all_rows(&store).await.len(), 20);

    let ids: Vec<_> = all.iter().map(|record| record.request_id).collect();
    assert_eq!(store.known_requests(&ids).await.unwrap().len(), 60);
    assert_eq!(store.append_records(&all).await.unwrap(), 0, "it has all of them");
    let more: Vec<Record> = (0..5).map(|n| Record { cost: None, ..varied_record(n) }).collect();
    let mixed: Vec<Record> = all.iter().chain(&more).cloned().collect();
    assert_eq!(store.append_records(&mixed).await.unwrap(), 5, "the new ones");
    assert_eq!(all_rows(&store).await.len(), 25);
    let after = (store.spend_since(since).await.unwrap(), store.spend_totals().await.unwrap());
    assert_eq!(after, before);
}

async fn a_request_that_the_log_has_no_more_is_priced_late(place: Place) {
    let (store, all) = (place.ready().await, records());
    store.append_records(&all).await.unwrap();
    while store.prune_requests(all[40].started_at, 1_000).await.unwrap() > 0 {}
    let unpriced = |model: &str| {
        all.iter().filter(|record| record.cost.is_none() && &*record.model == model).count()
    };
    let mut models = Vec::new();
    let mut after = String::new();
    while let Some(model) = store.unpriced_model_after(&after).await.unwrap() {
        let of = UnpricedOf { model: &model, upstream_model: None, price_model: "p" };
        let priced = store.reprice(of, 10_000, &|_, _| NanoUsd(5)).await.unwrap();
        assert_eq!(priced.rows.len(), unpriced(&model), "{model}");
        assert!(store.reprice(of, 10_000, &|_, _| NanoUsd(7)).await.unwrap().rows.is_empty());
        models.push(model.clone());
        after = model;
    }
    assert_eq!(models, ["model-0", "model-1", "model-2"]);
    let spent = |rows: Vec<NanoUsd>| rows.into_iter().sum::<NanoUsd>();
    let expected = spent(all.iter().map(|record| record.cost.unwrap_or(NanoUsd(5))).collect());
    let rows = store.spend_since(all[0].started_at).await.unwrap();
    assert_eq!(spent(rows.iter().map(|row| row.cost).collect()), expected);
    let totals = store.spend_totals().await.unwrap();
    assert_eq!(spent(totals.iter().map(|total| total.cost).collect()), expected);
    assert!(all_rows(&store).await.iter().all(|record| record.cost.is_some()));
}

/// Until migration 21, SQLite's ledger was a table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_whose_ledger_was_a_table_keeps_every_row() {
    const SHARED: &str = "request_id, started_at, key_id, user_id, provider_id, model, \
        upstream_model, endpoint, status_code, outcome, input_tokens, output_tokens, \
        cache_write_5m_tokens, cache_write_1h_tokens, cache_read_tokens, reasoning_tokens, \
        image_input_tokens, image_output_tokens, usage_extra, price_model, cost, cost_multiplier, \
        estimated, duration_ms";
    let place = Place::new(Backend::Sqlite);
    let names = names();
    let view = names.iter().position(|name| name == "0021_ledger_view").unwrap();
    let store = place.open().await;
    earlier(&place, &names[..view]).await;
    // 300 requests, of which the log has 100.
    place
        .meddle(&format!(
            "WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < 300) \
             INSERT INTO ledger ({SHARED}) SELECT randomblob(16), n * 1000, n % 7, n % 5, n % 3, \
             'm' || n % 4, NULLIF('u' || n % 2, 'u0'), '/e', 200, 'completed', n, n, n, n, n, n, \
             n, n, NULL, NULL, NULLIF(n % 9, 0), '1.5', n % 2, n FROM up; \
             INSERT INTO request_log ({SHARED}, client_format, streamed, overhead_us, attempts, \
             decisions) SELECT {SHARED}, 'native', 0, 1, 1, '[]' FROM ledger \
             WHERE started_at > 200000; \
             CREATE TABLE held AS SELECT * FROM ledger"
        ))
        .await;
    assert_eq!(store.migrate().await.unwrap(), names[view..]);
    place
        .meddle(&format!(
            "CREATE TABLE proof (wrong BIGINT CHECK (wrong = 0)); \
             INSERT INTO proof SELECT COUNT(*) FROM \
             (SELECT {SHARED} FROM held EXCEPT SELECT {SHARED} FROM ledger); \
             INSERT INTO proof SELECT COUNT(*) - 300 FROM ledger; \
             INSERT INTO proof SELECT COUNT(*) - 200 FROM ledger_archive; \
             INSERT INTO proof SELECT COUNT(*) - 100 FROM request_log"
        ))
        .await;
    let spent: NanoUsd = store
        .spend_since(tollgate::domain::clock::Timestamp(0))
        .await
        .unwrap()
        .iter()
        .map(|row| row.cost)
        .sum();
    assert_eq!(spent, NanoUsd((1..=300).map(|n| n % 9).sum()));
}
