//! Redis that answers late: for a moment, repeatedly, and permanently.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use super::pair::{Pair, cost};
use crate::support::redis::Redis;

/// A proxy between nodes and their Redis. It forwards calls at once, and delays answers as
/// configured.
struct Delay {
    url: String,
    held: watch::Sender<bool>,
    ms: Arc<AtomicU64>,
}

impl Delay {
    async fn before(redis: &Redis) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let (port, ms) = (redis.port(), Arc::new(AtomicU64::new(0)));
        let (held, holding) = watch::channel(false);
        let delay = Arc::clone(&ms);
        tokio::spawn(async move {
            while let Ok((node, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { continue };
                let (asks, answers) = node.into_split();
                let (from, mut to) = server.into_split();
                let (due, late) = mpsc::unbounded_channel();
                tokio::spawn(async move {
                    let mut asks = asks;
                    let _ = tokio::io::copy(&mut asks, &mut to).await;
                });
                tokio::spawn(take(from, due, Arc::clone(&delay)));
                tokio::spawn(give(late, answers, holding.clone()));
            }
        });
        Self { url, held, ms }
    }

    /// Withholds every answer until [`Self::release`].
    fn hold(&self) {
        self.held.send_replace(true);
    }

    fn release(&self) {
        self.held.send_replace(false);
    }

    /// Delays every answer by this much from now on.
    fn by(&self, ms: u64) {
        self.ms.store(ms, Ordering::SeqCst);
    }
}

async fn take(
    mut from: OwnedReadHalf,
    due: mpsc::UnboundedSender<(Instant, Vec<u8>)>,
    ms: Arc<AtomicU64>,
) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(n) = from.read(&mut piece).await
        && n > 0
    {
        let at = Instant::now() + Duration::from_millis(ms.load(Ordering::SeqCst));
        if due.send((at, piece[..n].to_vec())).is_err() {
            return;
        }
    }
}

async fn give(
    mut late: mpsc::UnboundedReceiver<(Instant, Vec<u8>)>,
    mut to: OwnedWriteHalf,
    held: watch::Receiver<bool>,
) {
    let mut held = held;
    while let Some((at, piece)) = late.recv().await {
        tokio::time::sleep_until(at.into()).await;
        if held.wait_for(|held| !held).await.is_err() || to.write_all(&piece).await.is_err() {
            return;
        }
    }
}

/// Two nodes whose answers from Redis can be delayed, and how long they wait for one.
async fn pair(bound: &str, more: &[(&str, &str)]) -> (Pair, Delay) {
    let redis = Redis::start();
    let delay = Delay::before(&redis).await;
    let mut env = vec![("REDIS_URL", delay.url.as_str()), ("TOLLGATE_REDIS_TIMEOUT", bound)];
    env.extend(more);
    let pair = Pair::with(redis, &env).await;
    (pair, delay)
}

/// Checks that the request is counted once, whatever happened to its admission call.
async fn counted(pair: &Pair, who: &super::pair::Person, requests: usize, sessions: usize) {
    pair.settled(who, requests).await;
    for node in &pair.nodes {
        let key = node.admin("keys/getKeyLimitUsage", json!({"keyId": who.key})).await;
        assert_eq!(key["concurrentSessions"]["current"], json!(sessions));
        let user = node.admin("users/getUserLimitUsage", json!({"userId": who.user})).await;
        assert_eq!(user["rpm"]["current"], json!(requests), "{user}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_late_answer_costs_one_wait_and_neither_the_connection_nor_a_count() {
    let (pair, delay) = pair("1s", &[]).await;
    let who = pair.person(json!({"rpm": 1000}), json!({})).await;
    assert_eq!(pair.ask(0, &who, "before").send().await.unwrap().status(), 200);
    pair.settled(&who, 1).await;
    delay.hold();
    // Redis counts it; the answer is late.
    assert_eq!(pair.ask(0, &who, "held").send().await.unwrap().status(), 200);
    // No request waits after the first one that did: one time-out is counted below.
    assert_eq!(pair.ask(0, &who, "after").send().await.unwrap().status(), 200);
    delay.release();
    pair.nodes[0].readiness_shows(|ready, parts| ready && parts["redis"] == "ok").await;
    assert_eq!(pair.ask(0, &who, "in time").send().await.unwrap().status(), 200);
    counted(&pair, &who, 4, 4).await;
    assert_eq!(pair.nodes[0].metric("tollgate_redis_slow_total").await, 1.0);
    assert_eq!(pair.nodes[0].metric("tollgate_redis_errors_total").await, 1.0);
    assert_eq!(pair.metric("tollgate_redis_losses_total").await, 0.0);
    assert!(!pair.nodes[0].log().contains("Redis is lost"), "{}", pair.nodes[0].log());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_for_a_late_answer_holds_no_place() {
    let (pair, delay) = pair("1s", &[("TOLLGATE_LIMITS_ON_REDIS_LOSS", "closed")]).await;
    let who = pair.person(json!({"rpm": 1000}), json!({"limitConcurrentSessions": 1})).await;
    delay.hold();
    assert_eq!(pair.ask(0, &who, "held").send().await.unwrap().status(), 503);
    pair.nodes[0]
        .readiness_shows(|ready, parts| {
            !ready && parts["redis"] == "answers too late: requests are refused"
        })
        .await;
    delay.release();
    pair.nodes[0].readiness_shows(|ready, parts| ready && parts["redis"] == "ok").await;
    // Redis had given the only place to the refused one.
    pair.until(async || pair.ask(1, &who, "other").send().await.unwrap().status() == 200).await;
    counted(&pair, &who, 1, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_that_is_always_late_is_no_storm_of_losses_and_counts_everything_once() {
    let (pair, delay) = pair("200ms", &[]).await;
    let who = pair.person(json!({"rpm": 100_000}), json!({})).await;
    // On a busy machine an answer may have been late before.
    let before = pair.metric("tollgate_redis_slow_total").await;
    // Three of them, which a script that Redis does not have yet needs, must arrive within the two
    // seconds of a loss.
    delay.by(400);
    let until = Instant::now() + Duration::from_secs(6);
    let mut asked = 0;
    while Instant::now() < until {
        assert_eq!(pair.ask(asked % 2, &who, "s").send().await.unwrap().status(), 200);
        asked += 1;
    }
    for node in &pair.nodes {
        node.readiness_shows(|ready, parts| {
            ready && parts["redis"] == "answers too late: this node counts for itself"
        })
        .await;
        assert_eq!(node.metric("tollgate_redis_up").await, 0.0);
    }
    // Each answer that times out begins a backoff, and only an answer in time ends it.
    let backoffs = pair.metric("tollgate_redis_slow_total").await;
    assert!(
        backoffs >= 2.0 && backoffs - before <= 2.0,
        "one on each node: {backoffs}, {before} of them before"
    );
    assert_eq!(pair.metric("tollgate_redis_losses_total").await, 0.0);
    delay.by(0);
    for node in &pair.nodes {
        node.readiness_shows(|ready, parts| ready && parts["redis"] == "ok").await;
        let log = node.log_shows("Redis answers in time again").await;
        assert_eq!(log.matches("Redis answers too late").count(), 1, "said once:\n{log}");
    }
    pair.settled(&who, asked).await;
    assert_eq!(pair.spent(0, &who).await, cost(asked));
}
