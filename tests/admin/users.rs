//! Users: creation with a key, removal, disabling, expiry, amounts.

use serde_json::json;

use super::gate::{Gate, TOKEN};

#[tokio::test]
async fn a_new_users_key_works_before_the_reply_is_read_and_is_shown_once() {
    let gate = Gate::start().await;
    let user =
        gate.person("ann", json!({ "providerGroup": "gold, silver", "dailyQuota": "12.50" })).await;
    assert!(user.key.strip_prefix("sk-").is_some_and(|hex| hex.len() == 32), "{}", user.key);
    assert!(gate.works(&user.key));
    let record = gate.user_record(user.id).await;
    assert_eq!(record["providerGroup"], "gold,silver");
    assert_eq!((&record["dailyQuota"], &record["limitDailyUsd"]), (&json!(12.5), &json!(12.5)));
    let key = &record["keys"][0];
    assert_eq!((&key["name"], &key["providerGroup"]), (&json!("default"), &json!("gold,silver")));
    let masked = key["key"].as_str().unwrap();
    assert!(
        masked.starts_with(&user.key[..7])
            && masked.ends_with(&user.key[31..])
            && masked.len() < 20
    );
}

#[tokio::test]
async fn a_removed_or_disabled_or_expired_users_keys_stop_at_once() {
    let gate = Gate::start().await;
    let changes = [
        ("users/removeUser", json!({})),
        ("users/editUser", json!({ "isEnabled": false })),
        ("users/editUser", json!({ "expiresAt": "2026-11-20" })),
    ];
    for (operation, change) in changes {
        let user = gate.person("bob", json!({})).await;
        let mut body = change;
        body["userId"] = json!(user.id);
        gate.admin(operation, body).await.data();
        assert!(!gate.works(&user.key), "{operation}");
        assert_eq!(
            gate.call("users/getUsers", &user.key, json!({})).await.failure(),
            (401, "UNAUTHORIZED")
        );
    }
    let gone = gate.admin("users/removeUser", json!({ "userId": 1 })).await;
    assert_eq!(gone.failure(), (400, "NOT_FOUND"));
}

#[tokio::test]
async fn the_two_names_of_the_daily_limit_must_agree() {
    let gate = Gate::start().await;
    let body = json!({ "name": "x", "dailyQuota": 5, "limitDailyUsd": 6 });
    assert_eq!(gate.admin("users/addUser", body).await.failure(), (400, "INVALID_FORMAT"));
    let user = gate.person("x", json!({ "dailyQuota": 5, "limitDailyUsd": "5.00" })).await;
    gate.admin("users/editUser", json!({ "userId": user.id, "limitDailyUsd": null })).await.data();
    assert_eq!(gate.user_record(user.id).await["dailyQuota"], json!(null));
}

#[tokio::test]
async fn amounts_come_back_digit_by_digit() {
    let gate = Gate::start().await;
    let user = gate.person("x", json!({})).await;
    for amount in ["0.07", "0.1", "9999999.99", "1234567.89", "0"] {
        gate.admin("users/editUser", json!({ "userId": user.id, "limitTotalUsd": amount }))
            .await
            .data();
        let request = gate.post("actions/users/getUsers").bearer_auth(TOKEN);
        let text = request.send().await.unwrap().text().await.unwrap();
        assert!(text.contains(&format!("\"limitTotalUsd\":{amount},")), "{amount} in {text}");
    }
}

#[tokio::test]
async fn every_write_leaves_an_audit_record_without_secrets() {
    let gate = Gate::start().await;
    let user = gate.person("ann", json!({})).await;
    let (key, text) = gate.key(user.id, "second", json!({})).await;
    gate.call("keys/editKey", &user.key, json!({ "keyId": key, "name": "renamed" })).await.data();
    gate.provider("up").await;
    gate.admin("keys/removeKey", json!({ "keyId": key })).await.data();
    let entries = super::gate::audit_entries(&gate).await;
    let actions: Vec<&str> = entries.iter().map(|e| e.action.as_str()).collect();
    assert_eq!(
        actions,
        ["users.addUser", "keys.addKey", "keys.editKey", "providers.addProvider", "keys.removeKey"]
    );
    assert_eq!(entries[0].actor, "admin token");
    assert!(entries[2].actor.contains("ann"), "{}", entries[2].actor);
    assert_eq!(entries[2].before.as_ref().unwrap()["name"], "second");
    assert_eq!(entries[2].after.as_ref().unwrap()["name"], "renamed");
    assert_eq!(entries[2].client_addr.as_deref(), Some("127.0.0.1"));
    let all = format!("{entries:?}");
    for secret in [text.as_str(), &user.key, "upstream-credential-0123456789", TOKEN] {
        assert!(!all.contains(secret), "a secret stands in the audit");
    }
}

#[tokio::test]
async fn an_edit_that_changes_nothing_is_not_in_the_audit_log() {
    let gate = Gate::start().await;
    let ann = gate.person("ann", json!({ "note": "n", "limitTotalUsd": 7 })).await;
    let provider = gate.provider("up").await;
    let word = json!({ "word": "w", "matchType": "contains", "description": "d" });
    let word = gate.admin("sensitive-words/createSensitiveWordAction", word).await.data();
    let price = json!({ "modelName": "m", "priceData": { "input_cost_per_token": 1e-6 } });
    gate.admin("model-prices/upsertModelPrice", price.clone()).await.data();
    let settings = gate.admin("system-config/fetchSystemSettings", json!({})).await.data();
    let before = super::gate::audit_entries(&gate).await.len();
    gate.clock.advance_ms(1_000);
    let (user, key) = (gate.user_record(ann.id).await, gate.key_record(ann.id, ann.key_id).await);

    let edit = json!({ "keyId": ann.key_id, "name": "default", "isEnabled": true });
    let toggle = json!({ "keyId": ann.key_id, "enabled": true });
    let renew = json!({ "keyId": ann.key_id, "expiresAt": null });
    for who in [ann.key.as_str(), TOKEN] {
        gate.call("keys/editKey", who, edit.clone()).await.data();
        gate.call("keys/toggleKeyEnabled", who, toggle.clone()).await.data();
        gate.call("keys/renewKeyExpiresAt", who, renew.clone()).await.data();
    }
    let batch = json!({ "keyIds": [ann.key_id], "updates": { "isEnabled": true } });
    assert_eq!(gate.admin("keys/batchUpdateKeys", batch).await.data()["updatedCount"], 1);
    let title = json!({ "siteTitle": settings["siteTitle"] });
    let table = json!({ "m": { "input_cost_per_token": 1e-6 } }).to_string();
    let word = json!({ "id": word["id"], "word": "w", "isEnabled": true });
    let others = [
        ("users/editUser", json!({ "userId": ann.id, "note": " n", "limitTotalUsd": "7.00" })),
        ("providers/editProvider", json!({ "providerId": provider, "name": "up" })),
        ("system-config/saveSystemSettings", title),
        ("sensitive-words/updateSensitiveWordAction", word),
        ("notifications/updateNotificationSettingsAction", json!({ "enabled": false })),
        ("model-prices/upsertModelPrice", price),
        ("model-prices/uploadPriceTable", json!({ "jsonContent": table })),
        ("model-prices/uploadPriceTable", json!({ "jsonContent": "{\"bad\":{}}" })),
    ];
    for (operation, body) in others {
        gate.admin(operation, body).await.data();
        let entries = super::gate::audit_entries(&gate).await;
        assert_eq!(entries.len(), before, "{operation} {:?}", entries.last().map(|e| &e.action));
    }
    assert_eq!(gate.user_record(ann.id).await, user, "also the time of the change");
    assert_eq!(gate.key_record(ann.id, ann.key_id).await, key);

    // A refusal is one also if nothing would change; a credential that is sent is a change.
    let refused = json!({ "keyId": ann.key_id, "name": "a\nb" });
    assert_eq!(gate.admin("keys/editKey", refused).await.failure(), (400, "INVALID_FORMAT"));
    let again = json!({ "providerId": provider, "key": "upstream-credential-0123456789" });
    gate.admin("providers/editProvider", again).await.data();
    assert_eq!(super::gate::audit_entries(&gate).await.len(), before + 1);
}

/// Lists, logs and messages show names to people.
#[tokio::test]
async fn names_have_no_characters_that_hide_or_reorder_text() {
    let gate = Gate::start().await;
    let ann = gate.person("ann", json!({})).await;
    for name in
        ["a\nb", "a\u{7}b", "a\u{2028}b", "a\u{202e}b", "a\u{2066}b", "a\u{200b}b", "a\u{200f}b"]
    {
        let calls = [
            ("users/addUser", json!({ "name": name })),
            ("users/editUser", json!({ "userId": ann.id, "name": name })),
            ("keys/addKey", json!({ "userId": ann.id, "name": name })),
            ("keys/editKey", json!({ "keyId": ann.key_id, "name": name })),
        ];
        let in_batch = json!({ "keyIds": [ann.key_id], "updates": { "providerGroup": name } });
        let provider = json!({ "name": "p", "url": "http://127.0.0.1:9", "key": "k" });
        let with = |mut body: serde_json::Value, field: &str| {
            body[field] = format!("team,{name}").into();
            body
        };
        let of_groups = [
            ("users/addUser", with(json!({ "name": "bob" }), "providerGroup"), "providerGroup"),
            (
                "keys/editKey",
                with(json!({ "keyId": ann.key_id }), "providerGroup"),
                "providerGroup",
            ),
            ("keys/batchUpdateKeys", in_batch, "updates.providerGroup"),
            ("providers/addProvider", with(provider, "group_tag"), "group_tag"),
        ];
        let named = calls.map(|(operation, body)| (operation, body, "name"));
        for (operation, body, field) in named.into_iter().chain(of_groups) {
            let reply = gate.admin(operation, body).await;
            assert_eq!(reply.failure(), (400, "INVALID_FORMAT"), "{operation} {name:?}");
            assert_eq!(reply.body["errorParams"]["field"], field, "{operation} {name:?}");
        }
    }
    for name in ["Zoë 👩‍💻", "می‌خواهم", "王 小明"] {
        gate.admin("users/addUser", json!({ "name": name })).await.data();
    }
}
