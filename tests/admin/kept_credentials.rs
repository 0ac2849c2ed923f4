//! A stored credential is used and never read: an administrator cannot have it sent to an address
//! of their own. A listener records everything that arrives there.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::bodies::pem;
use super::gate::Gate;
use crate::support::upstream::Upstream;

const KEY: &str = "upstream-credential-0123456789";
const OTHER: &str = "another-credential-9876543210";

/// Accepts every connection, answers each request with `answer`, and records what arrived.
struct Listener {
    url: String,
    port: u16,
    came: Arc<Mutex<String>>,
    _tasks: JoinSet<()>,
}

impl Listener {
    async fn start(answer: String) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = socket.local_addr().unwrap().port();
        let came: Arc<Mutex<String>> = Arc::default();
        let (kept, mut tasks) = (Arc::clone(&came), JoinSet::new());
        tasks.spawn(async move {
            loop {
                let (mut stream, _) = socket.accept().await.unwrap();
                kept.lock().unwrap().push_str("(a connection)\n");
                let mut bytes = [0; 8192];
                while let Ok(read @ 1..) = stream.read(&mut bytes).await {
                    kept.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            }
        });
        Self { url: format!("http://127.0.0.1:{port}"), port, came, _tasks: tasks }
    }

    async fn thief() -> Self {
        let body = r#"{"data":[],"content":[]}"#;
        Self::start(format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        ))
        .await
    }

    fn came(&self) -> String {
        self.came.lock().unwrap().clone()
    }
}

async fn add(gate: &Gate, url: &str, fields: Value) -> i64 {
    let mut body = json!({ "name": "kept", "url": url, "key": KEY });
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    gate.admin("providers/addProvider", body).await.data()["id"].as_i64().unwrap()
}

/// Changes of the destination: as the fields of a test, and of an edit.
fn ways(mock: &Upstream, thief: &Listener) -> Vec<Value> {
    let port = mock.url.rsplit(':').next().unwrap();
    vec![
        json!({ "url": thief.url }),
        json!({ "url": format!("{}/v1", thief.url), "provider_type": "chat-compatible" }),
        json!({ "url": thief.url, "provider_type": "alt-cli" }),
        json!({ "url": format!("http://localhost:{}", thief.port) }),
        json!({ "url": format!("http://localhost:{port}") }),
        json!({ "url": mock.url.replace("http://", "https://") }),
        json!({ "proxy_url": thief.url }),
        json!({ "url": mock.url, "proxy_url": thief.url }),
        json!({ "url": format!("{}/another/path", mock.url), "proxy_url": thief.url, "provider_type": "responses" }),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_sends_the_stored_key_nowhere_but_where_it_was_stored_for() {
    let gate = Gate::start().await;
    let (mock, thief) = (Upstream::start().await, Listener::thief().await);
    let id = add(&gate, &mock.url, json!({})).await;
    for way in ways(&mock, &thief) {
        let mut body = json!({ "providerId": id, "model": "m" });
        body.as_object_mut().unwrap().extend(way.as_object().unwrap().clone());
        let reply = gate.admin("providers/testProvider", body.clone()).await;
        assert_eq!(reply.failure(), (400, "REQUIRED_FIELD"), "{way}: {:?}", reply.body);
        assert_eq!(reply.body["errorParams"]["field"], "key", "{way}");
        assert_eq!(thief.came(), "", "{way}: something arrived");
    }
    // With a key of the caller's own the request goes there, without the stored one.
    let body = json!({ "providerId": id, "model": "m", "url": thief.url, "key": OTHER });
    gate.admin("providers/testProvider", body).await.data();
    assert!(thief.came().contains(OTHER) && !thief.came().contains(KEY), "{}", thief.came());
    // Path and type do not change the receiver.
    let body = json!({ "providerId": id, "model": "m", "url": format!("{}/v1", mock.url), "provider_type": "chat-compatible" });
    assert_eq!(gate.admin("providers/testProvider", body).await.data()["ok"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_follows_no_redirect_with_the_key() {
    let gate = Gate::start().await;
    let thief = Listener::thief().await;
    for status in ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let answer = format!(
            "HTTP/1.1 {status}\r\nlocation: {}/v1/messages\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            thief.url
        );
        let moved = Listener::start(answer).await;
        let id = add(&gate, &moved.url, json!({})).await;
        let result = gate
            .admin("providers/testProvider", json!({ "providerId": id, "model": "m" }))
            .await
            .data();
        assert_eq!(result["ok"], false, "{result}");
        assert!(moved.came().contains(KEY), "the provider itself gets it");
        assert_eq!(thief.came(), "", "{status} was followed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_provider_echoes_of_the_key_is_not_shown() {
    let gate = Gate::start().await;
    let key = "quoted\"and\\escaped-0123456789";
    let quoted = json!(key).to_string();
    let body = format!(r#"{{"data":[{{"id":{quoted}}}],"oddity":{quoted}}}"#);
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let echo = Listener::start(answer).await;
    let body = json!({ "name": "echo", "url": echo.url, "key": key });
    let id = gate.admin("providers/addProvider", body).await.data()["id"].clone();
    let result = gate
        .admin("providers/testProvider", json!({ "providerId": id, "model": "m" }))
        .await
        .data();
    let shown = result.to_string();
    assert!(!shown.contains("escaped-0123456789"), "{shown}");
    assert_eq!(result["models"], json!(["***"]), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_to_another_destination_asks_for_the_key() {
    let gate = Gate::start().await;
    let (mock, thief) = (Upstream::start().await, Listener::thief().await);
    let id = add(&gate, &mock.url, json!({})).await;
    let record = async || gate.admin("providers/getProviders", json!({})).await.data()[0].clone();
    let before = record().await;
    for way in ways(&mock, &thief) {
        let mut body = json!({ "providerId": id });
        body.as_object_mut().unwrap().extend(way.as_object().unwrap().clone());
        let reply = gate.admin("providers/editProvider", body).await;
        assert_eq!(reply.failure(), (400, "REQUIRED_FIELD"), "{way}: {:?}", reply.body);
        assert_eq!(reply.body["errorParams"]["field"], "key", "{way}");
        assert!(
            reply.body["error"].as_str().unwrap().contains("enter it again"),
            "{:?}",
            reply.body
        );
        assert_eq!(record().await, before, "{way}");
    }
    let edit = async |fields: Value| {
        let mut body = json!({ "providerId": id });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        gate.admin("providers/editProvider", body).await
    };
    // The same origin in another spelling, another path, another type, the same proxy: no key
    // needed.
    edit(json!({ "url": format!("{}/v1/", mock.url), "provider_type": "responses", "name": "n" }))
        .await
        .data();
    assert_eq!(gate.state.snapshot().providers[0].key.expose(), KEY);
    // With the key it is accepted; the way back needs it as well.
    edit(json!({ "proxy_url": thief.url, "key": OTHER })).await.data();
    edit(json!({ "proxy_url": thief.url, "weight": 3 })).await.data();
    assert_eq!(edit(json!({ "proxy_url": null })).await.failure(), (400, "REQUIRED_FIELD"));
    edit(json!({ "url": thief.url, "key": OTHER })).await.data();
    let snapshot = gate.state.snapshot();
    assert_eq!(
        (snapshot.providers[0].url.as_str(), snapshot.providers[0].key.expose()),
        (thief.url.as_str(), OTHER)
    );
    assert!(!thief.came().contains(KEY), "{}", thief.came());
}

/// Who may choose the authorities chooses which server is believed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_authorities_ask_for_all_that_the_provider_gets() {
    let gate = Gate::start().await;
    let thief = Listener::thief().await;
    let url = thief.url.replace("http://", "https://");
    let (header, further) =
        (json!({ "x-own": "${a-secret-part}" }), json!([{ "name": "b", "key": OTHER }]));
    let id = add(&gate, &url, json!({ "custom_headers": header, "credentials": further })).await;
    let sent = async |operation: &str, fields: &Value| {
        let mut body = json!({ "providerId": id });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        gate.admin(operation, body).await
    };
    let edit = async |fields: Value| sent("providers/editProvider", &fields).await;
    let all = |name: &str| json!({ "tls_ca": pem(name), "key": KEY, "credentials": further, "custom_headers": header });
    let refused = async |name: &str| {
        for (lacks, field) in [
            (&["key", "credentials", "custom_headers"][..], "key"),
            (&["credentials", "custom_headers"], "credentials"),
            (&["custom_headers"], "custom_headers"),
        ] {
            let mut fields = all(name);
            fields.as_object_mut().unwrap().retain(|name, _| !lacks.contains(&name.as_str()));
            for operation in ["providers/editProvider", "providers/testProvider"] {
                // A test takes no further credentials, and sends none of them.
                if operation.ends_with("testProvider") && field == "credentials" {
                    continue;
                }
                let mut fields = fields.clone();
                if operation.ends_with("testProvider") {
                    fields.as_object_mut().unwrap().remove("credentials");
                }
                let reply = sent(operation, &fields).await;
                let said =
                    (&reply.body["errorParams"]["field"], &reply.body["errorParams"]["reason"]);
                let wanted = (&json!(field), &json!("other_authorities"));
                assert_eq!(said, wanted, "{operation}: {:?}", reply.body);
            }
        }
    };
    refused("ca.pem").await;
    assert_eq!(thief.came(), "", "no connection was made");
    edit(all("ca.pem")).await.data();
    // The same ones, with other line ends.
    edit(json!({ "tls_ca": pem("ca.pem").replace('\n', "\r\n"), "weight": 2 })).await.data();
    refused("other-ca.pem").await;
    // Removing them is free, and adding them again is not.
    edit(json!({ "tls_ca": null })).await.data();
    refused("ca.pem").await;
    assert_eq!(gate.state.snapshot().providers[0].key.expose(), KEY);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_test_is_audited_and_the_key_is_in_none_of_the_records() {
    let gate = Gate::start().await;
    let (mock, thief) = (Upstream::start().await, Listener::thief().await);
    let id = add(&gate, &mock.url, json!({})).await;
    let version = gate.store.config_version().await.unwrap();
    gate.admin("providers/testProvider", json!({ "providerId": id, "model": "m" })).await.data();
    gate.admin(
        "providers/testProvider",
        json!({ "providerId": id, "model": "m", "url": thief.url }),
    )
    .await;
    let unsaved = json!({ "url": format!("{}/v1", mock.url), "key": OTHER, "provider_type": "chat-compatible" });
    let mut named = unsaved.clone();
    named["model"] = json!("m");
    gate.admin("providers/testProvider", named).await.data();
    let no_provider = json!({ "url": thief.url, "key": OTHER });
    assert_eq!(gate.admin("providers/testProvider", no_provider).await.data()["ok"], false);

    let page =
        gate.admin("audit/getAuditLog", json!({ "action": "providers.testProvider" })).await.data();
    let entries = page["entries"].as_array().unwrap();
    let result: Vec<Value> = entries
        .iter()
        .rev()
        .map(|e| json!([e["target"], e["after"]["url"], e["after"]["key"]]))
        .collect();
    let target = format!("provider {id}");
    assert_eq!(
        result,
        [
            json!([target, mock.url, "stored"]),
            json!([target, thief.url, "stored"]),
            json!(["unsaved provider", format!("{}/v1", mock.url), "sent with the test"]),
            json!(["unsaved provider", thief.url, "sent with the test"]),
        ]
    );
    let outcome = |n: usize| &entries[entries.len() - 1 - n]["after"];
    assert_eq!((&outcome(0)["ok"], &outcome(0)["status"]), (&json!(true), &json!(200)));
    assert!(outcome(1)["refused"].as_str().unwrap().contains("enter it again"), "{}", outcome(1));
    assert_eq!(outcome(3)["ok"], false, "{}", outcome(3));
    assert_eq!(
        (&entries[0]["actor"], &entries[0]["clientAddress"]),
        (&json!("admin token"), &json!("127.0.0.1"))
    );
    assert!(!page.to_string().contains("credential-"), "{page}");
    assert_eq!(
        gate.store.config_version().await.unwrap(),
        version,
        "a test changes no configuration"
    );
}

#[tokio::test]
async fn a_removed_provider_leaves_no_credential() {
    let gate = Gate::start().await;
    let id = add(&gate, "https://up.example", json!({})).await;
    gate.admin("providers/removeProvider", json!({ "providerId": id })).await.data();
    use sqlx::{Connection, Row};
    sqlx::any::install_default_drivers();
    let url = format!("sqlite://{}", gate.dir.path().join("tollgate.db").display());
    let mut connection = sqlx::AnyConnection::connect(&url).await.unwrap();
    let row =
        sqlx::query("SELECT key_cipher FROM providers").fetch_one(&mut connection).await.unwrap();
    assert_eq!(row.get::<String, _>("key_cipher"), "");
}
