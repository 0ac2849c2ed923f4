//! Redis that comes back with older data than it had: every node notices, whether or not it had
//! sent anything, and so does a node that starts.

use std::sync::Arc;
use std::time::Duration;

use tollgate::domain::money::NanoUsd;

use super::stoppable::soon;
use super::stoppable::{Rows, Stoppable};
use super::wire::redis;
use super::{NOON, runtime};
use crate::support::redis::Redis;

fn save(server: &Redis) {
    let () = redis(server, &["SAVE"]);
}

fn epoch(server: &Redis) -> Option<String> {
    redis(server, &["GET", "several:{3}:epoch"])
}

/// The server dies, and starts with what was saved last.
fn restore(server: &mut Redis) {
    server.kill();
    server.start_again();
}

/// Waits until each node has sent another heartbeat.
pub(super) async fn beaten(server: &Redis, prefix: &str) {
    let name = format!("{prefix}:{{3}}:nodes");
    let ends =
        || -> Vec<(String, f64)> { redis(server, &["ZRANGE", &name, "0", "-1", "WITHSCORES"]) };
    let before = ends();
    let is_later = |(name, end): &(String, f64)| {
        ends().iter().any(|(other, later)| other == name && later > end)
    };
    soon(async || before.iter().all(is_later)).await;
}

async fn start(server: &Redis, ledger: &Arc<Rows>) -> Stoppable {
    let node = Stoppable::start(&server.url(), ledger);
    node.counters.connected().await;
    node
}

async fn serve(node: &Stoppable, ledger: &Rows) {
    node.serve(ledger, 1).await.unwrap();
    node.counters.flushed().await;
}

/// The node has lost its connection, and has another one.
async fn reconnected(node: &Stoppable, losses: u64) {
    soon(async || {
        let state = node.counters.shared_state().unwrap();
        state.losses > losses && state.up
    })
    .await;
}

fn losses(node: &Stoppable) -> u64 {
    node.counters.shared_state().unwrap().losses
}

#[test]
fn a_node_that_sent_nothing_notices_that_redis_came_back_with_older_data() {
    let (mut server, ledger) = (Redis::start(), Arc::new(Rows::default()));
    runtime().block_on(async {
        let (busy, idle) = (start(&server, &ledger).await, start(&server, &ledger).await);
        serve(&busy, &ledger).await;
        save(&server);
        serve(&busy, &ledger).await;
        beaten(&server, "several").await;
        busy.end().await;
        let before = losses(&idle);
        restore(&mut server);
        reconnected(&idle, before).await;
        assert_eq!(idle.spent(1).await, 20);
    });
}

/// The batch is sent again, under a number above those that are missing.
#[test]
fn a_batch_without_an_answer_hides_no_loss() {
    let (mut server, ledger) = (Redis::start(), Arc::new(Rows::default()));
    runtime().block_on(async {
        let node = start(&server, &ledger).await;
        serve(&node, &ledger).await;
        save(&server);
        serve(&node, &ledger).await;
        let (request, permit) = node.begin(1).await.unwrap();
        node.counters.flushed().await;
        let before = losses(&node);
        server.hang();
        ledger.0.lock().push((request, 1, 10));
        permit.settle(NOON, NanoUsd(10), None);
        // Sleeps: nothing shows that the batch is among what the server was sent.
        tokio::time::sleep(Duration::from_millis(300)).await;
        restore(&mut server);
        reconnected(&node, before).await;
        assert_eq!(node.spent(1).await, 30);
    });
}

#[test]
fn a_node_notices_that_redis_came_back_with_the_counters_before_a_rebuild() {
    let (mut server, ledger) = (Redis::start(), Arc::new(Rows::default()));
    runtime().block_on(async {
        let node = start(&server, &ledger).await;
        serve(&node, &ledger).await;
        save(&server);
        let first = epoch(&server);
        let () = redis(&server, &["DEL", "several:{3}:epoch"]);
        soon(async || epoch(&server).is_some_and(|epoch| Some(epoch) != first)).await;
        node.counters.connected().await;
        serve(&node, &ledger).await;
        let before = losses(&node);
        restore(&mut server);
        reconnected(&node, before).await;
        assert_eq!(node.spent(1).await, 20);
    });
}

#[test]
fn a_node_that_starts_notices_that_redis_came_back_with_older_data() {
    let (mut server, ledger) = (Redis::start(), Arc::new(Rows::default()));
    runtime().block_on(async {
        let node = start(&server, &ledger).await;
        serve(&node, &ledger).await;
        save(&server);
        serve(&node, &ledger).await;
        node.end().await;
        restore(&mut server);
        let node = start(&server, &ledger).await;
        assert_eq!(node.spent(1).await, 20);
        // The counters are checked now: the next start finds them.
        let made = epoch(&server);
        node.end().await;
        let node = start(&server, &ledger).await;
        assert_eq!((node.spent(1).await, epoch(&server)), (20, made));
    });
}

#[test]
fn nothing_is_rebuilt_by_a_start_or_after_a_restart_of_redis_that_lost_nothing() {
    let (mut server, ledger) = (Redis::durable(), Arc::new(Rows::default()));
    runtime().block_on(async {
        let first = start(&server, &ledger).await;
        let made = epoch(&server);
        serve(&first, &ledger).await;
        let second = start(&server, &ledger).await;
        let before = [losses(&first), losses(&second)];
        restore(&mut server);
        reconnected(&first, before[0]).await;
        reconnected(&second, before[1]).await;
        let third = start(&server, &ledger).await;
        serve(&third, &ledger).await;
        assert_eq!(epoch(&server), made);
        // A start cannot tell this from a restart of the server. The others follow.
        let () = redis(&server, &["SCRIPT", "FLUSH"]);
        let fourth = start(&server, &ledger).await;
        assert_ne!(epoch(&server), made);
        for node in [&first, &second, &third, &fourth] {
            soon(async || node.spent(1).await == 20).await;
        }
        let made = epoch(&server);
        start(&server, &ledger).await;
        assert_eq!(epoch(&server), made);
    });
}
