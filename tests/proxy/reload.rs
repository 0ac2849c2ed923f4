//! SIGHUP: the settings that a reload changes, and those that it refuses. Stops and upgrades:
//! `tests/resilience`.

use std::time::{Duration, Instant};

use serde_json::json;

use super::fixture::Fixture;

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
    let began = Instant::now();
    while refused(100_000).await != 413 {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "the new bound is not in effect:\n{}",
            fixture.gateway.log()
        );
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    std::fs::write(&file, "proxy:\n  max_body_bytes: many\n").unwrap();
    fixture.gateway.signal("HUP");
    let log = fixture.gateway.log_shows("many").await;
    assert!(log.contains("max_body_bytes"), "the fault is named");
    assert_eq!(refused(100_000).await, 413, "a faulty file changes nothing");
}
