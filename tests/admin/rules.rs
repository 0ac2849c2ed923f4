//! The rules of keys, on both databases, and under concurrency.

use serde_json::{Value, json};
use tollgate::store::Backend;

use super::gate::{Gate, Person, TOKEN};

const BOTH: [Backend; 2] = [Backend::Sqlite, Backend::Postgres];

async fn toggle(gate: &Gate, key: i64, enabled: bool) -> (u16, String) {
    let reply =
        gate.admin("keys/toggleKeyEnabled", json!({ "keyId": key, "enabled": enabled })).await;
    let (status, code) = reply.failure();
    (status, code.to_owned())
}

fn ok() -> (u16, String) {
    (200, String::new())
}

fn refused(code: &str) -> (u16, String) {
    (400, code.to_owned())
}

#[tokio::test]
async fn a_key_works_or_stops_before_the_reply_is_read() {
    let gate = Gate::start().await;
    let user = gate.person("ann", json!({})).await;
    let (id, text) = gate.key(user.id, "second", json!({})).await;
    assert!(gate.works(&text));
    for (operation, body, works) in [
        ("keys/toggleKeyEnabled", json!({ "keyId": id, "enabled": false }), false),
        ("keys/toggleKeyEnabled", json!({ "keyId": id, "enabled": true }), true),
        ("keys/renewKeyExpiresAt", json!({ "keyId": id, "expiresAt": "2026-11-20" }), false),
        ("keys/renewKeyExpiresAt", json!({ "keyId": id, "expiresAt": "2026-11-21" }), true),
        (
            "keys/batchUpdateKeys",
            json!({ "keyIds": [id], "updates": { "isEnabled": false } }),
            false,
        ),
        ("keys/renewKeyExpiresAt", json!({ "keyId": id, "expiresAt": "2027-01-01" }), false),
        (
            "keys/renewKeyExpiresAt",
            json!({ "keyId": id, "expiresAt": "2027-01-01", "enableKey": true }),
            true,
        ),
        ("keys/editKey", json!({ "keyId": id, "isEnabled": false }), false),
        ("keys/editKey", json!({ "keyId": id, "isEnabled": true, "expiresAt": null }), true),
        ("keys/removeKey", json!({ "keyId": id }), false),
    ] {
        gate.admin(operation, body.clone()).await.data();
        assert_eq!(gate.works(&text), works, "{operation} {body}");
    }
    let reply =
        gate.admin("keys/renewKeyExpiresAt", json!({ "keyId": id, "expiresAt": null })).await;
    assert_eq!(reply.failure(), (400, "NOT_FOUND"), "a deleted key does not come back");
}

#[tokio::test]
async fn expiry_is_read_in_the_gateways_time_zone_and_changes_only_when_sent() {
    let gate = Gate::start().await;
    let user = gate.person("ann", json!({})).await;
    let (id, _) = gate.key(user.id, "second", json!({ "expiresAt": "" })).await;
    let expires = async || gate.key_record(user.id, id).await["expiresAt"].clone();
    assert_eq!(expires().await, json!(null));
    for (sent, stored) in [
        (json!("2026-12-24"), json!("2026-12-24T15:59:59.999Z")),
        (json!("2026-12-24T08:00:00"), json!("2026-12-24T00:00:00.000Z")),
        (json!("2026-12-24T08:00:00+01:00"), json!("2026-12-24T07:00:00.000Z")),
    ] {
        gate.admin("keys/editKey", json!({ "keyId": id, "expiresAt": sent })).await.data();
        assert_eq!(expires().await, stored);
    }
    gate.admin("keys/editKey", json!({ "keyId": id, "expiresAt": "", "name": "third" }))
        .await
        .data();
    assert_eq!(expires().await, json!("2026-12-24T07:00:00.000Z"));
    let only_empty = gate.admin("keys/editKey", json!({ "keyId": id, "expiresAt": "" })).await;
    assert_eq!(only_empty.failure(), (400, "EMPTY_UPDATE"));
    gate.admin("keys/editKey", json!({ "keyId": id, "expiresAt": null })).await.data();
    assert_eq!(expires().await, json!(null));
}

#[tokio::test]
async fn the_last_usable_key_stays_whatever_takes_it_away() {
    for backend in BOTH {
        let gate = Gate::start_on(backend).await;
        let user = gate.person("ann", json!({})).await;
        let (disabled, _) = gate.key(user.id, "disabled", json!({ "isEnabled": false })).await;
        let (expired, _) = gate.key(user.id, "expired", json!({ "expiresAt": "2026-11-01" })).await;
        let last = user.key_id;
        assert_eq!(toggle(&gate, last, false).await, refused("CANNOT_DISABLE_LAST_KEY"));
        for (operation, body, code) in [
            (
                "keys/editKey",
                json!({ "keyId": last, "isEnabled": false }),
                "CANNOT_DISABLE_LAST_KEY",
            ),
            (
                "keys/editKey",
                json!({ "keyId": last, "expiresAt": "2026-11-01" }),
                "CANNOT_DISABLE_LAST_KEY",
            ),
            (
                "keys/renewKeyExpiresAt",
                json!({ "keyId": last, "expiresAt": "2026-11-01" }),
                "CANNOT_DISABLE_LAST_KEY",
            ),
            (
                "keys/batchUpdateKeys",
                json!({ "keyIds": [last, disabled], "updates": { "isEnabled": false } }),
                "CANNOT_DISABLE_LAST_KEY",
            ),
            ("keys/removeKey", json!({ "keyId": last }), "CANNOT_DELETE_LAST_KEY"),
        ] {
            assert_eq!(gate.admin(operation, body).await.failure(), (400, code), "{operation}");
            assert!(gate.works(&user.key));
        }
        // A key that is not usable anyway may go, and a second usable one frees the first.
        assert_eq!(toggle(&gate, expired, false).await, ok());
        gate.admin("keys/removeKey", json!({ "keyId": expired })).await.data();
        assert_eq!(toggle(&gate, disabled, true).await, ok());
        assert_eq!(toggle(&gate, last, false).await, ok());
    }
}

#[tokio::test]
async fn of_two_requests_that_each_disable_a_last_but_one_key_one_fails() {
    for backend in BOTH {
        let gate = Gate::start_on(backend).await;
        for round in 0..10 {
            let user = gate.person("ann", json!({})).await;
            let (second, _) = gate.key(user.id, "second", json!({})).await;
            let remove = async |key: i64| {
                let reply = gate.admin("keys/removeKey", json!({ "keyId": key })).await;
                (reply.failure().0, reply.code().to_owned())
            };
            let (a, b, code) = match round % 2 {
                0 => {
                    let (a, b) = tokio::join!(
                        toggle(&gate, user.key_id, false),
                        toggle(&gate, second, false)
                    );
                    (a, b, "CANNOT_DISABLE_LAST_KEY")
                }
                _ => {
                    let (a, b) = tokio::join!(remove(user.key_id), remove(second));
                    (a, b, "CANNOT_DELETE_LAST_KEY")
                }
            };
            let mut outcomes = [a, b];
            outcomes.sort();
            assert_eq!(outcomes, [ok(), refused(code)], "{backend:?} round {round}");
        }
    }
}

#[tokio::test]
async fn a_batch_of_500_is_all_or_nothing() {
    for backend in BOTH {
        let gate = Gate::start_on(backend).await;
        let user = gate.person("ann", json!({})).await;
        let mut tx = gate.store.begin().await.unwrap();
        let template = tx.keys_of(tollgate::domain::ids::UserId(user.id)).await.unwrap().remove(0);
        let mut ids = Vec::new();
        for n in 0..500_i64 {
            let mut hash = template.hash;
            hash.0[..8].copy_from_slice(&n.to_be_bytes());
            let key =
                tollgate::domain::key::Key { name: format!("key {n}"), hash, ..template.clone() };
            ids.push(tx.insert_key(&key).await.unwrap().0);
        }
        tx.commit().await.unwrap();
        let weekly = async || {
            let keys = gate.admin("keys/getKeys", json!({ "userId": user.id })).await.data();
            keys.as_array()
                .unwrap()
                .iter()
                .filter(|key| key["limitWeeklyUsd"] == json!(7.5))
                .count()
        };
        let batch = async |ids: &[i64]| {
            let updates = json!({ "limitWeeklyUsd": "7.50", "canLoginWebUi": false });
            gate.admin("keys/batchUpdateKeys", json!({ "keyIds": ids, "updates": updates })).await
        };
        let missing: Vec<i64> = ids[..499].iter().copied().chain([999_999]).collect();
        let reply = batch(&missing).await;
        assert_eq!(reply.failure(), (400, "NOT_FOUND"));
        assert_eq!(reply.body["errorParams"]["ids"], json!([999_999]));
        assert_eq!(weekly().await, 0);
        let reply = batch(&ids.iter().copied().chain([user.key_id]).collect::<Vec<_>>()).await;
        assert_eq!(
            (reply.failure(), &reply.body["errorParams"]["max"]),
            ((400, "BATCH_SIZE_EXCEEDED"), &json!(500))
        );
        let done = batch(&ids).await.data();
        assert_eq!((&done["requestedCount"], &done["updatedCount"]), (&json!(500), &json!(500)));
        assert_eq!(done["updatedIds"], json!(ids));
        assert_eq!(weekly().await, 500);
        // The last of 500 breaks a rule: none is changed.
        let other = gate.person("bob", json!({})).await;
        let mixed: Vec<i64> = ids[..499].iter().copied().chain([other.key_id]).collect();
        let body = json!({ "keyIds": mixed, "updates": { "isEnabled": false } });
        let reply = gate.admin("keys/batchUpdateKeys", body).await;
        assert_eq!(reply.failure(), (400, "CANNOT_DISABLE_LAST_KEY"));
        assert_eq!(reply.body["errorParams"]["userId"], json!(other.id));
        let keys = gate.admin("keys/getKeys", json!({ "userId": user.id })).await.data();
        assert!(keys.as_array().unwrap().iter().all(|key| key["isEnabled"] == json!(true)));
    }
}

#[tokio::test]
async fn names_are_unique_among_a_users_keys() {
    for backend in BOTH {
        let gate = Gate::start_on(backend).await;
        let (ann, bob) = (gate.person("ann", json!({})).await, gate.person("bob", json!({})).await);
        let (id, _) = gate.key(ann.id, "laptop", json!({})).await;
        let again = async |user: &Person| {
            let reply =
                gate.admin("keys/addKey", json!({ "userId": user.id, "name": " laptop " })).await;
            reply.failure().1.to_owned()
        };
        assert_eq!(again(&ann).await, "DUPLICATE_NAME");
        assert_eq!(again(&bob).await, "");
        let rename =
            gate.admin("keys/editKey", json!({ "keyId": ann.key_id, "name": "laptop" })).await;
        assert_eq!(rename.failure(), (400, "DUPLICATE_NAME"));
        gate.admin("keys/editKey", json!({ "keyId": id, "name": "laptop" })).await.data();
        gate.admin("keys/removeKey", json!({ "keyId": id })).await.data();
        assert_eq!(again(&ann).await, "", "the name of a deleted key is free");
        let (a, b) = tokio::join!(
            gate.admin("keys/addKey", json!({ "userId": ann.id, "name": "phone" })),
            gate.admin("keys/addKey", json!({ "userId": ann.id, "name": "phone" }))
        );
        let mut codes = [a.code(), b.code()];
        codes.sort_unstable();
        assert_eq!(codes, ["", "DUPLICATE_NAME"], "{backend:?}");
    }
}

#[tokio::test]
async fn no_limit_of_a_key_is_above_its_users() {
    let gate = Gate::start().await;
    let limits = [
        ("limit5hUsd", "KEY_LIMIT_5H_EXCEEDS_USER_LIMIT"),
        ("limitDailyUsd", "KEY_LIMIT_DAILY_EXCEEDS_USER_LIMIT"),
        ("limitWeeklyUsd", "KEY_LIMIT_WEEKLY_EXCEEDS_USER_LIMIT"),
        ("limitMonthlyUsd", "KEY_LIMIT_MONTHLY_EXCEEDS_USER_LIMIT"),
        ("limitTotalUsd", "KEY_LIMIT_TOTAL_EXCEEDS_USER_LIMIT"),
        ("limitConcurrentSessions", "KEY_LIMIT_CONCURRENT_EXCEEDS_USER_LIMIT"),
    ];
    for (limit, code) in limits {
        let user = gate.person("ann", json!({ limit: 10 })).await;
        let add = json!({ "userId": user.id, "name": "k", limit: 11 });
        assert_eq!(gate.admin("keys/addKey", add).await.failure(), (400, code));
        let (id, _) = gate.key(user.id, "k", json!({ limit: 10 })).await;
        let edit = gate.admin("keys/editKey", json!({ "keyId": id, limit: 11 })).await;
        assert_eq!(edit.failure(), (400, code));
        assert!(edit.body["errorParams"]["userLimit"].is_string());
        let lower = json!({ "userId": user.id, limit: 5 });
        let refused = gate.admin("users/editUser", lower.clone()).await;
        assert_eq!(refused.failure(), (400, code));
        assert_eq!(refused.body["errorParams"]["name"], "k");
        let note = json!({ "userId": user.id, limit: 10, "note": "as before" });
        gate.admin("users/editUser", note).await.data();
        gate.admin("keys/editKey", json!({ "keyId": id, limit: 5 })).await.data();
        gate.admin("users/editUser", lower).await.data();
        if !["limitTotalUsd", "limitConcurrentSessions"].contains(&limit) {
            let batch = json!({ "keyIds": [id], "updates": { limit: 6 } });
            let refused = gate.admin("keys/batchUpdateKeys", batch).await;
            assert_eq!(refused.failure(), (400, code));
            assert_eq!(refused.body["errorParams"]["name"], "k", "which of them");
        }
    }
}

#[tokio::test]
async fn users_hand_on_only_the_groups_that_they_hold() {
    let gate = Gate::start().await;
    let add = async |who: &Person, name: &str, group: Value| {
        let body = json!({ "userId": who.id, "name": name, "providerGroup": group });
        let reply = gate.call("keys/addKey", &who.key, body).await;
        (reply.code().to_owned(), reply.body["errorParams"]["groups"].clone())
    };
    let fine = (String::new(), Value::Null);
    let gold = gate.person("gold", json!({ "providerGroup": "gold" })).await;
    assert_eq!(add(&gold, "a", json!("gold")).await, fine);
    assert_eq!(add(&gold, "b", json!("")).await.0, "NO_DEFAULT_GROUP_PERMISSION");
    assert_eq!(add(&gold, "b", json!("gold,default")).await.0, "NO_DEFAULT_GROUP_PERMISSION");
    let wanted = json!("gold,silver,iron");
    assert_eq!(
        add(&gold, "b", wanted).await,
        ("NO_GROUP_PERMISSION".to_owned(), json!(["iron", "silver"]))
    );
    let all = gate.person("all", json!({ "providerGroup": "*" })).await;
    assert_eq!(add(&all, "a", json!("silver,default")).await, fine);
    let edit = json!({ "keyId": gold.key_id, "providerGroup": "silver" });
    let reply = gate.call("keys/editKey", &gold.key, edit.clone()).await;
    assert_eq!(reply.failure(), (403, "PERMISSION_DENIED"));
    gate.call(
        "keys/editKey",
        &gold.key,
        json!({ "keyId": gold.key_id, "providerGroup": "gold", "name": "x" }),
    )
    .await
    .data();

    // The union is stored when a key's groups change, and when a key comes or goes.
    let groups = async || gate.user_record(gold.id).await["providerGroup"].clone();
    gate.admin("keys/editKey", edit).await.data();
    assert_eq!(groups().await, "gold,silver");
    let (iron, _) = gate.key(gold.id, "iron", json!({ "providerGroup": "iron" })).await;
    assert_eq!(groups().await, "gold,iron,silver");
    gate.admin(
        "keys/batchUpdateKeys",
        json!({ "keyIds": [iron], "updates": { "providerGroup": null } }),
    )
    .await
    .data();
    assert_eq!(groups().await, "default,gold,silver");
    gate.admin("keys/removeKey", json!({ "keyId": iron })).await.data();
    assert_eq!(groups().await, "gold,silver");
    // Groups that an administrator grants to the user may be passed on.
    gate.admin("users/editUser", json!({ "userId": gold.id, "providerGroup": "gold,silver,iron" }))
        .await
        .data();
    assert_eq!(add(&gold, "granted", json!("iron")).await, fine);
    assert_eq!(groups().await, "gold,iron,silver");
}

#[tokio::test]
async fn a_granted_group_stays_when_keys_come_and_go() {
    let gate = Gate::start().await;
    let ann = gate.person("ann", json!({})).await;
    let grant = json!({ "userId": ann.id, "providerGroup": "default,gold" });
    gate.admin("users/editUser", grant).await.data();
    let groups = async || gate.user_record(ann.id).await["providerGroup"].clone();
    let add = async |who: &str, body: Value| gate.call("keys/addKey", who, body).await.data();
    let own = add(&ann.key, json!({ "userId": ann.id, "name": "own" })).await;
    assert_eq!(groups().await, "default,gold");
    let iron = json!({ "userId": ann.id, "name": "iron", "providerGroup": "iron" });
    let iron = add(TOKEN, iron).await;
    assert_eq!(groups().await, "default,gold,iron");
    for gone in [own, iron] {
        gate.admin("keys/removeKey", json!({ "keyId": gone["id"] })).await.data();
    }
    assert_eq!(groups().await, "default,gold", "what only the key had goes with it");
    let gold = json!({ "userId": ann.id, "name": "gold", "providerGroup": "gold" });
    add(&ann.key, gold).await;
    // An unrelated batch is not a change of groups.
    let grant = json!({ "userId": ann.id, "providerGroup": "default,gold,silver" });
    gate.admin("users/editUser", grant).await.data();
    let batch =
        json!({ "keyIds": [ann.key_id], "updates": { "providerGroup": null, "limit5hUsd": 1 } });
    gate.admin("keys/batchUpdateKeys", batch).await.data();
    assert_eq!(groups().await, "default,gold,silver");
}
