//! Batches over two nodes: made on one, listed, fetched and cancelled on the other, and billed once,
//! whichever nodes clients ask and whichever dies.

use reqwest::Method;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::pair::{Pair, Person};
use crate::support::wait;

const BATCHES: &str = "/v1/messages/batches";

async fn call(
    pair: &Pair,
    node: usize,
    who: &Person,
    (method, path): (Method, &str),
    body: Option<&Value>,
) -> (u16, Value) {
    let url = format!("{}{path}", pair.nodes[node].proxy);
    let sent = pair.nodes[node].client.request(method, url).bearer_auth(&who.text);
    let sent = match body {
        Some(body) => sent.json(body),
        None => sent,
    };
    let answer = sent.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

async fn begin(pair: &Pair, who: &Person) -> String {
    let params = json!({
        "model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": "hello"}],
    });
    let one = |id| json!({"custom_id": id, "params": params});
    let body = json!({"requests": [one("a"), one("b")]});
    let (status, batch) = call(pair, 0, who, (Method::POST, BATCHES), Some(&body)).await;
    assert_eq!(status, 200, "{batch}");
    batch["id"].as_str().unwrap().to_owned()
}

async fn reserved(pair: &Pair, node: usize, who: &Person) -> Decimal {
    let usage = pair.nodes[node].admin("keys/getKeyLimitUsage", json!({"keyId": who.key})).await;
    usage["costTotal"]["reserved"].to_string().parse().unwrap()
}

/// The records of batches that have ended.
async fn bills(pair: &Pair) -> Vec<Value> {
    let billed = async || {
        let page = pair.nodes[1].admin("usage-logs/getUsageLogs", json!({"pageSize": 100})).await;
        let mut log = page["logs"].as_array().unwrap().clone();
        log.retain(|row| row["decisionChain"].to_string().contains("requests were answered"));
        (!log.is_empty()).then_some(log)
    };
    wait::found(|| "no bill".to_owned(), billed).await
}

async fn start(calls: u64) -> (Pair, Person) {
    let pair = Pair::start().await;
    pair.nodes[0].provider("native", &pair.upstream.url, json!({})).await;
    let who = pair.person(json!({}), json!({})).await;
    let usage = json!({"input": 10, "output": 100});
    pair.upstream.default(json!({"usage": usage, "background_calls": calls})).await;
    (pair, who)
}

/// Both nodes show the cost of one bill, and nothing that is reserved.
async fn billed_once(pair: &Pair, who: &Person) {
    let records = bills(pair).await;
    assert_eq!(records.len(), 1, "{records:?}");
    let cost: Decimal = records[0]["costUsd"].to_string().parse().unwrap();
    assert!(cost > Decimal::ZERO, "{records:?}");
    for node in [0, 1] {
        pair.until(async || pair.spent(node, who).await == cost).await;
        pair.until(async || reserved(pair, node, who).await == Decimal::ZERO).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_one_node_is_listed_fetched_and_read_on_the_other_and_billed_once() {
    let (pair, who) = start(2).await;
    let id = begin(&pair, &who).await;
    let path = format!("{BATCHES}/{id}");
    let (status, list) = call(&pair, 1, &who, (Method::GET, BATCHES), None).await;
    assert_eq!((status, &list["data"][0]["id"]), (200, &json!(id)), "{list}");
    // Both nodes ask for it at the same time, beside the gateway's own polls.
    let ended = async || {
        let (one, other) = tokio::join!(
            call(&pair, 0, &who, (Method::GET, &path), None),
            call(&pair, 1, &who, (Method::GET, &path), None),
        );
        assert_eq!((one.0, other.0), (200, 200), "{one:?} {other:?}");
        [one, other].iter().all(|(_, batch)| batch["processing_status"] == "ended")
    };
    pair.until(ended).await;
    billed_once(&pair, &who).await;
    let results = format!("{path}/results");
    assert_eq!(call(&pair, 1, &who, (Method::GET, &results), None).await.0, 200);
    let deleted = async || call(&pair, 1, &who, (Method::DELETE, &path), None).await.0 == 200;
    pair.until(deleted).await;
    assert_eq!(call(&pair, 0, &who, (Method::GET, &path), None).await.0, 404);
    billed_once(&pair, &who).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_cancelled_on_the_other_node_while_its_own_is_dead_and_billed_once() {
    let (mut pair, who) = start(1_000_000).await;
    let id = begin(&pair, &who).await;
    let path = format!("{BATCHES}/{id}");
    let held = reserved(&pair, 0, &who).await;
    assert!(held > Decimal::ZERO);
    pair.until(async || reserved(&pair, 1, &who).await == held).await;
    pair.nodes[0].kill();
    let cancel = format!("{path}/cancel");
    let (status, said) = call(&pair, 1, &who, (Method::POST, &cancel), None).await;
    assert_eq!((status, &said["processing_status"]), (200, &json!("ended")), "{said}");
    // Only its own node bills it.
    let (status, said) = call(&pair, 1, &who, (Method::DELETE, &path), None).await;
    assert_eq!(status, 400, "it is not billed: {said}");
    pair.nodes[0].spawn();
    pair.nodes[0].ready().await;
    billed_once(&pair, &who).await;
}
