//! With `enableClientVersionCheck`, a known client that is older than those of others is refused
//! with a request to update.

use serde_json::{Value, json};
use tollgate::domain::settings::SystemSettings;
use tollgate::store::Store;

use super::fixture::{FORMATS, Fixture, path, request};
use crate::support::gateway::ADMIN_TOKEN;
use crate::support::wait;

async fn ask(fixture: &Fixture, key: &str, agent: &str, format: &str) -> (u16, Value) {
    let url = format!("{}{}", fixture.gateway.proxy, path(format, false));
    let asked =
        fixture.gateway.client.post(url).header("x-api-key", key).header("user-agent", agent);
    let answer = asked.json(&request(format, false)).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// Switches the check, as another node would: this one notices within a second or two.
async fn switch(fixture: &Fixture, on: bool) {
    let store = Store::open_sqlite(&fixture.gateway.dir.path().join("data")).await.unwrap();
    let mut tx = store.begin().await.unwrap();
    tx.save_settings(&SystemSettings {
        enable_client_version_check: on,
        ..SystemSettings::default()
    })
    .await
    .unwrap();
    tx.commit().await.unwrap();
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_older_than_what_two_others_run_is_advised_to_update() {
    let fixture = Fixture::full().await;
    let mut keys = Vec::new();
    for name in ["grace", "joan"] {
        keys.push(fixture.gateway.user(json!({"name": name})).await.2);
    }
    let (old, new) = ("claude-cli/2.0.9 (external, cli)", "claude-cli/2.0.10 (external, cli)");
    for key in &keys {
        assert_eq!(ask(&fixture, key, new, "native").await.0, 200);
    }
    assert_eq!(ask(&fixture, &fixture.key, old, "native").await.0, 200, "the check is off");
    switch(&fixture, true).await;
    let refused = async || ask(&fixture, &fixture.key, old, "native").await.0 != 200;
    wait::until(|| "the setting is not in effect".to_owned(), refused).await;
    for format in FORMATS {
        let (status, body) = ask(&fixture, &fixture.key, old, format).await;
        assert_eq!(status, 400, "{format}: {body}");
        let error = &body["error"];
        let shown = (&error["current_version"], &error["required_version"], &error["client"]);
        assert_eq!(
            shown,
            (&json!("2.0.9"), &json!("2.0.10"), &json!("claude-code")),
            "{format}: {body}"
        );
        match format {
            "alt-cli" => assert_eq!(error["details"][0]["reason"], "CLIENT_UPGRADE_REQUIRED"),
            _ => assert_eq!(error["code"], "client_upgrade_required"),
        }
        assert!(error["message"].as_str().unwrap().contains("Claude Code 2.0.9"), "{body}");
    }
    // One user with a newer version requires nothing of others; unknown and other clients are
    // ignored.
    assert_eq!(ask(&fixture, &keys[0], "claude-cli/3.0.0 (external, cli)", "native").await.0, 200);
    for agent in [
        new,
        "claude-cli/2.1.0-beta.1 (external, cli)",
        "codex_cli_rs/0.0.1",
        "claude-cli/dev",
        "curl/8",
        "",
    ] {
        assert_eq!(ask(&fixture, &fixture.key, agent, "native").await.0, 200, "{agent}");
    }
    let count = json!({"model": "m", "messages": [{"role": "user", "content": "x"}]});
    let counted = fixture
        .post("/v1/messages/count_tokens", &count)
        .header("user-agent", old)
        .send()
        .await
        .unwrap();
    assert_eq!(counted.status(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_users_with_a_version_that_does_not_exist_lock_nobody_out() {
    let fixture = Fixture::native().await;
    let mut keys = Vec::new();
    for n in 0..9 {
        keys.push(fixture.gateway.user(json!({"name": format!("user {n}")})).await.2);
    }
    let ask = async |key: &str, version: &str| {
        let agent = format!("claude-cli/{version} (external, cli)");
        let (status, body) = ask(&fixture, key, &agent, "native").await;
        (status, body["error"]["required_version"].as_str().map(str::to_owned))
    };
    for key in &keys {
        assert_eq!(ask(key, "2.0.9").await.0, 200);
    }
    for key in &keys[..2] {
        assert_eq!(ask(key, "999999999.0.0").await.0, 200);
        assert_eq!(ask(key, "2.1.0").await.0, 200);
    }
    switch(&fixture, true).await;
    let refused = async || ask(&keys[8], "2.0.8").await.0 != 200;
    wait::until(|| "the setting is not in effect".to_owned(), refused).await;
    assert_eq!(ask(&keys[8], "2.0.8").await, (400, Some("2.0.9".to_owned())));
    assert_eq!(ask(&keys[8], "2.0.9").await.0, 200, "two of nine users do not lock out the rest");
    // An administrator's version shows that those up to it exist.
    assert_eq!(ask(ADMIN_TOKEN, "2.1.1").await.0, 200);
    assert_eq!(ask(&keys[8], "2.0.9").await, (400, Some("2.1.0".to_owned())));
    assert_eq!(ask(ADMIN_TOKEN, "1.0.0").await.0, 200, "the administrator is not checked");
}
