//! Jobs of nodes on one database. Prices that arrive late, with two nodes on one Redis: the limits
//! count them once. A node whose clock is wrong.

use serde_json::json;
use tollgate::domain::clock::{Clock as _, SystemClock, Timestamp};

use super::pair::{Pair, cost};
use crate::support::clock::SetClock;
use crate::support::gateway::Gateway;
use crate::support::postgres;
use crate::support::redis::Redis;

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_priced_later_count_once_against_the_limits_of_both_nodes() {
    let served = [("TOLLGATE_REDIS_TIMEOUT", "10s"), ("TOLLGATE_PRICES_UNPRICED", "serve")];
    let pair = Pair::with(Redis::start(), &served).await;
    let who = pair.person(json!({}), json!({"limitTotalUsd": 0.06, "limit5hUsd": 1})).await;
    let ask = |node: usize, model: &str| {
        let gateway = &pair.nodes[node];
        let body = json!({"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]});
        let post = gateway
            .client
            .post(format!("{}/v1/messages", gateway.proxy))
            .header("x-api-key", &who.text);
        post.json(&body).send()
    };
    for n in 0..4 {
        assert_eq!(ask(n % 2, "late").await.unwrap().status(), 200);
    }
    assert_eq!(ask(0, "m").await.unwrap().status(), 200);
    pair.settled(&who, 1).await;
    // All of them must be in the database to be priced.
    for node in &pair.nodes {
        node.metric_shows("tollgate_journal_pending_records", |pending| pending == 0.0).await;
    }
    // A price on each node, one after the other: both search for waiting requests, and the second
    // price of the model changes nothing.
    let price =
        json!({"late": {"mode": "chat", "input_cost_per_token": 0, "output_cost_per_token": 1e-4}});
    pair.nodes[0].prices(price.clone()).await;
    pair.nodes[1].prices(price).await;
    pair.settled(&who, 5).await;
    for node in &pair.nodes {
        let usage = node.admin("keys/getKeyLimitUsage", json!({"keyId": who.key})).await;
        let current = |window: &str| usage[window]["current"].clone();
        let windows =
            ["cost5h", "costDaily", "costWeekly", "costMonthly", "costTotal"].map(current);
        assert_eq!(windows, [0.05, 0.05, 0.05, 0.05, 0.05].map(|usd| json!(usd)));
    }
    pair.until(async || pair.metric("tollgate_repriced_requests_total").await >= 4.0).await;
    assert_eq!(pair.metric("tollgate_repriced_requests_total").await, 4.0);
    // One more fits, on either node.
    assert_eq!(ask(1, "m").await.unwrap().status(), 200);
    pair.settled(&who, 6).await;
    for node in 0..2 {
        assert_eq!(ask(node, "m").await.unwrap().status(), 429);
    }
    // The provider's spend is the same.
    let id = pair.nodes[1].admin("providers/getProviders", json!({})).await[0]["id"].clone();
    for node in 0..2 {
        let usage = pair.nodes[node]
            .admin("providers/getProviderLimitUsage", json!({"providerId": id}))
            .await;
        let current: rust_decimal::Decimal =
            usage["costTotal"]["current"].to_string().parse().unwrap();
        assert_eq!(current, cost(6), "node {node}");
    }
    // The nodes' own counters have the same figures: they use them when Redis is lost.
    let mut pair = pair;
    pair.redis.kill();
    for node in 0..2 {
        pair.nodes[node].readiness_shows(|_, parts| parts["redis"] != "ok").await;
        pair.until(async || pair.spent(node, &who).await == cost(6)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_on_postgresql_cleans_up_by_the_clock_of_the_server() {
    let clock = SetClock::new();
    clock.set(40 * 86_400);
    let (clock, database) = (clock.env(), postgres::fresh_database());
    let mut env: Vec<(&str, &str)> = clock.iter().map(|(name, set)| (*name, &**set)).collect();
    env.push(("DATABASE_URL", database.as_str()));
    let node = Gateway::with(&env).await;
    node.admin("system-config/saveSystemSettings", json!({"cleanupRetentionDays": 30})).await;
    let begun = node.admin("system-config/runCleanup", json!({})).await;
    let cutoff: chrono::DateTime<chrono::Utc> = begun["cutoff"].as_str().unwrap().parse().unwrap();
    let off = Timestamp::from(cutoff).since(SystemClock.now().plus_ms(-30 * 86_400_000));
    assert!(off.abs() < 600_000, "{begun}");
}
