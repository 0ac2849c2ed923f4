//! Settings of Redis: its names, its time-out, and how long a dead node holds its places.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::nodes::pair::Pair;
use crate::proxy::fixture::Fixture;
use crate::support::redis::Redis;

#[tokio::test(flavor = "multi_thread")]
async fn names_in_redis_begin_as_is_set() {
    let redis = Redis::start();
    let fixture =
        Fixture::native_with(&[("REDIS_URL", &redis.url()), ("TOLLGATE_REDIS_PREFIX", "another")])
            .await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    fixture.gateway.logs(1).await;
    let keys = Command::new("redis-cli")
        .args(["-u", &redis.url(), "--raw", "keys", "*"])
        .output()
        .unwrap();
    let keys = String::from_utf8(keys.stdout).unwrap();
    assert!(!keys.trim().is_empty() && keys.lines().all(|key| key.contains("another")), "{keys}");
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_is_waited_for_as_long_as_is_set() {
    for (timeout, least, most) in [("4s", 3_500, 60_000), ("50ms", 0, 3_000)] {
        let redis = Redis::start();
        let fixture = Fixture::native_with(&[
            ("REDIS_URL", &redis.url()),
            ("TOLLGATE_REDIS_TIMEOUT", timeout),
        ])
        .await;
        assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
        redis.hang();
        let began = Instant::now();
        assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
        let took = began.elapsed().as_millis();
        redis.go_on();
        assert!((least..most).contains(&took), "{timeout}: {took} ms");
    }
}

/// The default is fifteen seconds.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_nodes_places_are_free_after_the_lease_that_is_set() {
    let env = [("TOLLGATE_REDIS_TIMEOUT", "10s"), ("TOLLGATE_REDIS_LEASE", "2s")];
    let mut pair = Pair::with(Redis::start(), &env).await;
    pair.upstream.default(json!({"delay_ms": 120_000})).await;
    let who = pair.person(json!({}), json!({"limitConcurrentSessions": 1})).await;
    let running = tokio::spawn(pair.ask(0, &who, "one").send());
    pair.upstream.stats("started=1").await;
    assert_eq!(pair.ask(1, &who, "other").send().await.unwrap().status(), 429);
    pair.nodes[0].kill();
    let killed = Instant::now();
    assert!(running.await.unwrap().is_err(), "the node is dead");
    pair.upstream.default(json!({})).await;
    pair.until(async || pair.ask(1, &who, "other").send().await.unwrap().status() == 200).await;
    assert!(killed.elapsed() < Duration::from_secs(12), "{:?}", killed.elapsed());
}
