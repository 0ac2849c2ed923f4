//! Two nodes: one of them probes a provider, and the other one goes on when it is gone.

use std::time::Instant;

use serde_json::json;

use super::pair::Pair;

/// Absent until the first probe.
const PROBES: &str = "tollgate_provider_probes_total{provider=\"up\",result=\"ok\"}";

#[tokio::test(flavor = "multi_thread")]
async fn one_node_probes_a_provider_and_the_other_takes_over() {
    let mut pair = Pair::start().await;
    let id = pair.nodes[0].admin("providers/getProviders", json!({})).await[0]["id"].clone();
    let began = Instant::now();
    let edit = json!({"providerId": id, "probe_interval": 5, "probe_model": "m"});
    pair.nodes[0].admin("providers/editProvider", edit).await;
    pair.until(async || pair.upstream.requests().await.len() >= 4).await;
    let sent = pair.upstream.requests().await.len();
    let intervals = usize::try_from(began.elapsed().as_millis() / 4_500).unwrap();
    assert!(sent <= intervals + 1, "{sent} probes in {intervals} intervals of 4.5 s");
    let has_probed = async |node: usize| pair.nodes[node].scrape().await.contains(PROBES);
    pair.until(async || has_probed(0).await || has_probed(1).await).await;
    let first = usize::from(!has_probed(0).await);
    assert!(!has_probed(1 - first).await, "both nodes probe");
    pair.nodes[first].kill();
    pair.until(async || pair.nodes[1 - first].scrape().await.contains(PROBES)).await;
}
