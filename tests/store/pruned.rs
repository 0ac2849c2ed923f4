//! Requests that were removed from the log: the ledger has them, and has them once.

use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::Record;
use tollgate::store::UnpricedOf;

use super::accounting::all_rows;
use super::make::varied_record;
use super::{Place, on_both};
use crate::support::spent::Spent as _;

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
