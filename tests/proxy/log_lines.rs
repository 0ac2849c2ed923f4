//! The log: one format at a time, and no errors if nothing is wrong.

use serde_json::json;

use super::fixture::Fixture;

#[tokio::test(flavor = "multi_thread")]
async fn a_text_log_has_text_lines_only() {
    let fixture = Fixture::native_with(&[("LOG_FORMAT", "text")]).await;
    assert_eq!(fixture.ask().header("user-agent", "my cli/1").send().await.unwrap().status(), 200);
    let login = format!("{}/api/auth/login", fixture.gateway.admin);
    let refused =
        fixture.gateway.client.post(login).json(&json!({"key": "wrong"})).send().await.unwrap();
    assert_eq!(refused.status(), 401);
    let log = fixture.gateway.log_shows("a login failed").await;
    fixture.gateway.log_shows(" INFO access: ").await;
    assert!(!log.lines().any(|line| line.starts_with('{')), "{log}");
    let line = log.lines().find(|line| line.contains(" INFO access: ")).unwrap();
    for part in [
        "status=200",
        "outcome=completed",
        "endpoint=/v1/messages",
        "user_agent=\"my cli/1\"",
        "model=m ",
    ] {
        assert!(line.contains(part), "no {part} in {line}");
    }
    assert!(log.contains("client=127.0.0.1") && !log.contains("Some("), "{log}");
}
