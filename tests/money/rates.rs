//! Rates in a price entry that were not applied.

use rust_decimal::Decimal;
use serde_json::{Value, json};

use crate::proxy::fixture::{FORMATS, Fixture, path, request};

/// Rates that distinguish the charged kinds: reasoning, the base, and two thresholds.
fn entry() -> Value {
    json!({"m": {
        "input_cost_per_token": 1e-6, "input_cost_per_token_above_128k_tokens": 2e-6,
        "input_cost_per_token_above_272k_tokens": 3e-6,
        "output_cost_per_token": 10e-6, "output_cost_per_token_above_272k_tokens": 20e-6,
        "output_cost_per_reasoning_token": 15e-6, "cache_read_input_token_cost": 1e-7,
        "input_cost_per_request": 0.001,
        "output_cost_per_second": 0.5, "input_cost_per_token_decisions": 5e-6,
    }})
}

fn cost(row: &Value) -> Decimal {
    row["costUsd"].to_string().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn long_requests_cost_the_rates_of_the_highest_threshold_that_they_pass() {
    let fixture = Fixture::full().await;
    fixture.gateway.prices(entry()).await;
    let mut rows = 0;
    for (input, read, expected) in [
        // 100 × 1 + 128 000 × 0.1 - nothing is long yet - + 10 × 10, in millionths, and the fee
        (28_000_u64, 100_000_u64, "0.0391"),
        (28_001, 100_000, "0.067102"),
        (272_001, 0, "0.817203"),
    ] {
        fixture
            .upstream
            .default(json!({"usage": {"input": input, "cache_read": read, "output": 10}}))
            .await;
        for format in FORMATS {
            for stream in [false, true] {
                let answer = fixture
                    .post(path(format, stream), &request(format, stream))
                    .send()
                    .await
                    .unwrap();
                assert_eq!(answer.status(), 200, "{format} {stream}");
                answer.bytes().await.unwrap();
                rows += 1;
            }
        }
        for row in fixture.gateway.logs(rows).await.iter().take(8) {
            assert_eq!(cost(row), expected.parse().unwrap(), "{row}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reasoning_costs_its_own_rate_and_is_not_charged_as_output_too() {
    let fixture = Fixture::full().await;
    fixture.gateway.prices(entry()).await;
    fixture
        .upstream
        .default(json!({"usage": {"input": 1000, "output": 500, "reasoning": 200}}))
        .await;
    for format in ["responses", "chat-compatible", "alt-cli"] {
        for stream in [false, true] {
            let answer =
                fixture.post(path(format, stream), &request(format, stream)).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{format} {stream}");
            answer.bytes().await.unwrap();
        }
    }
    for row in fixture.gateway.logs(6).await {
        // 1 000 × 1 + 300 × 10 + 200 × 15 millionths, and the fee
        assert_eq!(cost(&row), "0.008".parse().unwrap(), "{row}");
        let detail = json!({"requestId": row["requestId"]});
        let shown = fixture.gateway.admin("usage-logs/getUsageLogDetail", detail).await;
        assert_eq!(
            shown["explanation"],
            "Priced by the entry m at standard rates: 1000 input tokens at 1 USD per million, \
             300 output tokens at 10 USD per million, 200 reasoning tokens at 15 USD per million \
             and a fee of 0.001 USD per request come to 0.008 USD; the usage is what the \
             provider reported."
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_that_are_not_applied_are_reported_by_check_and_at_the_price() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none.json");
    std::fs::write(&file, "{}").unwrap();
    let fixture = Fixture::bare(&[("TOLLGATE_PRICES_SEED_FILE", file.to_str().unwrap())]).await;
    fixture.gateway.prices(entry()).await;
    let shown = fixture.gateway.admin("model-prices/getModelPrices", json!({})).await;
    let price = shown.as_array().unwrap().iter().find(|price| price["modelName"] == "m").unwrap();
    assert_eq!(
        price["unapplied"],
        json!(["output_cost_per_second", "input_cost_per_token_decisions"])
    );
    let (good, said) = fixture.gateway.check();
    assert!(good, "{said}");
    assert!(!said.contains("shipped entries"), "{said}");
    assert!(
        said.contains(
            "warning: prices that are not applied: output_cost_per_second, \
             input_cost_per_token_decisions of m\n"
        ),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_of_shipped_entries_that_are_not_applied_are_one_warning() {
    let fixture = Fixture::bare(&[]).await;
    let (good, said) = fixture.gateway.check();
    assert!(good, "{said}");
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("not applied")).collect();
    assert!(matches!(lines[..], [one] if one.contains("the shipped entries of ")), "{said}");
}
