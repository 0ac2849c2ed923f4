//! What a user may change of their own keys; with locked key limits, everything but the limits.

use serde_json::{Value, json};
use tollgate::store::Backend;

use super::gate::{Gate, Person};

const LOCKED: (u16, &str) = (403, "KEY_LIMITS_LOCKED");

/// The limits of a key, by the names that they have in a body.
async fn limits(gate: &Gate, user: i64, key: i64) -> Value {
    let record = gate.key_record(user, key).await;
    let names =
        ["limit5hUsd", "limitDailyUsd", "limitWeeklyUsd", "limitMonthlyUsd", "limitTotalUsd"];
    let further = ["limitConcurrentSessions", "dailyResetMode", "dailyResetTime"];
    names.iter().chain(&further).map(|name| ((*name).to_owned(), record[*name].clone())).collect()
}

/// A user whose key limits are locked, with one key that has limits.
async fn locked(gate: &Gate) -> Person {
    let user = gate.person("ann", json!({ "lockKeyLimits": true, "limitMonthlyUsd": 100 })).await;
    let set = json!({
        "keyId": user.key_id, "limitDailyUsd": 5, "dailyResetMode": "rolling", "limitTotalUsd": 50,
        "limitConcurrentSessions": 3,
    });
    gate.admin("keys/editKey", set).await.data();
    user
}

#[tokio::test]
async fn a_user_with_locked_key_limits_changes_none_and_an_administrator_does() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let user = locked(&gate).await;
        assert_eq!(gate.user_record(user.id).await["lockKeyLimits"], true);
        let before = limits(&gate, user.id, user.key_id).await;
        for change in [
            json!({ "limitDailyUsd": 6 }),
            json!({ "limitDailyUsd": 4 }),
            json!({ "limitDailyUsd": null }),
            json!({ "limit5hUsd": 1 }),
            json!({ "limitWeeklyUsd": 1 }),
            json!({ "limitMonthlyUsd": 1 }),
            json!({ "limitTotalUsd": null }),
            json!({ "limitConcurrentSessions": 0 }),
            json!({ "dailyResetMode": "fixed" }),
            json!({ "dailyResetTime": "05:00" }),
        ] {
            let mut body = json!({ "keyId": user.key_id });
            body.as_object_mut().unwrap().extend(change.as_object().cloned().unwrap());
            let refused = gate.call("keys/editKey", &user.key, body.clone()).await;
            assert_eq!(refused.failure(), LOCKED, "{change}");
            assert_eq!(limits(&gate, user.id, user.key_id).await, before, "{change}");
            gate.admin("keys/editKey", body).await.data();
            let mut restored = before.clone();
            restored["keyId"] = user.key_id.into();
            gate.admin("keys/editKey", restored).await.data();
        }
        // Everything else of the key remains the user's to change, and limits may be sent
        // unchanged.
        let rest = json!({
            "keyId": user.key_id, "name": "mine", "limitDailyUsd": 5, "cacheTtlPreference": "1h", "expiresAt": "2027-01-31",
        });
        gate.call("keys/editKey", &user.key, rest).await.data();
        let batch = json!({ "keyIds": [user.key_id], "updates": { "limitDailyUsd": 9 } });
        assert_eq!(
            gate.call("keys/batchUpdateKeys", &user.key, batch.clone()).await.failure().0,
            403
        );
        gate.admin("keys/batchUpdateKeys", batch).await.data();
        // Unlocked, they are the user's again.
        gate.admin("users/editUser", json!({ "userId": user.id, "lockKeyLimits": false }))
            .await
            .data();
        gate.call(
            "keys/editKey",
            &user.key,
            json!({ "keyId": user.key_id, "limitDailyUsd": null }),
        )
        .await
        .data();
    }
}

#[tokio::test]
async fn a_key_that_such_a_user_adds_has_the_tightest_limits_of_their_others() {
    let gate = Gate::start().await;
    let user = locked(&gate).await;
    gate.admin("users/editUser", json!({ "userId": user.id, "maxKeys": 3 })).await.data();
    let loose = json!({ "limitDailyUsd": 20, "limitTotalUsd": 40, "limitWeeklyUsd": 30 });
    gate.key(user.id, "loose", loose).await;
    for sent in [
        json!({ "limitDailyUsd": 1 }),
        json!({ "limitTotalUsd": 0 }),
        json!({ "dailyResetTime": "01:00" }),
    ] {
        let mut body = json!({ "userId": user.id, "name": "more" });
        body.as_object_mut().unwrap().extend(sent.as_object().cloned().unwrap());
        assert_eq!(gate.call("keys/addKey", &user.key, body).await.failure(), LOCKED, "{sent}");
    }
    let added = json!({ "userId": user.id, "name": "more", "limitDailyUsd": null });
    let id = gate.call("keys/addKey", &user.key, added).await.data()["id"].as_i64().unwrap();
    let expected = json!({
        "limit5hUsd": null, "limitDailyUsd": 5, "limitWeeklyUsd": 30, "limitMonthlyUsd": null, "limitTotalUsd": 40,
        "limitConcurrentSessions": 3, "dailyResetMode": "rolling", "dailyResetTime": "00:00",
    });
    assert_eq!(limits(&gate, user.id, id).await, expected);
    let (by_admin, _) = gate.key(user.id, "by an administrator", json!({})).await;
    assert_eq!(limits(&gate, user.id, by_admin).await["limitDailyUsd"], Value::Null);
}

#[tokio::test]
async fn by_default_key_limits_are_the_users_and_an_administrators_own_are_never_locked() {
    let gate = Gate::start().await;
    let user = gate.person("ann", json!({})).await;
    assert_eq!(gate.user_record(user.id).await["lockKeyLimits"], false);
    gate.call("keys/editKey", &user.key, json!({ "keyId": user.key_id, "limitDailyUsd": 5 }))
        .await
        .data();
    let admin = gate.person("root", json!({ "role": "admin", "lockKeyLimits": true })).await;
    gate.call("keys/editKey", &admin.key, json!({ "keyId": admin.key_id, "limitDailyUsd": 5 }))
        .await
        .data();
    let own = json!({ "userId": user.id, "lockKeyLimits": false });
    assert_eq!(
        gate.call("users/editUser", &user.key, own).await.failure(),
        (403, "PERMISSION_DENIED")
    );
}

#[tokio::test]
async fn a_user_with_locked_limits_adds_only_the_keys_that_an_administrator_allows() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let user = locked(&gate).await;
        let add = async |name: &str| {
            gate.call("keys/addKey", &user.key, json!({ "userId": user.id, "name": name })).await
        };
        let allow = async |most: Value| {
            let edit = json!({ "userId": user.id, "maxKeys": most });
            gate.admin("users/editUser", edit).await.data();
        };
        assert_eq!(gate.user_record(user.id).await["maxKeys"], Value::Null);
        let refused = add("second").await;
        assert_eq!(refused.failure(), LOCKED);
        assert_eq!(refused.body["errorParams"]["reason"], "keys_of_administrator");
        // What an administrator adds counts, and so does the first key.
        allow(json!(3)).await;
        gate.key(user.id, "by an administrator", json!({})).await;
        let second = add("second").await.data()["id"].as_i64().unwrap();
        assert_eq!(add("third").await.failure(), LOCKED);
        // To delete one and add another would give its amount anew.
        gate.call("keys/removeKey", &user.key, json!({ "keyId": second })).await.data();
        assert_eq!(add("second").await.failure(), LOCKED);
        allow(json!(4)).await;
        let both = tokio::join!(add("one"), add("other"));
        let added = [both.0.status, both.1.status].iter().filter(|status| **status == 200).count();
        assert_eq!(added, 1, "the count holds for changes at the same time");
        gate.key(user.id, "an administrator is not bound", json!({})).await;
        // Without the lock it is a bound too; without either there is none.
        let unlock = json!({ "userId": user.id, "lockKeyLimits": false });
        gate.admin("users/editUser", unlock).await.data();
        assert_eq!(add("more").await.failure(), LOCKED);
        allow(Value::Null).await;
        add("more").await.data();
        assert_eq!(
            gate.call("users/editUser", &user.key, json!({ "userId": user.id, "maxKeys": 9 }))
                .await
                .failure(),
            (403, "PERMISSION_DENIED")
        );
    }
}
