//! Several Redis servers: every limit holds for every user, a server that is lost concerns its own
//! users and providers alone, and the list of servers may change from node to node.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::loss::{Load, back};
use super::pair::{Pair, Person};
use crate::support::redis::Redis;
use crate::support::redis_failover::Watched;

pub fn start(count: usize) -> Vec<Redis> {
    (0..count).map(|_| Redis::start()).collect()
}

pub fn list(servers: &[Redis]) -> String {
    let urls: Vec<String> = servers.iter().map(Redis::url).collect();
    urls.join(",")
}

async fn pair_on(servers: &[Redis], further: &[(&str, &str)]) -> Pair {
    let urls = list(servers);
    let env = [("REDIS_URL", ""), ("REDIS_URLS", urls.as_str()), ("TOLLGATE_REDIS_TIMEOUT", "2s")];
    let pair = Pair::with(Redis::none(), &[&env[..], further].concat()).await;
    back(&pair).await;
    pair
}

/// One caller for each server, by the place of the server that counts it.
pub async fn one_for_each(pair: &Pair, servers: usize, key: &Value) -> BTreeMap<usize, Person> {
    let mut found = BTreeMap::new();
    while found.len() < servers {
        let who = pair.person(json!({}), key.clone()).await;
        found.insert(usize::try_from(who.user).unwrap() % servers, who);
    }
    found
}

/// How often the nodes have built the counters of a server from the ledger.
pub fn rebuilds(pair: &Pair) -> usize {
    let of = |log: String| log.matches("rebuilding the shared counters from the ledger").count();
    pair.nodes.iter().map(|node| of(node.log())).sum()
}

/// How many of 16 sessions at once pass, at the same time for each caller.
pub async fn sessions_of_each(pair: &Pair, callers: &[&Person]) -> Vec<usize> {
    pair.upstream.default(json!({"usage": {"output": 100}, "delay_ms": 200})).await;
    let of_each = callers.iter().map(|who| pair.at_once(who, 16, |n| format!("s{n}")));
    let passed = futures_util::future::join_all(of_each).await;
    pair.upstream.default(json!({"usage": {"output": 100}})).await;
    passed.into_iter().map(|(passed, _)| passed).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_for_each_user_over_three_servers_and_a_lost_one_concerns_its_own_users() {
    let mut servers = start(3);
    let pair = pair_on(&servers, &[]).await;
    let capped = json!({"limitConcurrentSessions": 5});
    let limited = one_for_each(&pair, 3, &capped).await;
    assert_eq!(sessions_of_each(&pair, &limited.values().collect::<Vec<_>>()).await, [5, 5, 5]);
    let money = one_for_each(&pair, 3, &json!({"limitMonthlyUsd": 0.25})).await;
    let free = one_for_each(&pair, 3, &json!({})).await;
    let again = one_for_each(&pair, 3, &capped).await;
    let loads: Vec<(&Person, Load)> =
        free.values().map(|who| (who, Load::start(&pair, who, 3))).collect();
    for (_, load) in &loads {
        load.more(&pair, 30).await;
    }
    let spend = money.values().map(|who| pair.at_once(who, 40, |n| format!("s{}", n % 9)));
    for (passed, refused) in futures_util::future::join_all(spend).await {
        assert_eq!((passed, refused.len()), (25, 15), "under load");
    }
    // The second server is killed, and comes back empty.
    let built = rebuilds(&pair);
    servers[1].kill();
    for node in &pair.nodes {
        let lost = "server 2 of 3 is lost: for the users and providers there, this node counts \
            for itself";
        node.readiness_shows(|ready, parts| ready && parts["redis"] == lost).await;
        assert_eq!(node.metric("tollgate_redis_up").await, 0.0);
        let up = node.scrape().await;
        assert!(up.contains("tollgate_redis_server_up{server=\"2\"} 0"), "{up}");
        assert!(up.contains("tollgate_redis_server_up{server=\"3\"} 1"), "{up}");
    }
    let others = [&again[&0], &again[&2]];
    assert_eq!(sessions_of_each(&pair, &others).await, [5, 5], "exact on the others");
    servers[1].start_again();
    back(&pair).await;
    let mut whole = Vec::new();
    for (who, load) in loads {
        load.more(&pair, 20).await;
        let (served, odd) = load.end().await;
        assert_eq!(odd, Vec::<String>::new(), "no request fails");
        whole.push((who, served));
    }
    for (who, served) in whole {
        pair.settled(who, served).await;
    }
    for who in money.values() {
        pair.settled(who, 25).await;
        assert_eq!(pair.ask(1, who, "s").send().await.unwrap().status(), 429);
    }
    assert_eq!(sessions_of_each(&pair, &[&again[&1]]).await, [5]);
    assert_eq!(rebuilds(&pair), built + 1, "one node built the counters of one server");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_places_of_a_provider_are_given_out_once_to_users_of_all_servers() {
    let servers = start(3);
    let pair = pair_on(&servers, &[]).await;
    let all = pair.nodes[0].admin("providers/getProviders", json!({})).await;
    let id = all[0]["id"].as_i64().unwrap();
    let edit = json!({"providerId": id, "limit_concurrent_sessions": 4});
    pair.nodes[0].admin("providers/editProvider", edit).await;
    let callers = one_for_each(&pair, 3, &json!({})).await;
    pair.upstream.default(json!({"usage": {"output": 100}, "delay_ms": 200})).await;
    let mut asking = JoinSet::new();
    for n in 0..24 {
        let who = &callers[&(n % 3)];
        asking.spawn(pair.ask(n % 2, who, &format!("s{n}")).send());
    }
    let mut statuses = BTreeMap::new();
    while let Some(answer) = asking.join_next().await {
        *statuses.entry(answer.unwrap().unwrap().status().as_u16()).or_insert(0) += 1;
    }
    assert_eq!(statuses, BTreeMap::from([(200, 4), (503, 20)]));
    for node in &pair.nodes {
        let body = json!({"providerId": id});
        let usage = node.admin("providers/getProviderLimitUsage", body).await;
        assert_eq!(usage["concurrentSessions"], json!({"current": 4, "limit": 4}));
        let live = node.admin("active-sessions/getActiveSessions", json!({})).await;
        assert_eq!(live.as_array().unwrap().len(), 4, "{live}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_get_a_third_server_one_by_one_keep_all_sums() {
    let servers = start(3);
    let mut pair = pair_on(&servers[..2], &[]).await;
    let callers = one_for_each(&pair, 3, &json!({})).await;
    let mut served = 0;
    let mut serve = async |pair: &Pair, nodes: &[usize]| {
        for node in nodes {
            for who in callers.values() {
                let answer = pair.ask(*node, who, "s").send().await.unwrap();
                assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
            }
            served += 1;
        }
        served
    };
    serve(&pair, &[0, 1, 0]).await;
    let file = pair.nodes[0].dir.path().join("urls");
    std::fs::write(&file, list(&servers) + "\n").unwrap();
    for node in 0..2 {
        pair.nodes[node].signal("TERM");
        pair.nodes[node].ended().await;
        pair.nodes[node].set("REDIS_URLS", "");
        pair.nodes[node].set("REDIS_URLS_FILE", file.to_str().unwrap());
        if node == 0 {
            let (_, said) = pair.nodes[0].run(&["doctor"]);
            assert!(
                said.contains("server 1 of 3: gateways count there that have another"),
                "{said}"
            );
            // That it answers late on a busy machine is no fault.
            let mut third = said.lines().filter(|line| line.contains("server 3 of 3: "));
            assert!(third.clone().any(|line| line.ends_with(" runs scripts")), "{said}");
            assert!(third.all(|line| !line.starts_with("FAULT")), "{said}");
        }
        pair.nodes[node].spawn();
        pair.nodes[node].ready().await;
        if node == 0 {
            // While the other node has the former list, this one serves and says what is wrong.
            let said = "server 1 of 3 is used by nodes with another list of servers (redis.urls, ";
            let shown = |ready: bool, parts: &Value| {
                ready && parts["redis"].as_str().is_some_and(|text| text.starts_with(said))
            };
            pair.nodes[0].readiness_shows(shown).await;
            serve(&pair, &[0, 1]).await;
        }
    }
    back(&pair).await;
    let served = serve(&pair, &[0, 1]).await;
    for who in callers.values() {
        pair.settled(who, served).await;
    }
    let (ok, said) = pair.nodes[0].check();
    assert!(ok, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_the_list_fails_over_by_its_sentinels_and_the_other_one_goes_on() {
    let (mut watched, plain) = (Watched::start().await, Redis::start());
    let urls = format!("{},{}", plain.url(), watched.url());
    let env = [
        ("REDIS_URL", ""),
        ("REDIS_URLS", urls.as_str()),
        ("TOLLGATE_REDIS_TIMEOUT", "2s"),
        ("TOLLGATE_REDIS_SENTINEL_PASSWORD", Watched::PASSWORD),
    ];
    let pair = Pair::with(Redis::none(), &env).await;
    back(&pair).await;
    let callers = one_for_each(&pair, 2, &json!({})).await;
    let loads: Vec<(&Person, Load)> =
        callers.values().map(|who| (who, Load::start(&pair, who, 3))).collect();
    for (_, load) in &loads {
        load.more(&pair, 30).await;
    }
    let built = rebuilds(&pair);
    watched.primary.kill();
    watched.failed_over().await;
    pair.until(async || pair.metric("tollgate_redis_losses_total").await > 0.0).await;
    back(&pair).await;
    for (_, load) in &loads {
        load.more(&pair, 20).await;
    }
    for (who, load) in loads {
        let (served, odd) = load.end().await;
        assert_eq!(odd, Vec::<String>::new(), "no request fails");
        pair.settled(who, served).await;
    }
    assert!(rebuilds(&pair) > built);
    for node in &pair.nodes {
        let log = node.log_shows("Redis is lost").await;
        let lost: Vec<_> = log.lines().filter(|line| line.contains("Redis is lost")).collect();
        assert!(lost.iter().all(|line| line.contains("\"server\":2")), "{lost:?}");
    }
}
