//! Redis that moves: a cluster and a primary with Sentinels fail over, and a slot moves, while
//! requests run. No request fails, and all spending is counted once.

use serde_json::json;

use super::loss::{Load, back};
use super::pair::{Pair, Person};
use crate::support::redis::Redis;
use crate::support::redis_failover::{Cluster, Watched};

/// A name that all counters share a slot with.
const EPOCH: &str = "{tollgate}:{3}:epoch";
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
    let rebuilds = rebuilds_of(pair);
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
    assert!(rebuilds_of(pair) > rebuilds);
}

/// How often the nodes have built the shared counters from the ledger.
fn rebuilds_of(pair: &Pair) -> usize {
    let of = |log: String| log.matches("rebuilding the shared counters from the ledger").count();
    pair.nodes.iter().map(|node| of(node.log())).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_fails_over_and_a_slot_moves_without_a_failed_request_or_a_wrong_sum() {
    let mut cluster = Cluster::start().await;
    let pair = pair_on(&cluster.url(), &[]).await;
    back(&pair).await;
    limits_hold(&pair).await;
    let (ok, text) = pair.nodes[0].check();
    assert!(ok, "{text}");
    // The primary dies; its replica takes over.
    let who = pair.person(json!({}), json!({})).await;
    let owner = cluster.owner(EPOCH).await;
    under_load(&pair, &who, async || cluster.nodes[owner].kill()).await;
    limits_hold(&pair).await;
    // Its slot moves to another primary.
    cluster.nodes[owner].start_again();
    let who = pair.person(json!({}), json!({})).await;
    let to = cluster.other(cluster.owner(EPOCH).await);
    under_load(&pair, &who, async || cluster.move_slot(EPOCH, to).await).await;
    assert_eq!(cluster.owner(EPOCH).await, to);
    limits_hold(&pair).await;
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
    let gateway =
        crate::support::gateway::Gateway::prepare(&[("REDIS_URL", &cluster.nodes[other].url())]);
    let (ok, text) = gateway.check();
    assert!(!ok && text.contains("write redis+cluster:// in place of redis://"), "{text}");
}
