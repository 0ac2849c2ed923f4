//! System settings: partial saves, in effect at once, kept over a restart.

use serde_json::json;
use tollgate::store::Backend;

use super::gate::{Gate, ZONE};

#[tokio::test]
async fn settings_are_saved_in_part_and_in_effect_at_once() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let first = gate.admin("system-config/fetchSystemSettings", json!({})).await.data();
        assert_eq!(
            (&first["siteTitle"], &first["cleanupRetentionDays"]),
            (&json!("tollgate"), &json!(30))
        );
        assert_eq!(
            (&first["cleanupSchedule"], &first["timezone"]),
            (&json!("03:00"), &json!(ZONE.to_string()))
        );

        let part = json!({ "siteTitle": "Gate of ours", "cleanupSchedule": "4:05", "allowGlobalUsageView": true });
        let saved = gate.admin("system-config/saveSystemSettings", part).await.data();
        assert_eq!(saved["cleanupSchedule"], "04:05");
        assert_eq!(
            (&saved["cleanupRetentionDays"], &saved["enableAutoCleanup"]),
            (&json!(30), &json!(false))
        );
        assert_eq!(gate.admin("system-config/fetchSystemSettings", json!({})).await.data(), saved);
        let in_force = gate.state.snapshot().settings.clone();
        assert!(in_force.allow_global_usage_view && in_force.site_title == "Gate of ours");
        assert_eq!(gate.store.settings().await.unwrap(), in_force, "kept");

        for (body, code) in [
            (json!({}), "EMPTY_UPDATE"),
            (json!({ "timezone": "UTC" }), "INVALID_FORMAT"),
            (json!({ "cleanupSchedule": "25:00" }), "INVALID_FORMAT"),
            (json!({ "cleanupRetentionDays": 366 }), "MAX_VALUE"),
            (json!({ "siteTitle": null }), "INVALID_TYPE"),
        ] {
            let reply = gate.admin("system-config/saveSystemSettings", body.clone()).await;
            assert_eq!(reply.failure(), (400, code), "{body}");
            let words = reply.body["error"].as_str().unwrap();
            assert!(!words.contains(" id"), "these settings have no id: {words}");
        }
        assert_eq!(
            gate.admin("system-config/fetchSystemSettings", json!({})).await.data(),
            saved,
            "nothing changed"
        );
    }
}
