//! `sensitive-words/*`: accepted and refused words, and those in effect.

use serde_json::{Value, json};
use tollgate::store::Backend;

use super::gate::{Gate, audit_entries};

const CREATE: &str = "sensitive-words/createSensitiveWordAction";
const UPDATE: &str = "sensitive-words/updateSensitiveWordAction";
const DELETE: &str = "sensitive-words/deleteSensitiveWordAction";

fn word(word: &str, match_type: &str) -> Value {
    json!({ "word": word, "matchType": match_type, "description": "why" })
}

/// The id of a word that the data plane finds in a text.
fn found(gate: &Gate, text: &str) -> Option<i64> {
    gate.state.snapshot().words.search().find(text).map(|id| id.0)
}

#[tokio::test]
async fn a_word_is_in_effect_from_its_creation_to_its_removal() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let made = gate.admin(CREATE, word(" Zébra ", "contains")).await.data();
        let id = made["id"].as_i64().unwrap();
        assert_eq!((&made["word"], &made["isEnabled"]), (&json!("Zébra"), &json!(true)));
        assert_eq!(found(&gate, "a ZÉBRA!"), Some(id));
        gate.admin(UPDATE, json!({ "id": id, "word": "quagga" })).await.data();
        assert_eq!((found(&gate, "a zébra"), found(&gate, "a quagga")), (None, Some(id)));
        gate.admin(UPDATE, json!({ "id": id, "matchType": "exact" })).await.data();
        assert_eq!((found(&gate, "a quagga"), found(&gate, "QUAGGA\n")), (None, Some(id)));
        gate.admin(UPDATE, json!({ "id": id, "isEnabled": false })).await.data();
        assert_eq!(found(&gate, "quagga"), None);
        let listed = gate.admin("sensitive-words/listSensitiveWords", json!({})).await.data();
        let row = &listed.as_array().unwrap()[0];
        let expected = json!([id, "quagga", "exact", "why", false]);
        assert_eq!(
            json!([row["id"], row["word"], row["matchType"], row["description"], row["isEnabled"]]),
            expected
        );
        gate.admin(DELETE, json!({ "id": id })).await;
        assert_eq!(
            gate.admin("sensitive-words/listSensitiveWords", json!({})).await.data(),
            json!([])
        );
        for operation in [UPDATE, DELETE] {
            let gone = gate.admin(
                operation,
                if operation == UPDATE {
                    json!({"id": id, "word": "x"})
                } else {
                    json!({"id": id})
                },
            );
            assert_eq!(gone.await.failure(), (400, "NOT_FOUND"));
        }
    }
}

#[tokio::test]
async fn what_is_there_already_is_refused() {
    let gate = Gate::start().await;
    let id = gate.admin(CREATE, word("Straße", "contains")).await.data()["id"].clone();
    let twin = gate.admin(CREATE, word("STRASSE", "contains")).await;
    assert_eq!((twin.failure(), &twin.body["errorParams"]["id"]), ((400, "DUPLICATE_WORD"), &id));
    let other = gate.admin(CREATE, word("strasse", "exact")).await.data()["id"].clone();
    let becomes = gate.admin(UPDATE, json!({ "id": other, "matchType": "contains" })).await;
    assert_eq!(becomes.failure(), (400, "DUPLICATE_WORD"));
    // A word is not a duplicate of itself; and in patterns the case of a letter may be significant.
    gate.admin(UPDATE, json!({ "id": id, "word": "straSSe" })).await.data();
    gate.admin(CREATE, word(r"\s\d", "regex")).await.data();
    gate.admin(CREATE, word(r"\S\d", "regex")).await.data();
    assert_eq!(gate.admin(CREATE, word(r"\S\d", "regex")).await.failure(), (400, "DUPLICATE_WORD"));
}

#[tokio::test]
async fn dangerous_patterns_are_refused_and_nothing_changes() {
    let gate = Gate::start().await;
    let id = gate.admin(CREATE, word("(fine)+", "contains")).await.data()["id"].clone();
    for (pattern, reason) in [
        ("(a+)+$", "nested_repeat"),
        ("(?=a)b", "look_around"),
        (r"(a)\1", "back_reference"),
        ("a*", "matches_empty"),
        ("(x{1,900}){1,900}y", "too_large"),
        ("(open", "syntax"),
    ] {
        for reply in [
            gate.admin(CREATE, word(pattern, "regex")).await,
            gate.admin(UPDATE, json!({ "id": id, "word": pattern, "matchType": "regex" })).await,
        ] {
            assert_eq!(reply.failure(), (400, "INVALID_FORMAT"), "{pattern}");
            let params = &reply.body["errorParams"];
            assert_eq!(
                (&params["field"], &params["reason"]),
                (&json!("word"), &json!(reason)),
                "{pattern}"
            );
        }
    }
    // A word becomes a pattern only if it is a good one.
    gate.admin(UPDATE, json!({ "id": id, "word": "((b)+)+" })).await.data();
    assert_eq!(
        gate.admin(UPDATE, json!({ "id": id, "matchType": "regex" })).await.failure(),
        (400, "INVALID_FORMAT")
    );
    assert_eq!(found(&gate, "((b)+)+"), id.as_i64());
    assert_eq!(
        gate.admin("sensitive-words/listSensitiveWords", json!({}))
            .await
            .data()
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn the_figures_count_what_is_in_effect() {
    let gate = Gate::start().await;
    for (text, kind) in
        [("one", "contains"), ("two", "contains"), ("three", "exact"), ("fo+ur", "regex")]
    {
        gate.admin(CREATE, word(text, kind)).await.data();
    }
    let mut off = word("five", "contains");
    off["isEnabled"] = json!(false);
    gate.admin(CREATE, off).await.data();
    let stats = gate.admin("sensitive-words/getCacheStats", json!({})).await.data();
    let counts =
        |s: &Value| json!([s["containsCount"], s["exactCount"], s["regexCount"], s["totalCount"]]);
    assert_eq!(counts(&stats), json!([2, 1, 1, 4]));
    // Directly in the database.
    let mut tx = gate.store.begin().await.unwrap();
    let first = tx.words().await.unwrap()[0].id;
    tx.delete_word(first).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(found(&gate, "one"), Some(first.0));
    let fresh = gate.admin("sensitive-words/refreshCacheAction", json!({})).await.data();
    assert_eq!((counts(&fresh), found(&gate, "one")), (json!([1, 1, 1, 3]), None));
    assert!(fresh["lastReloadTime"].as_str() >= stats["lastReloadTime"].as_str());
}

#[tokio::test]
async fn every_change_is_audited() {
    let gate = Gate::start().await;
    let id = gate.admin(CREATE, word("zebra", "contains")).await.data()["id"].clone();
    gate.admin(UPDATE, json!({ "id": id, "description": null })).await.data();
    gate.admin(DELETE, json!({ "id": id })).await;
    let entries = audit_entries(&gate).await;
    let actions: Vec<&str> = entries.iter().map(|e| e.action.as_str()).collect();
    assert_eq!(
        actions,
        [
            "sensitive-words.createSensitiveWordAction",
            "sensitive-words.updateSensitiveWordAction",
            "sensitive-words.deleteSensitiveWordAction"
        ]
    );
    let (before, after) = (entries[1].before.as_ref().unwrap(), entries[1].after.as_ref().unwrap());
    assert_eq!((&before["description"], &after["description"]), (&json!("why"), &json!("")));
    assert!(entries[0].before.is_none() && entries[2].after.is_none());
}
