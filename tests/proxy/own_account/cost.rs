//! What the client's own account pays is recorded at list price and charged to nobody.

use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::{Bed, OWN, answered};
use crate::proxy::fixture::request;

fn usd(value: &Value) -> Decimal {
    value.to_string().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_price_is_kept_aside_and_nothing_is_charged() {
    let bed = Bed::with(&[], json!({"cost_multiplier": 3})).await;
    bed.fixture.upstream.default(json!({"usage": {"input": 1000, "output": 500}})).await;
    for stream in [false, true] {
        let ask = bed.post("/v1/messages", &request("native", stream));
        assert_eq!(answered(ask.bearer_auth(OWN)).await.0, 200);
    }
    let mut unpriced = request("native", false);
    unpriced["model"] = json!("unheard-of");
    assert_eq!(answered(bed.post("/v1/messages", &unpriced).bearer_auth(OWN)).await.0, 200);
    let rows = bed.gateway().logs(3).await;
    assert_eq!(
        (usd(&rows[0]["costUsd"]), &rows[0]["notionalCostUsd"]),
        (Decimal::ZERO, &Value::Null)
    );
    for row in &rows[1..] {
        assert_eq!(usd(&row["costUsd"]), Decimal::ZERO, "{row}");
        // 1 000·1 + 500·2 micro-USD, without the provider's factor.
        assert_eq!(usd(&row["notionalCostUsd"]), Decimal::new(2, 3), "{row}");
        assert_eq!(row["inputTokens"], 1000);
    }
    let page = bed.gateway().admin("usage-logs/getUsageLogs", json!({})).await;
    assert_eq!(usd(&page["summary"]["costUsd"]), Decimal::ZERO);
    assert_eq!(page["summary"]["unpriced"], 0, "nothing waits for a price");
    let metric = bed.gateway().metric("tollgate_notional_cost_usd_total").await;
    assert!((metric - 0.004).abs() < 1e-9, "{metric}");
    let id = rows[1]["requestId"].clone();
    let detail =
        bed.gateway().admin("usage-logs/getUsageLogDetail", json!({"requestId": id})).await;
    assert_eq!(usd(&detail["costAtPresentPrices"]), Decimal::ZERO, "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_reservations_are_not_used() {
    // Nothing may be spent, and nothing without a price may be asked for.
    let bed = Bed::with(&[("TOLLGATE_PRICES_UNPRICED", "refuse")], json!({})).await;
    bed.gateway().admin("providers/removeProvider", json!({"providerId": bed.company_id})).await;
    let limit = json!({"name": "poor", "limitTotalUsd": 0.01});
    let (_, _, key) = bed.gateway().user(limit).await;
    bed.fixture.upstream.default(json!({"usage": {"input": 1_000_000, "output": 500_000}})).await;
    for model in ["m", "m", "unheard-of"] {
        let mut body = request("native", false);
        body["model"] = json!(model);
        let ask = bed.gateway().client.post(format!("{}/v1/messages", bed.gateway().proxy));
        let ask = ask.header("x-tollgate-key", &key).bearer_auth(OWN).json(&body);
        let (status, text) = answered(ask).await;
        assert_eq!(status, 200, "{model}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_notional_cost_outlives_a_crash() {
    let mut bed = Bed::start().await;
    bed.fixture.upstream.default(json!({"usage": {"input": 1000, "output": 500}})).await;
    assert_eq!(answered(bed.ask_with_own()).await.0, 200);
    bed.fixture.gateway.kill();
    bed.fixture.gateway.spawn();
    bed.fixture.gateway.ready().await;
    let row = bed.newest(1).await;
    assert_eq!(usd(&row["notionalCostUsd"]), Decimal::new(2, 3), "{row}");
}
