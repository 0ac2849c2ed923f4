//! Providers: the data plane's view, and secrets that no reply contains.

use serde_json::json;

use super::gate::{Gate, TOKEN};

#[tokio::test]
async fn a_provider_is_in_effect_before_the_reply_is_read_and_its_credential_is_never_shown() {
    let gate = Gate::start().await;
    let body = json!({
        "name": "up", "url": "https://up.example/base/", "key": "upstream-credential-0123456789",
        "provider_type": "chat-compatible", "priority": "3", "weight": 7, "cost_multiplier": 0.85,
        "group_tag": "gold, silver", "allowed_models": ["a-*", "b"], "model_redirects": { "b": "c" },
        "limit_5h_usd": 12.5, "first_byte_timeout_streaming_ms": 0,
    });
    let id = gate.admin("providers/addProvider", body).await.data()["id"].as_i64().unwrap();
    let snapshot = gate.state.snapshot();
    let provider = &snapshot.providers[0];
    assert_eq!(provider.key.expose(), "upstream-credential-0123456789");
    assert_eq!((provider.priority, provider.weight), (3, 7));
    assert_eq!(provider.cost_multiplier.to_string(), "0.85");
    assert_eq!(provider.group_tag.to_string(), "gold,silver");
    assert_eq!(provider.upstream_model("b"), "c");
    assert_eq!(provider.timeouts.first_byte_streaming_ms, Some(0));
    assert_eq!(provider.timeouts.streaming_idle_ms, None);
    assert_eq!((provider.max_retry_attempts, provider.breaker.failure_threshold), (2, 5));

    let shown = gate.admin("providers/getProviders", json!({})).await.data().to_string();
    assert!(!shown.contains("-credential") && shown.contains("upst…6789"), "{shown}");
    let stored = gate.store.load_all().await.unwrap();
    assert!(
        !stored.providers[0].key_cipher.contains("credential"),
        "the credential is stored in the clear"
    );

    gate.admin("providers/editProvider", json!({ "providerId": id, "name": "renamed" }))
        .await
        .data();
    assert_eq!(gate.state.snapshot().providers[0].key.expose(), "upstream-credential-0123456789");
    gate.admin("providers/editProvider", json!({ "providerId": id, "key": "another-credential" }))
        .await
        .data();
    assert_eq!(gate.state.snapshot().providers[0].key.expose(), "another-credential");
    gate.admin("providers/removeProvider", json!({ "providerId": id })).await.data();
    assert!(gate.state.snapshot().providers.is_empty());
    for operation in ["providers/editProvider", "providers/removeProvider"] {
        let mut body = json!({ "providerId": id });
        if operation.ends_with("editProvider") {
            body["name"] = json!("x");
        }
        assert_eq!(gate.call(operation, TOKEN, body).await.failure(), (400, "NOT_FOUND"));
    }
}

#[tokio::test]
async fn redirects_whose_names_are_one_without_blanks_are_refused() {
    let gate = Gate::start().await;
    let add = async |redirects: serde_json::Value| {
        let body = json!({
            "name": "up", "url": "https://up.example", "key": "upstream-credential-0123456789",
            "model_redirects": redirects,
        });
        gate.admin("providers/addProvider", body).await
    };
    let refused = add(json!({ "b": "c", " b ": "d" })).await;
    assert_eq!(refused.failure(), (400, "INVALID_FORMAT"));
    assert_eq!(refused.body["errorParams"]["field"], "model_redirects");
    assert!(gate.state.snapshot().providers.is_empty());
    add(json!({ " b ": "c" })).await.data();
    assert_eq!(gate.state.snapshot().providers[0].upstream_model("b"), "c");
}

#[tokio::test]
async fn stars_that_would_match_nothing_are_refused() {
    let gate = Gate::start().await;
    let ann = gate.person("ann", json!({})).await;
    let add = async |mut fields: serde_json::Value| {
        fields["name"] = json!("up");
        fields["url"] = json!("https://up.example");
        fields["key"] = json!("upstream-credential-0123456789");
        gate.admin("providers/addProvider", fields).await
    };
    for (fields, reason) in [
        (json!({ "model_redirects": { "a-*": "b" } }), "star_in_redirect"),
        (json!({ "model_redirects": { "a": "b-*" } }), "star_in_redirect"),
        (json!({ "allowed_models": ["a*b"] }), "star_not_at_end"),
        (json!({ "allowed_models": ["a**"] }), "star_not_at_end"),
    ] {
        let refused = add(fields.clone()).await;
        assert_eq!(refused.failure(), (400, "INVALID_FORMAT"), "{fields}");
        assert_eq!(refused.body["errorParams"]["reason"], reason, "{fields}");
    }
    let edit = json!({ "userId": ann.id, "allowedModels": ["*-large"] });
    let refused = gate.admin("users/editUser", edit).await;
    assert_eq!(refused.body["errorParams"]["reason"], "star_not_at_end");
    add(json!({ "allowed_models": ["*", "a*"] })).await.data();
}
