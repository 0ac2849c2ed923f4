//! Responses in the background over two nodes: the reservation holds on both, and a node that dies
//! goes on with its replies when it starts again. Each is billed once.

use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::pair::{Pair, Person};
use crate::proxy::fixture::request;
use crate::support::wait;

async fn reserved(pair: &Pair, node: usize, who: &Person) -> Decimal {
    let usage = pair.nodes[node].admin("keys/getKeyLimitUsage", json!({"keyId": who.key})).await;
    usage["costTotal"]["reserved"].to_string().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_polls_a_reply_and_bills_it_once_also_after_its_death() {
    let mut pair = Pair::start().await;
    pair.nodes[0].provider("responses", &pair.upstream.url, json!({})).await;
    let who = pair.person(json!({}), json!({"allowedFeatures": ["background"]})).await;
    let usage = json!({"input": 10, "output": 100});
    let endless = json!({"usage": usage, "background_calls": 1_000_000});
    pair.upstream.default(endless).await;
    let mut body = request("responses", false);
    (body["background"], body["max_output_tokens"]) = (json!(true), json!(500));
    let url = format!("{}/v1/responses", pair.nodes[0].proxy);
    let asked = pair.nodes[0].client.post(url).bearer_auth(&who.text).json(&body).send().await;
    let reply: Value = asked.unwrap().json().await.unwrap();
    assert_eq!(reply["status"], "queued", "{reply}");
    let held = Decimal::new(5, 2);
    pair.until(async || reserved(&pair, 1, &who).await == held).await;
    pair.nodes[0].kill();
    pair.nodes[0].spawn();
    pair.nodes[0].ready().await;
    // Once: what the dead process held is released.
    pair.until(async || reserved(&pair, 1, &who).await == held).await;
    let path = format!("/v1/responses/{}", reply["id"].as_str().unwrap());
    let known = async || {
        let url = format!("{}{path}/cancel", pair.nodes[0].proxy);
        let sent = pair.nodes[0].client.post(url).bearer_auth(&who.text).send().await;
        sent.unwrap().status() == 200
    };
    pair.until(known).await;
    for node in [0, 1] {
        pair.until(async || pair.spent(node, &who).await == Decimal::new(1, 2)).await;
        pair.until(async || reserved(&pair, node, &who).await == Decimal::ZERO).await;
    }
    let billed = async || {
        let page = pair.nodes[1].admin("usage-logs/getUsageLogs", json!({"pageSize": 100})).await;
        let log = page["logs"].as_array().unwrap();
        let count = log.iter().filter(|row| row["costUsd"] != 0).count();
        (count > 0).then_some(count)
    };
    assert_eq!(wait::found(|| "no bill".to_owned(), billed).await, 1);
}
