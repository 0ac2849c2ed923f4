//! The price table: upload, read, and the prices in effect.

use serde_json::{Value, json};
use tollgate::domain::price::CostKind;
use tollgate::store::Backend;

use super::gate::{Gate, NOON, Reply};
use super::statistics::record;

#[tokio::test]
async fn an_uploaded_price_is_in_effect_and_a_bad_entry_fails_alone() {
    let gate = Gate::start().await;
    let has_prices = async || {
        Reply::of(gate.post("actions/model-prices/hasPriceTable").json(&json!({}))).await.data()
    };
    assert_eq!(has_prices().await, json!(false), "without a credential");
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
    assert_eq!(
        snapshot.price_for("alpha", "").unwrap().rates.base(CostKind::Input).unwrap().to_string(),
        "0.000003"
    );
    assert!(snapshot.price_for("beta", "").is_none());
    assert_eq!(has_prices().await, json!(true));
    let shown = gate.admin("model-prices/getModelPrices", json!({})).await.data();
    assert_eq!(shown.as_array().unwrap().len(), 1);
    assert_eq!((&shown[0]["modelName"], &shown[0]["source"]), (&json!("alpha"), &json!("manual")));
    assert_eq!(shown[0]["priceData"], table["alpha"]);

    assert_eq!(upload(&table, json!({})).await["unchanged"], json!(["alpha"]));
    let dearer = json!({ "alpha": { "input_cost_per_token": 4e-6 } });
    assert_eq!(
        upload(&dearer, json!({ "overwriteManual": false })).await["unchanged"],
        json!(["alpha"])
    );
    assert_eq!(upload(&dearer, json!({})).await["updated"], json!(["alpha"]));
}

#[tokio::test]
async fn what_is_no_price_table_is_refused() {
    let gate = Gate::start().await;
    for text in ["[]", "{", "null", "1", "\"{}\""] {
        let reply =
            gate.admin("model-prices/uploadPriceTable", json!({ "jsonContent": text })).await;
        assert_eq!(reply.failure().0, 400, "{text}");
        assert_eq!(reply.body["errorParams"]["field"], "jsonContent", "{text}");
    }
    let empty =
        gate.admin("model-prices/uploadPriceTable", json!({ "jsonContent": "{}" })).await.data();
    assert_eq!(empty["total"], 0);
}

#[tokio::test]
async fn a_table_of_thousands_of_entries_loads() {
    let gate = Gate::start().await;
    let entry = |n: usize| {
        let padding = json!({ "nested": { "list": ["x".repeat(200)] }, "max_tokens": n });
        (
            format!("vendor/model-{n}"),
            json!({ "input_cost_per_token": 1e-6, "litellm_provider": "v", "more": padding }),
        )
    };
    let table: serde_json::Map<String, serde_json::Value> = (0..4000).map(entry).collect();
    let text = serde_json::Value::from(table).to_string();
    assert!(text.len() > 1 << 20);
    let report =
        gate.admin("model-prices/uploadPriceTable", json!({ "jsonContent": text })).await.data();
    assert_eq!((report["added"].as_array().unwrap().len(), &report["total"]), (4000, &json!(4000)));
    assert_eq!(gate.state.snapshot().prices.len(), 4000);
}

/// As the public list writes its entries: an explanation first, nested fields, nulls, prices as
/// text, modes without any.
fn public_list() -> serde_json::Value {
    json!({
        "sample_spec": {
            "code_interpreter_cost_per_session": 0.0, "input_cost_per_token": 0.0, "output_cost_per_token": 0.0,
            "litellm_provider": "one of the providers", "max_tokens": "LEGACY parameter", "mode": "one of: chat, embedding",
            "supported_regions": ["global", "us-west-2"], "search_context_cost_per_query": { "search_context_size_low": 0.0 },
        },
        "native-large": {
            "cache_creation_input_token_cost": 3.75e-06, "cache_read_input_token_cost": 3e-07,
            "input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05, "litellm_provider": "anthropic",
            "input_cost_per_token_above_200k_tokens": 6e-06, "max_tokens": 64000, "mode": "chat",
            "search_context_cost_per_query": { "search_context_size_high": 0.01 }, "tool_use_system_prompt_tokens": 159,
        },
        "vendor/flash": {
            "input_cost_per_token": 1e-07, "output_cost_per_token": null, "litellm_provider": "gemini", "mode": "chat",
            "tiered_pricing": [{ "range": [0, 32000.0], "input_cost_per_token": 5e-08 }], "deprecation_date": "2027-01-01",
        },
        "as-text": { "input_cost_per_token": "0.0000005", "litellm_provider": "openai", "mode": "chat", "metadata": { "notes": "é" } },
        "embedder": { "input_cost_per_token": 1e-8, "litellm_provider": "openai", "mode": "embedding" },
        "by-the-picture": { "input_cost_per_pixel": 1.9e-08, "litellm_provider": "openai", "mode": "image_generation" },
        "a-slip": { "input_cost_per_token": "3e-6 USD", "litellm_provider": "openai", "mode": "chat" },
    })
}

#[tokio::test]
async fn a_sync_takes_the_public_list_and_leaves_what_was_entered_by_hand() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let own = json!({ "modelName": "native-large", "priceData": { "input_cost_per_token": 9e-6, "note": "ours" } });
        let made = gate.admin("model-prices/upsertModelPrice", own.clone()).await.data();
        assert_eq!(
            (&made["source"], &made["priceData"]["note"]),
            (&json!("manual"), &json!("ours"))
        );
        let file = gate.dir.path().join("public-list.json");
        std::fs::write(&file, public_list().to_string()).unwrap();

        let report = gate.admin("model-prices/syncLiteLLMPrices", json!({})).await.data();
        assert_eq!(report["added"], json!(["vendor/flash", "as-text", "embedder"]));
        assert_eq!((&report["unchanged"], &report["total"]), (&json!(["native-large"]), &json!(6)));
        assert_eq!(report["failed"], json!(["by-the-picture", "a-slip"]));
        assert!(
            report["failures"][1]["reason"].as_str().unwrap().contains("input_cost_per_token"),
            "{report}"
        );
        let snapshot = gate.state.snapshot();
        assert_eq!(
            snapshot.prices["as-text"].rates.base(CostKind::Input).unwrap().to_string(),
            "0.0000005"
        );
        assert_eq!(
            snapshot.prices["native-large"].rates.base(CostKind::Input).unwrap().to_string(),
            "0.000009"
        );
        assert!(!snapshot.prices.contains_key("sample_spec"));
        let again = gate.admin("model-prices/syncLiteLLMPrices", json!({})).await.data();
        assert_eq!(
            (
                again["added"].as_array().unwrap().len(),
                again["unchanged"].as_array().unwrap().len()
            ),
            (0, 4)
        );

        // Once the manual entry is deleted, the list's is used.
        gate.admin("model-prices/deleteModelPrice", json!({ "modelName": "native-large" })).await;
        assert!(gate.state.snapshot().price_for("native-large", "").is_none());
        let gone = gate
            .admin("model-prices/deleteModelPrice", json!({ "modelName": "native-large" }))
            .await;
        assert_eq!(gone.failure(), (400, "NOT_FOUND"));
        assert_eq!(
            gate.admin("model-prices/syncLiteLLMPrices", json!({})).await.data()["added"],
            json!(["native-large"])
        );
        let cheaper = json!({ "native-large": { "input_cost_per_token": 1e-6 } });
        std::fs::write(&file, cheaper.to_string()).unwrap();
        assert_eq!(
            gate.admin("model-prices/syncLiteLLMPrices", json!({})).await.data()["updated"],
            json!(["native-large"])
        );
    }
}

#[tokio::test]
async fn a_list_that_cannot_be_had_changes_nothing_and_says_why() {
    let gate = Gate::start().await;
    gate.admin("model-prices/syncLiteLLMPrices", json!({})).await.data();
    let before = gate.store.config_version().await.unwrap();
    let file = gate.dir.path().join("public-list.json");
    for (text, code) in [
        (Some("[1, 2]"), "INVALID_FORMAT"),
        (Some("<html>"), "INVALID_FORMAT"),
        (None, "OPERATION_FAILED"),
    ] {
        match text {
            Some(text) => std::fs::write(&file, text).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        assert_eq!(
            gate.admin("model-prices/syncLiteLLMPrices", json!({})).await.failure(),
            (400, code),
            "{text:?}"
        );
    }
    std::fs::write(&file, " ".repeat(16 * 1024 * 1024 + 1)).unwrap();
    let reply = gate.admin("model-prices/syncLiteLLMPrices", json!({})).await;
    assert_eq!(reply.failure(), (400, "OPERATION_FAILED"));
    assert!(reply.body["error"].as_str().unwrap().contains("larger than"), "{:?}", reply.body);
    assert_eq!(gate.store.config_version().await.unwrap(), before);
    assert_eq!(gate.state.snapshot().prices.len(), 1);
}

#[tokio::test]
async fn models_to_choose_from_come_from_providers_and_the_price_table() {
    let gate = Gate::start().await;
    gate.admin(
        "model-prices/uploadPriceTable",
        json!({ "jsonContent": public_list().to_string() }),
    )
    .await
    .data();
    let bare = json!({ "modelName": "bare", "priceData": { "input_cost_per_token": 1e-6 } });
    gate.admin("model-prices/upsertModelPrice", bare).await.data();
    let provider = json!({
        "name": "up", "url": "https://up.example", "key": "upstream-credential-0123456789", "provider_type": "alt-cli",
        "allowed_models": ["own-*", "own-1"], "model_redirects": { "nick": "vendor/flash" },
    });
    gate.admin("providers/addProvider", provider).await.data();
    let models = async |of: serde_json::Value| {
        gate.admin("model-prices/getAvailableModelsByProviderType", of).await.data()
    };
    assert_eq!(models(json!({ "providerType": "native" })).await, json!(["bare", "native-large"]));
    assert_eq!(
        models(json!({ "providerType": "alt-cli" })).await,
        json!(["bare", "nick", "own-1", "vendor/flash"])
    );
    assert_eq!(models(json!({ "providerType": "responses" })).await, json!(["as-text", "bare"]));
    let all =
        json!(["as-text", "bare", "embedder", "native-large", "nick", "own-1", "vendor/flash"]);
    assert_eq!(models(json!({})).await, all);
}

#[tokio::test]
async fn models_without_a_price_are_those_of_requests_and_of_enabled_providers() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let ann = gate.person("ann", json!({ "limitDailyUsd": 5 })).await;
        let table = json!({
            "priced": { "input_cost_per_token": 1e-6 },
            "gemini/flash": { "input_cost_per_token": 1e-6 },
        });
        gate.admin("model-prices/uploadPriceTable", json!({ "jsonContent": table.to_string() }))
            .await
            .data();
        for (name, enabled) in [("on", true), ("off", false)] {
            let provider = json!({
                "name": name, "url": "https://up.example", "key": "upstream-credential-0123456789",
                "allowed_models": [name, "priced", "flash-latest", "used", "pattern-*"],
                "model_redirects": { "alias": "priced-20250929", "nick": "nameless" },
                "is_enabled": enabled,
            });
            gate.admin("providers/addProvider", provider).await.data();
        }
        let unpriced = |model: &str| record(&ann, NOON, model, None);
        let records = [
            unpriced("rare"),
            unpriced("used"),
            unpriced("used"),
            // Its price arrived after the request, which is priced soon.
            unpriced("priced-latest"),
            record(&ann, NOON, "free", Some(0)),
            unpriced(""),
        ];
        gate.store.append_records(&records).await.unwrap();
        let found = gate.admin("model-prices/getUnpricedModels", json!({})).await.data();
        let of = |name, requests| json!({ "modelName": name, "requests": requests });
        assert_eq!(
            found["models"],
            json!([of("used", 2), of("rare", 1), of("nick", 0), of("on", 0)])
        );
        assert_eq!(found["passLimits"], false, "they are refused to those with a limit");
    }
}

#[tokio::test]
async fn a_price_shows_the_search_fee_and_the_factors_that_are_charged() {
    let gate = Gate::start().await;
    let entry = json!({
        "input_cost_per_token": 1e-6,
        "search_context_cost_per_query": {
            "search_context_size_low": 0.03, "search_context_size_medium": 0.035,
        },
        "provider_specific_entry": { "us": 1.1, "fast": 6 },
    });
    for (entry, fee, fast, us) in [
        (entry, json!(0.035), json!(6), json!(1.1)),
        (json!({ "input_cost_per_token": 1e-6 }), Value::Null, Value::Null, Value::Null),
    ] {
        let body = json!({ "modelName": "m", "priceData": entry });
        let shown = gate.admin("model-prices/upsertModelPrice", body).await.data();
        assert_eq!(
            (&shown["webSearchUsd"], &shown["fastFactor"], &shown["usFactor"]),
            (&fee, &fast, &us)
        );
    }
}

#[tokio::test]
async fn a_price_that_is_none_is_refused_by_hand_too() {
    let gate = Gate::start().await;
    for (data, force, passes) in [
        (json!({ "input_cost_per_token": -1 }), true, false),
        (json!({ "mode": "chat" }), false, false),
        (json!({ "input_cost_per_token": 2 }), false, false),
        (json!({ "input_cost_per_token": 2 }), true, true),
    ] {
        let body = json!({ "modelName": "m", "priceData": data, "force": force });
        let reply = gate.admin("model-prices/upsertModelPrice", body).await;
        assert_eq!(reply.status == 200, passes, "{data} {force}: {:?}", reply.body);
        if !passes {
            assert_eq!(reply.body["errorParams"]["field"], "priceData");
        }
    }
}
