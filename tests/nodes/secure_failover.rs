//! A cluster and Sentinels over TLS, with a private authority and client certificates: they work as
//! without TLS, and a certificate of an unknown authority has a clear error and loses nothing.

use serde_json::json;

use super::failover::{NAME, limits_hold, under_load};
use super::loss::back;
use super::pair::Pair;
use super::secure::credentials;
use crate::support::gateway::Gateway;
use crate::support::redis::{Redis, Transport, tls_file};
use crate::support::redis_failover::{Cluster, Watched};

/// Nodes with the credentials for TLS and these settings.
async fn pair_with(further: &[(&str, &str)]) -> Pair {
    let credentials = credentials();
    let mut env: Vec<(&str, &str)> =
        credentials.iter().map(|(name, value)| (*name, value.as_str())).collect();
    env.push(("TOLLGATE_REDIS_TIMEOUT", "2s"));
    env.extend(further);
    let pair = Pair::with(Redis::none(), &env).await;
    back(&pair).await;
    pair
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_over_tls_fails_over_without_a_failed_request_or_a_wrong_sum() {
    let mut cluster = Cluster::over(Transport::Tls).await;
    assert!(cluster.url().starts_with("rediss+cluster://"), "{}", cluster.url());
    let pair = pair_with(&[("REDIS_URL", &cluster.url())]).await;
    let (ok, text) = pair.nodes[0].check();
    assert!(ok, "{text}");
    limits_hold(&pair).await;
    let who = pair.person(json!({}), json!({})).await;
    let owner = cluster.owner(NAME).await;
    under_load(&pair, &who, async || cluster.nodes[owner].kill()).await;
    limits_hold(&pair).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_over_tls_name_the_next_primary_without_a_failed_request_or_a_wrong_sum() {
    let mut watched = Watched::over(Transport::Tls).await;
    assert!(watched.url().starts_with("rediss+sentinel://"), "{}", watched.url());
    let password = ("TOLLGATE_REDIS_SENTINEL_PASSWORD", Watched::PASSWORD);
    let pair = pair_with(&[("REDIS_URL", &watched.url()), password]).await;
    let (ok, text) = pair.nodes[0].check();
    assert!(ok, "{text}");
    let who = pair.person(json!({}), json!({})).await;
    under_load(&pair, &who, async || {
        watched.primary.kill();
        watched.failed_over().await;
    })
    .await;
    limits_hold(&pair).await;
}

/// The check of a node that trusts another authority fails and says why; while such a node serves,
/// it counts for itself. What it counted is in the counters once it has the right authority.
async fn another_authority_is_reported_and_loses_nothing(addresses: &[(&str, &str)]) {
    let mut pair = pair_with(addresses).await;
    let who = pair.person(json!({}), json!({"limitTotalUsd": 0.08})).await;
    let ask = async |pair: &Pair, node: usize, status: u16| {
        let answer = pair.ask(node, &who, "s").send().await.unwrap();
        assert_eq!(answer.status(), status, "{}", answer.text().await.unwrap());
    };
    for n in 0..4 {
        ask(&pair, n % 2, 200).await;
    }
    pair.settled(&who, 4).await;
    let restart = async |node: &mut Gateway, authority: &str| {
        node.signal("TERM");
        node.ended().await;
        node.set("TOLLGATE_REDIS_TLS_CA", &tls_file(authority));
        node.spawn();
        node.ready().await;
    };
    restart(&mut pair.nodes[1], "other-ca.pem").await;
    let (ok, text) = pair.nodes[1].check();
    assert!(
        !ok && text.contains("Redis (redis.url): ") && text.contains("UnknownIssuer"),
        "{text}"
    );
    pair.nodes[1].log_shows("UnknownIssuer").await;
    let lost = "is lost: this node counts for itself";
    pair.nodes[1].readiness_shows(|ready, parts| ready && parts["redis"] == lost).await;
    for _ in 0..3 {
        ask(&pair, 1, 200).await;
    }
    restart(&mut pair.nodes[1], "ca.pem").await;
    back(&pair).await;
    pair.settled(&who, 7).await;
    ask(&pair, 0, 200).await;
    pair.settled(&who, 8).await;
    ask(&pair, 1, 429).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_authority_than_that_of_a_cluster_is_reported_and_loses_nothing() {
    let cluster = Cluster::over(Transport::Tls).await;
    another_authority_is_reported_and_loses_nothing(&[("REDIS_URL", &cluster.url())]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_authority_than_that_of_sentinels_is_reported_and_loses_nothing() {
    let watched = Watched::over(Transport::Tls).await;
    let password = ("TOLLGATE_REDIS_SENTINEL_PASSWORD", Watched::PASSWORD);
    let addresses = [("REDIS_URL", &*watched.url()), password];
    another_authority_is_reported_and_loses_nothing(&addresses).await;
}
