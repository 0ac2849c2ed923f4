//! `kill -9` under load: every reply that a client received completely is in the ledger, once, with
//! its cost.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rust_decimal::Decimal;
use serde_json::json;

use super::fixture::{Fixture, request};
use crate::support::wait;

/// Concurrent clients, each with one request in progress.
const CLIENTS: u64 = 16;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_client_counted_is_lost() {
    let mut fixture = Fixture::native().await;
    // 2 000 micro-USD a request.
    fixture.upstream.default(json!({"usage": {"input": 1000, "output": 500}, "events": 3})).await;
    let counted = Arc::new(AtomicU64::new(0));
    for round in 0..2 {
        let stop = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|n| {
                let (counted, stop) = (Arc::clone(&counted), Arc::clone(&stop));
                let ask = fixture.post("/v1/messages", &request("native", n % 2 == 0));
                tokio::spawn(async move {
                    while !stop.load(Ordering::Relaxed) {
                        let Ok(answer) = ask.try_clone().unwrap().send().await else { continue };
                        let ok = answer.status() == 200;
                        if ok && answer.bytes().await.is_ok() {
                            counted.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                })
            })
            .collect();
        let goal = counted.load(Ordering::SeqCst) + 400;
        let reached = async || counted.load(Ordering::SeqCst) >= goal;
        wait::until(|| "the load stands still".to_owned(), reached).await;
        fixture.gateway.kill();
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            client.await.unwrap();
        }
        fixture.gateway.spawn();
        fixture.gateway.ready().await;
        settled(&fixture, counted.load(Ordering::SeqCst), round).await;
    }
}

/// Rows and cost: at least those that clients counted, at most those that the upstream counted; and
/// each row has its cost.
async fn settled(fixture: &Fixture, counted: u64, round: u32) {
    let asked = fixture.upstream.stats("").await["started"].as_u64().unwrap();
    let last = Cell::default();
    let look = async || {
        let page = fixture
            .gateway
            .admin("usage-logs/getUsageLogs", json!({"pageSize": 1, "statusCode": 200}))
            .await;
        let rows = page["total"].as_u64().unwrap();
        let cost: Decimal = page["summary"]["costUsd"].to_string().parse().unwrap_or_default();
        last.set(page.to_string());
        let is_whole =
            rows >= counted && cost >= Decimal::new(2 * i64::try_from(counted).unwrap(), 3);
        is_whole.then_some((rows, cost, page))
    };
    let instead =
        || format!("round {round}: clients counted {counted}, the ledger has {}", last.take());
    let (rows, cost, page) = wait::found(instead, look).await;
    // A client that was cut off just before its last byte did not count a reply that was already in
    // the journal: at most one of each client, at each kill.
    let most = counted + CLIENTS * u64::from(round + 1);
    assert!(
        rows <= most.min(asked),
        "round {round}: {rows} rows, {counted} counted, {asked} asked"
    );
    assert_eq!(cost, Decimal::new(2 * i64::try_from(rows).unwrap(), 3), "round {round}: {page}");
}
