//! Rules that count keys, with two concurrent requests; and a batch, read while it runs. On both
//! databases.

use serde_json::{Value, json};
use tollgate::domain::ids::UserId;
use tollgate::domain::key::Key;
use tollgate::store::Backend;

use super::gate::Gate;

const BOTH: [Backend; 2] = [Backend::Sqlite, Backend::Postgres];

/// Every operation that makes a key unusable: its name, and its body.
fn ways(key: i64) -> [(&'static str, Value); 5] {
    [
        ("keys/toggleKeyEnabled", json!({ "keyId": key, "enabled": false })),
        ("keys/removeKey", json!({ "keyId": key })),
        ("keys/editKey", json!({ "keyId": key, "isEnabled": false })),
        ("keys/renewKeyExpiresAt", json!({ "keyId": key, "expiresAt": "2026-11-20" })),
        ("keys/batchUpdateKeys", json!({ "keyIds": [key], "updates": { "isEnabled": false } })),
    ]
}

#[tokio::test]
async fn whatever_takes_the_last_two_keys_at_once_leaves_one() {
    for backend in BOTH {
        let gate = Gate::start_on(backend).await;
        let pairs = (0..5).flat_map(|one| (one..5).map(move |other| (one, other)));
        for (one, other) in pairs {
            let user = gate.person("ann", json!({})).await;
            let (second, text) = gate.key(user.id, "second", json!({})).await;
            let (first, last) = (&ways(user.key_id)[one], &ways(second)[other]);
            let (a, b) = tokio::join!(
                gate.admin(first.0, first.1.clone()),
                gate.admin(last.0, last.1.clone())
            );
            let done = [&a, &b].iter().filter(|reply| reply.status == 200).count();
            assert_eq!(
                done, 1,
                "{backend:?}: {} and {}: {:?} {:?}",
                first.0, last.0, a.body, b.body
            );
            let (refused, name) = if a.status == 200 { (&b, last.0) } else { (&a, first.0) };
            let code = if name == "keys/removeKey" {
                "CANNOT_DELETE_LAST_KEY"
            } else {
                "CANNOT_DISABLE_LAST_KEY"
            };
            assert_eq!(refused.failure(), (400, code), "{backend:?}: {} and {}", first.0, last.0);
            let left = [&user.key, &text].into_iter().filter(|key| gate.works(key)).count();
            assert_eq!(left, 1, "{backend:?}: {} and {}", first.0, last.0);
        }
    }
}

/// Many keys of one user, created directly in the database.
async fn many_keys(gate: &Gate, user: i64, count: i64) -> Vec<i64> {
    let mut tx = gate.store.begin().await.unwrap();
    let template = tx.keys_of(UserId(user)).await.unwrap().remove(0);
    let mut ids = Vec::new();
    for n in 0..count {
        let mut hash = template.hash;
        hash.0[..8].copy_from_slice(&n.to_be_bytes());
        let key = Key { name: format!("key {n}"), hash, ..template.clone() };
        ids.push(tx.insert_key(&key).await.unwrap().0);
    }
    tx.commit().await.unwrap();
    ids
}

#[tokio::test]
async fn no_reader_sees_half_of_a_batch() {
    for backend in BOTH {
        let gate = Gate::start_on(backend).await;
        let user = gate.person("ann", json!({})).await;
        let ids = many_keys(&gate, user.id, 500).await;
        let changed = async || {
            let keys = gate.admin("keys/getKeys", json!({ "userId": user.id })).await.data();
            keys.as_array()
                .unwrap()
                .iter()
                .filter(|key| key["limitWeeklyUsd"] == json!(7.5))
                .count()
        };
        let batch = gate.admin(
            "keys/batchUpdateKeys",
            json!({ "keyIds": ids, "updates": { "limitWeeklyUsd": 7.5 } }),
        );
        tokio::pin!(batch);
        let mut seen = Vec::new();
        let reply = loop {
            tokio::select! {
                reply = &mut batch => break reply,
                count = changed() => seen.push(count),
            }
        };
        assert_eq!(reply.data()["updatedCount"], json!(500), "{backend:?}");
        seen.push(changed().await);
        assert_eq!(seen.last(), Some(&500), "{backend:?}");
        assert!(seen.iter().all(|count| [0, 500].contains(count)), "{backend:?}: {seen:?}");
    }
}

#[tokio::test]
async fn of_two_batches_that_leave_a_user_without_a_key_one_changes_nothing() {
    for backend in BOTH {
        let gate = Gate::start_on(backend).await;
        let user = gate.person("ann", json!({})).await;
        let ids = many_keys(&gate, user.id, 20).await;
        let (one, other) = ids.split_at(10);
        let other: Vec<i64> = other.iter().copied().chain([user.key_id]).collect();
        let disable = |ids: &[i64]| {
            gate.admin(
                "keys/batchUpdateKeys",
                json!({ "keyIds": ids, "updates": { "isEnabled": false } }),
            )
        };
        let (a, b) = tokio::join!(disable(one), disable(&other));
        let (kept, refused) = if a.status == 200 { (other.as_slice(), b) } else { (one, a) };
        assert_eq!(refused.failure(), (400, "CANNOT_DISABLE_LAST_KEY"), "{backend:?}");
        let keys = gate.admin("keys/getKeys", json!({ "userId": user.id })).await.data();
        for key in keys.as_array().unwrap() {
            let is_kept = kept.contains(&key["id"].as_i64().unwrap());
            assert_eq!(key["isEnabled"], json!(is_kept), "{backend:?}: {key}");
        }
    }
}
