//! A disk that accepts writes but fails to sync them: the gateway refuses what it cannot make
//! durable, and recovers.
//!
//! strace makes `fdatasync` fail. With PostgreSQL only the journal uses that call.

use std::process::Command;

use crate::proxy::fixture::Fixture;
use crate::support::postgres::fresh_database;

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_cannot_be_synced_refuses_requests_until_it_can() {
    let url = fresh_database();
    let env = [("DATABASE_URL", url.as_str()), ("TOLLGATE_LEDGER_SYNC_INTERVAL", "50ms")];
    let mut fixture = Fixture::native_with(&env).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    fixture.gateway.signal("TERM");
    fixture.gateway.ended().await;

    let inject = [
        "strace",
        "-D",
        "-I",
        "2",
        "-f",
        "-q",
        "-o",
        "/dev/null",
        "-e",
        "trace=fdatasync",
        "-e",
        "inject=fdatasync:error=EIO",
        "-e",
        "signal=kill",
    ];
    fixture.gateway.run_by(inject.map(str::to_owned).to_vec());
    fixture.gateway.spawn();
    fixture.gateway.answers().await;
    let troubled = |ready: bool, parts: &serde_json::Value| {
        !ready
            && parts["proxy"] == "ok"
            && parts["journal"].as_str().unwrap_or_default().contains("cannot be synced")
    };
    fixture.gateway.readiness_shows(troubled).await;
    let refused = fixture.ask().send().await.unwrap();
    assert_eq!(refused.status(), 503);
    assert!(refused.text().await.unwrap().contains("cannot account"));
    assert!(fixture.gateway.metric("tollgate_journal_sync_errors_total").await >= 1.0);
    fixture.gateway.log_shows("the journal cannot be synced").await;

    let status =
        std::fs::read_to_string(format!("/proc/{}/status", fixture.gateway.pid())).unwrap();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:")).unwrap().trim();
    assert!(Command::new("kill").args(["-TERM", tracer]).status().unwrap().success());
    fixture.gateway.readiness_shows(|ready, _| ready).await;
    fixture.gateway.log_shows("the journal can be synced again: nothing was lost").await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    let rows = fixture
        .gateway
        .admin("usage-logs/getUsageLogs", serde_json::json!({"statusCode": 200}))
        .await;
    assert!(rows["total"].as_u64().unwrap() >= 1, "{rows}");
}
