//! Redis that moves: a cluster and a primary with Sentinels fail over, and a slot moves, while
//! requests run. No request fails, and all spending is counted once.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::loss::{Load, back};
use super::pair::{Pair, Person};
use super::servers::{one_for_each, rebuilds, sessions_of_each};
use crate::support::gateway::Gateway;
use crate::support::redis::Redis;
use crate::support::redis_failover::{Cluster, Watched};

/// A name of each part of the counters. Its slot is on another of three primaries.
pub const PARTS: [&str; 3] =
    ["{tollgate}:{3}:epoch", "{tollgate.9}:{3}:epoch", "{tollgate.124}:{3}:epoch"];
/// Long enough for a busy machine.
const WAIT: (&str, &str) = ("TOLLGATE_REDIS_TIMEOUT", "2s");

async fn pair_on(url: &str, further: &[(&str, &str)]) -> Pair {
    Pair::with(Redis::none(), &[&[("REDIS_URL", url), WAIT], further].concat()).await
}

/// Five places for sessions hold over both nodes.
pub async fn limits_hold(pair: &Pair) {
    let who = pair.person(json!({}), json!({"limitConcurrentSessions": 5})).await;
    pair.upstream.default(json!({"usage": {"output": 100}, "delay_ms": 1500})).await;
    let (passed, refused) = pair.at_once(&who, 16, |n| format!("s{n}")).await;
    assert_eq!((passed, refused.len()), (5, 11));
    pair.upstream.default(json!({"usage": {"output": 100}})).await;
}

/// Clients at both nodes, from before the failover until both nodes count together again.
pub async fn under_load(
    pair: &Pair,
    callers: impl IntoIterator<Item = &Person>,
    fail_over: impl AsyncFnOnce(),
) {
    let loads: Vec<_> = callers.into_iter().map(|who| (who, Load::start(pair, who, 8))).collect();
    let more = async || {
        for (_, load) in &loads {
            load.more(pair, 100).await;
        }
    };
    more().await;
    let built = rebuilds(pair);
    let losses = pair.metric("tollgate_redis_losses_total").await;
    fail_over().await;
    pair.until(async || pair.metric("tollgate_redis_losses_total").await > losses).await;
    more().await;
    back(pair).await;
    more().await;
    for (who, load) in loads {
        let (whole, odd) = load.end().await;
        assert_eq!(odd, Vec::<String>::new(), "no request fails");
        pair.settled(who, whole).await;
    }
    // A node that finds another server rebuilds the counters: that server may lack something.
    assert!(rebuilds(pair) > built);
}

const LOST: &str = "Redis is lost";
const REBUILDING: &str = "rebuilding the shared counters from the ledger";

/// How many lines of both logs contain this, for each part of a cluster.
fn said_of_each(pair: &Pair, what: &str) -> [usize; 3] {
    let logs = pair.nodes.each_ref().map(Gateway::log).concat();
    [1, 2, 3].map(|server| {
        let server = format!("\"server\":{server},");
        logs.lines().filter(|line| line.contains(what) && line.contains(&server)).count()
    })
}

/// One part of a cluster's counters is lost under load. No request fails, all sums are exact, the
/// limits of the other parts' users hold meanwhile, and no node loses or rebuilds another part.
async fn one_part_is_lost(pair: &Pair, part: usize, lose: impl AsyncFnOnce()) {
    let free = one_for_each(pair, 3, &json!({})).await;
    let capped = one_for_each(pair, 3, &json!({"limitConcurrentSessions": 5})).await;
    let loads: Vec<_> = free.values().map(|who| (who, Load::start(pair, who, 3))).collect();
    let more = async || {
        for (_, load) in &loads {
            load.more(pair, 30).await;
        }
    };
    more().await;
    let before = [LOST, REBUILDING].map(|what| said_of_each(pair, what));
    lose().await;
    pair.until(async || said_of_each(pair, LOST)[part] > before[0][part]).await;
    let others: Vec<&Person> =
        capped.iter().filter(|(at, _)| **at != part).map(|(_, who)| who).collect();
    assert_eq!(sessions_of_each(pair, &others).await, [5, 5], "exact on the other parts");
    more().await;
    back(pair).await;
    more().await;
    for (who, load) in loads {
        let (served, odd) = load.end().await;
        assert_eq!(odd, Vec::<String>::new(), "no request fails");
        pair.settled(who, served).await;
    }
    assert_eq!(sessions_of_each(pair, &[&capped[&part]]).await, [5]);
    let after = [LOST, REBUILDING].map(|what| said_of_each(pair, what));
    for at in 0..3 {
        for (what, (before, after)) in [LOST, REBUILDING].iter().zip(before.iter().zip(&after)) {
            assert_eq!(after[at] > before[at], at == part, "{what}: {before:?}, {after:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_fails_over_and_a_slot_moves_without_a_failed_request_or_a_wrong_sum() {
    let mut cluster = Cluster::start().await;
    let pair = pair_on(&cluster.url(), &[]).await;
    back(&pair).await;
    // Each primary has a part of the counters.
    let mut owners = BTreeMap::new();
    for part in PARTS {
        owners.insert(cluster.owner(part).await, part);
    }
    assert_eq!(owners.len(), 3, "{owners:?}");
    assert!(owners.iter().all(|(owner, part)| cluster.has(*owner, part)));
    let (ok, text) = pair.nodes[0].check();
    assert!(ok, "{text}");
    // Limits hold over both nodes.
    let capped = one_for_each(&pair, 3, &json!({"limitConcurrentSessions": 5})).await;
    assert_eq!(sessions_of_each(&pair, &capped.values().collect::<Vec<_>>()).await, [5, 5, 5]);
    let money = one_for_each(&pair, 3, &json!({"limitMonthlyUsd": 0.25})).await;
    let spend = money.values().map(|who| pair.at_once(who, 40, |n| format!("s{}", n % 9)));
    for (passed, refused) in futures_util::future::join_all(spend).await {
        assert_eq!((passed, refused.len()), (25, 15));
    }
    // A primary dies; its replica takes over.
    let owner = cluster.owner(PARTS[1]).await;
    one_part_is_lost(&pair, 1, async || cluster.nodes[owner].kill()).await;
    for who in money.values() {
        pair.settled(who, 25).await;
        assert_eq!(pair.ask(1, who, "s").send().await.unwrap().status(), 429);
    }
    // The slot of a part moves to another primary, which has two parts then.
    cluster.nodes[owner].start_again();
    let to = cluster.other(cluster.owner(PARTS[0]).await);
    one_part_is_lost(&pair, 0, async || cluster.move_slot(PARTS[0], to).await).await;
    assert_eq!(cluster.owner(PARTS[0]).await, to);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_get_other_parts_of_a_cluster_one_by_one_keep_all_sums() {
    let cluster = Cluster::of_one().await;
    let mut pair = pair_on(&cluster.url(), &[("TOLLGATE_REDIS_CLUSTER_PARTS", "1")]).await;
    back(&pair).await;
    let callers = one_for_each(&pair, 3, &json!({})).await;
    let serve = async |pair: &Pair| {
        for who in callers.values() {
            for node in 0..2 {
                let answer = pair.ask(node, who, "s").send().await.unwrap();
                assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
            }
        }
    };
    serve(&pair).await;
    assert!(cluster.has(0, PARTS[0]) && !cluster.has(0, PARTS[1]), "as before there were parts");
    for node in 0..2 {
        pair.nodes[node].signal("TERM");
        pair.nodes[node].ended().await;
        pair.nodes[node].set("TOLLGATE_REDIS_CLUSTER_PARTS", "3");
        if node == 0 {
            let (_, said) = pair.nodes[0].run(&["doctor"]);
            let others = "server 1 of 3: gateways count there that have another list of servers";
            let port = cluster.nodes[0].port();
            let second = format!(" ({{tollgate.9}} on 127.0.0.1:{port}), answers");
            assert!(said.contains(others) && said.contains(&second), "{said}");
        }
        pair.nodes[node].spawn();
        pair.nodes[node].ready().await;
        if node == 0 {
            let said = "server 1 of 3 is used by nodes with another list of servers";
            let shown = |ready: bool, parts: &Value| {
                ready && parts["redis"].as_str().is_some_and(|text| text.starts_with(said))
            };
            pair.nodes[0].readiness_shows(shown).await;
            serve(&pair).await;
        }
    }
    back(&pair).await;
    serve(&pair).await;
    for who in callers.values() {
        pair.settled(who, 6).await;
    }
    assert!(PARTS.iter().all(|part| cluster.has(0, part)));
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_name_the_next_primary_without_a_failed_request_or_a_wrong_sum() {
    let mut watched = Watched::start().await;
    let pair =
        pair_on(&watched.url(), &[("TOLLGATE_REDIS_SENTINEL_PASSWORD", Watched::PASSWORD)]).await;
    back(&pair).await;
    let who = pair.person(json!({}), json!({})).await;
    under_load(&pair, [&who], async || {
        watched.primary.kill();
        watched.failed_over().await;
    })
    .await;
    limits_hold(&pair).await;
    // The former primary comes back, and becomes a replica of the new one.
    watched.primary.start_again();
    limits_hold(&pair).await;
    let (ok, text) = pair.nodes[0].check();
    assert!(ok, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_a_cluster_that_is_named_as_a_single_server_is_explained() {
    let cluster = Cluster::start().await;
    let other = cluster.other(cluster.owner("tollgate:epoch").await);
    let gateway = Gateway::prepare(&[("REDIS_URL", &cluster.nodes[other].url())]);
    let (ok, text) = gateway.check();
    assert!(!ok && text.contains("write redis+cluster:// in place of redis://"), "{text}");
}
