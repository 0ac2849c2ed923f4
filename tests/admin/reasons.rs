//! Refusals name their reasons, so that no program and no translation has to read their words.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tollgate::admin::openapi;
use tollgate::admin::reasons::Reason;

use super::gate::{Gate, Reply, TOKEN};

/// The reason of a refusal, whose message is that reason's text with its parameters.
fn reason(reply: &Reply) -> String {
    let params = &reply.body["errorParams"];
    let word = params["reason"].as_str().unwrap_or_else(|| panic!("no reason: {:?}", reply.body));
    let known = Reason::ALL.iter().find(|reason| reason.as_str() == word);
    let words = known.unwrap().filled(params.as_object().unwrap());
    assert!(!words.contains('{'), "{words}: a parameter lacks");
    assert!(reply.body["error"].as_str().unwrap().ends_with(&words), "{words}: {:?}", reply.body);
    word.to_owned()
}

#[test]
fn the_document_lists_every_reason_once() {
    let document = openapi(None);
    let failure = &document["components"]["schemas"]["Failure"];
    let listed =
        failure["properties"]["errorParams"]["properties"]["reason"]["enum"].as_array().unwrap();
    let words: BTreeSet<&str> = listed.iter().filter_map(Value::as_str).collect();
    assert_eq!((words.len(), listed.len()), (Reason::ALL.len(), Reason::ALL.len()));
    for reason in Reason::ALL {
        assert_eq!(document["x-reasons"][reason.as_str()], reason.text());
    }
}

#[tokio::test]
async fn a_fault_in_a_body_is_reported_by_reason_and_parameters() {
    let gate = Gate::start().await;
    let body = json!({
        "name": "", "url": "up.example", "key": "k", "weight": 0, "daily_reset_time": "25:00", "is_enabled": 1,
        "provider_type": "odd", "cost_multiplier": 1.00001, "allowed_models": ["a", 5],
    });
    let reply = gate.admin("providers/addProvider", body).await;
    let faults = reply.body["errorParams"]["faults"].as_array().unwrap().clone();
    let reported = |fault: &Value| json!([fault["field"], fault["reason"]]);
    assert_eq!(
        faults.iter().map(reported).collect::<Vec<_>>(),
        [
            json!(["name", "must_not_be_empty"]),
            json!(["url", "must_be_web_address"]),
            json!(["provider_type", "must_be_one_of"]),
            json!(["is_enabled", "must_be_boolean"]),
            json!(["weight", "at_least"]),
            json!(["cost_multiplier", "too_many_places"]),
            json!(["allowed_models[1]", "must_be_text"]),
            json!(["daily_reset_time", "must_be_time_of_day"]),
        ]
    );
    assert_eq!((&faults[4]["min"], &faults[5]["places"]), (&json!(1), &json!(4)));
    assert_eq!(faults[2]["allowed"].as_array().unwrap().len(), 5);
    let one = gate.admin("users/addUser", json!({ "name": "x".repeat(65) })).await;
    assert_eq!(
        (reason(&one).as_str(), &one.body["errorParams"]["max"]),
        ("at_most_characters", &json!(64))
    );
}

#[tokio::test]
async fn a_refused_caller_gets_the_reason() {
    let gate = Gate::start().await;
    let user = gate.person("user", json!({})).await;
    let other = gate.person("other", json!({})).await;
    let (id, key) = gate.key(user.id, "spare", json!({ "canLoginWebUi": false })).await;
    let own = json!({ "userId": other.id });
    assert_eq!(
        reason(&gate.call("users/getUsers", &user.key, json!({})).await),
        "needs_administrator"
    );
    assert_eq!(reason(&gate.call("users/getUsers", &key, json!({})).await), "reads_own_usage");
    assert_eq!(reason(&gate.call("keys/getKeys", &user.key, own).await), "belongs_to_another");
    assert_eq!(
        reason(&gate.call("keys/getKeys", "sk-unknown", json!({})).await),
        "credential_unknown"
    );
    gate.admin("keys/toggleKeyEnabled", json!({ "keyId": id, "enabled": false })).await.data();
    assert_eq!(reason(&gate.call("keys/getKeys", &key, json!({})).await), "key_disabled");
    let anonymous = Reply::of(gate.post("auth/whoami").json(&json!({}))).await;
    assert_eq!(reason(&anonymous), "no_credential");
}

#[tokio::test]
async fn a_refused_action_gives_the_reason() {
    let gate = Gate::start().await;
    let rule = |pattern: &str| json!({ "pattern": pattern, "matchType": "regex", "category": "prompt_limit" });
    let create = async |body: Value| {
        Reply::of(gate.post("ui/error-rules/create").bearer_auth(TOKEN).json(&body)).await
    };
    assert_eq!(reason(&create(rule("(a+)+")).await), "nested_repeat");
    assert_eq!(reason(&create(rule("(")).await), "syntax");
    let price = json!({ "modelName": "m", "priceData": { "input_cost_per_token": -1 } });
    let refused = gate.admin("model-prices/upsertModelPrice", price).await;
    assert_eq!(reason(&refused), "price_negative");
    assert_eq!(refused.body["errorParams"]["rate"], "input_cost_per_token");
    let table = json!({ "jsonContent": "{\"m\": {\"input_cost_per_token\": \"x\"}}" });
    let failure =
        gate.admin("model-prices/uploadPriceTable", table).await.data()["failures"][0].clone();
    assert_eq!(
        (&failure["code"], &failure["params"]["rate"]),
        (&json!("price_no_number"), &json!("input_cost_per_token"))
    );
    let data = json!({ "input_cost_per_token": 1, "accepts": { "native": { "mode": "soon" } } });
    let price = json!({ "modelName": "m", "priceData": data });
    let refused = gate.admin("model-prices/upsertModelPrice", price).await;
    assert_eq!(reason(&refused), "price_facts");
    assert_eq!(refused.body["errorParams"]["member"], "accepts.native.mode");
    let hook = json!({ "webhookUrl": "http://192.168.0.1/" });
    assert_eq!(
        reason(&gate.admin("notifications/testWebhookAction", hook).await),
        "webhook_not_public"
    );
    let id = gate.provider("up").await;
    let moved = json!({ "providerId": id, "url": "https://elsewhere.example" });
    assert_eq!(reason(&gate.admin("providers/editProvider", moved).await), "other_destination");
    let page = json!({ "cursor": "no cursor" });
    assert_eq!(reason(&gate.admin("usage-logs/getUsageLogs", page).await), "cursor_foreign");
}
