//! Requests from before their model had a price: priced once, in every figure, when it arrives.

use std::cell::Cell;

use serde_json::{Value, json};
use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::{KeyId, RequestId};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::part::{Part, PartKind};
use tollgate::domain::record::Record;
use tollgate::domain::usage::{ServiceTier, Usage};
use tollgate::store::Backend;

use super::gate::{Gate, NOON, Person};
use super::statistics::record;
use crate::support::spent::Spent as _;
use crate::support::wait;

const DAY: i64 = 24 * 3_600_000;

/// 1 000 tokens in and 100 out, at a provider whose multiplier is 1.5.
fn unpriced(who: &Person, started_at: Timestamp, model: &str, upstream: Option<&str>) -> Record {
    Record {
        request_id: RequestId::new(),
        upstream_model: upstream.map(Into::into),
        usage: Usage { input: 1_000, output: 100, ..Usage::default() },
        cost_multiplier: "1.5".parse().unwrap(),
        ..record(who, started_at, model, None)
    }
}

/// Waits until a read returns `expected`; figures lag behind the database by one batch.
async fn settles(what: &str, mut look: impl AsyncFnMut() -> Value, expected: Value) {
    let last = Cell::default();
    wait::until(
        || format!("{what}: {} is not {expected}", last.take()),
        async || {
            let found = look().await;
            let is_so = found == expected;
            last.set(found);
            is_so
        },
    )
    .await;
}

/// 501 requests that the price of `late` prices, 5 that it does not, 7 that have their cost.
fn before_the_price(ann: &Person, bob: &Person) -> Vec<Record> {
    let mut records: Vec<Record> =
        (0..450).map(|n| unpriced(ann, NOON.plus_ms(-n), "late", None)).collect();
    records.extend((0..30).map(|n| unpriced(ann, NOON.plus_ms(-3 * DAY - n), "late", None)));
    // Requested under a name without a price, served under one that gets it.
    records.extend((0..20).map(|_| unpriced(bob, NOON, "alias", Some("late"))));
    records.extend((0..5).map(|_| unpriced(bob, NOON, "alias", Some("unknown"))));
    records.extend((0..7).map(|_| record(bob, NOON, "late", Some(77))));
    records.push(Record { key_id: None, user_id: None, ..unpriced(bob, NOON, "late", None) });
    records
}

/// The limits' counters, the statistics and the totals in the database, after the price has come.
async fn spending_is_priced(gate: &Gate, ann: &Person, bob: &Person) {
    // The limits' counters: spending belongs to the request's start.
    let usage = async || {
        let usage =
            gate.admin("keys/getKeyLimitUsage", json!({ "keyId": ann.key_id })).await.data();
        json!([
            usage["cost5h"]["current"],
            usage["costDaily"]["current"],
            usage["costMonthly"]["current"],
            usage["costTotal"]["current"]
        ])
    };
    settles("the counters", usage, json!([2.025, 2.025, 2.16, 2.16])).await;
    let statistics =
        gate.admin("keys/getKeysWithStatistics", json!({ "userId": ann.id })).await.data();
    assert_eq!(
        (&statistics[0]["totalCost"], &statistics[0]["todayCost"]),
        (&json!(2.16), &json!(2.025))
    );
    let totals = gate.store.spend_totals().await.unwrap();
    let total = |key| totals.iter().filter(|t| t.key_id == key).map(|t| t.cost.0).sum::<i64>();
    assert_eq!(total(Some(KeyId(ann.key_id))), 2_160_000_000);
    assert_eq!((total(Some(KeyId(bob.key_id))), total(None)), (90_000_000 + 539, 4_500_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_price_that_arrives_prices_what_ran_without_one_in_every_figure() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let (ann, bob) = (gate.person("ann", json!({})).await, gate.person("bob", json!({})).await);
        let records = before_the_price(&ann, &bob);
        assert_eq!(gate.store.append_records(&records).await.unwrap(), records.len() as u64);
        gate.clock.set(NOON.plus_ms(1_000));

        // 1 000 × 2e-6 + 100 × 1e-5 = 0.003; × 1.5
        let table =
            json!({ "late": { "input_cost_per_token": 2e-6, "output_cost_per_token": "0.00001" } });
        gate.admin("model-prices/uploadPriceTable", json!({ "jsonContent": table.to_string() }))
            .await
            .data();
        // Beside the work that the upload started: each request is priced by one of the two.
        gate.jobs.reprice().await.unwrap();

        let summary = async |filter: Value| {
            let mut page = gate.admin("usage-logs/getUsageLogs", filter).await.data();
            let summary = page["summary"].take();
            json!([summary["requests"], summary["costUsd"], summary["unpriced"]])
        };
        // 501 × 0.0045 + 7 × 77e-9
        settles("the log", async || summary(json!({})).await, json!([513, 2.254_500_539, 5])).await;
        let of_ann = json!({ "userId": ann.id });
        settles("ann's log", async || summary(of_ann.clone()).await, json!([480, 2.16, 0])).await;
        let page = gate
            .admin("usage-logs/getUsageLogs", json!({ "userId": ann.id, "pageSize": 100 }))
            .await
            .data();
        assert!(page["logs"].as_array().unwrap().iter().all(|log| log["costUsd"] == json!(0.0045)));

        spending_is_priced(&gate, &ann, &bob).await;
        settles(
            "the metric",
            async || json!(gate.metrics.render().contains("tollgate_repriced_requests_total 501")),
            json!(true),
        )
        .await;
        assert_eq!(gate.jobs.reprice().await.unwrap(), 0, "what cannot be priced waits");

        let entry = json!({ "modelName": "alias", "priceData": { "input_cost_per_token": 1e-6 } });
        gate.admin("model-prices/upsertModelPrice", entry).await.data();
        settles("the rest", async || summary(json!({})).await, json!([513, 2.262_000_539, 0]))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_price_costs_what_it_would_have_cost_in_time_tier_and_searches_and_all() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let ann = gate.person("ann", json!({})).await;
        let usage = Usage {
            input: 300_000,
            audio_input: 1_000,
            output: 100,
            audio_output: 10,
            reasoning: 50,
            web_searches: 2,
            tier: ServiceTier::Flex,
            ..Usage::default()
        };
        let late =
            |model: &str, upstream| Record { usage, ..unpriced(&ann, NOON, model, upstream) };
        let records =
            [late("late-20250929", None), late("alias", Some("late-latest")), late("other", None)];
        assert_eq!(gate.store.append_records(&records).await.unwrap(), 3);
        gate.clock.set(NOON.plus_ms(1_000));
        let table = json!({ "late": {
            "input_cost_per_token": 4e-6, "input_cost_per_token_flex": 2e-6,
            "input_cost_per_token_above_272k_tokens_flex": 3e-6, "input_cost_per_audio_token": 5e-6,
            "output_cost_per_token": 20e-6, "output_cost_per_token_flex": 10e-6, "output_cost_per_audio_token_flex": 30e-6,
            "search_context_cost_per_query": 0.01,
        } });
        gate.admin("model-prices/uploadPriceTable", json!({ "jsonContent": table.to_string() }))
            .await
            .data();
        gate.jobs.reprice().await.unwrap();
        // (299 000 × 3 + 1 000 × 5 + 90 × 10 + 10 × 30) millionths + 2 × 0.01, and × 1.5
        let logs = async || {
            let page = gate.admin("usage-logs/getUsageLogs", json!({})).await.data();
            let of = |model: &str| {
                let row = page["logs"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .find(|row| row["model"] == model)
                    .unwrap();
                json!([
                    row["costUsd"],
                    row["priceModel"],
                    row["serviceTier"],
                    row["webSearches"],
                    row["audioInputTokens"]
                ])
            };
            json!([of("late-20250929"), of("alias"), of("other")])
        };
        let priced = json!([1.3848, "late", "flex", 2, 1_000]);
        settles("the log", logs, json!([priced, priced, [null, null, "flex", 2, 1_000]])).await;
    }
}

/// A request that cost 500 nano-dollars without its parts: two searches, one in files, and advice
/// of another model.
fn with_parts(who: &Person, started_at: Timestamp) -> Record {
    let advice = Usage { input: 1_000, output: 10, ..Usage::default() };
    let pass = |kind, model: &str, usage| Part::new(kind, Some(model.into()), usage);
    let own = Part { cost: Some(NanoUsd(500)), ..pass(PartKind::Message, "m", advice) };
    Record {
        request_id: RequestId::new(),
        usage: Usage { web_searches: 2, ..advice },
        cost_multiplier: "1.5".parse().unwrap(),
        parts: vec![
            own,
            pass(PartKind::AdvisorMessage, "advice", advice),
            Part::calls(PartKind::WebSearch, 2),
            Part::calls(PartKind::FileSearch, 1),
            Part { free: true, ..Part::calls(PartKind::WebFetch, 1) },
        ],
        ..record(who, started_at, "m", Some(500))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_without_a_price_get_it_when_it_arrives_in_every_figure() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let ann = gate.person("ann", json!({})).await;
        let mut records: Vec<Record> =
            (0..430).map(|n| with_parts(&ann, NOON.plus_ms(-n))).collect();
        // Nothing of this one waits.
        records.push(record(&ann, NOON, "m", Some(500)));
        assert_eq!(gate.store.append_records(&records).await.unwrap(), 431);
        gate.clock.set(NOON.plus_ms(1_000));
        assert_eq!(gate.jobs.reprice().await.unwrap(), 0, "no price has arrived");
        let upsert = async |name: &str, entry: Value| {
            let entry = json!({ "modelName": name, "priceData": entry });
            gate.admin("model-prices/upsertModelPrice", entry).await.data();
            gate.jobs.reprice().await.unwrap();
        };
        let sums = async || {
            let mut page = gate.admin("usage-logs/getUsageLogs", json!({})).await.data();
            let usage = json!({ "keyId": ann.key_id });
            let usage = gate.admin("keys/getKeyLimitUsage", usage).await.data();
            let summary = page["summary"].take();
            json!([
                summary["requests"],
                summary["costUsd"],
                usage["costDaily"]["current"],
                usage["costTotal"]["current"],
            ])
        };
        // The fee for searches: 2 × 0.01 × 1.5 for each.
        let tokens = json!({ "input_cost_per_token": 7e-6, "search_context_cost_per_query": 0.01 });
        upsert("m", tokens.clone()).await;
        let late = 430.0 * 0.03;
        // The records were written past the counters, which so have what is added alone.
        let figures = |late: f64| {
            let exact = |usd: f64| (usd * 1e9).round() / 1e9;
            json!([431, exact(431.0 * 500e-9 + late), exact(late), exact(late)])
        };
        settles("searches", async || sums().await, figures(late)).await;
        assert_eq!(gate.jobs.reprice().await.unwrap(), 0, "each part is priced once");
        // (1 000 × 2e-6 + 10 × 1e-5) × 1.5, and 2.5 a thousand × 1.5
        let entry = json!({ "input_cost_per_token": 2e-6, "output_cost_per_token": 1e-5 });
        upsert("advice", entry).await;
        upsert("openai/container", json!({ "file_search_cost_per_1k_calls": 2.5 })).await;
        let late = late + 430.0 * (0.00315 + 0.00375);
        settles("advice and files", async || sums().await, figures(late)).await;
        let page = gate.admin("usage-logs/getUsageLogs", json!({ "pageSize": 100 })).await.data();
        let shown = page["logs"].as_array().unwrap().iter();
        for row in shown.filter(|row| !row["parts"].as_array().unwrap().is_empty()) {
            let costs = row["parts"].as_array().unwrap().iter().map(|part| &part["costUsd"]);
            let costs: Vec<&Value> = costs.collect();
            assert_eq!(json!(costs), json!([0.0000005, 0.00315, 0.03, 0.00375, null]), "{row}");
            assert_eq!(row["costUsd"], json!(0.0369005), "{row}");
        }
        // The database agrees, and no row is marked any more.
        let totals = gate.store.spend_totals().await.unwrap();
        let total = totals.iter().map(|total| total.cost.0).sum::<i64>();
        assert_eq!(total, 431 * 500 + 430 * 36_900_000);
        let left = gate.store.unpriced_parts_after(&[0; 16], 10).await.unwrap();
        assert!(left.is_empty(), "{left:?}");
        upsert("m", json!({ "input_cost_per_token": 1, "search_context_cost_per_query": 9 })).await;
        assert_eq!(sums().await, figures(late), "a later change prices nothing again");
    }
}
