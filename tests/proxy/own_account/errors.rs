//! What the provider says of the client's own account goes to that client, and concerns nobody
//! else.

use serde_json::json;

use super::{Bed, OWN, answered, said};

const WINDOWS: [(&str, &str); 3] = [
    ("anthropic-ratelimit-unified-status", "rejected"),
    ("anthropic-ratelimit-unified-5h-utilization", "1.0"),
    ("retry-after", "3600"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_the_account_is_the_clients_with_its_windows() {
    let bed = Bed::with(&[], json!({"circuit_breaker_failure_threshold": 1})).await;
    let mut windows: serde_json::Map<_, _> =
        WINDOWS.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    windows.insert("set-cookie".to_owned(), json!("__cf=1"));
    for (status, kind) in
        [(429, "rate_limit_error"), (401, "authentication_error"), (403, "permission_error")]
    {
        let error = json!({"type": kind, "message": format!("of the account, {OWN}")});
        let directive = json!({"status": status, "error": error, "headers": windows});
        bed.fixture.upstream.default(directive).await;
        let answer = bed.ask_with_own().send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status);
        for (name, value) in WINDOWS {
            assert_eq!(answer.headers()[name], value, "{status}");
        }
        assert!(!answer.headers().contains_key("set-cookie"));
        let text = answer.text().await.unwrap();
        assert!(text.contains(kind) && text.contains("of the account"), "{text}");
        assert!(!text.contains(OWN), "{text}");
    }
    let [own, company] = bed.received().await;
    assert_eq!((own.len(), company.len()), (3, 0), "nobody stands in");
    let rows = bed.gateway().logs(3).await;
    for row in &rows {
        assert_eq!(row["outcome"], "client_error", "{row}");
        let chain = said(row, "own");
        assert!(chain.iter().any(|(_, why)| why.contains("client's own account")), "{chain:?}");
    }
    // Neither circuit nor cooldown: the next developer is served there at once.
    bed.fixture.upstream.default(json!({})).await;
    assert_eq!(answered(bed.ask().bearer_auth("sk-ant-oat01-another-developers")).await.0, 200);
    let [own, company] = bed.received().await;
    assert_eq!((own.len(), company.len()), (4, 0));
    let health = bed.gateway().admin("providers/getProvidersHealthStatus", json!({})).await;
    let health = health.as_array().unwrap().iter().find(|one| one["providerId"] == bed.own_id);
    let health = health.unwrap();
    assert_eq!((&health["state"], &health["recentFailures"]), (&json!("CLOSED"), &json!(0)));
    assert_eq!(health["credentials"][0]["windows"], json!([]), "{health}");
    assert_eq!(health["credentials"][0]["cooldownUntil"], json!(null), "{health}");
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_of_a_reply_go_to_the_client_and_are_not_kept() {
    let bed = Bed::with(&[], json!({"quota_guard": 50})).await;
    let headers = json!({"anthropic-ratelimit-unified-5h-utilization": "0.97",
        "anthropic-ratelimit-unified-5h-reset": "4102444800"});
    bed.fixture.upstream.default(json!({"headers": headers})).await;
    for _ in 0..2 {
        let answer = bed.ask_with_own().send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["anthropic-ratelimit-unified-5h-utilization"], "0.97");
    }
    let [own, company] = bed.received().await;
    assert_eq!((own.len(), company.len()), (2, 0), "the quota guard knows nothing of it");
    let scrape = bed.gateway().scrape().await;
    let window = scrape.lines().find(|line| line.contains("window") && line.contains("\"own\""));
    assert_eq!(window, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_host_counts_as_any_other() {
    let fields = json!({"circuit_breaker_failure_threshold": 1, "max_retry_attempts": 1});
    let bed = Bed::with(&[], fields).await;
    bed.fixture.upstream.default(json!({"status": 500})).await;
    for _ in 0..2 {
        assert_eq!(answered(bed.ask_with_own()).await.0, 200);
    }
    let [own, company] = bed.received().await;
    assert_eq!((own.len(), company.len()), (1, 2), "the circuit is open after the first");
}
