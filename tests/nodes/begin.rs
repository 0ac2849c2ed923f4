//! Both nodes start at once, on an empty Redis and a full ledger.

use serde_json::json;

use super::pair::{Pair, cost};
use crate::support::redis::Redis;

/// Both nodes end (by the method `end`), Redis loses its data, and both start at the same moment.
async fn restart_all(pair: &mut Pair, end: &str) {
    for node in &mut pair.nodes {
        match end {
            "kill" => node.kill(),
            signal => {
                node.signal(signal);
                node.ended().await;
            }
        }
    }
    pair.redis.kill();
    pair.redis.start_again();
    let [first, second] = &mut pair.nodes;
    first.spawn();
    second.spawn();
    tokio::join!(first.ready(), second.ready());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_ledger_has_is_counted_once_when_both_nodes_make_the_counters_at_once() {
    for end in ["TERM", "kill"] {
        let mut pair = Pair::with(Redis::start(), &[("TOLLGATE_REDIS_TIMEOUT", "10s")]).await;
        let who = pair.person(json!({}), json!({"limitTotalUsd": 0.1})).await;
        for n in 0..8 {
            assert_eq!(pair.ask(n % 2, &who, "s").send().await.unwrap().status(), 200);
        }
        pair.settled(&who, 8).await;
        restart_all(&mut pair, end).await;
        for node in &pair.nodes {
            node.readiness_shows(|ready, parts| ready && parts["redis"] == "ok").await;
        }
        // Requests at both while one may still be rebuilding.
        let (passed, refused) = pair.at_once(&who, 12, |n| format!("s{n}")).await;
        assert_eq!((passed, refused.len()), (2, 10), "{end}");
        pair.settled(&who, 10).await;
        assert_eq!(pair.spent(0, &who).await, cost(10));
        let rebuilds = || {
            pair.nodes
                .iter()
                .map(|node| {
                    node.log().matches("rebuilding the shared counters from the ledger").count()
                })
                .sum::<usize>()
        };
        pair.until(async || rebuilds() >= 2).await;
        let made = rebuilds();
        // Once at the first start. Then by one of the two; and by each that was killed, which
        // cannot know about other nodes.
        assert!(
            if end == "TERM" { made == 2 } else { (2..=3).contains(&made) },
            "{end}: {made} times"
        );
    }
}
