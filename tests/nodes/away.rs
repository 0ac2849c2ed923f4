//! Both nodes start while their database is away, and Redis is there.

use std::time::SystemTime;

use serde_json::json;

use super::pair::{Pair, cost};
use crate::support::gateway::Gateway;
use crate::support::postgres::Server;
use crate::support::redis::Redis;

/// When a node last wrote its snapshot of the configuration.
fn written(node: &Gateway) -> Option<SystemTime> {
    let file = node.dir.path().join("data/snapshot.configuration");
    std::fs::metadata(file).ok().map(|file| file.modified().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_start_without_their_database_count_in_redis_and_catch_up() {
    for end in ["TERM", "kill"] {
        let server = Server::own();
        let env = [("TOLLGATE_REDIS_TIMEOUT", "10s")];
        let mut pair = Pair::over(&server.fresh_database(), Redis::start(), &env).await;
        let who = pair.person(json!({}), json!({"limitTotalUsd": 0.1})).await;
        for n in 0..5 {
            assert_eq!(pair.ask(n % 2, &who, "s").send().await.unwrap().status(), 200);
        }
        pair.settled(&who, 5).await;
        for node in &mut pair.nodes {
            // A write of the snapshot after the last change.
            node.log_shows("counting in Redis").await;
            if end == "TERM" {
                node.signal("TERM");
                node.ended().await;
            }
        }
        if end == "kill" {
            // Each node knows the key by now; another change makes it write the snapshot again.
            let before: Vec<_> = pair.nodes.iter().map(written).collect();
            pair.nodes[0].user(json!({"name": "one-more"})).await;
            let again =
                || pair.nodes.iter().map(written).zip(&before).all(|(now, before)| now != *before);
            pair.until(async || again()).await;
            pair.nodes.iter_mut().for_each(Gateway::kill);
        }
        server.kill();
        for node in &mut pair.nodes {
            node.spawn();
        }
        for node in &pair.nodes {
            node.answers().await;
            node.readiness_shows(|_, parts| parts["proxy"] == "ok" && parts["redis"] == "ok").await;
            node.readiness_shows(|_, parts| parts["database_snapshot"] != "ok").await;
        }
        let (passed, refused) = pair.at_once(&who, 12, |n| format!("s{n}")).await;
        assert_eq!((passed, refused.len()), (5, 7), "{end}: the limit holds over both nodes");
        server.start_again();
        for node in &pair.nodes {
            node.readiness_shows(|ready, parts| ready && parts["redis"] == "ok").await;
        }
        pair.settled(&who, 10).await;
        let filter = json!({"pageSize": 1, "statusCode": 200});
        let logged = async || {
            pair.nodes[0].admin("usage-logs/getUsageLogs", filter.clone()).await["total"]
                == json!(10)
        };
        pair.until(logged).await;
        assert_eq!(pair.spent(1, &who).await, cost(10));
        assert_eq!(pair.at_once(&who, 4, |n| format!("t{n}")).await.0, 0, "{end}");
    }
}
