//! A change on one node reaches the other: changes of the configuration, circuits, resets.

use std::time::{Duration, Instant};

use serde_json::json;

use super::pair::{Pair, Person};

#[tokio::test(flavor = "multi_thread")]
async fn a_key_disabled_on_one_node_is_refused_on_the_other_within_a_second() {
    let pair = Pair::start().await;
    let who = pair.person(json!({}), json!({})).await;
    let (user, second, text) = {
        let (user, _, _) = pair.nodes[0].user(json!({"name": "two-keys"})).await;
        let made =
            pair.nodes[0].admin("keys/addKey", json!({"userId": user, "name": "second"})).await;
        let keys = pair.nodes[0].admin("keys/getKeys", json!({"userId": user})).await;
        let id = keys.as_array().unwrap().iter().find(|key| key["name"] == "second").unwrap()["id"]
            .as_i64()
            .unwrap();
        (user, id, made["generatedKey"].as_str().unwrap().to_owned())
    };
    assert!(user > 0 && who.key > 0);
    let second = Person { user, key: second, text };
    pair.until(async || pair.ask(1, &second, "s").send().await.unwrap().status() == 200).await;
    for round in 0..3 {
        pair.nodes[0]
            .admin("keys/toggleKeyEnabled", json!({"keyId": second.key, "enabled": false}))
            .await;
        let began = Instant::now();
        assert_eq!(
            pair.ask(0, &second, "s").send().await.unwrap().status(),
            401,
            "at once where it was said"
        );
        pair.until(async || pair.ask(1, &second, "s").send().await.unwrap().status() == 401).await;
        assert!(began.elapsed() < Duration::from_secs(1), "round {round}: {:?}", began.elapsed());
        pair.nodes[0]
            .admin("keys/toggleKeyEnabled", json!({"keyId": second.key, "enabled": true}))
            .await;
        pair.until(async || pair.ask(1, &second, "s").send().await.unwrap().status() == 200).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_circuit_that_opens_on_one_node_is_open_on_the_other_and_survives_a_restart_and_a_reset_closes_both()
 {
    let mut pair = Pair::start().await;
    let who = pair.person(json!({}), json!({})).await;
    let all = pair.nodes[0].admin("providers/getProviders", json!({})).await;
    let id = all[0]["id"].as_i64().unwrap();
    let edit =
        json!({"providerId": id, "circuit_breaker_failure_threshold": 1, "max_retry_attempts": 1});
    pair.nodes[0].admin("providers/editProvider", edit).await;
    let version = pair.nodes[0].metric("tollgate_snapshot_version").await;
    pair.until(async || pair.nodes[1].metric("tollgate_snapshot_version").await >= version).await;
    pair.upstream.default(json!({"status": 500})).await;
    assert_ne!(pair.ask(0, &who, "s").send().await.unwrap().status(), 200);
    let state = async |pair: &Pair, node: usize| {
        let health = pair.nodes[node].admin("providers/getProvidersHealthStatus", json!({})).await;
        health[0]["state"].as_str().unwrap().to_owned()
    };
    pair.until(async || state(&pair, 0).await == "OPEN").await;
    pair.until(async || state(&pair, 1).await == "OPEN").await;
    pair.upstream.default(json!({"usage": {"output": 100}})).await;
    assert_eq!(
        pair.ask(1, &who, "s").send().await.unwrap().status(),
        503,
        "the other node calls no provider"
    );
    pair.nodes[0].kill();
    pair.nodes[0].spawn();
    pair.nodes[0].ready().await;
    pair.until(async || state(&pair, 0).await == "OPEN").await;
    pair.nodes[1].admin("providers/resetProviderCircuit", json!({"providerId": id})).await;
    pair.until(async || state(&pair, 0).await == "CLOSED").await;
    for node in 0..2 {
        assert_eq!(pair.ask(node, &who, "s").send().await.unwrap().status(), 200);
    }
}

/// What one client can cause counts of three users, on whichever nodes they were.
#[tokio::test(flavor = "multi_thread")]
async fn users_whose_requests_a_provider_refused_are_known_on_the_other_node() {
    let pair = Pair::start().await;
    let mut people = Vec::new();
    for _ in 0..3 {
        people.push(pair.person(json!({}), json!({})).await);
    }
    pair.upstream.default(json!({"status": 422, "body": {"detail": "no"}})).await;
    let failures = async |node: usize| {
        let health = pair.nodes[node].admin("providers/getProvidersHealthStatus", json!({})).await;
        health[0]["failureCount"].as_i64().unwrap()
    };
    for (node, who) in [(1, &people[0]), (1, &people[1])] {
        assert_eq!(pair.ask(node, who, "s").send().await.unwrap().status(), 422);
        assert_eq!(failures(node).await, 0);
    }
    pair.until(async || {
        assert_eq!(pair.ask(0, &people[2], "s").send().await.unwrap().status(), 422);
        failures(0).await > 0
    })
    .await;
}
