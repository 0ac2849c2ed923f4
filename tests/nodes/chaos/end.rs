//! The end of a run: nothing is broken any more, every node has the same figures as the ledger, and
//! nothing is held for a request that does not exist.

use std::cell::Cell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::json;

use super::cluster::{Cluster, nanos};
use super::ledger::Row;
use super::load::{Board, Caller, End, Kind, Shape};
use crate::support::wait;

/// How long journals and counters may take.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// How many callers are tried for a reservation that remained.
const TRIED: usize = 9;

/// Waits until all journals and queues are empty.
pub async fn delivered(cluster: &Cluster) -> Vec<String> {
    let mut wrong = Vec::new();
    let began = Instant::now();
    for (n, node) in cluster.nodes.iter().enumerate() {
        for name in ["journal_pending_records", "journal_held_records", "redis_waiting"] {
            let left = TIME_LIMIT.saturating_sub(began.elapsed());
            let metric = format!("tollgate_{name}");
            let is_zero = async || (node.gateway.metric(&metric).await <= 0.0).then_some(());
            if wait::within(left, is_zero).await.is_none() {
                wrong.push(format!("node {n}: {metric} does not become zero"));
            }
        }
        for name in ["journal_lost_records_total", "journal_set_aside_total"] {
            if node.gateway.metric(&format!("tollgate_{name}")).await > 0.0 {
                wrong.push(format!("node {n}: tollgate_{name} is not zero"));
            }
        }
    }
    wrong
}

/// Waits until each node's figures of every caller and provider are those of the ledger, and no
/// session is live.
pub async fn counters(cluster: &Cluster, callers: &[Caller], rows: &[Row]) -> Vec<String> {
    let (mut of_key, mut of_provider) = (HashMap::new(), HashMap::new());
    for row in rows {
        *of_key.entry(row.key).or_insert(0) += row.cost.unwrap_or(0);
        *of_provider.entry(row.provider.unwrap_or(0)).or_insert(0) += row.cost.unwrap_or(0);
    }
    let (mut wrong, mut left) = (Vec::new(), TIME_LIMIT);
    for (n, node) in cluster.nodes.iter().enumerate() {
        let keys = callers.iter().map(|caller| {
            let body = json!({"keyId": caller.key});
            ("keys/getKeyLimitUsage", body, of_key.get(&caller.key).copied())
        });
        let providers = cluster.providers.iter().map(|(id, _)| {
            let body = json!({"providerId": id});
            ("providers/getProviderLimitUsage", body, of_provider.get(id).copied())
        });
        // Each user has one key.
        let users = callers.iter().map(|caller| {
            let body = json!({"userId": caller.user});
            ("users/getUserLimitUsage", body, of_key.get(&caller.key).copied())
        });
        for (operation, body, spent) in keys.chain(users).chain(providers) {
            let last = Cell::default();
            let (mut looks, began) = (0, Instant::now());
            let look = async || {
                looks += 1;
                let usage = node.gateway.admin(operation, body.clone()).await;
                let total = &usage["costTotal"];
                let (found, reserved) = (nanos(&total["current"]), nanos(&total["reserved"]));
                let sessions = usage["concurrentSessions"]["current"].as_i64().unwrap();
                let expected = spent.unwrap_or(0);
                last.set(format!(
                    "node {n}, {body}: {found} spent, {reserved} reserved, {sessions} sessions; \
                     the ledger has {expected}"
                ));
                (found == expected && sessions == 0 && reserved == 0).then_some(())
            };
            if wait::within(left, look).await.is_none() {
                wrong.push(last.take());
            }
            // The time of reading grows with the number of callers.
            if looks > 1 {
                left = left.saturating_sub(began.elapsed());
            }
        }
    }
    wrong
}

/// The last callers with a limit of money get a limit that their spending misses by a cent at most:
/// a request passes, unless an amount is reserved for one that does not exist. The same for
/// sessions: all places are free.
pub async fn nothing_held(cluster: &Cluster, board: &Board, callers: &[Caller]) -> Vec<String> {
    let mut wrong = Vec::new();
    let money = callers.iter().rev().filter(|caller| caller.kind == Kind::Money).take(TRIED);
    let first = &cluster.nodes[0].gateway;
    for caller in money {
        let usage = first.admin("keys/getKeyLimitUsage", json!({"keyId": caller.key})).await;
        let cents = nanos(&usage["costTotal"]["current"]) / 10_000_000 + 1;
        let usd = rust_decimal::Decimal::new(cents, 2);
        first.admin("keys/editKey", json!({"keyId": caller.key, "limitTotalUsd": usd})).await;
        let end = board.ask(caller, 0, "last", Shape::nth(0, 1)).await;
        if end != End::Whole {
            wrong.push(format!("an amount is reserved still for {caller:?}: {end:?}"));
        }
    }
    let sessions = callers.iter().rev().filter(|caller| caller.kind == Kind::Sessions).take(TRIED);
    for caller in sessions {
        for n in 0..super::bounds::SESSIONS {
            let end = board.ask(caller, 0, &format!("last-{n}"), Shape::nth(0, 1)).await;
            if end != End::Whole {
                wrong.push(format!("a place of a session is taken for {caller:?}: {end:?}"));
            }
        }
    }
    wrong
}
