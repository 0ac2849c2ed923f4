//! Several Redis servers, a cluster and Sentinels over TLS, with a private authority and client
//! certificates: they work as without TLS, and a certificate of an unknown authority has a clear
//! error and loses nothing.

use serde_json::json;

use super::failover::{PARTS, limits_hold, under_load};
use super::loss::{Load, back};
use super::pair::Pair;
use super::secure::credentials;
use super::servers::{list, one_for_each, rebuilds, sessions_of_each};
use crate::support::gateway::Gateway;
use crate::support::redis::{Redis, Transport, tls_file};
use crate::support::redis_failover::{Cluster, FullCoverage, Watched};

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
async fn a_list_of_servers_over_tls_counts_exactly_and_loses_nothing_with_one_of_them() {
    // One of them has a user with a password and a database number.
    let mut servers =
        vec![Redis::over(Transport::Tls, &[]), Redis::over(Transport::Tls, &[]), Redis::secure()];
    let urls = list(&servers);
    let pair = pair_with(&[("REDIS_URL", ""), ("REDIS_URLS", &urls)]).await;
    let (ok, text) = pair.nodes[0].check();
    assert!(ok, "{text}");
    let capped = json!({"limitConcurrentSessions": 5});
    let limited = one_for_each(&pair, 3, &capped).await;
    assert_eq!(sessions_of_each(&pair, &limited.values().collect::<Vec<_>>()).await, [5, 5, 5]);
    let (free, again) =
        (one_for_each(&pair, 3, &json!({})).await, one_for_each(&pair, 3, &capped).await);
    let loads: Vec<_> = free.values().map(|who| (who, Load::start(&pair, who, 3))).collect();
    for (_, load) in &loads {
        load.more(&pair, 20).await;
    }
    let built = rebuilds(&pair);
    servers[2].kill();
    for node in &pair.nodes {
        let lost = "server 3 of 3 is lost: for the users and providers there, this node counts \
            for itself";
        node.readiness_shows(|ready, parts| ready && parts["redis"] == lost).await;
    }
    let others = [&again[&0], &again[&1]];
    assert_eq!(sessions_of_each(&pair, &others).await, [5, 5], "exact on the others");
    servers[2].start_again();
    back(&pair).await;
    for (who, load) in loads {
        load.more(&pair, 20).await;
        let (served, odd) = load.end().await;
        assert_eq!(odd, Vec::<String>::new(), "no request fails");
        pair.settled(who, served).await;
    }
    assert_eq!(sessions_of_each(&pair, &[&again[&2]]).await, [5]);
    assert_eq!(rebuilds(&pair), built + 1, "the counters of one server");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_over_tls_fails_over_without_a_failed_request_or_a_wrong_sum() {
    let mut cluster = Cluster::over(Transport::Tls, FullCoverage::Required).await;
    assert!(cluster.url().starts_with("rediss+cluster://"), "{}", cluster.url());
    let pair = pair_with(&[("REDIS_URL", &cluster.url())]).await;
    let (ok, text) = pair.nodes[0].check();
    assert!(ok, "{text}");
    limits_hold(&pair).await;
    let callers = one_for_each(&pair, 3, &json!({})).await;
    let owner = cluster.owner(PARTS[0]).await;
    under_load(&pair, callers.values(), async || cluster.nodes[owner].kill()).await;
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
    under_load(&pair, [&who], async || {
        watched.primary.kill();
        watched.failed_over().await;
    })
    .await;
    limits_hold(&pair).await;
}

/// The check of a node that trusts another authority fails and says why; while such a node serves,
/// it counts for itself. What it counted is in the counters once it has the right authority.
/// `named`: the setting in the error of `tollgate check`. `lost`: what `/readyz` says.
async fn another_authority_is_reported_and_loses_nothing(
    addresses: &[(&str, &str)],
    (named, lost): (&str, &str),
) {
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
    assert!(!ok && text.contains(named) && text.contains("UnknownIssuer"), "{text}");
    pair.nodes[1].log_shows("UnknownIssuer").await;
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
async fn another_authority_than_that_of_a_list_is_reported_and_loses_nothing() {
    let servers = [Redis::over(Transport::Tls, &[]), Redis::over(Transport::Tls, &[])];
    let urls = list(&servers);
    let lost = "server 1 of 2 is lost, server 2 of 2 is lost: for the users and providers there, \
        this node counts for itself";
    let addresses = [("REDIS_URL", ""), ("REDIS_URLS", urls.as_str())];
    let named = "Redis (redis.urls, server 1 of 2): ";
    another_authority_is_reported_and_loses_nothing(&addresses, (named, lost)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_authority_than_that_of_a_cluster_is_reported_and_loses_nothing() {
    let cluster = Cluster::over(Transport::Tls, FullCoverage::Required).await;
    let addresses = [("REDIS_URL", &*cluster.url())];
    let named = "Redis (redis.url, server 1 of 3): ";
    let lost = "server 1 of 3 is lost, server 2 of 3 is lost, server 3 of 3 is lost: for the users \
        and providers there, this node counts for itself";
    another_authority_is_reported_and_loses_nothing(&addresses, (named, lost)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_authority_than_that_of_sentinels_is_reported_and_loses_nothing() {
    let watched = Watched::over(Transport::Tls).await;
    let password = ("TOLLGATE_REDIS_SENTINEL_PASSWORD", Watched::PASSWORD);
    let addresses = [("REDIS_URL", &*watched.url()), password];
    let named = "Redis (redis.url): ";
    let lost = "is lost: this node counts for itself";
    another_authority_is_reported_and_loses_nothing(&addresses, (named, lost)).await;
}
