//! Reading the audit log: changes with their values before and after, by page and by filter.

use serde_json::{Value, json};
use tollgate::store::Backend;

use super::gate::{Gate, NOON};

/// Filters, and how many entries of the test below each finds.
fn filters() -> [(Value, usize); 10] {
    [
        (json!({ "action": "providers." }), 2),
        (json!({ "action": "provider%" }), 0),
        (json!({ "actor": "ann_1" }), 1),
        (json!({ "actor": "ANN" }), 1),
        (json!({ "actor": "annx1" }), 0),
        (json!({ "actor": "admin token" }), 3),
        (json!({ "target": "provider" }), 0),
        (json!({ "startDate": "2026-11-21T04:00:30Z" }), 2),
        (json!({ "endDate": "2026-11-21T04:00:30Z" }), 2),
        (json!({ "startDate": "2026-11-22" }), 0),
    ]
}

fn actions(page: &Value) -> Vec<String> {
    let entries = page["entries"].as_array().unwrap();
    entries.iter().map(|entry| entry["action"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_audit_log_is_read_by_page_and_by_filter() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let ann = gate.person("Ann_1", json!({ "role": "admin" })).await;
        let provider = gate.provider("up").await;
        gate.clock.set(NOON.plus_ms(60_000));
        let edit =
            json!({ "providerId": provider, "weight": 7, "key": "another-upstream-credential" });
        gate.call("providers/editProvider", &ann.key, edit).await.data();
        gate.admin("keys/editKey", json!({ "keyId": ann.key_id, "name": "renamed" })).await.data();

        let read = async |filter: Value| gate.admin("audit/getAuditLog", filter).await.data();
        let all =
            ["keys.editKey", "providers.editProvider", "providers.addProvider", "users.addUser"];
        assert_eq!(actions(&read(json!({})).await), all, "newest first");

        let edited =
            read(json!({ "target": format!("provider {provider}"), "action": "providers.edit" }))
                .await;
        let entry = &edited["entries"][0];
        assert_eq!((&entry["before"]["weight"], &entry["after"]["weight"]), (&json!(1), &json!(7)));
        assert!(entry["actor"].as_str().unwrap().contains("Ann_1"), "{entry}");
        assert_eq!(
            (&entry["happenedAt"], &entry["clientAddress"]),
            (&json!("2026-11-21T04:01:00.000Z"), &json!("127.0.0.1"))
        );
        assert!(!edited.to_string().contains("-credential"), "{edited}");

        for (filter, expected) in filters() {
            assert_eq!(actions(&read(filter.clone()).await).len(), expected, "{filter}");
        }

        let (mut seen, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let page = read(json!({ "pageSize": 3, "cursor": cursor })).await;
            seen.extend(actions(&page));
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(seen, all);
        let bob = gate.person("bob", json!({})).await;
        assert_eq!(
            gate.call("audit/getAuditLog", &bob.key, json!({})).await.failure(),
            (403, "PERMISSION_DENIED")
        );
    }
}
