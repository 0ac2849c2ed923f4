//! Rebuilds of the counters from a slow ledger: longer than the lock holds, and longer than nodes
//! keep what they settled; and one that fails.

use std::sync::Arc;
use std::time::Duration;

use tollgate::limits::MOST_WAITING;

use super::overflow::{Node, Written};
use super::restored::beaten;
use super::stoppable::soon;
use super::wire::{calls, redis};
use super::{NOON, runtime};
use crate::support::redis::Redis;

/// The lock holds for 3.2 s without renewal.
const LEASE: Duration = Duration::from_millis(400);
const LOCK: &str = "overflow:{3}:lock";

fn begin(server: &Redis, ledger: &Arc<Written>) -> Node {
    Node::begin_with(&server.url(), ledger, (LEASE, MOST_WAITING))
}

/// Waits until a node holds the lock.
async fn locked(server: &Redis) -> String {
    let holder = || redis::<Option<String>>(server, &["GET", LOCK]);
    soon(async || holder().is_some()).await;
    holder().unwrap()
}

/// Waits until the lock is renewed, which is when it holds for 2.4 s: the ledger was read by then.
async fn renewed(server: &Redis) {
    let is_fresh = || redis::<i64>(server, &["PTTL", LOCK]) > 2_800;
    soon(async || !is_fresh()).await;
    soon(async || is_fresh()).await;
}

#[test]
fn a_rebuild_may_take_longer_than_its_lock_holds() {
    let (server, ledger) = (Redis::start(), Arc::new(Written::default()));
    runtime().block_on(async {
        ledger.adds(3);
        let slow = ledger.slow.write().await;
        let node = begin(&server, &ledger);
        let holder = locked(&server).await;
        let waiting = begin(&server, &ledger);
        for _ in 0..5 {
            renewed(&server).await;
            assert_eq!(locked(&server).await, holder);
        }
        drop(slow);
        for node in [&node, &waiting] {
            node.0.connected().await;
            node.knows(3).await;
        }
    });
}

#[test]
fn what_is_settled_during_a_long_rebuild_counts_once() {
    let (server, ledger) = (Redis::start(), Arc::new(Written::default()));
    runtime().block_on(async {
        let node = begin(&server, &ledger);
        node.0.connected().await;
        node.serve(2, &ledger).await;
        node.0.flushed().await;
        // A node that starts has the counters rebuilt.
        let () = redis(&server, &["SCRIPT", "FLUSH"]);
        let slow = ledger.slow.write().await;
        let other = begin(&server, &ledger);
        locked(&server).await;
        renewed(&server).await;
        beaten(&server, "overflow").await;
        node.serve(1, &ledger).await;
        node.0.flushed().await;
        node.1.set(NOON.plus_ms(300_000));
        node.serve(1, &ledger).await;
        node.0.flushed().await;
        drop(slow);
        other.0.connected().await;
        other.knows(4).await;
        node.knows(4).await;
    });
}

#[test]
fn a_cost_that_becomes_known_during_a_rebuild_by_another_node_counts_once() {
    let (server, ledger) = (Redis::start(), Arc::new(Written::default()));
    runtime().block_on(async {
        let node = begin(&server, &ledger);
        node.0.connected().await;
        node.serve(2, &ledger).await;
        node.0.flushed().await;
        let () = redis(&server, &["SCRIPT", "FLUSH"]);
        let slow = ledger.slow.write().await;
        let other = begin(&server, &ledger);
        locked(&server).await;
        renewed(&server).await;
        node.priced_late(&ledger, NOON.plus_ms(1_000));
        node.0.flushed().await;
        drop(slow);
        other.0.connected().await;
        for node in [&node, &other] {
            node.knows(3).await;
        }
    });
}

/// The node that has the price writes the cost after the rebuild began, and before its snapshot.
#[test]
fn a_cost_that_the_ledger_gets_before_a_rebuild_reads_it_counts_once() {
    let (server, ledger) = (Redis::start(), Arc::new(Written::default()));
    runtime().block_on(async {
        let node = begin(&server, &ledger);
        node.0.connected().await;
        node.serve(2, &ledger).await;
        node.0.flushed().await;
        let () = redis(&server, &["SCRIPT", "FLUSH"]);
        let early = ledger.early.write().await;
        let other = begin(&server, &ledger);
        locked(&server).await;
        renewed(&server).await;
        node.priced_late(&ledger, NOON.plus_ms(1_000));
        node.0.flushed().await;
        drop(early);
        other.0.connected().await;
        // A request over the new counters: what was sent again came before it.
        node.serve(1, &ledger).await;
        node.0.flushed().await;
        node.counts(4).await;
        other.counts(4).await;
        node.priced_late(&ledger, NOON.plus_ms(2_000));
        node.0.flushed().await;
        node.counts(5).await;
    });
}

/// The node has written the cost, and counts it after it rebuilt the counters.
#[test]
fn a_cost_that_is_counted_after_counters_were_rebuilt_with_it_counts_once() {
    let (mut server, ledger) = (Redis::start(), Arc::new(Written::default()));
    runtime().block_on(async {
        let (number, paused) = (ledger.writes_late(), ledger.writes_late());
        let node = begin(&server, &ledger);
        node.0.connected().await;
        node.knows(2).await;
        node.counts_late(number, NOON.plus_ms(1_000));
        node.0.flushed().await;
        node.counts(2).await;
        node.priced_late(&ledger, NOON.plus_ms(1_000));
        node.0.flushed().await;
        node.counts(3).await;
        // However long the process stood still between the two.
        node.counts_late(paused, NOON.plus_ms(60_000));
        node.0.flushed().await;
        node.counts(3).await;
        // Without Redis its own counters count.
        server.kill();
        soon(async || !node.0.shared_state().unwrap().up).await;
        node.knows(3).await;
    });
}

#[test]
fn a_rebuild_that_fails_removes_what_it_wrote() {
    let (server, ledger) = (Redis::start(), Arc::new(Written::default()));
    runtime().block_on(async {
        let node = begin(&server, &ledger);
        node.0.connected().await;
        node.serve(2, &ledger).await;
        node.0.flushed().await;
        let epoch: String = redis(&server, &["GET", "overflow:{3}:epoch"]);
        let () = redis(&server, &["SCRIPT", "FLUSH"]);
        let slow = ledger.slow.write().await;
        let other = begin(&server, &ledger);
        locked(&server).await;
        let () = redis(&server, &["SET", LOCK, "another"]);
        let () = redis(&server, &["CONFIG", "RESETSTAT"]);
        drop(slow);
        let others = || {
            let names: Vec<String> = redis(&server, &["KEYS", "overflow:{3}:e-*"]);
            names.into_iter().filter(|name| !name.contains(&epoch)).collect::<Vec<_>>()
        };
        soon(async || calls(&server, "scan") > 0 && others().is_empty()).await;
        node.knows(2).await;
        let () = redis(&server, &["DEL", LOCK]);
        other.0.connected().await;
        other.knows(2).await;
    });
}
