//! The price table: upload, look, and what is in force.

use serde_json::json;

use super::gate::Gate;

#[tokio::test]
async fn an_uploaded_price_is_in_force_and_a_bad_entry_fails_alone() {
    let gate = Gate::start().await;
    assert_eq!(gate.admin("model-prices/hasPriceTable", json!({})).await.data(), json!(false));
    let table = json!({
        "alpha": { "mode": "chat", "input_cost_per_token": 3e-6, "output_cost_per_token": 0.000015, "other": [1, { "x": null }] },
        "beta": { "input_cost_per_token": "cheap" },
    });
    let upload = async |table: &serde_json::Value, more: serde_json::Value| {
        let mut body = json!({ "jsonContent": table.to_string() });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        gate.admin("model-prices/uploadPriceTable", body).await.data()
    };
    let report = upload(&table, json!({})).await;
    assert_eq!(
        (&report["added"], &report["failed"], &report["total"]),
        (&json!(["alpha"]), &json!(["beta"]), &json!(2))
    );
    assert!(report["failures"][0]["reason"].as_str().unwrap().contains("input_cost_per_token"));
    let snapshot = gate.state.snapshot();
    assert_eq!(snapshot.price_for("alpha", "").unwrap().rates.input.unwrap().to_string(), "0.000003");
    assert!(snapshot.price_for("beta", "").is_none());
    assert_eq!(gate.admin("model-prices/hasPriceTable", json!({})).await.data(), json!(true));
    let shown = gate.admin("model-prices/getModelPrices", json!({})).await.data();
    assert_eq!(shown.as_array().unwrap().len(), 1);
    assert_eq!((&shown[0]["modelName"], &shown[0]["source"]), (&json!("alpha"), &json!("manual")));
    assert_eq!(shown[0]["priceData"], table["alpha"]);

    assert_eq!(upload(&table, json!({})).await["unchanged"], json!(["alpha"]));
    let dearer = json!({ "alpha": { "input_cost_per_token": 4e-6 } });
    assert_eq!(upload(&dearer, json!({ "overwriteManual": false })).await["unchanged"], json!(["alpha"]));
    assert_eq!(upload(&dearer, json!({})).await["updated"], json!(["alpha"]));
}

#[tokio::test]
async fn what_is_no_price_table_is_refused() {
    let gate = Gate::start().await;
    for text in ["[]", "{", "null", "1", "\"{}\""] {
        let reply = gate.admin("model-prices/uploadPriceTable", json!({ "jsonContent": text })).await;
        assert_eq!(reply.failure().0, 400, "{text}");
        assert_eq!(reply.body["errorParams"]["field"], "jsonContent", "{text}");
    }
    let empty = gate.admin("model-prices/uploadPriceTable", json!({ "jsonContent": "{}" })).await.data();
    assert_eq!(empty["total"], 0);
}

#[tokio::test]
async fn a_table_of_thousands_of_entries_loads() {
    let gate = Gate::start().await;
    let entry = |n: usize| {
        let padding = json!({ "nested": { "list": ["x".repeat(200)] }, "max_tokens": n });
        (format!("vendor/model-{n}"), json!({ "input_cost_per_token": 1e-6, "litellm_provider": "v", "more": padding }))
    };
    let table: serde_json::Map<String, serde_json::Value> = (0..4000).map(entry).collect();
    let text = serde_json::Value::from(table).to_string();
    assert!(text.len() > 1 << 20);
    let report = gate.admin("model-prices/uploadPriceTable", json!({ "jsonContent": text })).await.data();
    assert_eq!((report["added"].as_array().unwrap().len(), &report["total"]), (4000, &json!(4000)));
    assert_eq!(gate.state.snapshot().prices.len(), 4000);
}
