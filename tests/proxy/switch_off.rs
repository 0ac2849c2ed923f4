//! `breaker.disable_after_failed_probes`: after enough failed probes of its circuit a provider is
//! disabled, shown with the reason, and stays so until an administrator enables it. Two nodes:
//! `nodes/switch_off.rs`.

use serde_json::{Value, json};

use super::fixture::{Fixture, saying};
use crate::support::gateway::Gateway;
use crate::support::upstream::Upstream;
use crate::support::wait;

const SETTING: &str = "TOLLGATE_BREAKER_DISABLE_AFTER_FAILED_PROBES";

/// Opens at the first failure, and is probed a second later.
fn fragile(name: &str) -> Value {
    json!({
        "name": name,
        "circuit_breaker_failure_threshold": 1,
        "circuit_breaker_open_duration": 1_000,
        "max_retry_attempts": 1,
    })
}

async fn provider(gateway: &Gateway, id: i64) -> Value {
    let all = gateway.admin("providers/getProviders", json!({})).await;
    all.as_array().unwrap().iter().find(|one| one["id"] == id).unwrap().clone()
}

async fn health(gateway: &Gateway, id: i64) -> Value {
    let all = gateway.admin("providers/getProvidersHealthStatus", json!({})).await;
    all.as_array().unwrap().iter().find(|one| one["providerId"] == id).unwrap().clone()
}

/// Sends requests until the condition is met. Each is a separate conversation: one that another
/// provider answered stays there.
async fn asking_until(fixture: &Fixture, what: &str, reached: impl AsyncFn() -> bool) {
    let mut asked = 0;
    let look = async || {
        if reached().await {
            return true;
        }
        asked += 1;
        let request = saying("native", false, &format!("say hello {asked}"));
        fixture.post("/v1/messages", &request).send().await.unwrap();
        false
    };
    wait::until(|| format!("{what} does not come:\n{}", fixture.gateway.log()), look).await;
}

async fn problems(gateway: &Gateway) -> Vec<Value> {
    let overview = gateway.admin("overview/getOverviewData", json!({})).await;
    overview["attention"]["problems"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_is_disabled_after_so_many_failed_probes_and_an_administrator_enables_it() {
    let fixture = Fixture::bare(&[(SETTING, "2")]).await;
    let (gateway, spare) = (&fixture.gateway, Upstream::start().await);
    let id = gateway.provider("native", &fixture.upstream.url, fragile("dead")).await;
    gateway.provider("native", &spare.url, json!({"name": "spare", "priority": 9})).await;
    fixture.upstream.default(json!({"status": 500})).await;
    asking_until(&fixture, "the end", async || provider(gateway, id).await["isEnabled"] == false)
        .await;

    let off = provider(gateway, id).await["switchedOff"].clone();
    assert_eq!(
        (&off["failedProbes"], &off["error"]["kind"]),
        (&json!(2), &json!("status")),
        "{off}"
    );
    assert_eq!(off["error"]["status"], 500);
    assert!(off["at"].is_string() && off["error"]["at"].is_string(), "{off}");
    let asked = fixture.upstream.requests().await.len();
    assert_eq!(asked, 3, "one that opened the circuit, and two probes");
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    assert_eq!(fixture.upstream.requests().await.len(), asked, "it is asked no more");

    let audit = gateway
        .admin("audit/getAuditLog", json!({"action": "providers.disableFailingProvider"}))
        .await;
    let entries = audit["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{audit}");
    assert_eq!(
        (&entries[0]["actor"], &entries[0]["target"]),
        (&json!("gateway"), &json!(format!("provider {id}")))
    );
    assert_eq!(entries[0]["after"]["failedProbes"], 2);
    let log = gateway.log_shows("a failing provider was disabled").await;
    let line = log.lines().find(|line| line.contains("a failing provider was disabled")).unwrap();
    assert!(line.contains("WARN") && line.contains("\"failed_probes\":2"), "{line}");
    let found = problems(gateway).await;
    assert_eq!((found.len(), &found[0]["kind"]), (1, &json!("provider_switched_off")), "{found:?}");
    assert_eq!((&found[0]["params"]["providerId"], &found[0]["since"]), (&json!(id), &off["at"]));
    let metric = "tollgate_provider_switched_off{provider=\"dead\"}";
    assert_eq!(gateway.metric(metric).await, 1.0);

    // Any other edit leaves it disabled, and keeps the reason.
    gateway.admin("providers/editProvider", json!({"providerId": id, "note": "asked them"})).await;
    assert_eq!(provider(gateway, id).await["switchedOff"], off);

    fixture.upstream.default(json!({})).await;
    gateway.admin("providers/editProvider", json!({"providerId": id, "is_enabled": true})).await;
    let on = provider(gateway, id).await;
    assert_eq!((&on["isEnabled"], &on["switchedOff"]), (&json!(true), &Value::Null), "{on}");
    let seen = health(gateway, id).await;
    assert_eq!((&seen["state"], &seen["failedProbes"]), (&json!("CLOSED"), &json!(0)), "{seen}");
    let fresh = saying("native", false, "a conversation that no provider has");
    assert_eq!(fixture.post("/v1/messages", &fresh).send().await.unwrap().status(), 200);
    assert_eq!(fixture.upstream.requests().await.len(), asked + 1, "it is asked at once");
    assert_eq!((gateway.metric(metric).await, problems(gateway).await.len()), (0.0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_provider_of_a_model_stays_enabled_until_another_serves_it() {
    let fixture = Fixture::bare(&[(SETTING, "1")]).await;
    let (gateway, spare) = (&fixture.gateway, Upstream::start().await);
    let id = gateway.provider("native", &fixture.upstream.url, fragile("only")).await;
    let other = json!({"name": "other", "priority": 9, "allowed_models": ["another"]});
    let other = gateway.provider("native", &spare.url, other).await;
    fixture.upstream.default(json!({"status": 500})).await;
    let probes =
        async |least: u64| health(gateway, id).await["failedProbes"].as_u64().unwrap() >= least;
    asking_until(&fixture, "three probes", async || probes(3).await).await;
    let log = gateway.log_shows("a failing provider stays enabled").await;
    let line = log.lines().find(|line| line.contains("a failing provider stays enabled")).unwrap();
    assert!(line.contains("\"group\":\"default\"") && line.contains("\"model\":\"*\""), "{line}");
    assert_eq!(provider(gateway, id).await["isEnabled"], true);
    gateway
        .admin("providers/editProvider", json!({"providerId": other, "allowed_models": []}))
        .await;
    asking_until(&fixture, "the end", async || provider(gateway, id).await["isEnabled"] == false)
        .await;
    // Now the other one is the last, and stays enabled in any case.
    assert_eq!(provider(gateway, other).await["isEnabled"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_provider_is_disabled_by_default_and_a_reload_changes_that() {
    let fixture = Fixture::bare(&[]).await;
    let (gateway, spare) = (&fixture.gateway, Upstream::start().await);
    let id = gateway.provider("native", &fixture.upstream.url, fragile("dead")).await;
    gateway.provider("native", &spare.url, json!({"name": "spare", "priority": 9})).await;
    fixture.upstream.default(json!({"status": 500})).await;
    let probes = async || health(gateway, id).await["failedProbes"].as_u64().unwrap() >= 3;
    asking_until(&fixture, "three probes", probes).await;
    assert_eq!(provider(gateway, id).await["isEnabled"], true);
    std::fs::create_dir(gateway.dir.path().join("conf")).unwrap();
    let file = gateway.dir.path().join("conf/tollgate.yaml");
    std::fs::write(file, "breaker:\n  disable_after_failed_probes: 2\n").unwrap();
    gateway.signal("HUP");
    wait::until(|| gateway.log(), async || provider(gateway, id).await["isEnabled"] == false).await;
    assert!(provider(gateway, id).await["switchedOff"]["failedProbes"].as_u64().unwrap() >= 3);
}
