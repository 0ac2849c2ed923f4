//! A node that stops counts together with the others until its records are in the ledger. If they
//! cannot be delivered, its next start has the counters rebuilt.

use serde_json::json;
use sqlx::{AnyConnection, Connection as _, Row as _};

use super::pair::{Pair, cost};
use crate::support::postgres::{self, Server};
use crate::support::redis::Redis;

const WAITING: &str = "SELECT COUNT(*) FROM pg_stat_activity \
    WHERE datname = current_database() AND wait_event_type = 'Lock'";

fn epoch(redis: &Redis) -> Option<String> {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut get = redis::cmd("GET");
    get.arg("tollgate:{3}:epoch").query(&mut client.get_connection().unwrap()).unwrap()
}

fn forget(redis: &Redis) {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut del = redis::cmd("DEL");
    let () = del.arg("tollgate:{3}:epoch").query(&mut client.get_connection().unwrap()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_rebuilt_during_a_stop_include_the_records_of_the_stopping_node() {
    let database = postgres::fresh_database();
    let env = [("TOLLGATE_REDIS_TIMEOUT", "10s"), ("TOLLGATE_REDIS_LEASE", "1s")];
    let mut pair = Pair::over(&database, Redis::start(), &env).await;
    let who = pair.person(json!({}), json!({})).await;
    sqlx::any::install_default_drivers();
    // The first node's writer waits within its transaction: the record is in its journal only.
    let mut lock = AnyConnection::connect(&database).await.unwrap();
    let begin = "BEGIN; LOCK TABLE usage_totals IN EXCLUSIVE MODE";
    sqlx::raw_sql(begin).execute(&mut lock).await.unwrap();
    let mut observer = AnyConnection::connect(&database).await.unwrap();
    assert_eq!(pair.ask(0, &who, "s").send().await.unwrap().status(), 200);
    pair.settled(&who, 1).await;
    pair.until(async || {
        sqlx::query(WAITING).fetch_one(&mut observer).await.unwrap().get::<i64, _>(0) > 0
    })
    .await;
    let counting = |pair: &Pair| pair.nodes[0].log().matches("counting in Redis").count();
    let before = counting(&pair);
    pair.nodes[0].signal("TERM");
    // The other listeners close once no request is in flight.
    let metrics = pair.nodes[0].metrics.clone();
    let client = pair.nodes[0].client.clone();
    pair.until(async || client.get(&metrics).send().await.is_err()).await;
    // The counters are lost, and are rebuilt from a ledger that has no record.
    let old = epoch(&pair.redis);
    forget(&pair.redis);
    pair.until(async || epoch(&pair.redis).is_some_and(|new| Some(new) != old)).await;
    pair.until(async || counting(&pair) > before).await;
    sqlx::raw_sql("COMMIT").execute(&mut lock).await.unwrap();
    pair.nodes[0].ended().await;
    // After a restart, the second node knows only what Redis has.
    pair.nodes[1].signal("TERM");
    pair.nodes[1].ended().await;
    pair.nodes[1].spawn();
    pair.nodes[1].ready().await;
    assert_eq!(pair.spent(1, &who).await, cost(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_have_the_records_of_a_node_that_stopped_without_its_database_once_it_is_back() {
    let server = Server::own();
    let env = [("TOLLGATE_REDIS_TIMEOUT", "10s")];
    let mut pair = Pair::over(&server.fresh_database(), Redis::start(), &env).await;
    let who = pair.person(json!({}), json!({"limitTotalUsd": 0.01})).await;
    server.kill();
    assert_eq!(pair.ask(0, &who, "s").send().await.unwrap().status(), 200);
    pair.nodes[0].metric_shows("tollgate_redis_waiting", |waiting| waiting == 0.0).await;
    // The record is in Redis, and in this node's journal only.
    pair.nodes[0].signal("TERM");
    pair.nodes[0].ended().await;
    let stopped = pair.nodes[0].log_shows("\"left_in_journal\":1").await;
    assert!(!stopped.contains("not everything was sent to Redis"), "{stopped}");
    // The other node rebuilds the counters without it.
    server.start_again();
    pair.nodes[1].readiness_shows(|ready, parts| ready && parts["database"] == "ok").await;
    let rebuilding = |pair: &Pair, node: usize| {
        let log = pair.nodes[node].log();
        log.matches("rebuilding the shared counters from the ledger").count()
    };
    let before = rebuilding(&pair, 1);
    forget(&pair.redis);
    let rebuilt = async || rebuilding(&pair, 1) > before && epoch(&pair.redis).is_some();
    pair.until(rebuilt).await;
    pair.nodes[0].spawn();
    pair.nodes[0].ready().await;
    pair.settled(&who, 1).await;
    for node in 0..2 {
        assert_eq!(pair.ask(node, &who, "s").send().await.unwrap().status(), 429, "node {node}");
    }
}
