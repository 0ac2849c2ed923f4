//! The test of a provider: one real request in its own format, told in words, without its credential.

use serde_json::{Value, json};

use super::gate::Gate;
use crate::support::upstream::Upstream;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_of_each_type_is_asked_in_its_own_format() {
    let gate = Gate::start().await;
    let mock = Upstream::start().await;
    for kind in ["native", "native-auth", "responses", "chat-compatible", "alt-cli"] {
        let body = json!({
            "name": kind, "url": mock.url, "key": "upstream-credential-0123456789", "provider_type": kind,
            "model_redirects": { "asked": "served" },
        });
        let id = gate.admin("providers/addProvider", body).await.data()["id"].clone();
        let told = gate.admin("providers/testProvider", json!({ "providerId": id, "model": "asked" })).await.data();
        assert_eq!(
            (&told["ok"], &told["status"], &told["model"]),
            (&json!(true), &json!(200), &json!("served")),
            "{told}"
        );
        assert!(!told["message"].as_str().unwrap().is_empty(), "{told}");
        // Another address, which the stored key is not sent to.
        let wrong = json!({ "providerId": id, "model": "asked", "url": "http://127.0.0.1:1", "key": "given" });
        let told = gate.admin("providers/testProvider", wrong).await.data();
        assert_eq!((&told["ok"], &told["status"]), (&json!(false), &Value::Null), "{told}");
        assert!(!told["message"].as_str().unwrap().is_empty());
    }
    let unsaved = json!({ "url": mock.url, "key": "k", "provider_type": "chat-compatible", "model": "m" });
    assert_eq!(gate.admin("providers/testProvider", unsaved).await.data()["ok"], true);
    for (body, code, field) in [
        (json!({}), "REQUIRED_FIELD", "url"),
        (json!({ "url": mock.url }), "REQUIRED_FIELD", "key"),
        (json!({ "providerId": 999, "model": "m" }), "NOT_FOUND", ""),
    ] {
        let reply = gate.admin("providers/testProvider", body.clone()).await;
        assert_eq!(reply.failure(), (400, code), "{body}");
        assert!(field.is_empty() || reply.body["errorParams"]["field"] == field, "{:?}", reply.body);
    }
}
