//! Opening balances count for limits and for nothing else.

use serde_json::json;
use tollgate::store::Backend;

use super::Bed;

/// Statistics and the log have the requests of this gateway only; the figures of a key's limits
/// have both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statistics_do_not_contain_them_and_limits_do() {
    let mut bed = Bed::new(Backend::Sqlite).await;
    let from = bed.claude_code_hub().await;
    bed.import("claude-code-hub", &from, &[]);
    bed.serve().await;
    bed.expect(&[("sk-ada-00000000000000000001", 200)]).await;
    let logs = bed.gateway.logs(1).await;
    assert_eq!(logs.len(), 1);
    let users = bed.gateway.admin("users/getUsers", json!({})).await;
    let ada = users.as_array().unwrap().iter().find(|user| user["name"] == "ada").unwrap().clone();
    let usage = bed.gateway.admin("users/getUserLimitUsage", json!({"userId": ada["id"]})).await;
    let daily = usage["dailyCost"]["current"].to_string();
    assert!(daily.contains("1.25"), "{usage}");
    let audit = bed.gateway.admin("audit/getAuditLog", json!({"pageSize": 100})).await;
    let entries = audit["entries"].as_array().unwrap();
    let of = |action: &str| entries.iter().filter(|entry| entry["action"] == action).count();
    assert!(
        of("configuration.applyConfiguration") >= 10 && of("configuration.import") == 4,
        "{audit}"
    );
    assert!(
        entries.iter().all(|entry| entry["actor"] == "command line (import claude-code-hub)"),
        "{audit}"
    );
}

/// A copy to PostgreSQL, a backup and a restore keep them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_survive_a_backup() {
    let bed = Bed::new(Backend::Sqlite).await;
    let from = bed.claude_code_hub().await;
    bed.import("claude-code-hub", &from, &[]);
    let before = bed.state().await;
    assert!(!before.1.is_empty());
    let (done, said) = bed.gateway.run(&["backup", "saved", "--with-secrets"]);
    assert!(done, "{said}");
    std::fs::remove_dir_all(bed.path("data")).unwrap();
    let (done, said) = bed.gateway.run(&["restore", "saved"]);
    assert!(done, "{said}");
    assert_eq!(bed.state().await, before);
    assert!(bed.import("claude-code-hub", &from, &[]).contains("No changes"));
}
