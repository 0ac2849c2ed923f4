//! Two nodes: a failing provider is disabled once, and the health of an earlier address is dropped
//! on both.

use serde_json::{Value, json};

use super::pair::Pair;
use crate::support::redis::Redis;
use crate::support::upstream::Upstream;

async fn first(pair: &Pair, node: usize, operation: &str) -> Value {
    pair.nodes[node].admin(operation, json!({})).await[0].clone()
}

async fn on_both(pair: &Pair, operation: &str, fits: impl Fn(&Value) -> bool) {
    for node in 0..2 {
        pair.until(async || fits(&first(pair, node, operation).await)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_provider_is_disabled_once_and_enabled_on_both() {
    let env =
        [("TOLLGATE_REDIS_TIMEOUT", "10s"), ("TOLLGATE_BREAKER_DISABLE_AFTER_FAILED_PROBES", "3")];
    let pair = Pair::with(Redis::start(), &env).await;
    let who = pair.person(json!({}), json!({})).await;
    let id = first(&pair, 0, "providers/getProviders").await["id"].clone();
    let edit = json!({
        "providerId": id,
        "circuit_breaker_failure_threshold": 1,
        "circuit_breaker_open_duration": 1_000,
        "max_retry_attempts": 1,
    });
    pair.nodes[0].admin("providers/editProvider", edit).await;
    let spare = Upstream::start().await;
    spare.default(json!({"usage": {"output": 100}})).await;
    pair.nodes[1].provider("native", &spare.url, json!({"name": "spare", "priority": 9})).await;
    let version = pair.version(1).await;
    pair.until(async || pair.version(0).await >= version).await;
    pair.upstream.default(json!({"status": 500})).await;
    pair.until(async || {
        for node in 0..2 {
            pair.ask(node, &who, &fastrand::u64(..).to_string()).send().await.unwrap();
        }
        first(&pair, 0, "providers/getProviders").await["isEnabled"] == false
    })
    .await;
    on_both(&pair, "providers/getProviders", |one| one["isEnabled"] == false).await;
    let off = first(&pair, 1, "providers/getProviders").await["switchedOff"].clone();
    assert_eq!(
        (&off["failedProbes"], &off["error"]["status"]),
        (&json!(3), &json!(500)),
        "probes of both count: {off}"
    );
    let disabled = async || {
        let ask = json!({"action": "providers.disableFailingProvider"});
        pair.nodes[1].admin("audit/getAuditLog", ask).await["entries"].as_array().unwrap().len()
    };
    assert_eq!(disabled().await, 1);
    for node in &pair.nodes {
        assert_eq!(node.metric("tollgate_provider_switched_off{provider=\"up\"}").await, 1.0);
    }

    pair.upstream.default(json!({"usage": {"output": 100}})).await;
    pair.nodes[1]
        .admin("providers/editProvider", json!({"providerId": id, "is_enabled": true}))
        .await;
    on_both(&pair, "providers/getProviders", |one| {
        one["isEnabled"] == true && one["switchedOff"].is_null()
    })
    .await;
    on_both(&pair, "providers/getProvidersHealthStatus", |one| {
        one["state"] == "CLOSED" && one["failedProbes"] == 0
    })
    .await;
    let asked = pair.upstream.requests().await.len();
    for node in 0..2 {
        assert_eq!(pair.ask(node, &who, "again").send().await.unwrap().status(), 200);
    }
    assert_eq!(pair.upstream.requests().await.len(), asked + 2);
    assert_eq!(disabled().await, 1, "neither node disables it again for what was before");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_address_clears_what_both_nodes_know_of_the_old_one() {
    let pair = Pair::start().await;
    let who = pair.person(json!({}), json!({})).await;
    let id = first(&pair, 0, "providers/getProviders").await["id"].clone();
    let edit =
        json!({"providerId": id, "circuit_breaker_failure_threshold": 2, "max_retry_attempts": 1});
    pair.nodes[0].admin("providers/editProvider", edit).await;
    let version = pair.version(0).await;
    pair.until(async || pair.version(1).await >= version).await;
    pair.upstream.default(json!({"status": 500})).await;
    // One failure at one node, two at the other.
    for node in [1, 0, 0] {
        assert_ne!(pair.ask(node, &who, "s").send().await.unwrap().status(), 200);
    }
    on_both(&pair, "providers/getProvidersHealthStatus", |one| one["health"] == "circuit_open")
        .await;
    let other = Upstream::start().await;
    other.default(json!({"usage": {"output": 100}})).await;
    let edit = json!({"providerId": id, "url": other.url, "key": "another-upstream-key"});
    pair.nodes[1].admin("providers/editProvider", edit).await;
    let fresh = |one: &Value| {
        one["health"] == "never_used"
            && one["state"] == "CLOSED"
            && one["lastError"].is_null()
            && one["recentAttempts"] == 0
    };
    on_both(&pair, "providers/getProvidersHealthStatus", fresh).await;
    for node in 0..2 {
        assert_eq!(pair.ask(node, &who, "s").send().await.unwrap().status(), 200);
    }
    on_both(&pair, "providers/getProvidersHealthStatus", |one| one["health"] == "healthy").await;
}
