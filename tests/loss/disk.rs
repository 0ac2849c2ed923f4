//! The disk of the journal takes nothing more, under load, and then does again.

use serde_json::json;

use super::load::{Load, nothing_lost};
use crate::proxy::stage::{Stage, prices};
use crate::support::gateway::Gateway;
use crate::support::postgres::fresh_database;
use crate::support::upstream::Upstream;

/// With the records' way to the database open: what the disk does not take is what matters.
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
    let stage = Stage { gateway, upstream, key, user_id, key_id };

    let load = Load::start(&stage, 8);
    stage.gateway.readiness_shows(|ready, parts| !ready && parts["journal"].as_str().unwrap().contains("full")).await;
    load.more_failures(50).await;
    assert!(stage.gateway.metric("tollgate_journal_append_errors_total").await >= 1.0);
    let held = stage.gateway.metric("tollgate_journal_held_records").await;
    assert!((1.0..=16.0).contains(&held), "{held} held: those that were under way, and no refusals");
    stage.gateway.log_shows("the journal cannot be written").await;
    // What needs no accounting goes on.
    let models = stage.gateway.client.get(format!("{}/v1/models", stage.gateway.proxy)).header("x-api-key", &stage.key);
    assert_eq!(models.send().await.unwrap().status(), 200);
    assert_eq!(stage.gateway.call("users/getUsers", json!({})).await.0, 200);

    stage.gateway.unlimit_files();
    stage.gateway.readiness_shows(|ready, _| ready).await;
    load.more(50).await;
    let outcome = load.end().await;
    for failure in &outcome.failures {
        assert!(failure.starts_with("503") && failure.contains("overloaded_error"), "{failure}");
    }
    // The model list is a request too.
    nothing_lost(&stage, outcome.whole + 1).await;
    stage.gateway.log_shows("the journal can be written again: nothing was lost").await;
}
