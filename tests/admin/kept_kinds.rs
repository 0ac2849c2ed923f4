//! A stored credential that is only exchanged, or that signs, is never sent itself; and stored
//! secrets that cannot be opened any more are not lost without a word.

use serde_json::{Value, json};
use sqlx::Connection;

use super::bodies::pem;
use super::gate::{Gate, Reply};
use crate::support::upstream::Upstream;

const APPLICATION: &str =
    r#"{"tenant_id":"tenant-1","client_id":"client-1","client_secret":"a-secret-of-entra"}"#;
const PLAIN: &str = "upstream-credential-0123456789";

async fn call(gate: &Gate, operation: &str, id: &Value, fields: Value) -> Reply {
    let mut body = json!({ "providerId": id });
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    gate.admin(operation, body).await
}

fn said(reply: &Reply) -> (u16, &str, &str) {
    let text = |name: &str| reply.body["errorParams"][name].as_str().unwrap_or_default();
    (reply.status.as_u16(), text("field"), text("reason"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_credential_that_is_exchanged_is_not_sent_itself_after_two_edits() {
    let gate = Gate::start().await;
    let mock = Upstream::start().await;
    let body = json!({ "name": "n", "url": mock.url, "auth": "azure-entra", "key": APPLICATION,
        "credentials": [{ "name": "b", "key": APPLICATION }] });
    let id = gate.admin("providers/addProvider", body).await.data()["id"].clone();
    for waits in ["none", "client"] {
        call(&gate, "providers/editProvider", &id, json!({ "auth": waits })).await.data();
        for auth in ["auto", "bearer", "x-api-key", "x-goog-api-key", "api-key", "aws-sigv4"] {
            for operation in ["providers/editProvider", "providers/testProvider"] {
                let reply = call(&gate, operation, &id, json!({ "auth": auth })).await;
                assert_eq!(said(&reply), (400, "key", "other_credential"), "{auth} {operation}");
            }
        }
    }
    // The further one is asked for as well.
    let key_alone = json!({ "auth": "bearer", "key": PLAIN });
    let reply = call(&gate, "providers/editProvider", &id, key_alone).await;
    assert_eq!(said(&reply), (400, "credentials", "other_credential"), "{:?}", reply.body);
    // Nor can it be entered for such an `auth`.
    for fields in [
        json!({ "auth": "bearer", "key": APPLICATION, "credentials": [] }),
        json!({ "auth": "bearer", "key": PLAIN, "credentials": [{ "name": "b", "key": APPLICATION }] }),
    ] {
        let reply = call(&gate, "providers/editProvider", &id, fields.clone()).await;
        let (status, _, reason) = said(&reply);
        assert_eq!((status, reason), (400, "credential_not_sent"), "{fields}");
    }
    assert_eq!(mock.requests().await, Vec::<Value>::new());
    // A key that is sent may wait and come back.
    let plain = json!({ "auth": "bearer", "key": PLAIN, "credentials": [{ "name": "b", "key": "another" }] });
    call(&gate, "providers/editProvider", &id, plain).await.data();
    for auth in ["none", "x-api-key"] {
        call(&gate, "providers/editProvider", &id, json!({ "auth": auth })).await.data();
    }
    assert_eq!(gate.state.snapshot().providers[0].key.expose(), PLAIN);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_secret_key_lost_a_new_key_alone_loses_no_other_secret() {
    let gate = Gate::start().await;
    let way = json!({ "proxy_url": "socks5://user:a-password@proxy.example:1080",
        "tls_client_key": pem("client.key") });
    let mut body = json!({ "name": "n", "url": "https://up.example", "key": PLAIN,
        "tls_client_certificate": pem("client.pem") });
    body.as_object_mut().unwrap().extend(way.as_object().unwrap().clone());
    let id = gate.admin("providers/addProvider", body).await.data()["id"].clone();
    sqlx::any::install_default_drivers();
    let url = format!("sqlite://{}", gate.dir.path().join("tollgate.db").display());
    let mut connection = sqlx::AnyConnection::connect(&url).await.unwrap();
    let meddle = "UPDATE providers SET key_cipher = 'v2:AAAA'";
    sqlx::query(meddle).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let with = |names: &[&str]| {
        let mut fields = json!({ "key": "another-credential" });
        for name in names {
            fields[*name] = way[*name].clone();
        }
        fields
    };
    for (fields, field) in [
        (json!({ "tls_client_key": way["tls_client_key"] }), "key"),
        (with(&[]), "tls_client_key"),
        (with(&["proxy_url"]), "tls_client_key"),
        (with(&["tls_client_key"]), "proxy_url"),
    ] {
        for operation in ["providers/editProvider", "providers/testProvider"] {
            let reply = call(&gate, operation, &id, fields.clone()).await;
            assert_eq!(said(&reply), (400, field, "stored_key_unreadable"), "{:?}", reply.body);
        }
    }
    // What is not secret may change; with all secrets the provider is whole again.
    call(&gate, "providers/editProvider", &id, json!({ "weight": 3 })).await.data();
    let all = with(&["proxy_url", "tls_client_key"]);
    call(&gate, "providers/editProvider", &id, all).await.data();
    let snapshot = gate.state.snapshot();
    let provider = &snapshot.providers[0];
    let secrets = [&provider.key, &provider.proxy_password, &provider.tls.client_key];
    let wanted = ["another-credential", "a-password", &pem("client.key")];
    assert_eq!(secrets.map(|secret| secret.expose().trim_end()), wanted);
}
