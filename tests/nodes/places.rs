//! Places of a node that dies, and the figures that it had counted.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;

use super::pair::{Pair, cost};
use crate::support::redis::Redis;

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_node_gives_its_places_back_after_the_lease() {
    let mut pair = Pair::with(
        Redis::start(),
        &[("TOLLGATE_REDIS_TIMEOUT", "10s"), ("TOLLGATE_REDIS_LEASE", "5s")],
    )
    .await;
    pair.upstream.default(json!({"usage": {"output": 100}, "delay_ms": 120_000})).await;
    let limits = json!({"limitConcurrentSessions": 2, "limitTotalUsd": 0.02});
    let who = pair.person(json!({}), limits).await;
    let running: Vec<_> =
        (0..2).map(|n| tokio::spawn(pair.ask(0, &who, &format!("s{n}")).send())).collect();
    pair.upstream.stats("started=2").await;
    assert_eq!(pair.ask(1, &who, "other").send().await.unwrap().status(), 429);
    pair.nodes[0].kill();
    for request in running {
        assert!(request.await.unwrap().is_err(), "the node is dead");
    }
    // Both the sessions and the reservations are free again, and nothing was spent.
    pair.upstream.default(json!({"usage": {"output": 100}})).await;
    pair.until(async || pair.ask(1, &who, "other").send().await.unwrap().status() == 200).await;
    pair.until(async || pair.spent(1, &who).await == cost(1)).await;
    assert_eq!(pair.ask(1, &who, "other").send().await.unwrap().status(), 200, "the second of two");
}

#[tokio::test(flavor = "multi_thread")]
async fn unreported_usage_of_a_killed_node_is_counted_when_it_is_back() {
    let mut pair = Pair::start().await;
    let who = pair.person(json!({}), json!({})).await;
    for n in 0..6 {
        assert_eq!(pair.ask(n % 2, &who, "s").send().await.unwrap().status(), 200);
    }
    pair.nodes[0].kill();
    pair.nodes[0].spawn();
    pair.nodes[0].ready().await;
    pair.settled(&who, 6).await;
    assert_eq!(pair.ask(0, &who, "s").send().await.unwrap().status(), 200);
    pair.settled(&who, 7).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_in_good_order_leaves_nothing_behind() {
    let mut pair = Pair::start().await;
    let who = pair.person(json!({}), json!({})).await;
    for n in 0..4 {
        assert_eq!(pair.ask(n % 2, &who, "s").send().await.unwrap().status(), 200);
    }
    pair.nodes[0].signal("TERM");
    pair.nodes[0].ended().await;
    let left: Vec<_> =
        std::fs::read_dir(pair.nodes[0].dir.path().join("data")).unwrap().flatten().collect();
    assert!(
        !left.iter().any(|entry| entry.file_name().to_string_lossy().starts_with("counting-")),
        "{left:?}"
    );
    pair.nodes[0].spawn();
    pair.nodes[0].ready().await;
    pair.settled(&who, 4).await;
    assert!(!pair.nodes[0].log().contains("not everything was sent to Redis"));
    assert_eq!(
        pair.nodes[1].metric("tollgate_redis_losses_total").await,
        0.0,
        "the other node had no loss"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_ends_while_redis_hangs_takes_no_place_from_a_request_that_runs() {
    let env = [("TOLLGATE_REDIS_TIMEOUT", "1s"), ("TOLLGATE_REDIS_LEASE", "3s")];
    let pair = Pair::with(Redis::start(), &env).await;
    pair.upstream.default(json!({"usage": {"output": 100}, "delay_ms": 20_000})).await;
    let who = pair.person(json!({"rpm": 1000}), json!({"limitConcurrentSessions": 1})).await;
    let running = tokio::spawn(pair.ask(0, &who, "runs").send());
    pair.upstream.stats("started=1").await;
    pair.redis.hang();
    for node in &pair.nodes {
        node.readiness_shows(|_, parts| parts["redis"] == "is lost: this node counts for itself")
            .await;
    }
    // Sleeps: the lease must end by the clock of Redis.
    tokio::time::sleep(Duration::from_secs(3)).await;
    pair.redis.go_on();
    for node in &pair.nodes {
        node.readiness_shows(|_, parts| parts["redis"] == "ok").await;
    }
    // By now each may have treated the other as dead: its lease is long over, by the clock of
    // Redis, which kept running.
    for node in [1, 0, 1] {
        assert_eq!(
            pair.ask(node, &who, "other").send().await.unwrap().status(),
            429,
            "the place is taken"
        );
    }
    assert_eq!(running.await.unwrap().unwrap().status(), 200);
    pair.settled(&who, 1).await;
    for node in &pair.nodes {
        let usage = node.admin("users/getUserLimitUsage", json!({"userId": who.user})).await;
        assert_eq!(usage["rpm"]["current"], json!(1), "{usage}");
        let usage = node.admin("keys/getKeyLimitUsage", json!({"keyId": who.key})).await;
        assert_eq!(usage["concurrentSessions"]["current"], json!(1), "{usage}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_places_of_a_provider_are_given_out_once_to_users_of_both_nodes() {
    let pair = Pair::with(Redis::start(), &[("TOLLGATE_REDIS_TIMEOUT", "2s")]).await;
    let all = pair.nodes[0].admin("providers/getProviders", json!({})).await;
    let id = all[0]["id"].as_i64().unwrap();
    let edit = json!({"providerId": id, "limit_concurrent_sessions": 4});
    pair.nodes[0].admin("providers/editProvider", edit).await;
    let mut callers = Vec::new();
    for _ in 0..3 {
        callers.push(pair.person(json!({}), json!({})).await);
    }
    pair.upstream.default(json!({"usage": {"output": 100}, "delay_ms": 200})).await;
    let mut asking = JoinSet::new();
    for n in 0..24 {
        let who = &callers[n % 3];
        asking.spawn(pair.ask(n % 2, who, &format!("s{n}")).send());
    }
    let mut statuses = BTreeMap::new();
    while let Some(answer) = asking.join_next().await {
        *statuses.entry(answer.unwrap().unwrap().status().as_u16()).or_insert(0) += 1;
    }
    assert_eq!(statuses, BTreeMap::from([(200, 4), (503, 20)]));
    for node in &pair.nodes {
        let body = json!({"providerId": id});
        let usage = node.admin("providers/getProviderLimitUsage", body).await;
        assert_eq!(usage["concurrentSessions"], json!({"current": 4, "limit": 4}));
        let live = node.admin("active-sessions/getActiveSessions", json!({})).await;
        assert_eq!(live.as_array().unwrap().len(), 4, "{live}");
    }
}
