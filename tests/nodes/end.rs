//! A node that stops counts together with the others until its records are in the ledger.

use serde_json::json;
use sqlx::{AnyConnection, Connection as _, Row as _};

use super::pair::{Pair, cost};
use crate::support::postgres;
use crate::support::redis::Redis;

const WAITING: &str = "SELECT COUNT(*) FROM pg_stat_activity \
    WHERE datname = current_database() AND wait_event_type = 'Lock'";

fn epoch(redis: &Redis) -> Option<String> {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut get = redis::cmd("GET");
    get.arg("tollgate:{2}:epoch").query(&mut client.get_connection().unwrap()).unwrap()
}

fn forget(redis: &Redis) {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut del = redis::cmd("DEL");
    let () = del.arg("tollgate:{2}:epoch").query(&mut client.get_connection().unwrap()).unwrap();
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
    while sqlx::query(WAITING).fetch_one(&mut observer).await.unwrap().get::<i64, _>(0) == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
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
