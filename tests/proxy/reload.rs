//! SIGHUP: what a reload changes, and what it refuses. Stops and upgrades: `tests/loss`.

use std::time::{Duration, Instant};

use serde_json::json;

use super::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_changes_what_can_change_live() {
    let stage = Stage::bare(&[]).await;
    std::fs::create_dir(stage.gateway.dir.path().join("conf")).unwrap();
    let file = stage.gateway.dir.path().join("conf/tollgate.yaml");
    stage.gateway.provider("native", &stage.upstream.url, json!({})).await;
    let refused = |size: usize| {
        let body = super::stage::saying("native", false, &"x".repeat(size));
        let request = stage.post("/v1/messages", &body);
        async { request.send().await.unwrap().status().as_u16() }
    };
    assert_eq!(refused(100_000).await, 200);
    std::fs::write(&file, "proxy:\n  max_body_bytes: 64KiB\n").unwrap();
    stage.gateway.signal("HUP");
    let began = Instant::now();
    while refused(100_000).await != 413 {
        assert!(began.elapsed() < Duration::from_secs(60), "the new bound is not in force:\n{}", stage.gateway.log());
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    std::fs::write(&file, "proxy:\n  max_body_bytes: many\n").unwrap();
    stage.gateway.signal("HUP");
    let log = stage.gateway.log_shows("many").await;
    assert!(log.contains("max_body_bytes"), "the fault is named");
    assert_eq!(refused(100_000).await, 413, "a faulty file changes nothing");
}
