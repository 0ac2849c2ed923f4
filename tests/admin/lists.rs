//! Lists of users and keys: spend against the tightest limit, and the last use.

use serde_json::{Value, json};
use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::{KeyId, RequestId, UserId};
use tollgate::domain::record::Record;
use tollgate::store::Backend;

use super::gate::{Gate, NOON, Person};
use super::overview::spend;
use crate::store::make::bare_record;

fn used(person: &Person, key: i64, at: Timestamp) -> Record {
    Record {
        request_id: RequestId::new(),
        user_id: Some(UserId(person.id)),
        key_id: Some(KeyId(key)),
        started_at: at,
        ..bare_record()
    }
}

#[tokio::test]
async fn lists_show_the_tightest_limit_and_the_last_use() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let ada = gate.person("ada", json!({ "limitMonthlyUsd": 100, "limitTotalUsd": 40 })).await;
        let bob = gate.person("bob", json!({})).await;
        gate.admin(
            "keys/editKey",
            json!({ "keyId": ada.key_id, "limitWeeklyUsd": 16, "limitDailyUsd": 32 }),
        )
        .await
        .data();
        let (spare, _) = gate.key(ada.id, "spare", json!({})).await;
        let provider = gate.provider("upstream").await;
        spend(&gate, &ada, provider, 8).await;
        let records = [
            used(&ada, ada.key_id, NOON.plus_ms(-5)),
            used(&ada, ada.key_id, NOON.plus_ms(-9)),
            used(&ada, spare, NOON.plus_ms(-7)),
        ];
        gate.store.append_records(&records).await.unwrap();

        let user = gate.user_record(ada.id).await;
        let limit = &user["tightestLimit"];
        assert_eq!(
            (&limit["window"], &limit["current"], &limit["limit"]),
            (&json!("total"), &json!(8), &json!(40)),
            "{user}"
        );
        assert_eq!((&limit["percent"], &limit["resetAt"]), (&json!(20), &Value::Null));
        assert_eq!(user["lastUsedAt"], NOON.plus_ms(-5).to_iso());
        let usage = gate.admin("users/getUserLimitUsage", json!({ "userId": ada.id })).await.data();
        assert_eq!(&usage["tightestLimit"], limit);
        let listed = gate.admin("keys/getKeys", json!({ "userId": ada.id })).await.data();
        for keys in [&user["keys"], &listed] {
            let (first, second) = (&keys[0], &keys[1]);
            assert_eq!(
                (&first["tightestLimit"]["window"], &first["tightestLimit"]["percent"]),
                (&json!("weekly"), &json!(50))
            );
            assert!(first["tightestLimit"]["resetAt"].is_string(), "{first}");
            assert_eq!(first["lastUsedAt"], NOON.plus_ms(-5).to_iso());
            assert_eq!(
                (&second["tightestLimit"], &second["lastUsedAt"]),
                (&Value::Null, &json!(NOON.plus_ms(-7).to_iso()))
            );
        }
        let unused = gate.user_record(bob.id).await;
        assert_eq!((&unused["tightestLimit"], &unused["lastUsedAt"]), (&Value::Null, &Value::Null));
        // A deleted key's use still counts for its user.
        gate.admin("keys/removeKey", json!({ "keyId": ada.key_id })).await;
        assert_eq!(gate.user_record(ada.id).await["lastUsedAt"], NOON.plus_ms(-5).to_iso());
    }
}

#[tokio::test]
async fn lists_show_the_state_in_which_requests_find_a_key() {
    let gate = Gate::start().await;
    let ada = gate.person("ada", json!({})).await;
    let (off, _) = gate.key(ada.id, "off", json!({ "isEnabled": false })).await;
    let (old, _) = gate.key(ada.id, "old", json!({ "expiresAt": "2026-11-01" })).await;
    // The user's status, and what the user's keys are then: the usable one, "off" and "old".
    for (change, status, expected) in [
        (json!({ "note": "" }), "enabled", ["enabled", "disabled", "expired"]),
        (json!({ "expiresAt": "2026-11-20" }), "expired", ["expired", "disabled", "expired"]),
        (json!({ "isEnabled": false }), "disabled", ["disabled", "disabled", "expired"]),
    ] {
        let mut body = json!({ "userId": ada.id });
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        gate.admin("users/editUser", body).await.data();
        let user = gate.user_record(ada.id).await;
        assert_eq!(user["status"], status);
        let listed = gate.admin("keys/getKeys", json!({ "userId": ada.id })).await.data();
        for keys in [&user["keys"], &listed] {
            let of = |id: i64, name: &str| {
                let keys = keys.as_array().unwrap().iter();
                keys.clone().find(|key| key["id"] == id).unwrap()[name].clone()
            };
            let ids = [ada.key_id, off, old];
            assert_eq!(ids.map(|id| of(id, "effectiveStatus")), expected, "{status}");
            assert_eq!(ids.map(|id| of(id, "status")), ["enabled", "disabled", "expired"]);
        }
    }
}
