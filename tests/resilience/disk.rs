//! The disk of the journal fills up under load, and then has space again.

use serde_json::json;

use super::load::{Load, nothing_lost};
use crate::proxy::fixture::{Fixture, prices};
use crate::support::gateway::Gateway;
use crate::support::postgres::fresh_database;
use crate::support::upstream::Upstream;

/// Records still reach the database: only the journal's disk matters.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_loud_refuses_what_it_cannot_account_for_and_recovers() {
    let url = fresh_database();
    let env = [("DATABASE_URL", url.as_str()), ("TOLLGATE_LOG_ACCESS", "false")];
    let mut gateway = Gateway::prepare(&env);
    gateway.limit_files(256);
    gateway.spawn();
    gateway.ready().await;
    let upstream = Upstream::start().await;
    gateway.prices(prices()).await;
    let (user_id, key_id, key) = gateway.user(json!({"name": "ada"})).await;
    gateway.provider("native", &upstream.url, json!({})).await;
    let fixture = Fixture { gateway, upstream, key, user_id, key_id };

    let load = Load::start(&fixture, 8);
    fixture
        .gateway
        .readiness_shows(|ready, parts| {
            !ready && parts["journal"].as_str().unwrap().contains("full")
        })
        .await;
    load.more_failures(50).await;
    assert!(fixture.gateway.metric("tollgate_journal_append_errors_total").await >= 1.0);
    let held = fixture.gateway.metric("tollgate_journal_held_records").await;
    assert!(
        (1.0..=16.0).contains(&held),
        "{held} held: those that were under way, and no refusals"
    );
    fixture.gateway.log_shows("the journal cannot be written").await;
    // Operations without accounting continue.
    let models = fixture
        .gateway
        .client
        .get(format!("{}/v1/models", fixture.gateway.proxy))
        .header("x-api-key", &fixture.key);
    assert_eq!(models.send().await.unwrap().status(), 200);
    assert_eq!(fixture.gateway.call("users/getUsers", json!({})).await.0, 200);

    fixture.gateway.unlimit_files();
    fixture.gateway.readiness_shows(|ready, _| ready).await;
    load.more(50).await;
    let outcome = load.end().await;
    for failure in &outcome.failures {
        assert!(failure.starts_with("503") && failure.contains("overloaded_error"), "{failure}");
    }
    // The model list is a request too.
    nothing_lost(&fixture, outcome.whole + 1).await;
    fixture.gateway.log_shows("the journal can be written again: nothing was lost").await;
}
