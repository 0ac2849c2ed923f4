//! A node that is frozen within a transaction holds locks in PostgreSQL. They must not keep the
//! other nodes from writing for long.

use serde_json::json;
use sqlx::{AnyConnection, Connection as _, Row as _};

use super::pair::Pair;
use crate::support::postgres;
use crate::support::redis::Redis;
use crate::support::wait;

async fn count(connection: &mut AnyConnection, sql: &'static str) -> i64 {
    sqlx::query(sql).fetch_one(connection).await.unwrap().get(0)
}

const RECORDS: &str = "SELECT COUNT(*) FROM ledger";
const WAITING: &str = "SELECT COUNT(*) FROM pg_stat_activity \
    WHERE datname = current_database() AND wait_event_type = 'Lock'";

#[tokio::test(flavor = "multi_thread")]
async fn a_node_frozen_within_a_transaction_does_not_keep_the_other_from_the_ledger() {
    let database = postgres::fresh_database();
    let env = [("TOLLGATE_REDIS_TIMEOUT", "10s")];
    let pair = Pair::over(&database, Redis::start(), &env).await;
    let who = pair.person(json!({}), json!({})).await;
    sqlx::any::install_default_drivers();
    let mut eye = AnyConnection::connect(&database).await.unwrap();
    // The first node's writer waits within its transaction.
    let mut lock = AnyConnection::connect(&database).await.unwrap();
    let begin = "BEGIN; LOCK TABLE usage_totals IN EXCLUSIVE MODE";
    sqlx::raw_sql(begin).execute(&mut lock).await.unwrap();
    assert_eq!(pair.ask(0, &who, "s").send().await.unwrap().status(), 200);
    pair.until(async || count(&mut eye, WAITING).await > 0).await;
    // It is frozen, and has the lock on the sums of this key.
    pair.nodes[0].signal("STOP");
    sqlx::raw_sql("COMMIT").execute(&mut lock).await.unwrap();
    assert_eq!(pair.ask(1, &who, "s").send().await.unwrap().status(), 200);
    wait::until(
        || "the other node's writer waits".to_owned(),
        async || count(&mut eye, RECORDS).await > 0,
    )
    .await;
    assert_eq!(count(&mut eye, RECORDS).await, 1, "of the other node");
    // Its transaction was rolled back; it writes the record again, once.
    pair.nodes[0].signal("CONT");
    pair.settled(&who, 2).await;
    wait::until(
        || "the record does not come".to_owned(),
        async || count(&mut eye, RECORDS).await >= 2,
    )
    .await;
    assert_eq!(count(&mut eye, RECORDS).await, 2);
}
