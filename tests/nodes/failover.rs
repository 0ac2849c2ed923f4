//! Redis that moves: a cluster and a primary with Sentinels fail over, and a slot moves, while
//! requests run. No request fails, and all spending is counted once.

use serde_json::json;

use super::loss::{Load, back, rebuilds};
use super::pair::{Pair, Person};
use crate::support::gateway::Gateway;
use crate::support::redis::Redis;
use crate::support::redis_failover::{Cluster, Watched};

/// A name of the counters; all are in its slot.
pub const NAME: &str = "{tollgate}:{3}:epoch";
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
pub async fn under_load(pair: &Pair, who: &Person, fail_over: impl AsyncFnOnce()) {
    let load = Load::start(pair, who, 8);
    load.more(pair, 100).await;
    let built = rebuilds(pair);
    let losses = pair.metric("tollgate_redis_losses_total").await;
    fail_over().await;
    pair.until(async || pair.metric("tollgate_redis_losses_total").await > losses).await;
    load.more(pair, 100).await;
    back(pair).await;
    load.more(pair, 100).await;
    let (whole, odd) = load.end().await;
    assert_eq!(odd, Vec::<String>::new(), "no request fails");
    pair.settled(who, whole).await;
    // A node that finds another server rebuilds the counters: that server may lack something.
    assert!(rebuilds(pair) > built);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_fails_over_and_a_slot_moves_without_a_failed_request_or_a_wrong_sum() {
    let mut cluster = Cluster::start().await;
    let pair = pair_on(&cluster.url(), &[]).await;
    back(&pair).await;
    let (ok, text) = pair.nodes[0].check();
    assert!(ok, "{text}");
    limits_hold(&pair).await;
    let money = pair.person(json!({}), json!({"limitMonthlyUsd": 0.25})).await;
    let (passed, refused) = pair.at_once(&money, 40, |n| format!("s{}", n % 9)).await;
    assert_eq!((passed, refused.len()), (25, 15));
    let who = pair.person(json!({}), json!({})).await;
    // The primary that has the counters dies; its replica takes over.
    let owner = cluster.owner(NAME).await;
    under_load(&pair, &who, async || cluster.nodes[owner].kill()).await;
    limits_hold(&pair).await;
    // Their slot moves to another primary.
    cluster.nodes[owner].start_again();
    let to = cluster.other(cluster.owner(NAME).await);
    let who = pair.person(json!({}), json!({})).await;
    under_load(&pair, &who, async || cluster.move_slot(NAME, to).await).await;
    assert_eq!(cluster.owner(NAME).await, to);
    limits_hold(&pair).await;
    pair.settled(&money, 25).await;
    assert_eq!(pair.ask(1, &money, "s").send().await.unwrap().status(), 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_name_the_next_primary_without_a_failed_request_or_a_wrong_sum() {
    let mut watched = Watched::start().await;
    let pair =
        pair_on(&watched.url(), &[("TOLLGATE_REDIS_SENTINEL_PASSWORD", Watched::PASSWORD)]).await;
    back(&pair).await;
    let who = pair.person(json!({}), json!({})).await;
    under_load(&pair, &who, async || {
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
