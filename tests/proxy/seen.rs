//! The signs of a failing provider, of a wrong key and of a refused reload: health records,
//! overview, `/readyz`, metrics, the log and live events.

use serde_json::{Value, json};

use super::fixture::{Fixture, path, request};
use crate::support::gateway::{ADMIN_TOKEN, Gateway, free_port};
use crate::support::wait;

/// The health of the only provider, once it meets a condition.
async fn health(gateway: &Gateway, fits: impl Fn(&Value) -> bool) -> Value {
    let look = async || {
        let all = gateway.admin("providers/getProvidersHealthStatus", json!({})).await;
        Some(all[0].clone()).filter(&fits)
    };
    wait::found(|| gateway.log(), look).await
}

async fn readyz(gateway: &Gateway) -> (u16, Value) {
    let answer = gateway.client.get(format!("{}/readyz", gateway.metrics)).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

async fn problems(gateway: &Gateway) -> Vec<Value> {
    let overview = gateway.admin("overview/getOverviewData", json!({})).await;
    overview["attention"]["problems"].as_array().unwrap().clone()
}

fn kinds(problems: &[Value]) -> Vec<&str> {
    problems.iter().map(|problem| problem["kind"].as_str().unwrap()).collect()
}

/// `/readyz`, the overview, the metrics and the log show that the provider `dead` fails.
async fn a_failing_provider_shows(gateway: &Gateway, id: i64) {
    let (status, ready) = readyz(gateway).await;
    assert_eq!((status, &ready["degraded"]), (200, &json!(["providers"])), "{ready}");
    assert!(
        ready["parts"]["providers"].as_str().unwrap().contains("dead is failing (connect)"),
        "{ready}"
    );
    let found = problems(gateway).await;
    assert_eq!(kinds(&found), ["no_provider_usable", "provider_failing"]);
    assert_eq!(
        (&found[1]["params"]["providerId"], &found[1]["severity"]),
        (&json!(id), &json!("error"))
    );
    assert_eq!(found[1]["params"]["lastError"]["kind"], "connect");
    let metrics = gateway.scrape().await;
    for line in [
        "tollgate_provider_state{provider=\"dead\",state=\"failing\"} 1",
        "tollgate_provider_state{provider=\"dead\",state=\"healthy\"} 0",
        "tollgate_upstream_failures_total{kind=\"connect\",provider=\"dead\"} 30",
    ] {
        assert!(metrics.contains(line), "no {line} in\n{metrics}");
    }
    let log = gateway.log_shows("attempts at a provider fail").await;
    assert_eq!(log.matches("attempts at a provider fail").count(), 1, "one line a minute:\n{log}");
}

/// A provider with a new address: never used, failing, then healthy again.
async fn it_recovers(fixture: &Fixture, id: i64) {
    let gateway = &fixture.gateway;
    // The health of the old address says nothing about the new one.
    let seen = health(gateway, |_| true).await;
    assert_eq!(
        (&seen["health"], &seen["lastError"]),
        (&json!("never_used"), &Value::Null),
        "{seen}"
    );
    fixture.upstream.default(json!({"status": 500})).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 502);
    health(gateway, |seen| seen["health"] == "failing").await;
    fixture.upstream.default(json!({})).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    let seen =
        health(gateway, |seen| seen["health"] != "failing" || seen["failedInARow"] == 0).await;
    assert_eq!((&seen["failedInARow"], &seen["failingSince"]), (&json!(0), &Value::Null), "{seen}");
    assert_eq!(seen["lastError"]["kind"], "status", "it stays on view");
    gateway.log_shows("a provider that failed answers again").await;
    // The rate of the last minute may keep it failing.
    gateway.admin("providers/resetProviderCircuit", json!({"providerId": id})).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    health(gateway, |seen| seen["health"] == "healthy").await;
    assert_eq!(readyz(gateway).await.1["degraded"], json!([]));
    assert_eq!(kinds(&problems(gateway).await), Vec::<&str>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_provider_is_seen_everywhere_and_its_recovery_too() {
    let fixture = Fixture::bare(&[]).await;
    let gateway = &fixture.gateway;
    let unreachable = format!("http://127.0.0.1:{}", free_port());
    let fields =
        json!({"name": "dead", "circuit_breaker_failure_threshold": 0, "max_retry_attempts": 1});
    let id = gateway.provider("native", &unreachable, fields).await;
    assert_eq!(health(gateway, |_| true).await["health"], "never_used");
    let (status, ready) = readyz(gateway).await;
    assert_eq!((status, &ready["degraded"]), (200, &json!([])), "{ready}");
    let watch =
        gateway.client.get(format!("{}/api/events", gateway.admin)).bearer_auth(ADMIN_TOKEN);
    let (mut watching, mut text) = (watch.send().await.unwrap(), String::new());
    super::events::until(&mut watching, &mut text, "hello").await;
    for _ in 0..30 {
        assert_eq!(fixture.ask().send().await.unwrap().status(), 502);
    }
    let seen = health(gateway, |seen| seen["recentFailures"] == 30).await;
    assert_eq!((&seen["health"], &seen["state"]), (&json!("failing"), &json!("CLOSED")), "{seen}");
    let error = &seen["lastError"];
    assert_eq!((&error["kind"], &error["status"]), (&json!("connect"), &Value::Null), "{seen}");
    assert!(!error["message"].as_str().unwrap().is_empty() && error["at"].is_string(), "{seen}");
    assert_eq!(
        (&seen["failedInARow"], &seen["recentAttempts"]),
        (&json!(30), &json!(30)),
        "{seen}"
    );
    assert_eq!(seen["recentFailureRate"], 100);
    assert!(seen["failingSince"].is_string() && seen["lastFailureTime"] == error["at"], "{seen}");
    assert_eq!(
        super::events::until(&mut watching, &mut text, "breaker").await["health"],
        "failing"
    );
    a_failing_provider_shows(gateway, id).await;

    gateway
        .admin(
            "providers/editProvider",
            json!({"providerId": id, "url": fixture.upstream.url, "key": "upstream-key"}),
        )
        .await;
    it_recovers(&fixture, id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_connections_open_the_circuit_by_default_and_it_says_why() {
    let fixture = Fixture::bare(&[]).await;
    let unreachable = format!("http://127.0.0.1:{}", free_port());
    let fields =
        json!({"name": "dead", "max_retry_attempts": 1, "circuit_breaker_failure_threshold": 3});
    fixture.gateway.provider("native", &unreachable, fields).await;
    for status in [502, 502, 502, 503] {
        assert_eq!(fixture.ask().send().await.unwrap().status(), status);
    }
    let seen = health(&fixture.gateway, |seen| seen["state"] == "OPEN").await;
    assert_eq!(
        (&seen["health"], &seen["openReason"]["kind"]),
        (&json!("circuit_open"), &json!("connect")),
        "{seen}"
    );
    let found = problems(&fixture.gateway).await;
    assert_eq!(kinds(&found), ["no_provider_usable", "provider_circuit_open"]);
    assert!(found[1]["params"]["openUntil"].is_string(), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_address_or_credential_closes_the_circuit_and_another_name_does_not() {
    let fixture = Fixture::bare(&[]).await;
    let gateway = &fixture.gateway;
    let fields =
        json!({"name": "up", "max_retry_attempts": 1, "circuit_breaker_failure_threshold": 1});
    let id = gateway.provider("native", &fixture.upstream.url, fields).await;
    let moved = format!("{}/v1", fixture.upstream.url);
    for (changed, clears) in [
        (json!({"name": "renamed", "weight": 7}), false),
        (json!({"url": fixture.upstream.url}), false),
        (json!({"url": moved}), true),
        (json!({"key": "another-upstream-key"}), true),
    ] {
        gateway.admin("providers/resetProviderCircuit", json!({"providerId": id})).await;
        fixture.upstream.default(json!({"status": 500})).await;
        assert_eq!(fixture.ask().send().await.unwrap().status(), 502);
        fixture.upstream.default(json!({})).await;
        health(gateway, |seen| seen["health"] == "circuit_open").await;
        let mut edit = changed.clone();
        edit["providerId"] = json!(id);
        gateway.admin("providers/editProvider", edit).await;
        let seen = health(gateway, |_| true).await;
        let (health, status) = if clears { ("never_used", 200) } else { ("circuit_open", 503) };
        assert_eq!(seen["health"], health, "{changed}: {seen}");
        assert_eq!(seen["lastError"].is_null(), clears, "{changed}: {seen}");
        assert_eq!(fixture.ask().send().await.unwrap().status(), status, "{changed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_providers_words_are_shown_without_its_credential() {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({"name": "strict"})).await;
    let message = format!("Incorrect API key provided: upstream-secret-key {}", "x".repeat(1_000));
    let error =
        json!({"type": "authentication_error", "message": message, "code": "invalid_api_key"});
    fixture.upstream.default(json!({"status": 401, "error": error})).await;
    fixture.ask().send().await.unwrap();
    let seen = health(&fixture.gateway, |seen| seen["health"] == "failing").await;
    let error = &seen["lastError"];
    assert_eq!((&error["kind"], &error["status"]), (&json!("status"), &json!(401)), "{seen}");
    let shown = error["message"].as_str().unwrap();
    assert!(shown.contains("***") && !shown.contains("upstream-secret-key"), "{shown}");
    assert!(shown.chars().count() <= 300, "{shown}");
    let log = fixture.gateway.log_shows("attempts at a provider fail").await;
    let line = log.lines().find(|line| line.contains("attempts at a provider fail")).unwrap();
    assert!(line.contains("WARN") && !line.contains("upstream-secret-key"), "{line}");

    // A request's own error is not the provider's.
    fixture
        .gateway
        .admin("providers/resetProviderCircuit", json!({"providerId": seen["providerId"]}))
        .await;
    let error = json!({"type": "invalid_request_error", "message": "prompt is too long: 250000 tokens > 200000 maximum"});
    fixture.upstream.default(json!({"status": 400, "error": error})).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 400);
    assert_eq!(health(&fixture.gateway, |_| true).await["health"], "never_used");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_reload_is_shown_until_a_good_one() {
    let fixture = Fixture::bare(&[]).await;
    let gateway = &fixture.gateway;
    std::fs::create_dir(gateway.dir.path().join("conf")).unwrap();
    let file = gateway.dir.path().join("conf/tollgate.yaml");
    std::fs::write(&file, "proxy:\n  max_body_bytes: many\n").unwrap();
    gateway.signal("HUP");
    gateway.readiness_shows(|ready, parts| ready && parts["configuration"] != "ok").await;
    let (_, ready) = readyz(gateway).await;
    assert_eq!(ready["degraded"], json!(["configuration"]), "{ready}");
    assert!(
        ready["parts"]["configuration"].as_str().unwrap().contains("max_body_bytes"),
        "{ready}"
    );
    let found = problems(gateway).await;
    assert_eq!(kinds(&found), ["reload_refused"]);
    assert!(found[0]["params"]["faults"].as_str().unwrap().contains("max_body_bytes"), "{found:?}");
    assert!(found[0]["since"].is_string(), "{found:?}");
    assert_eq!(gateway.metric("tollgate_config_reload_refused").await, 1.0);
    std::fs::write(&file, "proxy:\n  max_body_bytes: 64KiB\n").unwrap();
    gateway.signal("HUP");
    gateway.readiness_shows(|ready, parts| ready && parts["configuration"] == "ok").await;
    assert_eq!(kinds(&problems(gateway).await), Vec::<&str>::new());
    assert_eq!(gateway.metric("tollgate_config_reload_refused").await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_requests_are_listed_and_logged_without_their_keys() {
    let fixture = Fixture::native().await;
    let gateway = &fixture.gateway;
    let wrong = "sk-00000000000000000000000000000000";
    let url = format!("{}{}", gateway.proxy, path("native", false));
    let post = || {
        gateway
            .client
            .post(&url)
            .header("user-agent", "lost-cli/1.0")
            .json(&request("native", false))
    };
    for _ in 0..3 {
        assert_eq!(post().bearer_auth(wrong).send().await.unwrap().status(), 401);
    }
    assert_eq!(post().send().await.unwrap().status(), 401);
    gateway.admin("keys/addKey", json!({"userId": fixture.user_id, "name": "spare"})).await;
    gateway
        .admin("keys/toggleKeyEnabled", json!({"keyId": fixture.key_id, "enabled": false}))
        .await;
    assert_eq!(post().bearer_auth(&fixture.key).send().await.unwrap().status(), 401);
    let page = gateway.admin("usage-logs/getRejectedRequests", json!({})).await;
    let entries = page["entries"].as_array().unwrap();
    let reasons: Vec<_> = entries
        .iter()
        .map(|e| (e["reason"].as_str().unwrap(), e["count"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        reasons,
        [("key_disabled", 1), ("missing_credential", 1), ("unknown_key", 3)],
        "{page}"
    );
    assert_eq!(
        (&page["total"], &entries[0]["keyId"]),
        (&json!(5), &json!(fixture.key_id)),
        "{page}"
    );
    let unknown = &entries[2];
    assert_eq!(
        (&unknown["userAgent"], &unknown["endpoint"]),
        (&json!("lost-cli/1.0"), &json!("/v1/messages"))
    );
    assert_eq!(
        (&unknown["clientAddress"], &unknown["clientFormat"]),
        (&json!("127.0.0.1"), &json!("native"))
    );
    assert_eq!(unknown["keyFingerprint"].as_str().unwrap().len(), 8);
    assert!(entries[1]["keyFingerprint"].is_null() && !page.to_string().contains("sk-0"), "{page}");
    let log = gateway.log_shows("\"times\":3").await;
    assert!(log.contains("\"reason\":\"unknown_key\"") && !log.contains(wrong), "{log}");
    assert_eq!(gateway.admin("usage-logs/getUsageLogs", json!({})).await["total"], 0, "no rows");
}
