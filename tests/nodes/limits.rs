//! Every limit holds over both nodes as over one.

use serde_json::{Value, json};

use super::pair::{Pair, limit_of};

/// Each spending limit: its wire name, whether it is the key's, and the field that sets it.
const SPENDING: [(&str, bool, &str); 10] = [
    ("key_total", true, "limitTotalUsd"),
    ("user_total", false, "limitTotalUsd"),
    ("key_5h", true, "limit5hUsd"),
    ("user_5h", false, "limit5hUsd"),
    ("key_daily", true, "limitDailyUsd"),
    ("user_daily", false, "dailyQuota"),
    ("key_weekly", true, "limitWeeklyUsd"),
    ("user_weekly", false, "limitWeeklyUsd"),
    ("key_monthly", true, "limitMonthlyUsd"),
    ("user_monthly", false, "limitMonthlyUsd"),
];

/// Fields of the user and of the key.
fn on(of_key: bool, field: &str, value: Value) -> (Value, Value) {
    let set = json!({ field: value });
    if of_key { (json!({}), set) } else { (set, json!({})) }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_spent_on_one_node_is_spent_on_the_other() {
    let pair = Pair::start().await;
    for (limit, of_key, field) in SPENDING {
        // Three requests' worth: the third is the last that passes.
        let (user, key) = on(of_key, field, json!(0.03));
        let who = pair.person(user, key).await;
        for n in 0..3 {
            let answer = pair.ask(n % 2, &who, "s").send().await.unwrap();
            assert_eq!(
                answer.status(),
                200,
                "{limit}, request {n}: {}",
                answer.text().await.unwrap()
            );
            pair.settled(&who, n + 1).await;
        }
        for node in 0..2 {
            let answer = pair.ask(node, &who, "s").send().await.unwrap();
            assert_eq!(answer.status(), 429, "{limit} at node {node}");
            let refusal: Value = answer.json().await.unwrap();
            assert_eq!(limit_of(&refusal), limit, "{refusal}");
            assert_eq!(
                (&refusal["error"]["current"], &refusal["error"]["limit"]),
                (&json!(0.03), &json!(0.03))
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_and_requests_per_minute_are_given_to_exactly_as_many_as_there_are_places() {
    let pair = Pair::start().await;
    pair.upstream.default(json!({"usage": {"output": 100}, "delay_ms": 1500})).await;
    for (limit, of_key, field) in [
        ("key_concurrent_sessions", true, "limitConcurrentSessions"),
        ("user_concurrent_sessions", false, "limitConcurrentSessions"),
        ("user_rpm", false, "rpm"),
    ] {
        let (user, key) = on(of_key, field, json!(5));
        let who = pair.person(user, key).await;
        let (passed, refused) = pair.at_once(&who, 24, |n| format!("s{n}")).await;
        assert_eq!((passed, refused.len()), (5, 19), "{limit}");
        assert!(refused.iter().all(|name| name == limit), "{refused:?}");
    }
    // A session that is live on one node is live on the other: it does not count against itself.
    let who = pair.person(json!({}), json!({"limitConcurrentSessions": 1})).await;
    let (passed, refused) = pair.at_once(&who, 8, |_| "one".to_owned()).await;
    assert_eq!((passed, refused), (8, vec![]));
    assert_eq!(pair.ask(1, &who, "two").send().await.unwrap().status(), 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_at_once_over_both_nodes_overshoot_the_last_dollar_by_one_grain_at_most() {
    let pair = Pair::start().await;
    pair.upstream.default(json!({"usage": {"output": 100}, "delay_ms": 1500})).await;
    let who = pair.person(json!({}), json!({"limitMonthlyUsd": 1})).await;
    let (passed, refused) = pair.at_once(&who, 1_000, |n| format!("s{}", n % 50)).await;
    assert!(refused.iter().all(|name| name == "key_monthly"));
    // The reservation of a request equals its cost, so a hundred of them are the dollar. Those that
    // ended while others still arrived make no difference.
    assert_eq!((passed, refused.len()), (100, 900));
    pair.settled(&who, 100).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_of_a_provider_hold_over_both_nodes() {
    let pair = Pair::start().await;
    let all = pair.nodes[0].admin("providers/getProviders", json!({})).await;
    let id = all[0]["id"].as_i64().unwrap();
    pair.nodes[0]
        .admin("providers/editProvider", json!({"providerId": id, "limit_concurrent_sessions": 3}))
        .await;
    pair.upstream.default(json!({"usage": {"output": 100}, "delay_ms": 1500})).await;
    let who = pair.person(json!({}), json!({})).await;
    let mut asking = tokio::task::JoinSet::new();
    for n in 0..16 {
        asking.spawn(pair.ask(n % 2, &who, &format!("s{n}")).send());
    }
    let mut statuses = Vec::new();
    while let Some(answer) = asking.join_next().await {
        statuses.push(answer.unwrap().unwrap().status().as_u16());
    }
    let passed = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!(
        (passed, statuses.iter().filter(|status| **status == 503).count()),
        (3, 13),
        "{statuses:?}"
    );
    // The session stays with its provider on either node, and keeps its own place.
    for node in 0..2 {
        let usage = pair.nodes[node]
            .admin("providers/getProviderLimitUsage", json!({"providerId": id}))
            .await;
        assert_eq!(usage["concurrentSessions"], json!({"current": 3, "limit": 3}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_with_room_for_one_reservation_serves_a_request_when_none_else_runs() {
    let pair = Pair::start().await;
    let all = pair.nodes[0].admin("providers/getProviders", json!({})).await;
    let id = all[0]["id"].as_i64().unwrap();
    // One request's reservation. The place is taken with the admission, and the request's own
    // reservation does not count against it afterwards.
    pair.nodes[0]
        .admin("providers/editProvider", json!({"providerId": id, "limit_total_usd": 0.01}))
        .await;
    let who = pair.person(json!({}), json!({})).await;
    let first = pair.ask(0, &who, "s").send().await.unwrap();
    assert_eq!(first.status(), 200, "{}", first.text().await.unwrap());
    pair.settled(&who, 1).await;
    for node in 0..2 {
        let status = pair.ask(node, &who, "s").send().await.unwrap().status();
        assert_eq!(status, 503, "the provider's limit is spent, node {node}");
    }
}
