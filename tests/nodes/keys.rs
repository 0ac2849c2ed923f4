//! Two nodes: cooldowns and windows of a provider's keys are known to both, and a refused key is
//! disabled once.

use serde_json::{Value, json};

use super::pair::Pair;
use crate::support::upstream::Upstream;

const KEYS: [&str; 3] = ["sk-first-0123456789", "sk-second-0123456789", "sk-third-0123456789"];

async fn keys_at(pair: &Pair, node: usize) -> Vec<Value> {
    let all = pair.nodes[node].admin("providers/getProvidersHealthStatus", json!({})).await;
    all[0]["credentials"].as_array().unwrap().clone()
}

async fn received(upstream: &Upstream) -> Vec<String> {
    let key = |one: &Value| one["headers"]["x-api-key"].as_str().unwrap().to_owned();
    upstream.requests().await.iter().map(key).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn both_nodes_know_what_one_learnt_of_a_key() {
    let pair = Pair::start().await;
    let who = pair.person(json!({}), json!({})).await;
    let id = pair.nodes[0].admin("providers/getProviders", json!({})).await[0]["id"].clone();
    let further = json!([{"name": "b", "key": KEYS[1]}, {"name": "c", "key": KEYS[2]}]);
    let edit = json!({"providerId": id, "key": KEYS[0], "credentials": further});
    pair.nodes[0].admin("providers/editProvider", edit).await;
    let version = pair.version(0).await;
    pair.until(async || pair.version(1).await >= version).await;
    let resets = (chrono::Utc::now().timestamp() + 3_600).to_string();
    let used = json!({"usage": {"output": 1}, "headers": {
        "anthropic-ratelimit-unified-7d-utilization": "0.5",
        "anthropic-ratelimit-unified-7d-reset": resets,
    }});
    pair.upstream.default_for(KEYS[0], used).await;
    let resting = json!({"status": 429, "headers": {"retry-after": "600"}});
    pair.upstream.default_for(KEYS[1], resting).await;
    let ask = async |node: usize| {
        let session = fastrand::u64(..).to_string();
        assert_eq!(pair.ask(node, &who, &session).send().await.unwrap().status(), 200);
    };
    ask(0).await;
    ask(0).await;
    assert_eq!(received(&pair.upstream).await, KEYS);
    pair.until(async || {
        let keys = keys_at(&pair, 1).await;
        keys[0]["windows"][0]["usedPercent"] == 50 && keys[1]["isUsable"] == false
    })
    .await;
    assert_eq!(
        keys_at(&pair, 1).await[1]["cooldownUntil"],
        keys_at(&pair, 0).await[1]["cooldownUntil"]
    );
    for _ in 0..3 {
        ask(1).await;
    }
    assert_eq!(received(&pair.upstream).await[3..], [KEYS[2]; 3], "the first has less left");

    pair.upstream.default_for(KEYS[2], json!({"status": 401})).await;
    for node in 0..2 {
        ask(node).await;
    }
    let disabled = async |node: usize| {
        let all = pair.nodes[node].admin("providers/getProviders", json!({})).await;
        all[0]["credentials"][1]["isEnabled"] == false
    };
    pair.until(async || disabled(0).await && disabled(1).await).await;
    let ask = json!({"action": "providers.disableRefusedKey"});
    let audit = pair.nodes[1].admin("audit/getAuditLog", ask).await;
    assert_eq!(audit["entries"].as_array().unwrap().len(), 1, "{audit}");
}
