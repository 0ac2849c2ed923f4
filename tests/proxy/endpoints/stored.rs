//! Calls about a stored reply: they go to the account that gave it, for the key that got it.

use serde_json::{Value, json};

use super::super::fixture::{Fixture, request};

pub async fn call(fixture: &Fixture, method: &str, path: &str, key: &str) -> (u16, Value) {
    let url = format!("{}{path}", fixture.gateway.proxy);
    let method = method.parse().unwrap();
    let sent = fixture.gateway.client.request(method, url).bearer_auth(key).send();
    let answer = sent.await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_about_a_reply_go_to_its_provider_and_cost_nothing() {
    let fixture = Fixture::bare(&[]).await;
    for key in ["first", "second"] {
        let fields = json!({"key": key, "name": key});
        fixture.gateway.provider("responses", &fixture.upstream.url, fields).await;
    }
    let answer = fixture.post("/v1/responses", &request("responses", false)).send().await.unwrap();
    let reply: Value = answer.json().await.unwrap();
    let id = reply["id"].as_str().unwrap();
    let holder =
        fixture.upstream.requests().await.pop().unwrap()["headers"]["authorization"].clone();
    let path = format!("/v1/responses/{id}");
    let items = format!("{path}/input_items?limit=2");
    let cancel = format!("{path}/cancel");
    for (at, (method, path, member, expected)) in [
        ("GET", &*path, "status", json!("completed")),
        ("GET", &items, "object", json!("list")),
        ("POST", &cancel, "status", json!("cancelled")),
        ("DELETE", &path, "deleted", json!(true)),
    ]
    .into_iter()
    .enumerate()
    {
        let (status, body) = call(&fixture, method, path, &fixture.key).await;
        assert_eq!(status, 200, "{method} {path}: {body}");
        assert_eq!(body[member], expected, "{method} {path}: {body}");
        let asked = fixture.upstream.requests().await.pop().unwrap();
        assert_eq!(asked["method"], method);
        assert_eq!(asked["path"], path.split('?').next().unwrap());
        assert_eq!(asked["headers"]["authorization"], holder, "{method} {path}");
        assert_eq!(asked["body_bytes"], 0);
        let log = fixture.gateway.logs(at + 2).await;
        assert_eq!(log[0]["costUsd"], 0, "{method} {path}: {}", log[0]);
        assert_eq!(log[0]["statusCode"], 200);
    }
    // Another key did not get it, and nobody got another one.
    let (_, _, other) = fixture.gateway.user(json!({"name": "bob"})).await;
    let unknown = "/v1/responses/resp_unknown";
    for (path, key) in [(&*path, &other), (unknown, &fixture.key), (&cancel[..], &other)] {
        let method = if path == cancel { "POST" } else { "GET" };
        let (status, body) = call(&fixture, method, path, key).await;
        assert_eq!(status, 404, "{path}: {body}");
        assert!(body["error"]["message"].as_str().unwrap().contains("not found"), "{body}");
    }
    let (status, _) = call(&fixture, "PUT", &path, &fixture.key).await;
    assert_eq!(status, 405);
    let clients = json!({"userId": fixture.user_id, "allowedClients": ["nobodys-client"]});
    fixture.gateway.admin("users/editUser", clients).await;
    assert_eq!(call(&fixture, "GET", &path, &fixture.key).await.0, 403, "another client");
    let clients = json!({"userId": fixture.user_id, "allowedClients": []});
    fixture.gateway.admin("users/editUser", clients).await;
    for provider in
        fixture.gateway.admin("providers/getProviders", json!({})).await.as_array().unwrap()
    {
        let id = json!({"providerId": provider["id"]});
        fixture.gateway.admin("providers/removeProvider", id).await;
    }
    assert_eq!(call(&fixture, "GET", &path, &fixture.key).await.0, 404, "a removed provider");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_providers_own_error_reaches_the_client() {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("responses", &fixture.upstream.url, json!({})).await;
    let answer = fixture.post("/v1/responses", &request("responses", false)).send().await.unwrap();
    let reply: Value = answer.json().await.unwrap();
    let path = format!("/v1/responses/{}", reply["id"].as_str().unwrap());
    let error = json!({"message": "Response is gone.", "type": "invalid_request_error"});
    fixture.upstream.default(json!({"status": 404, "body": {"error": error}})).await;
    let (status, body) = call(&fixture, "GET", &path, &fixture.key).await;
    assert_eq!((status, &body["error"]["message"]), (404, &json!("Response is gone.")));
}
