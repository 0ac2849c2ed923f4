//! Windows use one clock and one time zone: those of Redis and of the cluster; and a clock that
//! steps back erases nothing.

use std::time::Duration;

use serde_json::{Value, json};

use crate::nodes::pair::{Pair, Person, cost, limit_of};
use crate::proxy::fixture::{Fixture, request};
use crate::support::clock::SetClock;
use crate::support::redis::Redis;

const DAY: i64 = 86_400;

async fn restart(pair: &mut Pair, node: usize) {
    pair.nodes[node].signal("TERM");
    pair.nodes[node].ended().await;
    pair.nodes[node].spawn();
    pair.nodes[node].ready().await;
}

/// When each window of a key ends, according to a node.
async fn resets(pair: &Pair, node: usize, key: i64) -> Vec<Value> {
    let usage = pair.nodes[node].admin("keys/getKeyLimitUsage", json!({"keyId": key})).await;
    ["costDaily", "costWeekly", "costMonthly"]
        .map(|window| usage[window]["resetAt"].clone())
        .to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_clock_is_weeks_ahead_moves_no_shared_window_and_says_so() {
    let mut pair = Pair::start().await;
    let limits = json!({"limit5hUsd": 0.03, "limitDailyUsd": 0.03, "limitWeeklyUsd": 0.03, "limitMonthlyUsd": 0.03});
    let who = pair.person(json!({"rpm": 4}), limits).await;
    for n in 0..2 {
        assert_eq!(pair.ask(0, &who, "s").send().await.unwrap().status(), 200);
        pair.settled(&who, n + 1).await;
    }
    let before = resets(&pair, 0, who.key).await;
    let clock = SetClock::new();
    clock.set(40 * DAY);
    clock.env().iter().for_each(|(name, value)| pair.nodes[1].set(name, value));
    restart(&mut pair, 1).await;
    let (ready, parts) = pair.nodes[1].readiness().await;
    let said = parts["clock"].as_str().unwrap();
    assert!(ready && said.ends_with(" s ahead of Redis': shared windows go by Redis'"), "{parts}");
    let (_, parts) = pair.nodes[0].readiness().await;
    assert_eq!(parts["clock"], "ok");
    let off = pair.nodes[1].metric("tollgate_redis_clock_off_seconds").await;
    assert!((off - 40.0 * 86_400.0).abs() < 3.0, "{off}");
    pair.nodes[1].log_shows("this node's clock is not Redis'").await;
    // The last cent passes on the fast node, and no further one on either.
    assert_eq!(pair.ask(1, &who, "s").send().await.unwrap().status(), 200);
    for node in 0..2 {
        pair.until(async || pair.spent(node, &who).await == cost(3)).await;
        let answer = pair.ask(node, &who, "s").send().await.unwrap();
        assert_eq!(answer.status(), 429, "node {node}");
        assert_eq!(limit_of(&answer.json().await.unwrap()), "key_5h");
        assert_eq!(resets(&pair, node, who.key).await, before, "node {node}");
        let usage =
            pair.nodes[node].admin("keys/getKeyLimitUsage", json!({"keyId": who.key})).await;
        for window in ["cost5h", "costDaily", "costWeekly", "costMonthly"] {
            assert_eq!(usage[window]["current"], json!(0.03), "{window} at node {node}");
        }
    }
    // The clock is set while the node runs: with the next heartbeat all is well.
    clock.set(0);
    pair.nodes[1].readiness_shows(|ready, parts| ready && parts["clock"] == "ok").await;
    assert_eq!(pair.ask(1, &who, "s").send().await.unwrap().status(), 429);
    // And set wrong again between two heartbeats.
    clock.set(40 * DAY);
    assert_eq!(pair.ask(1, &who, "s").send().await.unwrap().status(), 429);
    assert_eq!(pair.ask(0, &who, "s").send().await.unwrap().status(), 429);
    assert_eq!(resets(&pair, 0, who.key).await, before);
}

/// The seconds of a header such as `59s` or `2m0s`.
fn seconds_of(answer: &reqwest::Response, name: &str) -> u64 {
    let text = answer.headers()[name].to_str().unwrap();
    let (minutes, seconds) = text.split_once('m').unwrap_or(("0", text));
    minutes.parse::<u64>().unwrap() * 60 + seconds.trim_end_matches('s').parse::<u64>().unwrap()
}

fn retry_after(answer: &reqwest::Response) -> u64 {
    answer.headers()["retry-after"].to_str().unwrap().parse().unwrap()
}

/// Limits end by Redis' clock. The time until then does not depend on the node's.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_clock_is_off_tells_clients_how_long_to_wait() {
    for seconds in [900, -900] {
        let mut pair = Pair::start().await;
        let clock = SetClock::new();
        clock.set(seconds);
        clock.env().iter().for_each(|(name, value)| pair.nodes[1].set(name, value));
        restart(&mut pair, 1).await;
        let who = pair.person(json!({"rpm": 1}), json!({})).await;
        let chat = |node: usize, who: &Person| {
            let gateway = &pair.nodes[node];
            let ask = gateway.client.post(format!("{}/v1/chat/completions", gateway.proxy));
            ask.bearer_auth(&who.text).json(&request("chat-compatible", false))
        };
        let answer = chat(1, &who).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let left = seconds_of(&answer, "x-ratelimit-reset-requests");
        assert!((50..=60).contains(&left), "{seconds}: {left}");
        let answer = chat(1, &who).send().await.unwrap();
        assert_eq!(answer.status(), 429);
        let left = seconds_of(&answer, "x-ratelimit-reset-requests");
        assert!((30..=60).contains(&left), "{seconds}: {left}");
        assert!((left..=left + 1).contains(&retry_after(&answer)), "{seconds}: {answer:?}");
        // A limit of the only provider, which what is spent reaches.
        let providers = pair.nodes[0].admin("providers/getProviders", json!({})).await;
        let limit = json!({"providerId": providers[0]["id"], "limit_monthly_usd": 0.01});
        pair.nodes[0].admin("providers/editProvider", limit).await;
        let who = pair.person(json!({}), json!({})).await;
        let mut waits = Vec::new();
        for node in [0, 1] {
            let answer = chat(node, &who).send().await.unwrap();
            assert_eq!(answer.status(), 503, "{seconds}: {answer:?}");
            waits.push(retry_after(&answer));
        }
        assert!(waits[0].abs_diff(waits[1]) < 60, "{seconds}: {waits:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_in_another_time_zone_uses_the_clusters_until_it_is_the_only_node() {
    const LEASE: [(&str, &str); 2] =
        [("TOLLGATE_REDIS_TIMEOUT", "10s"), ("TOLLGATE_REDIS_LEASE", "3s")];
    let mut pair = Pair::with(Redis::start(), &LEASE).await;
    let who = pair
        .person(json!({}), json!({"limitDailyUsd": 1, "limitWeeklyUsd": 1, "limitMonthlyUsd": 1}))
        .await;
    assert_eq!(pair.ask(0, &who, "s").send().await.unwrap().status(), 200);
    pair.settled(&who, 1).await;
    let before = resets(&pair, 0, who.key).await;
    pair.nodes[1].set("TZ", "Asia/Kathmandu");
    restart(&mut pair, 1).await;
    let (ready, parts) = pair.nodes[1].readiness().await;
    let said = parts["time_zone"].as_str().unwrap();
    assert!(
        ready && said.starts_with("differs from the nodes' shared zone: shared windows are in "),
        "{parts}"
    );
    assert_eq!(pair.nodes[0].readiness().await.1["time_zone"], "ok");
    assert_eq!(pair.nodes[1].metric("tollgate_redis_time_zone_differs").await, 1.0);
    assert_eq!(pair.nodes[0].metric("tollgate_redis_time_zone_differs").await, 0.0);
    pair.nodes[1].log_shows("TZ is not the other nodes'").await;
    assert_eq!(pair.ask(1, &who, "s").send().await.unwrap().status(), 200);
    pair.settled(&who, 2).await;
    assert_eq!(resets(&pair, 1, who.key).await, before, "the windows are the other node's");
    // The last node of the zone stops.
    pair.nodes[0].signal("TERM");
    pair.nodes[0].ended().await;
    pair.nodes[1].readiness_shows(|ready, parts| ready && parts["time_zone"] == "ok").await;
    pair.until(async || pair.spent(1, &who).await == cost(2)).await;
    let after = resets(&pair, 1, who.key).await;
    assert!(
        after[0].as_str().unwrap().ends_with("T18:15:00.000Z"),
        "midnight in Kathmandu: {after:?}"
    );
    let usage = pair.nodes[1].admin("keys/getKeyLimitUsage", json!({"keyId": who.key})).await;
    assert_eq!(usage["costTotal"]["current"], json!(0.02), "rebuilt from the ledger: {usage}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_steps_ahead_and_back_forgets_nothing_that_one_process_counted() {
    let clock = SetClock::new();
    let env = clock.env();
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let fixture = Fixture::bare(&env).await;
    let price =
        json!({"m": {"mode": "chat", "input_cost_per_token": 0, "output_cost_per_token": 1e-4}});
    fixture.gateway.prices(price).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    fixture.upstream.default(json!({"usage": {"output": 100}})).await;
    let limits = json!({"keyId": fixture.key_id, "limitWeeklyUsd": 0.04, "limitMonthlyUsd": 0.04});
    fixture.gateway.admin("keys/editKey", limits).await;
    let ask = async || {
        fixture
            .post("/v1/messages", &request("native", false))
            .send()
            .await
            .unwrap()
            .status()
            .as_u16()
    };
    assert_eq!([ask().await, ask().await], [200, 200]);
    clock.set(40 * DAY);
    assert_eq!(ask().await, 200, "another month");
    clock.set(0);
    assert_eq!(ask().await, 200, "three of four cents were spent");
    assert_eq!(ask().await, 429, "the fourth was the last");
    let usage =
        fixture.gateway.admin("keys/getKeyLimitUsage", json!({"keyId": fixture.key_id})).await;
    assert_eq!(
        (&usage["costWeekly"]["current"], &usage["costMonthly"]["current"]),
        (&json!(0.04), &json!(0.04))
    );
    // Sleeps: later than that it is still so, and nothing shows that it cannot change any more.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(ask().await, 429);
}

/// While Redis is away, nothing tells a node that its clock was set. What it counts then has the
/// wrong time, by which Redis must not decide whether the ledger had it.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_counts_with_a_wrong_clock_while_redis_is_away_counts_once_and_ends_in_time() {
    let env = [("TOLLGATE_REDIS_TIMEOUT", "10s"), ("SESSION_TTL", "1s")];
    for seconds in [600, -20] {
        let mut pair = Pair::with(Redis::start(), &env).await;
        let clock = SetClock::new();
        clock.env().iter().for_each(|(name, value)| pair.nodes[1].set(name, value));
        restart(&mut pair, 1).await;
        let who = pair.person(json!({}), json!({})).await;
        pair.redis.kill();
        for node in &pair.nodes {
            node.readiness_shows(|_, parts| parts["redis"] != "ok").await;
        }
        clock.set(seconds);
        for _ in 0..3 {
            assert_eq!(pair.ask(1, &who, "s").send().await.unwrap().status(), 200);
        }
        // The ledger has them, so the counters that are made from it have them.
        pair.nodes[1].metric_shows("tollgate_journal_pending_records", |n| n == 0.0).await;
        pair.redis.start_again();
        for node in &pair.nodes {
            node.readiness_shows(|_, parts| parts["redis"] == "ok").await;
            node.metric_shows("tollgate_redis_waiting", |waiting| waiting == 0.0).await;
        }
        for node in 0..2 {
            assert_eq!(pair.spent(node, &who).await, cost(3), "{seconds} s, node {node}");
        }
        pair.until(async || {
            let usage =
                pair.nodes[0].admin("keys/getKeyLimitUsage", json!({"keyId": who.key})).await;
            usage["concurrentSessions"]["current"] == 0
        })
        .await;
    }
}
