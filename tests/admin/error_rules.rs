//! `ui/error-rules/*`: the rules' own routes, outside the published API.

use serde_json::{Value, json};
use tollgate::domain::clock::Timestamp;
use tollgate::domain::error_rule::ErrorCategory;
use tollgate::domain::matching::MatchType;
use tollgate::policy::builtin_rules::{BUILTIN_RULES, BuiltinRule};
use tollgate::state::builtin;
use tollgate::store::Backend;

use super::gate::{Gate, Reply, TOKEN, audit_entries};

async fn ui(gate: &Gate, operation: &str, body: Value) -> Reply {
    Reply::of(gate.post(&format!("ui/error-rules/{operation}")).bearer_auth(TOKEN).json(&body))
        .await
}

fn rule(pattern: &str) -> Value {
    json!({ "pattern": pattern, "matchType": "contains", "category": "prompt_limit" })
}

#[tokio::test]
async fn a_rule_is_in_effect_from_its_creation_to_its_removal() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let mut sent = rule("far too long");
        sent["overrideResponse"] = json!("Shorten it.");
        sent["overrideStatusCode"] = json!(413);
        let made = ui(&gate, "create", sent).await.data();
        let shown = json!([
            made["appliesTo"],
            made["priority"],
            made["isDefault"],
            made["isEnabled"],
            made["overrideStatusCode"]
        ]);
        assert_eq!(shown, json!(["4xx", 0, false, true, 413]));
        let body =
            json!({"type": "error", "error": {"type": "odd_error", "message": "This is FAR TOO LONG."}}).to_string();
        let trial = ui(&gate, "test", json!({ "message": body, "statusCode": 400 })).await.data();
        assert_eq!(
            (&trial["type"], &trial["message"]),
            (&json!("odd_error"), &json!("This is FAR TOO LONG."))
        );
        assert_eq!(
            (&trial["statusCode"], &trial["class"]),
            (&json!(413), &json!("NON_RETRYABLE_CLIENT_ERROR"))
        );
        assert_eq!(trial["matches"][0]["id"], made["id"]);
        assert_eq!(trial["replies"]["native"]["error"]["type"], "request_too_large");
        assert_eq!(trial["replies"]["alt-cli"]["error"]["code"], 413);
        for format in ["native", "responses", "chat-compatible", "alt-cli"] {
            assert_eq!(trial["replies"][format]["error"]["message"], "Shorten it.", "{format}");
        }
        let update = json!({ "id": made["id"], "overrideResponse": null, "overrideStatusCode": null, "appliesTo": "all" });
        ui(&gate, "update", update).await.data();
        let trial =
            ui(&gate, "test", json!({ "message": "far too long", "statusCode": 500 })).await.data();
        assert_eq!((&trial["statusCode"], &trial["reason"]), (&json!(400), &json!("prompt_limit")));
        assert_eq!(trial["replies"]["native"]["error"]["message"], "far too long");
        ui(&gate, "delete", json!({ "id": made["id"] })).await;
        assert_eq!(ui(&gate, "list", json!({})).await.data(), json!([]));
        let trial =
            ui(&gate, "test", json!({ "message": "far too long", "statusCode": 500 })).await.data();
        assert_eq!(
            (&trial["class"], &trial["statusCode"]),
            (&json!("PROVIDER_ERROR"), &Value::Null)
        );
        assert_eq!((&trial["matches"], &trial["replies"]), (&json!([]), &json!({})));
        assert_eq!(
            ui(&gate, "delete", json!({ "id": made["id"] })).await.failure(),
            (400, "NOT_FOUND")
        );
    }
}

#[tokio::test]
async fn what_cannot_work_is_refused_and_changes_nothing() {
    let gate = Gate::start().await;
    let id = ui(&gate, "create", rule("one")).await.data()["id"].clone();
    for (field, value, code) in [
        ("pattern", json!("ONE"), "DUPLICATE_RULE"),
        ("category", json!("other"), "INVALID_FORMAT"),
        ("overrideStatusCode", json!(399), "MIN_VALUE"),
        ("overrideStatusCode", json!(600), "MAX_VALUE"),
        ("overrideResponse", json!(r#"{"error":{"message":"m"}}"#), "INVALID_FORMAT"),
        ("overrideResponse", json!(r#"{"message":"m""#), "INVALID_FORMAT"),
        ("overrideResponse", json!({"message": "m"}), "INVALID_TYPE"),
        ("appliesTo", json!("5xx"), "INVALID_FORMAT"),
        ("isDefault", json!(true), "INVALID_FORMAT"),
    ] {
        let mut sent = rule("two");
        sent[field] = value.clone();
        assert_eq!(ui(&gate, "create", sent).await.failure(), (400, code), "{field} {value}");
    }
    for pattern in ["(a+)+", "(?!x)y", r"(a)\1", "x*"] {
        let sent = json!({ "id": id, "pattern": pattern, "matchType": "regex" });
        let reply = ui(&gate, "update", sent).await;
        assert_eq!(
            (reply.failure(), &reply.body["errorParams"]["field"]),
            ((400, "INVALID_FORMAT"), &json!("pattern"))
        );
    }
    let listed = ui(&gate, "list", json!({})).await.data();
    assert_eq!(json!([listed.as_array().unwrap().len(), listed[0]["pattern"]]), json!([1, "one"]));
    assert!(
        !tollgate::admin::openapi(None).to_string().contains("error-rules"),
        "not in the published document"
    );
}

#[tokio::test]
async fn every_change_is_audited() {
    let gate = Gate::start().await;
    let id = ui(&gate, "create", rule("one")).await.data()["id"].clone();
    ui(&gate, "update", json!({ "id": id, "priority": 5 })).await.data();
    ui(&gate, "delete", json!({ "id": id })).await;
    let entries = audit_entries(&gate).await;
    let actions: Vec<&str> = entries.iter().map(|e| e.action.as_str()).collect();
    assert_eq!(actions, ["error-rules.create", "error-rules.update", "error-rules.delete"]);
    assert_eq!(entries[1].before.as_ref().unwrap()["priority"], 0);
    assert_eq!(entries[1].after.as_ref().unwrap()["priority"], 5);
}

fn made(code: &'static str, revision: u32, pattern: &'static str) -> BuiltinRule {
    let (category, match_type) = (ErrorCategory::PdfLimit, MatchType::Contains);
    BuiltinRule { code, revision, category, match_type, pattern, description: "" }
}

#[tokio::test]
async fn an_upgrade_brings_new_rules_and_leaves_what_the_operator_did() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let install = async |rules: &[BuiltinRule]| {
            let written = builtin::install(&gate.store, rules, Timestamp(1)).await.unwrap();
            gate.state.publish().await.unwrap();
            written
        };
        let first = [
            made("kept", 1, "k1"),
            made("edited", 1, "e1"),
            made("off", 1, "o1"),
            made("gone", 1, "g1"),
        ];
        assert_eq!(install(&first).await, 4);
        assert_eq!(install(&first).await, 0, "a second start changes nothing");
        let listed = ui(&gate, "list", json!({})).await.data();
        let id = |code: &str| {
            listed.as_array().unwrap().iter().find(|r| r["defaultCode"] == code).unwrap()["id"]
                .clone()
        };
        assert!(
            listed
                .as_array()
                .unwrap()
                .iter()
                .all(|r| r["isDefault"] == true && r["priority"] == 100)
        );
        ui(&gate, "update", json!({ "id": id("edited"), "pattern": "mine" })).await.data();
        ui(&gate, "update", json!({ "id": id("off"), "isEnabled": false })).await.data();
        ui(&gate, "delete", json!({ "id": id("gone") })).await;
        let next = [
            made("kept", 2, "k2"),
            made("edited", 2, "e2"),
            made("off", 2, "o2"),
            made("gone", 2, "g2"),
            made("new", 1, "n1"),
        ];
        assert_eq!(install(&next).await, 2);
        // The previous version of the program reverts nothing.
        assert_eq!(install(&first).await, 0);
        let listed = ui(&gate, "list", json!({})).await.data();
        let shown: Vec<Value> = listed
            .as_array()
            .unwrap()
            .iter()
            .map(|r| json!([r["defaultCode"], r["pattern"], r["isEnabled"], r["isEdited"]]))
            .collect();
        let expected = [
            json!(["kept", "k2", true, false]),
            json!(["edited", "mine", true, true]),
            json!(["off", "o1", false, true]),
            json!(["new", "n1", true, false]),
        ];
        assert_eq!(shown, expected);
        // The removed one's pattern is free for an operator's own rule.
        ui(&gate, "create", rule("g1")).await.data();
    }
}

#[tokio::test]
async fn a_rule_of_the_programs_own_comes_back_as_the_program_has_it() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        builtin::install(&gate.store, &BUILTIN_RULES[..3], Timestamp(1)).await.unwrap();
        gate.state.publish().await.unwrap();
        let before = ui(&gate, "list", json!({})).await.data();
        let id = |place: usize| json!({ "id": before[place]["id"] });
        assert_eq!(ui(&gate, "listRemoved", json!({})).await.data(), json!([]));
        ui(&gate, "delete", id(0)).await;
        ui(
            &gate,
            "update",
            json!({ "id": before[1]["id"], "pattern": "mine", "isEnabled": false }),
        )
        .await
        .data();
        let removed = ui(&gate, "listRemoved", json!({})).await.data();
        assert_eq!(
            (removed.as_array().unwrap().len(), &removed[0]["pattern"]),
            (1, &before[0]["pattern"])
        );
        // Another rule has the pattern now.
        let mut own = rule(before[0]["pattern"].as_str().unwrap());
        own["matchType"] = before[0]["matchType"].clone();
        let own = ui(&gate, "create", own).await.data();
        assert_eq!(ui(&gate, "restore", id(0)).await.failure(), (400, "DUPLICATE_RULE"));
        assert_eq!(
            ui(&gate, "restore", json!({ "id": own["id"] })).await.failure(),
            (400, "NOT_FOUND")
        );
        ui(&gate, "delete", json!({ "id": own["id"] })).await;
        ui(&gate, "restore", id(0)).await.data();
        ui(&gate, "restore", id(1)).await.data();
        let known = |rules: &Value| -> Vec<Value> {
            let shown = |rule: &Value| {
                json!([rule["id"], rule["pattern"], rule["isEnabled"], rule["isEdited"]])
            };
            rules.as_array().unwrap().iter().map(shown).collect()
        };
        assert_eq!(
            known(&ui(&gate, "list", json!({})).await.data()),
            known(&before),
            "{backend:?}"
        );
        assert_eq!(ui(&gate, "listRemoved", json!({})).await.data(), json!([]));
    }
}

#[tokio::test]
async fn the_programs_own_rules_can_be_tried() {
    let gate = Gate::start().await;
    builtin::install(&gate.store, BUILTIN_RULES, Timestamp(1)).await.unwrap();
    gate.state.publish().await.unwrap();
    assert_eq!(
        ui(&gate, "list", json!({})).await.data().as_array().unwrap().len(),
        BUILTIN_RULES.len()
    );
    let message = "A maximum of 4 blocks with cache_control may be provided. Found 5.";
    let trial = ui(&gate, "test", json!({ "message": message })).await.data();
    assert_eq!((&trial["reason"], &trial["statusCode"]), (&json!("cache_limit"), &json!(400)));
    assert_eq!(
        trial["replies"]["native"]["error"],
        json!({"type": "invalid_request_error", "message": message})
    );
    // An error that no rule matches may still be recognised by its type.
    let odd = json!({"error": {"type": "invalid_request_error", "message": "an unheard-of fault"}})
        .to_string();
    let trial = ui(&gate, "test", json!({ "message": odd })).await.data();
    assert_eq!(
        (&trial["matches"], &trial["reason"], &trial["statusCode"]),
        (&json!([]), &json!("invalid_request"), &json!(400))
    );
}
