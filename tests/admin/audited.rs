//! What an audit of the administration found: each was accepted, shown or recorded wrongly.

use serde_json::json;

use super::gate::{Gate, Reply, audit_entries};

#[tokio::test]
async fn notes_and_tags_are_for_administrators() {
    let gate = Gate::start().await;
    let person = gate.person("ada", json!({"note": "on watch", "tags": ["churn"]})).await;
    let asked = gate.post("auth/whoami").bearer_auth(&person.key).json(&json!({}));
    let user = Reply::of(asked).await.data()["user"].clone();
    assert_eq!((&user["note"], &user["tags"]), (&json!(""), &json!([])), "{user}");
}

#[tokio::test]
async fn the_audit_has_a_removed_key_as_it_was() {
    let gate = Gate::start().await;
    let person = gate.person("ada", json!({})).await;
    let (key, _) = gate.key(person.id, "second", json!({})).await;
    assert_eq!(gate.admin("keys/removeKey", json!({"keyId": key})).await.status, 200);
    let entries = audit_entries(&gate).await;
    let removed = entries.iter().find(|entry| entry.action == "keys.removeKey").unwrap();
    assert!(removed.before.as_ref().unwrap()["deletedAt"].is_null(), "{:?}", removed.before);
}

#[tokio::test]
async fn a_credential_that_no_header_can_hold_is_refused() {
    let gate = Gate::start().await;
    for key in ["a\nb", "ключ", "two words"] {
        let body = json!({"name": "p", "url": "http://127.0.0.1:9", "key": key});
        let refused = gate.admin("providers/addProvider", body).await;
        assert_eq!(refused.failure(), (400, "INVALID_FORMAT"), "{key}");
    }
    let body = json!({"name": "p", "url": "http://127.0.0.1:9", "key": " sk-pasted\n"});
    assert_eq!(gate.admin("providers/addProvider", body).await.status, 200);
}

#[tokio::test]
async fn a_mask_that_is_sent_back_does_not_replace_the_credential() {
    let gate = Gate::start().await;
    let url = "http://127.0.0.1:9";
    for key in ["short", "upstream-credential-0123456789"] {
        let body = json!({"name": key, "url": url, "key": key});
        let id = gate.admin("providers/addProvider", body).await.data()["id"].clone();
        let shown = gate.admin("providers/getProviders", json!({})).await.data();
        let record = shown.as_array().unwrap().iter().find(|p| p["id"] == id).unwrap();
        let mask = &record["key"];
        for (operation, body) in [
            ("providers/editProvider", json!({"providerId": id, "key": mask})),
            ("providers/testProvider", json!({"providerId": id, "key": mask})),
            ("providers/addProvider", json!({"name": "p", "url": url, "key": mask})),
        ] {
            let refused = gate.admin(operation, body).await;
            assert_eq!(refused.failure(), (400, "INVALID_FORMAT"), "{operation} {mask}");
            assert_eq!(refused.body["errorParams"]["reason"], "is_masked", "{operation} {mask}");
        }
        let snapshot = gate.state.snapshot();
        assert_eq!(snapshot.providers.last().unwrap().key.expose(), key);
    }
}

#[tokio::test]
async fn assertions_alone_are_no_pattern() {
    let gate = Gate::start().await;
    for word in ["\\b", "^", "(?m)$"] {
        let body = json!({"word": word, "matchType": "regex"});
        let refused = gate.admin("sensitive-words/createSensitiveWordAction", body).await;
        assert_eq!(refused.status, 400, "{word}");
    }
}

#[tokio::test]
async fn blanks_around_a_models_name_are_not_part_of_it() {
    let gate = Gate::start().await;
    let table = json!({" gpt-spaced ": {"input_cost_per_token": 1e-6}}).to_string();
    let uploaded = gate.admin("model-prices/uploadPriceTable", json!({"jsonContent": table})).await;
    assert_eq!(uploaded.status, 200);
    let removed =
        gate.admin("model-prices/deleteModelPrice", json!({"modelName": "gpt-spaced"})).await;
    assert_eq!(removed.status, 200);
}

#[tokio::test]
async fn a_path_has_its_beginning_once() {
    let gate = Gate::start().await;
    let asked = gate.http.post(format!("{}/api//api/auth/whoami", gate.url)).json(&json!({}));
    assert_eq!(Reply::of(asked).await.status, 404);
}

#[tokio::test]
async fn a_user_makes_so_many_keys_and_administrators_more() {
    let gate = Gate::start().await;
    let person = gate.person("ada", json!({})).await;
    let add = |name: String| json!({"userId": person.id, "name": name});
    for n in 1..200 {
        assert_eq!(gate.admin("keys/addKey", add(format!("k{n}"))).await.status, 200);
    }
    let refused = gate.call("keys/addKey", &person.key, add("more".to_owned())).await;
    assert_eq!(refused.failure(), (400, "OPERATION_FAILED"));
    assert_eq!(gate.admin("keys/addKey", add("more".to_owned())).await.status, 200);
}
