//! The places and the costs of hedged streams, counted for all nodes.

use serde_json::{Value, json};

use super::pair::Pair;
use crate::proxy::fixture::request;
use crate::support::redis::Redis;

#[tokio::test(flavor = "multi_thread")]
async fn both_nodes_count_what_a_hedge_took_and_cost() {
    let pair = Pair::with(Redis::start(), &[("TOLLGATE_REDIS_TIMEOUT", "10s")]).await;
    let first = &pair.nodes[0];
    let rates =
        json!({"mode": "chat", "input_cost_per_token": 1e-4, "output_cost_per_token": 1e-4});
    first.prices(json!({"m": rates})).await;
    let slow = json!({"name": "slow", "key": "sk-slow-0123456789", "priority": -1,
        "limit_concurrent_sessions": 1, "limit_total_usd": 100});
    let slow = first.provider("native", &pair.upstream.url, slow).await;
    let all = first.admin("providers/getProviders", json!({})).await;
    let up = all.as_array().unwrap().iter().find(|one| one["name"] == "up").unwrap();
    let up = up["id"].as_i64().unwrap();
    let edit = json!({"providerId": up, "limit_concurrent_sessions": 1, "limit_total_usd": 100});
    first.admin("providers/editProvider", edit).await;
    let groups = json!({"groupFeatures": [{"group": "default", "hedgeAfterMs": 200}]});
    first.admin("system-config/saveSystemSettings", groups).await;
    pair.upstream.default_for("sk-slow-0123456789", json!({"delay_ms": 600_000})).await;
    let who = pair.person(json!({}), json!({})).await;
    let ask = pair.ask(0, &who, "one").json(&request("native", true));
    let reply = ask.send().await.unwrap();
    assert_eq!(reply.status(), 200);
    assert!(reply.text().await.unwrap().contains("message_stop"));
    pair.upstream.stats("dropped=1").await;
    let own = |rows: Vec<Value>| rows.into_iter().find(|row| row["keyId"].is_null()).unwrap();
    let lost = own(first.logs(2).await)["costUsd"].clone();
    assert!(lost.as_f64().unwrap() > 0.0, "{lost}");
    for (node, (provider, sessions, cost)) in [(slow, 0, Some(&lost)), (up, 1, None)]
        .iter()
        .flat_map(|of| pair.nodes.iter().map(move |node| (node, of)))
    {
        let usage = async || {
            let asked = json!({"providerId": provider});
            node.admin("providers/getProviderLimitUsage", asked).await
        };
        // The session stays with the provider that answered, and takes nothing of the other.
        pair.until(async || usage().await["concurrentSessions"]["current"] == *sessions).await;
        if let Some(cost) = cost {
            pair.until(async || usage().await["costTotal"]["current"] == **cost).await;
        }
    }
    // Its place at the slow one is free, on the other node too.
    pair.upstream.default_for("sk-slow-0123456789", json!({})).await;
    let ask = pair.ask(1, &who, "two").json(&request("native", true));
    let reply = ask.send().await.unwrap();
    assert!(reply.text().await.unwrap().contains("message_stop"));
    let rows = first.logs(3).await;
    let last = rows.iter().find(|row| row["sessionId"] == "two").unwrap();
    assert_eq!(last["providerName"], "slow", "{last}");
}
