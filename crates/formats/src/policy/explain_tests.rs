//! The sentence for every kind of request.

use serde_json::{Value, json};

use super::*;
use crate::domain::clock::Timestamp;
use crate::domain::price::PriceSource;

/// A completed request for `large-1`: its usage, and what that costs by the entry.
fn record(usage: Value, price: Option<&Price>) -> Record {
    let text = include_str!("../../../../tests/ledger/sample.json")
        .replace("\"@n\"", "0")
        .replace("@id", "000000000001");
    let mut record: Record = serde_json::from_str(&text).unwrap();
    record.usage = serde_json::from_value(usage).unwrap();
    record.cost =
        price.map(|price| cost::total(&price.rates, &record.usage, record.cost_multiplier));
    record
}

fn entry(model: &str, data: Value) -> Price {
    let rates = cost::rates_from_json(&data, cost::Belief::Usual).unwrap();
    Price::new(model.to_owned(), PriceSource::Manual, &data, rates, Timestamp(1))
}

fn large() -> Price {
    entry(
        "large",
        json!({
            "input_cost_per_token": 3e-6, "output_cost_per_token": 15e-6, "cache_read_input_token_cost": 3e-7,
            "input_cost_per_token_above_200k_tokens": 6e-6, "output_cost_per_token_flex": 7.5e-6,
            "search_context_cost_per_query": 0.01,
        }),
    )
}

#[test]
fn the_sentence_names_entry_tier_tokens_multiplier_and_basis() {
    let price = large();
    let mut plain = record(json!({"input": 1000, "output": 500}), Some(&price));
    assert_eq!(
        explain(&plain, Some(&price), true),
        "Priced by the entry large (the request asked for large-1) at standard rates: 1000 input tokens at 3 USD per \
         million and 500 output tokens at 15 USD per million come to 0.0105 USD; the usage is what the provider reported."
    );
    plain.estimated = true;
    plain.cost_multiplier = Decimal::new(15, 1);
    plain.cost = Some(cost::total(&price.rates, &plain.usage, plain.cost_multiplier));
    assert_eq!(
        explain(&plain, Some(&price), true),
        "Priced by the entry large (the request asked for large-1) at standard rates: 1000 input tokens at 3 USD per \
         million and 500 output tokens at 15 USD per million come to 0.0105 USD, × 1.5 (the provider's multiplier) = \
         0.01575 USD; the usage is an estimate, because the provider sent no final figures."
    );
    let exact = Price { model: "large-1".to_owned(), ..large() };
    let long = record(
        json!({"input": 200_001, "cacheRead": 1, "output": 1, "webSearches": 2, "tier": "flex"}),
        Some(&exact),
    );
    assert_eq!(
        explain(&long, Some(&exact), true),
        "Priced by the entry large-1 at flex tier rates for input above 200000 tokens: 200001 input tokens at 6 USD per \
         million, 1 cache read tokens at 0.3 USD per million, 1 output tokens at 7.5 USD per million and 2 web searches at \
         0.01 USD come to 1.2200138 USD; the usage is what the provider reported."
    );
    let other = record(json!({"input": 1_000_000, "tier": "priority"}), Some(&exact));
    assert!(
        explain(&other, Some(&exact), true).contains(
            "at standard rates for input above 200000 tokens, as it names none for the priority tier: 1000000"
        ),
        "{}",
        explain(&other, Some(&exact), true)
    );
    let free = entry("large-1", json!({"input_cost_per_token": 0}));
    assert_eq!(
        explain(&record(json!({"input": 5}), Some(&free)), Some(&free), true),
        "Priced by the entry large-1, which charges nothing for what was used; the usage is what the provider reported."
    );
    let fee = entry("large-1", json!({"input_cost_per_request": 0.005}));
    assert_eq!(
        explain(&record(json!({"input": 5}), Some(&fee)), Some(&fee), true),
        "Priced by the entry large-1 at standard rates: a fee of 0.005 USD per request comes to 0.005 USD; the usage is what \
         the provider reported."
    );
}

#[test]
fn a_price_that_changed_or_went_does_not_explain_what_it_did_not_do() {
    let price = large();
    let mut then = record(json!({"input": 1000, "cacheWrite5m": 5, "output": 500}), Some(&price));
    then.cost = Some(NanoUsd(1_000_000));
    then.price_model = Some("large".into());
    assert_eq!(
        explain(&then, Some(&price), true),
        "0.001 USD was charged for 1005 input and 500 output tokens by the price of large when the request ran, with a \
         provider's multiplier of 1; the price has changed since, to 0.010515 USD for the same; the usage is what the \
         provider reported."
    );
    assert!(explain(&then, None, true).contains("by the price of large when the request ran"));
    assert!(explain(&then, None, true).contains("there is no such price entry any more"));
}

#[test]
fn what_costs_nothing_says_why() {
    let mut record = record(json!({"input": 5}), None);
    assert_eq!(
        explain(&record, None, true),
        "No cost yet: there was no price for large-1, so this request counts as nothing against limits until a price arrives."
    );
    record.upstream_model = Some("up".into());
    assert!(
        explain(&record, None, true)
            .contains("no price for large-1 nor for up, as which the provider")
    );
    record.cost = Some(NanoUsd::ZERO);
    assert_eq!(explain(&record, Some(&large()), false), "No charge: this operation is not billed.");
    record.usage = Usage::default();
    assert_eq!(
        explain(&record, Some(&large()), true),
        "No charge: no usage was reported or estimated for this request."
    );
    record.outcome = RequestOutcome::Refused;
    assert!(explain(&record, None, true).starts_with("No charge: the gateway refused"));
}
