//! `providers/explainSelection` and `explainRequest`: what a request would meet, without sending it.

use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, request};
use crate::support::gateway::ADMIN_TOKEN;
use crate::support::upstream::Upstream;

fn steps(explained: &Value) -> Vec<(&str, &str)> {
    let chain = explained["decisionChain"].as_array().unwrap();
    chain
        .iter()
        .map(|one| (one["providerName"].as_str().unwrap(), one["step"].as_str().unwrap()))
        .collect()
}

async fn explain(fixture: &Fixture, fields: Value) -> Value {
    let mut body = json!({"keyId": fixture.key_id, "format": "native", "model": "m"});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    fixture.gateway.admin("providers/explainSelection", body).await
}

async fn providers(fixture: &Fixture) {
    let add = async |name: &str, fields: Value| {
        let mut all = json!({"name": name});
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        fixture.gateway.provider("native", &fixture.upstream.url, all).await
    };
    add("elsewhere", json!({"group_tag": "other"})).await;
    add("off", json!({"is_enabled": false})).await;
    add("narrow", json!({"allowed_models": ["another"]})).await;
    add("second", json!({"priority": 2})).await;
    add("first", json!({"priority": 1})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_explanation_is_what_a_request_then_meets_and_leaves_no_trace() {
    let fixture = Fixture::bare(&[]).await;
    providers(&fixture).await;
    let explained = explain(&fixture, json!({})).await;
    let expected = [
        ("elsewhere", "other_group"),
        ("off", "disabled"),
        ("narrow", "model_not_supported"),
        ("first", "chosen"),
        ("second", "candidate"),
    ];
    assert_eq!(steps(&explained), expected, "{explained}");
    assert_eq!(
        (&explained["statusCode"], &explained["errorMessage"]),
        (&Value::Null, &Value::Null)
    );
    for format in FORMATS {
        let explained = explain(&fixture, json!({"format": format, "stream": true})).await;
        assert_eq!(steps(&explained)[3].0, "first", "{format}: {explained}");
    }
    assert_eq!(fixture.upstream.requests().await.len(), 0, "nothing was sent");
    assert_eq!(fixture.ask().header("x-session-id", "one").send().await.unwrap().status(), 200);
    let row = fixture.gateway.logs(1).await[0].clone();
    let met: Vec<_> =
        steps(&row)[..5].iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
    assert_eq!(met, expected.map(|(a, b)| (a.to_owned(), b.to_owned())), "{row}");
    // Its session is bound now, which decides for the next one.
    let bound = explain(&fixture, json!({"sessionId": "one"})).await;
    assert_eq!(steps(&bound)[3], ("first", "chosen_for_session"), "{bound}");
    let usage = json!({"keyId": fixture.key_id});
    let usage = fixture.gateway.admin("keys/getKeyLimitUsage", usage).await;
    assert_eq!(
        usage["costTotal"]["current"], row["costUsd"],
        "only the request that was sent: {usage}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_says_what_the_client_would_read() {
    let fixture = Fixture::bare(&[]).await;
    providers(&fixture).await;
    let all = fixture.gateway.admin("providers/getProviders", json!({})).await;
    for one in all.as_array().unwrap() {
        let edit = json!({"providerId": one["id"], "denied_features": ["code_interpreter"]});
        fixture.gateway.admin("providers/editProvider", edit).await;
    }
    let tools = json!([{"type": "code_execution_20250825", "name": "code_execution"}]);
    let messages = json!([{"role": "user", "content": "hi"}]);
    let body = json!({"model": "m", "max_tokens": 9, "messages": messages, "tools": tools});
    let used = explain(&fixture, json!({"body": body.to_string()})).await;
    assert_eq!(used["statusCode"], 403, "the body's features count: {used}");
    assert_eq!(steps(&used)[3], ("second", "model_not_supported"), "{used}");
    let whole = explain(&fixture, json!({})).await;
    assert_eq!(steps(&whole)[3], ("first", "chosen"), "{whole}");
    let user = json!({"userId": fixture.user_id, "allowedModels": ["other"]});
    fixture.gateway.admin("users/editUser", user).await;
    let refused = explain(&fixture, json!({})).await;
    assert_eq!((&refused["statusCode"], steps(&refused)), (&json!(403), vec![]), "{refused}");
    assert!(refused["errorMessage"].as_str().unwrap().contains('m'), "{refused}");
    let damaged = explain(&fixture, json!({"body": "{\"model\": \"m\","})).await;
    assert_eq!(damaged["statusCode"], 400, "{damaged}");
    let rejected = fixture.gateway.admin("usage-logs/getRejectedRequests", json!({})).await;
    assert_eq!(rejected["total"], 0, "{rejected}");
    let logged = fixture.gateway.admin("usage-logs/getUsageLogs", json!({})).await;
    assert_eq!(logged["total"], 0, "{logged}");
    let url = format!("{}/api/actions/providers/explainSelection", fixture.gateway.admin);
    let nobody = json!({"keyId": 999, "format": "native", "model": "m"});
    let sent = fixture.gateway.client.post(url).bearer_auth(ADMIN_TOKEN).json(&nobody).send().await;
    let answer: Value = sent.unwrap().json().await.unwrap();
    assert_eq!(answer["errorCode"], "NOT_FOUND", "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_past_request_is_explained_by_todays_configuration() {
    let fixture = Fixture::bare(&[("STORE_SESSION_MESSAGES", "true")]).await;
    providers(&fixture).await;
    let body = request("chat-compatible", false);
    let sent = fixture.post(path("chat-compatible", false), &body).send().await.unwrap();
    assert_eq!(sent.status(), 200);
    let row = fixture.gateway.logs(1).await[0].clone();
    let (first, second) = (4, 3);
    assert_eq!(steps(&row)[3].0, "first", "{row}");
    let all = fixture.gateway.admin("providers/getProviders", json!({})).await;
    let id = |at: usize| all[at]["id"].clone();
    let off = json!({"providerId": id(first), "is_enabled": false});
    fixture.gateway.admin("providers/editProvider", off).await;
    let asked = json!({"requestId": row["requestId"]});
    let now = fixture.gateway.admin("providers/explainRequest", asked).await;
    let chosen = now["decisionChain"].as_array().unwrap().iter();
    let chosen: Vec<_> = chosen.filter(|one| one["step"] == "chosen").collect();
    assert_eq!(chosen.len(), 1, "{now}");
    assert_eq!(chosen[0]["providerId"], id(second), "{now}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_groups_strategy_orders_providers_by_cost_or_by_speed() {
    let fixture = Fixture::bare(&[]).await;
    let slow = Upstream::start().await;
    slow.default(json!({"delay_ms": 400})).await;
    let add = async |name: &str, url: &str, fields: Value| {
        let mut all = json!({"name": name});
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        fixture.gateway.provider("native", url, all).await
    };
    add("dear", &fixture.upstream.url, json!({"cost_multiplier": 2, "weight": 100})).await;
    add("cheap", &slow.url, json!({"cost_multiplier": 0.5})).await;
    let strategy = async |of: &str| {
        let groups = json!([{"group": "default", "strategy": of}]);
        let settings = json!({"groupFeatures": groups});
        fixture.gateway.admin("system-config/saveSystemSettings", settings).await;
    };
    strategy("cheapest").await;
    let explained = explain(&fixture, json!({})).await;
    assert_eq!(steps(&explained), [("cheap", "chosen"), ("dear", "candidate")], "{explained}");
    let why = &explained["decisionChain"][0]["detail"];
    assert_eq!(why, "this request costs least at it, of those of its priority");
    strategy("fastest").await;
    // Each is measured while the other is off.
    let all = fixture.gateway.admin("providers/getProviders", json!({})).await;
    let enable = async |at: usize, enabled: bool| {
        let edit = json!({"providerId": all[at]["id"], "is_enabled": enabled});
        fixture.gateway.admin("providers/editProvider", edit).await;
    };
    for (on, off) in [(0, 1), (1, 0)] {
        enable(on, true).await;
        enable(off, false).await;
        let sent = fixture.ask().header("x-session-id", on.to_string()).send().await;
        assert_eq!(sent.unwrap().status(), 200);
    }
    enable(0, true).await;
    let mut to = Vec::new();
    for _ in 0..20 {
        let explained = explain(&fixture, json!({"sessionId": "new"})).await;
        to.push(explained["decisionChain"][0]["providerName"].as_str().unwrap().to_owned());
    }
    assert!(to.iter().filter(|name| *name == "dear").count() > 12, "{to:?}");
}
