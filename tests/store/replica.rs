//! `database.read_url`: which reads come from a standby of PostgreSQL, and when none do. With real
//! streaming replication.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{Connection, Executor, PgConnection, Row};
use tollgate::domain::secret::Secret;
use tollgate::store::{LogFilter, LogPageAsk, ReplicaState, Store, StoreError};

use super::make::varied_record;
use crate::support::gateway::Gateway;
use crate::support::postgres::{self, Server};
use crate::support::spent::Spent as _;

/// Two servers, the second a standby of the first, and a database.
struct Pair {
    primary: Server,
    standby: Server,
    url: String,
    replica_url: String,
}

impl Pair {
    async fn start() -> Self {
        let primary = Server::own();
        let url = primary.fresh_database();
        let store = Store::open_postgres(&Secret::new(url.as_str()), 4).await.unwrap();
        store.migrate().await.unwrap();
        store.close().await;
        let standby = primary.standby();
        let name = url.split('/').nth(3).unwrap().split('?').next().unwrap();
        let replica_url = standby.url_of(name);
        Self { primary, standby, url, replica_url }
    }

    /// A store that reads reports from a server, unless that is 0.3 s behind.
    async fn open(&self, replica: &str) -> Store {
        let store = Store::open_postgres(&Secret::new(self.url.as_str()), 4).await.unwrap();
        store.with_replica(&Secret::new(replica), 4, Duration::from_millis(300)).unwrap()
    }

    /// Runs a function on the standby.
    async fn on_standby(&self, function: &str) {
        let mut connection = PgConnection::connect(&self.replica_url).await.unwrap();
        connection.execute(sqlx::AssertSqlSafe(format!("SELECT {function}"))).await.unwrap();
        connection.close().await.unwrap();
    }

    /// Waits until the standby has replayed all that the primary has written.
    async fn is_replayed(&self) {
        let mut primary = PgConnection::connect(&self.url).await.unwrap();
        let mut standby = PgConnection::connect(&self.replica_url).await.unwrap();
        let row = primary.fetch_one("SELECT CAST(pg_current_wal_lsn() AS TEXT)").await.unwrap();
        let sql = "SELECT pg_last_wal_replay_lsn() >= CAST($1 AS PG_LSN)";
        let written: String = row.get(0);
        let waiting = async {
            loop {
                let query = sqlx::query(sql).bind(&written).fetch_one(&mut standby);
                if query.await.unwrap().get(0) {
                    return;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("it is replayed");
    }
}

async fn logged(store: &Store) -> u64 {
    let ask = LogPageAsk { page: 1, page_size: 1, cursor: None };
    store.usage_logs(&LogFilter::default(), &ask).await.unwrap().total
}

async fn spent(store: &Store) -> i64 {
    store.spend_totals().await.unwrap().iter().map(|total| total.cost.0).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_of_the_gateway_come_from_the_replica_while_it_is_near_and_else_from_the_primary() {
    let pair = Pair::start().await;
    let store = pair.open(&pair.replica_url).await;
    store.append_records(&[varied_record(1)]).await.unwrap();
    assert_eq!(logged(&store).await, 1, "not checked yet: the primary");
    pair.is_replayed().await;
    let state = store.check_replica().await.unwrap().unwrap();
    assert!(matches!(state, ReplicaState::Used(_)), "{state:?}");

    // What the standby does not have yet is not in reports, and is in what must be current.
    pair.on_standby("pg_wal_replay_pause()").await;
    let before = spent(&store).await;
    store.append_records(&[varied_record(2), varied_record(3)]).await.unwrap();
    assert_eq!(logged(&store).await, 1, "the standby");
    assert!(spent(&store).await > before, "the primary");
    // Until it is too far behind.
    let unused = async {
        loop {
            match store.check_replica().await.unwrap().unwrap() {
                ReplicaState::Unused(why) => return why,
                ReplicaState::Used(_) => assert_eq!(logged(&store).await, 1),
            }
        }
    };
    let why = tokio::time::timeout(Duration::from_secs(10), unused).await.unwrap();
    assert!(why.contains("behind"), "{why}");
    assert_eq!(logged(&store).await, 3, "the primary");
    pair.on_standby("pg_wal_replay_resume()").await;
    pair.is_replayed().await;
    let state = store.check_replica().await.unwrap().unwrap();
    assert!(matches!(state, ReplicaState::Used(_)), "{state:?}");

    only_a_standby_of_the_database_is_used(&pair).await;
    the_gateway_says_what_it_reads_from(&pair, &store).await;
}

/// No server that is not a standby, and no other database.
async fn only_a_standby_of_the_database_is_used(pair: &Pair) {
    let name = pair.url.split('/').nth(3).unwrap().split('?').next().unwrap();
    let other = pair.primary.fresh_database();
    let other = other.split('/').nth(3).unwrap().split('?').next().unwrap();
    pair.is_replayed().await;
    for (replica, why) in [
        (pair.url.clone(), "not a standby"),
        (pair.replica_url.replace(name, other), "_sqlx_migrations"),
        (pair.replica_url.replace(name, "absent"), "does not exist"),
    ] {
        let store = pair.open(&replica).await;
        let state = store.check_replica().await.unwrap().unwrap();
        let ReplicaState::Unused(found) = &state else { panic!("{why}: {state:?}") };
        assert!(found.contains(why), "{found}");
        assert_eq!(logged(&store).await, 3);
    }
}

/// And serves when the standby is gone.
async fn the_gateway_says_what_it_reads_from(pair: &Pair, store: &Store) {
    let env = [("DATABASE_URL", &*pair.url), ("TOLLGATE_DATABASE_READ_URL", &*pair.replica_url)];
    let gateway = Gateway::with(&env).await;
    gateway.metric_shows("tollgate_database_replica_used", |used| used == 1.0).await;
    let total = async || {
        let page = gateway.admin("usage-logs/getUsageLogs", json!({})).await;
        page["total"].clone()
    };
    assert_eq!(total().await, Value::from(3));
    let (good, said) = gateway.run(&["doctor"]);
    assert!(said.contains("reports can read from it"), "{good} {said}");
    pair.on_standby("pg_wal_replay_pause()").await;
    store.append_records(&[varied_record(4)]).await.unwrap();
    assert_eq!(total().await, Value::from(3), "the standby");
    pair.standby.kill();
    assert_eq!(total().await, Value::from(4), "at once, from the primary");
    gateway.metric_shows("tollgate_database_replica_used", |used| used == 0.0).await;
    gateway.log_shows("reports read from the primary").await;
    pair.standby.start_again();
    gateway.metric_shows("tollgate_database_replica_used", |used| used == 1.0).await;
    gateway.log_shows("reports read from database.read_url again").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_whose_connections_are_all_in_use_is_not_taken_for_a_silent_replica() {
    let url = postgres::fresh_database();
    let store = Store::open_postgres(&Secret::new(url.as_str()), 4).await.unwrap();
    store.migrate().await.unwrap();
    let store = store.with_replica(&Secret::new(url.as_str()), 4, Duration::from_secs(30)).unwrap();
    // All three connections of the pool wait for a lock.
    let mut lock = PgConnection::connect(&url).await.unwrap();
    lock.execute("BEGIN; LOCK TABLE usage_totals IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let mut reads = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let store = store.clone();
        reads.spawn(async move { store.spend_totals().await.unwrap() });
    }
    let waiting = "SELECT COUNT(*) FROM pg_stat_activity \
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let mut eye = PgConnection::connect(&url).await.unwrap();
    while eye.fetch_one(waiting).await.unwrap().get::<i64, _>(0) < 3 {}
    let error = store.check_replica().await.unwrap_err();
    let StoreError::Unreachable { what } = &error else { panic!("{error}") };
    assert_eq!(what, "no connection could be had in time");
    lock.execute("COMMIT").await.unwrap();
    reads.join_all().await;
}
