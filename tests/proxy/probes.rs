//! Probes of providers: they count for health and circuit, cost what the provider reports, and use
//! each key in turn. What is seen is kept, and shown on the status page.

use serde_json::{Value, json};

use super::fixture::{Fixture, request};
use crate::support::upstream::Upstream;
use crate::support::wait;

/// A model with a price, and a provider that is probed as often as possible.
async fn fixture(env: &[(&str, &str)], fields: Value) -> Fixture {
    let fixture = Fixture::bare(env).await;
    fixture
        .gateway
        .prices(json!({
            "m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6},
        }))
        .await;
    fixture.upstream.default(json!({"usage": {"input": 1000, "output": 500}})).await;
    let mut all = json!({"name": "probed", "probe_interval": 5, "probe_model": "m"});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    fixture.gateway.provider("native", &fixture.upstream.url, all).await;
    fixture
}

async fn health(fixture: &Fixture) -> Value {
    let all = fixture.gateway.admin("providers/getProvidersHealthStatus", json!({})).await;
    all[0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_use_each_key_in_turn_and_cost_the_gateway() {
    let credentials = json!({"credentials": [{"name": "b", "key": "second"}], "key": "first"});
    let fixture = fixture(&[], credentials).await;
    let two = async || {
        let sent = fixture.upstream.requests().await;
        (sent.len() >= 2).then_some(sent)
    };
    let sent = wait::found(|| "no probes".to_owned(), two).await;
    let mut keys: Vec<_> =
        sent[..2].iter().map(|one| one["headers"]["x-api-key"].clone()).collect();
    keys.sort_by_key(ToString::to_string);
    assert_eq!(keys, ["first", "second"]);
    let record = fixture.gateway.logs(1).await.remove(0);
    assert_eq!(record["endpoint"], "/v1/messages#probe", "{record}");
    assert_eq!((&record["costUsd"], &record["keyId"]), (&json!(0.002), &Value::Null), "{record}");
    let usage = fixture.gateway.admin("keys/getKeyLimitUsage", json!({"keyId": fixture.key_id}));
    assert_eq!(usage.await["costTotal"]["current"], 0);
    assert_eq!(health(&fixture).await["health"], "healthy");
    let name = "tollgate_provider_probes_total{provider=\"probed\",result=\"ok\"}";
    fixture.gateway.metric_shows(name, |probes| probes >= 2.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_opens_and_closes_the_circuit() {
    let circuit = json!({
        "circuit_breaker_failure_threshold": 1, "circuit_breaker_open_duration": 1000,
        "circuit_breaker_half_open_success_threshold": 1,
    });
    let fixture = Fixture::bare(&[]).await;
    fixture.upstream.default(json!({"status": 500})).await;
    let mut fields = json!({"name": "probed", "probe_interval": 5, "probe_model": "m"});
    fields.as_object_mut().unwrap().extend(circuit.as_object().unwrap().clone());
    fixture.gateway.provider("native", &fixture.upstream.url, fields).await;
    let opened = async || health(&fixture).await["state"] == "OPEN";
    wait::until(|| "it stays closed".to_owned(), opened).await;
    assert_eq!(health(&fixture).await["lastError"]["status"], 500);
    fixture.upstream.default(json!({})).await;
    let closed = async || health(&fixture).await["state"] == "CLOSED";
    wait::until(|| "it stays open".to_owned(), closed).await;
    assert_eq!(health(&fixture).await["health"], "healthy");
}

/// The request may be at fault: its model is configured.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_probe_says_nothing_about_the_provider() {
    let fixture = fixture(&[], json!({"circuit_breaker_failure_threshold": 1})).await;
    let error = json!({"type": "not_found_error", "message": "model: m"});
    let refusal = json!({"status": 404, "body": {"type": "error", "error": error}});
    fixture.upstream.default(refusal).await;
    fixture.gateway.log_shows("check probe_model").await;
    let name = "tollgate_provider_probes_total{provider=\"probed\",result=\"refused\"}";
    assert!(fixture.gateway.metric(name).await >= 1.0);
    let seen = health(&fixture).await;
    assert_eq!((&seen["state"], &seen["failureCount"]), (&json!("CLOSED"), &json!(0)), "{seen}");
    assert_ne!(seen["health"], "failing", "{seen}");
}

/// A provider that asks for a pause gets no probe until then, and no request.
#[tokio::test(flavor = "multi_thread")]
async fn a_probe_that_is_told_to_wait_sets_a_cooldown() {
    let fixture = Fixture::bare(&[]).await;
    fixture.upstream.default(json!({"status": 429, "headers": {"retry-after": "50"}})).await;
    let fields = json!({"name": "probed", "probe_interval": 5, "probe_model": "m"});
    fixture.gateway.provider("native", &fixture.upstream.url, fields).await;
    let paused = async || health(&fixture).await["cooldownUntil"].is_string();
    wait::until(|| "no cooldown".to_owned(), paused).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 503);
    assert_eq!(fixture.upstream.requests().await.len(), 1);
}

/// What a probe costs counts for the provider's own limit alone; at that limit there is none.
#[tokio::test(flavor = "multi_thread")]
async fn probes_stay_within_the_limits_of_their_provider() {
    let fixture = fixture(&[], json!({"limit_daily_usd": 0.01})).await;
    fixture.upstream.default(json!({"usage": {"input": 2000, "output": 2000}})).await;
    let other = Upstream::start().await;
    other.default(json!({"usage": {"input": 1000, "output": 500}})).await;
    let fields = json!({"name": "other", "probe_interval": 5, "probe_model": "m"});
    fixture.gateway.provider("native", &other.url, fields).await;
    let four = async || other.requests().await.len() >= 4;
    wait::until(|| "no probes".to_owned(), four).await;
    assert_eq!(fixture.upstream.requests().await.len(), 2, "0.006 USD each");
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_that_cannot_be_made_are_refused_when_they_are_set() {
    let fixture = Fixture::bare(&[]).await;
    let base = json!({
        "name": "p", "url": fixture.upstream.url, "key": "k", "provider_type": "native",
        "probe_interval": 60,
    });
    let refused = async |fields: Value| {
        let mut all = base.clone();
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let (status, body) = fixture.gateway.call("providers/addProvider", all).await;
        let params = &body["errorParams"];
        (status, params["field"].clone(), params["reason"].clone())
    };
    for (fields, field, reason) in [
        (json!({}), "probe_model", json!("probe_needs_model")),
        (json!({"allowed_models": ["claude-*"]}), "probe_model", json!("probe_needs_model")),
        (
            json!({"auth": "client", "probe_model": "m"}),
            "probe_interval",
            json!("probe_of_clients"),
        ),
        (
            json!({"provider_type": "alt-cli", "probe_model": "../m"}),
            "probe_model",
            json!("redirect_not_in_path"),
        ),
    ] {
        assert_eq!(refused(fields.clone()).await, (400, json!(field), reason), "{fields}");
    }
    let mut fields = base.clone();
    (fields["probe_interval"], fields["probe_model"]) = (json!(4), json!("m"));
    let (status, body) = fixture.gateway.call("providers/addProvider", fields).await;
    assert_eq!((status, &body["errorParams"]["field"]), (400, &json!("probe_interval")), "{body}");
    let mut fields = base.clone();
    fields["allowed_models"] = json!(["claude-*", "m"]);
    let (status, body) = fixture.gateway.call("providers/addProvider", fields).await;
    assert_eq!(status, 200, "{body}");
    let one_probe = async || fixture.upstream.requests().await.len() == 1;
    wait::until(|| "no probe of an allowed model".to_owned(), one_probe).await;
}

/// A refused key among several says nothing of the provider.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_fails_a_probe_is_no_failure_of_the_provider() {
    let fields = json!({
        "key": "invalid", "credentials": [{"name": "b", "key": "good"}],
        "circuit_breaker_failure_threshold": 1,
    });
    let fixture = fixture(&[], fields).await;
    let failed = async || health(&fixture).await["credentials"][0]["failures"] != 0;
    wait::until(|| "the key did not fail".to_owned(), failed).await;
    let seen = health(&fixture).await;
    assert_eq!((&seen["state"], &seen["failureCount"]), (&json!("CLOSED"), &json!(0)), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_use_of_a_key_and_the_states_survive_a_restart() {
    let mut fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    assert_eq!(health(&fixture).await["credentials"][0]["lastUsedAt"], Value::Null);
    let sent = fixture.post("/v1/messages", &request("native", false)).send().await.unwrap();
    assert_eq!(sent.status(), 200);
    assert!(health(&fixture).await["credentials"][0]["lastUsedAt"].is_string(), "at once");
    fixture.gateway.signal("TERM");
    fixture.gateway.ended().await;
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    let known = async || health(&fixture).await["credentials"][0]["lastUsedAt"].is_string();
    wait::until(|| "the use is forgotten".to_owned(), known).await;
    let history = fixture.gateway.admin("providers/getProvidersHistory", json!({})).await;
    let up = |looks: &Value| {
        let counts = looks.as_array().unwrap().iter().map(|one| (&one["up"], &one["down"]));
        counts.map(|(up, down)| (up.as_u64().unwrap(), down.as_u64().unwrap())).collect::<Vec<_>>()
    };
    let looks = up(&history[0]["looks"]);
    assert!(!looks.is_empty() && looks.iter().all(|one| *one == (1, 0)), "{history}");
    assert_eq!(up(&history[0]["days"]), [(looks.len() as u64, 0)], "{history}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_page_is_off_until_it_is_set_and_has_names_and_states_alone() {
    let page = async |fixture: &Fixture, path: &str| {
        let url = format!("{}{path}", fixture.gateway.admin);
        let answer = fixture.gateway.client.get(url).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let off = Fixture::bare(&[]).await;
    assert_eq!(page(&off, "/status.json").await.0, 404);
    for (shown, name) in [("groups", "default"), ("providers", "secret name")] {
        let env = [("TOLLGATE_STATUS_PAGE_ENABLED", "true"), ("TOLLGATE_STATUS_PAGE_SHOW", shown)];
        let fixture = Fixture::bare(&env).await;
        let fields = json!({"name": "secret name"});
        fixture.gateway.provider("native", &fixture.upstream.url, fields).await;
        let (status, text) = page(&fixture, "/status.json").await;
        let body: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(status, 200, "{text}");
        assert_eq!(body["services"][0]["name"], name, "{text}");
        assert_eq!(body["services"][0]["state"], "operational", "{text}");
        let (status, html) = page(&fixture, "/status").await;
        assert_eq!(status, 200, "{html}");
        assert!(html.contains(&format!("<td>{name}</td><td>operational</td>")), "{html}");
        assert!(!html.contains("127.0.0.1") && !html.contains("<script"), "{html}");
        assert_eq!(html.contains("secret name"), shown == "providers", "{html}");
    }
}
