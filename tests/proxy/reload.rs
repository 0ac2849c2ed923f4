//! SIGHUP: the settings that a reload changes, and those that it refuses. Stops and upgrades:
//! `tests/resilience`.

use serde_json::json;

use super::fixture::Fixture;
use crate::support::gateway::Gateway;
use crate::support::wait;

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_changes_what_can_change_live() {
    let fixture = Fixture::bare(&[]).await;
    std::fs::create_dir(fixture.gateway.dir.path().join("conf")).unwrap();
    let file = fixture.gateway.dir.path().join("conf/tollgate.yaml");
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    let refused = |size: usize| {
        let body = super::fixture::saying("native", false, &"x".repeat(size));
        let request = fixture.post("/v1/messages", &body);
        async { request.send().await.unwrap().status().as_u16() }
    };
    assert_eq!(refused(100_000).await, 200);
    std::fs::write(&file, "proxy:\n  max_body_bytes: 64KiB\n").unwrap();
    fixture.gateway.signal("HUP");
    wait::until(
        || format!("the new bound is not in effect:\n{}", fixture.gateway.log()),
        async || refused(100_000).await == 413,
    )
    .await;
    std::fs::write(&file, "proxy:\n  max_body_bytes: many\n").unwrap();
    fixture.gateway.signal("HUP");
    let log = fixture.gateway.log_shows("many").await;
    assert!(log.contains("max_body_bytes"), "the fault is named");
    assert_eq!(refused(100_000).await, 413, "a faulty file changes nothing");
}

/// A file that is gone or empty, as while it is being replaced, does not set everything to its
/// default.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_gone_or_empty_changes_nothing() {
    let mut gateway = Gateway::prepare(&[]);
    let file = gateway.dir.path().join("conf/tollgate.yaml");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "proxy:\n  max_body_bytes: 64KiB\n").unwrap();
    gateway.spawn();
    gateway.ready().await;
    let key = gateway.user(json!({"name": "user"})).await.2;
    let status = async |gateway: &Gateway| {
        gateway.readiness_shows(|_, parts| parts["configuration"] != "ok").await;
        let body = super::fixture::saying("native", false, &"x".repeat(100_000));
        let ask = gateway.client.post(format!("{}/v1/messages", gateway.proxy)).json(&body);
        ask.header("x-api-key", &key).send().await.unwrap().status()
    };
    std::fs::remove_file(&file).unwrap();
    gateway.signal("HUP");
    gateway.log_shows("conf/tollgate.yaml: cannot be read").await;
    assert_eq!(status(&gateway).await, 413);
    std::fs::write(&file, "").unwrap();
    gateway.signal("HUP");
    gateway.log_shows("the configuration file is empty").await;
    assert_eq!(status(&gateway).await, 413);
}
