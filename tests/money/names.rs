//! Models whose exact name has no price: they were served for free.

use serde_json::{Value, json};

use crate::proxy::fixture::{Fixture, request};

fn asking(model: &str) -> Value {
    let mut body = request("native", false);
    body["model"] = json!(model);
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dated_name_costs_what_its_model_costs_and_the_record_names_the_entry() {
    let fixture = Fixture::bare(&[]).await;
    let redirects = json!({"model_redirects": {"alias": "m-20250929"}});
    fixture.gateway.provider("native", &fixture.upstream.url, redirects).await;
    let own = json!({"own-2024-08-06": {"input_cost_per_token": 5e-6}, "own": {"input_cost_per_token": 1e-6}});
    fixture.gateway.prices(own).await;
    fixture.upstream.default(json!({"usage": {"input": 1000, "output": 500}})).await;
    let cases = [
        ("m", json!(0.002), json!("m")),
        ("m-20250929", json!(0.002), json!("m")),
        ("m-2025-09-29", json!(0.002), json!("m")),
        ("m-latest", json!(0.002), json!("m")),
        ("alias", json!(0.002), json!("m")),
        ("own-2024-08-06", json!(0.005), json!("own-2024-08-06")),
        ("own-2024-08-07", json!(0.001), json!("own")),
        ("m-0613", json!(null), json!(null)),
    ];
    for (model, ..) in &cases {
        assert_eq!(
            fixture.post("/v1/messages", &asking(model)).send().await.unwrap().status(),
            200,
            "{model}"
        );
    }
    let rows = fixture.gateway.logs(cases.len()).await;
    for (model, cost, entry) in &cases {
        let row = rows.iter().find(|row| row["model"] == *model).unwrap();
        assert_eq!((&row["costUsd"], &row["priceModel"]), (cost, entry), "{row}");
        let detail = json!({"requestId": row["requestId"]});
        let shown = fixture.gateway.admin("usage-logs/getUsageLogDetail", detail).await;
        let said = shown["explanation"].as_str().unwrap();
        match entry.as_str() {
            Some(entry) if entry == *model => {
                assert!(
                    said.starts_with(&format!("Priced by the entry {entry} at standard rates: ")),
                    "{said}"
                );
            }
            Some(entry) => {
                assert!(
                    said.starts_with(&format!(
                        "Priced by the entry {entry} (the request asked for {model})"
                    )),
                    "{said}"
                );
            }
            None => assert!(
                said.starts_with(&format!("No cost yet: there was no price for {model}")),
                "{said}"
            ),
        }
    }
}
