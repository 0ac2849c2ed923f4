//! Authentication: every source of a key, conflicts, and each failed step, in the client's own
//! format.

use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, request};
use crate::support::gateway::ADMIN_TOKEN;

async fn status(request: reqwest::RequestBuilder) -> (u16, Value) {
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_source_of_a_key_is_read() {
    let fixture = Fixture::native().await;
    let url = format!("{}/v1/messages", fixture.gateway.proxy);
    let body = request("native", false);
    let post = |url: &str| fixture.gateway.client.post(url).json(&body);
    let key = &fixture.key;
    let cases: Vec<(&str, reqwest::RequestBuilder, u16)> = vec![
        ("bearer", post(&url).bearer_auth(key), 200),
        ("x-api-key", post(&url).header("x-api-key", key), 200),
        ("x-alt-api-key", post(&url).header("x-alt-api-key", key), 200),
        ("x-goog-api-key", post(&url).header("x-goog-api-key", key), 200),
        ("query", post(&format!("{url}?key={key}")), 200),
        ("cookie", post(&url).header("cookie", format!("auth-token={key}")), 200),
        ("the same twice", post(&url).bearer_auth(key).header("x-api-key", key), 200),
        ("admin token", post(&url).bearer_auth(ADMIN_TOKEN), 200),
        ("none", post(&url), 401),
        ("empty", post(&url).header("x-api-key", ""), 401),
        (
            "two keys",
            post(&url).bearer_auth(key).header("x-api-key", "sk-00000000000000000000000000000000"),
            401,
        ),
        ("unknown", post(&url).bearer_auth("sk-00000000000000000000000000000000"), 401),
    ];
    for (name, request, expected) in cases {
        let (got, body) = status(request).await;
        assert_eq!(got, expected, "{name}: {body}");
        assert!(!body.to_string().contains(key), "{name} echoes the key");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_of_ones_own_carries_the_key_no_further_than_here() {
    let fixture = Fixture::bare(&[("TOLLGATE_AUTH_ALT_KEY_HEADERS", "x-team-key")]).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    let post = fixture
        .gateway
        .client
        .post(format!("{}/v1/messages", fixture.gateway.proxy))
        .header("x-team-key", &fixture.key);
    assert_eq!(status(post.json(&request("native", false))).await.0, 200);
    let seen = fixture.upstream.requests().await.pop().unwrap();
    assert!(!seen.to_string().contains(&fixture.key), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_step_is_reported_in_each_format() {
    let fixture = Fixture::full().await;
    for format in FORMATS {
        let url = format!("{}{}", fixture.gateway.proxy, path(format, false));
        let (got, body) =
            status(fixture.gateway.client.post(url).json(&request(format, false))).await;
        assert_eq!(got, 401, "{format}");
        let error = &body["error"];
        match format {
            "native" => assert_eq!(
                (&body["type"], &error["type"]),
                (&json!("error"), &json!("authentication_error"))
            ),
            "alt-cli" => assert_eq!(
                (&error["code"], &error["status"]),
                (&json!(401), &json!("UNAUTHENTICATED"))
            ),
            _ => assert_eq!(error["type"], "authentication_error"),
        }
        assert!(error["message"].as_str().unwrap().contains("key"), "{format}: {body}");
    }
    // No provider was called, and unknown callers leave no record.
    assert_eq!(fixture.upstream.requests().await.len(), 0);
    assert_eq!(fixture.gateway.admin("usage-logs/getUsageLogs", json!({})).await["total"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_in_effect_before_its_reply() {
    let fixture = Fixture::native().await;
    let gateway = &fixture.gateway;
    assert_eq!(status(fixture.ask()).await.0, 200);
    let second =
        gateway.admin("keys/addKey", json!({"userId": fixture.user_id, "name": "second"})).await;
    let second = second["generatedKey"].as_str().unwrap().to_owned();
    let with_second =
        || gateway.client.post(format!("{}/v1/messages", gateway.proxy)).bearer_auth(&second);
    assert_eq!(status(with_second().json(&request("native", false))).await.0, 200);

    gateway
        .admin("keys/toggleKeyEnabled", json!({"keyId": fixture.key_id, "enabled": false}))
        .await;
    let (got, body) = status(fixture.ask()).await;
    assert!(
        got == 401 && body["error"]["message"].as_str().unwrap().contains("disabled"),
        "{body}"
    );
    gateway.admin("keys/toggleKeyEnabled", json!({"keyId": fixture.key_id, "enabled": true})).await;
    assert_eq!(status(fixture.ask()).await.0, 200);

    gateway
        .admin(
            "keys/editKey",
            json!({"keyId": fixture.key_id, "expiresAt": "2020-01-01T00:00:00Z"}),
        )
        .await;
    let (got, body) = status(fixture.ask()).await;
    assert!(got == 401 && body["error"]["message"].as_str().unwrap().contains("expired"), "{body}");

    gateway.admin("users/editUser", json!({"userId": fixture.user_id, "isEnabled": false})).await;
    let (got, body) = status(with_second().json(&request("native", false))).await;
    assert!(got == 401 && body["error"]["message"].as_str().unwrap().contains("user"), "{body}");
    gateway.admin("users/removeUser", json!({"userId": fixture.user_id})).await;
    assert_eq!(status(with_second().json(&request("native", false))).await.0, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_and_models_out_of_reach() {
    let fixture = Fixture::bare(&[]).await;
    let (got, body) = status(fixture.ask()).await;
    assert_eq!(
        (got, &body["error"]["type"]),
        (403, &json!("permission_error")),
        "no provider at all: {body}"
    );
    fixture.gateway.provider("native", &fixture.upstream.url, json!({"group_tag": "gold"})).await;
    assert_eq!(status(fixture.ask()).await.0, 403, "the provider is in another group");
    fixture
        .gateway
        .provider("native", &fixture.upstream.url, json!({"allowed_models": ["claude-*"]}))
        .await;
    let (got, body) = status(fixture.ask()).await;
    assert_eq!((got, &body["error"]["type"]), (404, &json!("not_found_error")), "{body}");
    let disabled = json!({"is_enabled": false, "allowed_models": ["m"]});
    fixture.gateway.provider("native", &fixture.upstream.url, disabled).await;
    assert_eq!(status(fixture.ask()).await.0, 404, "a disabled provider serves nothing");
    let rows = fixture.gateway.logs(4).await;
    assert!(
        rows.iter().all(|r| r["costUsd"] == 0 && r["providerId"].is_null()),
        "refusals cost nothing: {rows:?}"
    );
}
