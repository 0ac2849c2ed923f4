//! SIGTERM with a live stream, binary upgrade under load, SIGHUP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;

use super::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_lets_streams_end_and_then_does_not_wait() {
    let mut stage = Stage::native().await;
    stage.upstream.default(json!({"events": 5, "between_events_ms": 200})).await;
    let mut body = stage.ask_stream().send().await.unwrap().bytes_stream();
    let first = body.next().await.unwrap().unwrap();
    stage.gateway.signal("TERM");
    let mut text = String::from_utf8(first.to_vec()).unwrap();
    while let Some(piece) = body.next().await {
        text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
    }
    assert!(text.contains("message_stop"), "the stream came to its end: {text}");
    let took = stage.gateway.ended().await;
    assert!(took < Duration::from_secs(5), "an idle gateway took {took:?} to leave");
    stage.gateway.spawn();
    stage.gateway.ready().await;
    assert_eq!(stage.gateway.logs(1).await[0]["outcome"], "completed");
}

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
    for _ in 0..200 {
        if refused(100_000).await == 413 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    assert_eq!(refused(100_000).await, 413);
    std::fs::write(&file, "proxy:\n  max_body_bytes: many\n").unwrap();
    stage.gateway.signal("HUP");
    for _ in 0..200 {
        if stage.gateway.log().contains("many") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    assert!(stage.gateway.log().contains("max_body_bytes"), "the fault is named");
    assert_eq!(refused(100_000).await, 413, "a faulty file changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_under_load_loses_no_answer() {
    let mut stage = Stage::native().await;
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    // Each request on a connection of its own.
    let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
    let ask = client
        .post(format!("{}/v1/messages", stage.gateway.proxy))
        .header("x-api-key", &stage.key)
        .json(&super::stage::request("native", false));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (stop, done, ask) = (Arc::clone(&stop), Arc::clone(&done), ask.try_clone().unwrap());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    // A connection that the old process had accepted, and whose request it had not read yet when it
                    // left, is reset: clients ask again then, as all SDKs do. An answer that began must be whole.
                    let mut answer = ask.try_clone().unwrap().send().await;
                    if answer.is_err() {
                        answer = ask.try_clone().unwrap().send().await;
                    }
                    let answer = answer.unwrap();
                    assert_eq!(answer.status(), 200);
                    answer.bytes().await.unwrap();
                    done.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    while done.load(Ordering::SeqCst) < 50 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut old = stage.gateway.upgrade().await;
    let reached = done.load(Ordering::SeqCst);
    let mut left = old.try_wait().unwrap();
    for _ in 0..600 {
        if left.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        left = old.try_wait().unwrap();
    }
    assert!(left.is_some(), "the old process left");
    let after = done.load(Ordering::SeqCst);
    assert!(after > reached, "the new process serves");
    while done.load(Ordering::SeqCst) < after + 50 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    let total = usize::try_from(done.load(Ordering::SeqCst)).unwrap();
    stage.gateway.logs(total).await;
}
