//! Redis lost and back: killed, hanging, empty.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;

use super::pair::{Pair, Person, cost};
use crate::support::link::{Link, Mode, Server};
use crate::support::postgres;
use crate::support::redis::Redis;

/// Clients at both nodes that send requests until they are stopped.
pub struct Load {
    stop: Arc<AtomicBool>,
    whole: Arc<AtomicUsize>,
    odd: Arc<Mutex<Vec<String>>>,
    clients: JoinSet<()>,
}

impl Load {
    pub fn start(pair: &Pair, who: &Person, clients: usize) -> Self {
        let mut load = Self {
            stop: Arc::default(),
            whole: Arc::default(),
            odd: Arc::default(),
            clients: JoinSet::new(),
        };
        for n in 0..clients {
            let ask = pair.ask(n % 2, who, &format!("load-{n}"));
            let (stop, whole) = (Arc::clone(&load.stop), Arc::clone(&load.whole));
            let odd = Arc::clone(&load.odd);
            load.clients.spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    let answer = ask.try_clone().unwrap().send().await.unwrap();
                    if answer.status() == 200 {
                        whole.fetch_add(1, Ordering::SeqCst);
                    } else {
                        let text = answer.text().await.unwrap();
                        odd.lock().push(text);
                    }
                    // Sleeps: clients that never pause would take the processor from the nodes.
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            });
        }
        load
    }

    /// Waits for this many further complete replies.
    pub async fn more(&self, pair: &Pair, replies: usize) {
        let goal = self.whole.load(Ordering::SeqCst) + replies;
        pair.until(async || self.whole.load(Ordering::SeqCst) >= goal).await;
    }

    /// The number of complete replies, and everything else.
    pub async fn end(mut self) -> (usize, Vec<String>) {
        self.stop.store(true, Ordering::SeqCst);
        while let Some(ended) = self.clients.join_next().await {
            ended.unwrap();
        }
        (self.whole.load(Ordering::SeqCst), self.odd.lock().clone())
    }
}

/// Waits until both nodes know that Redis is lost.
pub async fn lost(pair: &Pair) {
    for node in &pair.nodes {
        node.readiness_shows(|ready, parts| {
            ready && parts["redis"] == "is lost: this node counts for itself"
        })
        .await;
    }
}

/// Waits until both nodes count in Redis.
pub async fn back(pair: &Pair) {
    for node in &pair.nodes {
        node.readiness_shows(|ready, parts| ready && parts["redis"] == "ok").await;
    }
}

/// How often the nodes have built the counters from the ledger.
pub fn rebuilds(pair: &Pair) -> usize {
    let of = |log: String| log.matches("rebuilding the shared counters from the ledger").count();
    pair.nodes.iter().map(|node| of(node.log())).sum()
}

/// Load before, during and after a loss; then all spending is counted once, on both nodes.
async fn no_request_fails(
    mut pair: Pair,
    lose: impl Fn(&mut Pair),
    bring_back: impl Fn(&mut Pair),
) -> Pair {
    let who = pair.person(json!({}), json!({})).await;
    let load = Load::start(&pair, &who, 8);
    load.more(&pair, 100).await;
    lose(&mut pair);
    lost(&pair).await;
    load.more(&pair, 200).await;
    assert_eq!(pair.nodes[0].metric("tollgate_redis_up").await, 0.0);
    bring_back(&mut pair);
    back(&pair).await;
    load.more(&pair, 100).await;
    let (whole, odd) = load.end().await;
    assert_eq!(odd, Vec::<String>::new());
    pair.settled(&who, whole).await;
    for node in &pair.nodes {
        assert_eq!(node.metric("tollgate_redis_up").await, 1.0);
        let waited = node.longest_overhead();
        // `WAIT` is two seconds: less than two waits in a row.
        assert!(waited < Duration::from_secs(4), "more than one wait: {waited:?}");
        let log = node.log_shows("Redis is lost").await;
        assert_eq!(log.matches("Redis is lost").count(), 1, "said once:\n{log}");
    }
    // No request that was in flight during the loss holds a place.
    let usage = pair.nodes[1].admin("keys/getKeyLimitUsage", json!({"keyId": who.key})).await;
    assert_eq!(usage["concurrentSessions"]["current"], json!(8));
    pair
}

/// Long enough for a busy machine: a Redis that is gone is noticed by its connection, one that
/// hangs after this.
const WAIT: [(&str, &str); 1] = [("TOLLGATE_REDIS_TIMEOUT", "2s")];

#[tokio::test(flavor = "multi_thread")]
async fn redis_killed_and_back_with_all_it_knew_fails_no_request_and_counts_everything_once() {
    let pair = Pair::with(Redis::durable(), &WAIT).await;
    no_request_fails(pair, |pair| pair.redis.kill(), |pair| pair.redis.start_again()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_that_comes_back_empty_is_filled_from_the_ledger_and_nothing_counts_twice() {
    let pair = Pair::with(Redis::start(), &WAIT).await;
    no_request_fails(pair, |pair| pair.redis.kill(), |pair| pair.redis.start_again()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_that_hangs_costs_no_request_more_than_one_short_wait() {
    let pair = Pair::with(Redis::start(), &WAIT).await;
    no_request_fails(pair, |pair| pair.redis.hang(), |pair| pair.redis.go_on()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_a_node_goes_on_from_the_last_known_values() {
    let mut pair = Pair::with(Redis::start(), &WAIT).await;
    let who =
        pair.person(json!({}), json!({"limitTotalUsd": 0.05, "limitConcurrentSessions": 0})).await;
    for _ in 0..4 {
        assert_eq!(pair.ask(0, &who, "s").send().await.unwrap().status(), 200);
    }
    pair.settled(&who, 4).await;
    pair.redis.kill();
    lost(&pair).await;
    // The other node has the four, and one more fits.
    pair.until(async || pair.spent(1, &who).await == cost(4)).await;
    assert_eq!(pair.ask(1, &who, "s").send().await.unwrap().status(), 200);
    assert_eq!(pair.ask(1, &who, "s").send().await.unwrap().status(), 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_can_choose_to_refuse_or_to_let_pass() {
    for (choice, status) in [("closed", 503), ("open", 200)] {
        let mut pair =
            Pair::with(Redis::start(), &[WAIT[0], ("TOLLGATE_LIMITS_ON_REDIS_LOSS", choice)]).await;
        let who = pair.person(json!({}), json!({"limitTotalUsd": 0})).await;
        assert_eq!(pair.ask(0, &who, "s").send().await.unwrap().status(), 429, "{choice}");
        pair.redis.kill();
        pair.nodes[0]
            .readiness_shows(|ready, parts| ready == (status == 200) && parts["redis"] != "ok")
            .await;
        assert_eq!(pair.ask(0, &who, "s").send().await.unwrap().status(), status, "{choice}");
        pair.redis.start_again();
        pair.nodes[0].readiness_shows(|ready, parts| ready && parts["redis"] == "ok").await;
        assert_eq!(pair.ask(0, &who, "s").send().await.unwrap().status(), 429, "{choice}, again");
    }
}

/// What another node spends while this one is frozen is news that it never gets, and in the ledger
/// only after it was read.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_frozen_goes_on_from_what_others_spent_though_the_ledger_had_it_late() {
    let env = [WAIT[0], ("TOLLGATE_REDIS_LEASE", "2s"), ("LOG_LEVEL", "debug")];
    let mut pair = Pair::with(Redis::start(), &env).await;
    let to_postgres = Link::to(Server::Unix(postgres::socket())).await;
    let database = pair.nodes[0].variable("DATABASE_URL");
    let name = database.split('?').next().unwrap().rsplit('/').next().unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/{name}", to_postgres.port);
    pair.nodes[0].signal("TERM");
    pair.nodes[0].ended().await;
    pair.nodes[0].set("DATABASE_URL", &url);
    pair.nodes[0].spawn();
    pair.nodes[0].ready().await;
    let who = pair.person(json!({}), json!({})).await;
    pair.nodes[1].signal("STOP");
    to_postgres.set(Mode::Hold);
    for _ in 0..5 {
        assert_eq!(pair.ask(0, &who, "s").send().await.unwrap().status(), 200);
    }
    pair.nodes[0].log_shows("a node sent no heartbeat for the lease").await;
    let read = async |pair: &Pair, times: usize| {
        let text = "what other nodes spent was read";
        pair.until(async || pair.nodes[1].log().matches(text).count() >= times).await;
    };
    let before = pair.nodes[1].log().matches("what other nodes spent was read").count();
    pair.nodes[1].signal("CONT");
    read(&pair, before + 1).await;
    to_postgres.set(Mode::Pass);
    pair.nodes[0].metric_shows("tollgate_journal_pending_records", |n| n == 0.0).await;
    let late = pair.nodes[1].log().matches("what other nodes spent was read").count();
    read(&pair, late + 1).await;
    pair.redis.kill();
    lost(&pair).await;
    for node in 0..2 {
        assert_eq!(pair.spent(node, &who).await, cost(5), "node {node}");
    }
}
