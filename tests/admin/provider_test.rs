//! The test of a provider: one real request in its own format, with a text as result, without its
//! credential.

use serde_json::{Value, json};

use super::gate::Gate;
use crate::support::upstream::Upstream;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_of_each_type_is_queried_in_its_own_format() {
    let gate = Gate::start().await;
    let mock = Upstream::start().await;
    for kind in ["native", "native-auth", "responses", "chat-compatible", "alt-cli"] {
        let body = json!({
            "name": kind, "url": mock.url, "key": "upstream-credential-0123456789", "provider_type": kind,
            "model_redirects": { "asked": "served" },
        });
        let id = gate.admin("providers/addProvider", body).await.data()["id"].clone();
        let result = gate
            .admin("providers/testProvider", json!({ "providerId": id, "model": "asked" }))
            .await
            .data();
        assert_eq!(
            (&result["ok"], &result["status"], &result["model"]),
            (&json!(true), &json!(200), &json!("served")),
            "{result}"
        );
        assert!(!result["message"].as_str().unwrap().is_empty(), "{result}");
        // Another address, which the stored key is not sent to.
        let wrong = json!({ "providerId": id, "model": "asked", "url": "http://127.0.0.1:1", "key": "given" });
        let result = gate.admin("providers/testProvider", wrong).await.data();
        assert_eq!((&result["ok"], &result["status"]), (&json!(false), &Value::Null), "{result}");
        assert!(!result["message"].as_str().unwrap().is_empty());
    }
    let unsaved =
        json!({ "url": mock.url, "key": "k", "provider_type": "chat-compatible", "model": "m" });
    assert_eq!(gate.admin("providers/testProvider", unsaved).await.data()["ok"], true);
    for (body, code, field) in [
        (json!({}), "REQUIRED_FIELD", "url"),
        (json!({ "url": mock.url }), "REQUIRED_FIELD", "key"),
        (json!({ "providerId": 999, "model": "m" }), "NOT_FOUND", ""),
    ] {
        let reply = gate.admin("providers/testProvider", body.clone()).await;
        assert_eq!(reply.failure(), (400, code), "{body}");
        assert!(
            field.is_empty() || reply.body["errorParams"]["field"] == field,
            "{:?}",
            reply.body
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_that_does_not_speak_tls_is_reported_as_such() {
    let (gate, mock) = (Gate::start().await, Upstream::start().await);
    let body = json!({ "url": mock.url.replace("http:", "https:"), "key": "k",
        "provider_type": "chat-compatible" });
    let result = gate.admin("providers/testProvider", body).await.data();
    assert_eq!((&result["ok"], &result["code"]), (&json!(false), &json!("tls_failed")), "{result}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_model_the_list_or_the_connection_says_what_is_wrong() {
    use axum::routing::get;
    let gate = Gate::start().await;
    let serving = |status: u16, body: &'static str| async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answer =
            move || async move { (axum::http::StatusCode::from_u16(status).unwrap(), body) };
        let app = axum::Router::new().fallback(get(answer));
        #[expect(clippy::disallowed_methods, reason = "the test's runtime outlives its server")]
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        url
    };
    let refused = r#"{"error": {"message": "no such key: the-upstream-key"}}"#;
    let cases = [
        (
            "http://127.0.0.1:1".to_owned(),
            "connection_refused",
            json!({ "host": "127.0.0.1", "port": 1 }),
            "",
        ),
        (
            "http://no-such-host.invalid".to_owned(),
            "unknown_host",
            json!({ "host": "no-such-host.invalid", "port": 80 }),
            "",
        ),
        (serving(401, refused).await, "unauthorized", json!({ "status": 401 }), "no such key: ***"),
        (serving(404, "nothing here").await, "not_found", json!({ "status": 404 }), "nothing here"),
        (serving(500, "{}").await, "provider_error", json!({ "status": 500 }), "{}"),
        (serving(200, "<html>").await, "not_a_reply", json!({ "status": 200 }), "<html>"),
        (
            serving(200, r#"{"data": []}"#).await,
            "no_models",
            json!({ "status": 200 }),
            "the provider lists no models: name one",
        ),
    ];
    for (url, code, params, message) in cases {
        let body =
            json!({ "url": url, "key": "the-upstream-key", "provider_type": "chat-compatible" });
        let result = gate.admin("providers/testProvider", body).await.data();
        assert_eq!(
            (&result["ok"], &result["stage"], &result["model"]),
            (&json!(false), &json!("listing"), &Value::Null)
        );
        assert_eq!((&result["code"], &result["params"]), (&json!(code), &params), "{result}");
        assert!(!result["message"].as_str().unwrap().is_empty(), "{result}");
        assert!(message.is_empty() || result["message"] == message, "{result}");
    }
    // With a list, its first model is asked for, and all are shown.
    let url = serving(200, r#"{"data": [{"id": "m-1"}, {"id": "m-2"}]}"#).await;
    let body = json!({ "url": url, "key": "k", "provider_type": "chat-compatible" });
    let result = gate.admin("providers/testProvider", body).await.data();
    assert_eq!(
        (&result["stage"], &result["model"], &result["models"]),
        (&json!("request"), &json!("m-1"), &json!(["m-1", "m-2"]))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_further_key_is_tested_where_it_may_be_sent() {
    let (gate, mock) = (Gate::start().await, Upstream::start().await);
    let body = json!({
        "name": "several", "url": mock.url, "key": "first-key", "provider_type": "native",
        "credentials": [{"name": "b", "key": "invalid"}, {"name": "c", "key": "third-key"}],
    });
    let id = gate.admin("providers/addProvider", body).await.data()["id"].clone();
    let asked = json!({ "providerId": id, "model": "m" });
    let result = gate.admin("providers/testProvider", asked).await.data();
    assert_eq!(result["ok"], true, "{result}");
    let told = |one: &Value| (one["name"].clone(), one["ok"].clone(), one["code"].clone());
    let all: Vec<_> = result["credentials"].as_array().unwrap().iter().map(told).collect();
    assert_eq!(all[0], (json!("b"), json!(false), json!("unauthorized")), "{result}");
    assert_eq!(all[1], (json!("c"), json!(true), json!("ok")), "{result}");
    assert!(!result.to_string().contains("third-key"), "{result}");
    // At another address only the key that is given is tested.
    let other = Upstream::start().await;
    let asked = json!({ "providerId": id, "model": "m", "url": other.url, "key": "given" });
    let result = gate.admin("providers/testProvider", asked).await.data();
    assert_eq!((&result["ok"], &result["credentials"]), (&json!(true), &json!([])), "{result}");
    let sent = other.requests().await;
    assert!(sent.iter().all(|one| one["headers"]["x-api-key"] == "given"), "{sent:?}");
}
