//! The identity of the machine: variables of the gateway's process say where its tokens come from.

use serde_json::{Value, json};

use super::super::fixture::Fixture;
use super::identities::SUBJECT;
use super::{ask, newest};
use crate::support::upstream::Upstream;

const RESOURCE: &str = "resource=https%3A%2F%2Fcognitiveservices%2Eazure%2Ecom";

/// Two requests take one token, which this upstream issues; what it says of a failure is shown.
/// Returns the request for the token.
async fn issued(issuer: &Upstream, env: &[(&str, &str)], auth: &str, key: Value) -> Value {
    let fixture = Fixture::bare(env).await;
    let fields = json!({"auth": auth, "key": key.to_string()});
    let id = fixture.gateway.provider("chat-compatible", &fixture.upstream.url, fields).await;
    for _ in 0..2 {
        assert_eq!(ask(&fixture, "chat-compatible", false).await.0, 200, "{key}");
    }
    let sent = newest(&fixture.upstream).await["headers"]["authorization"].clone();
    assert!(sent.as_str().unwrap().starts_with("Bearer mock-token-"), "{sent}");
    let asked = issuer.requests().await;
    assert_eq!(asked.len(), 1, "{asked:?}");
    let said = json!({"error": "invalid", "error_description": "no identity for a-secret-header"});
    issuer.default(json!({"status": 400, "body": said})).await;
    let body = json!({"providerId": id, "model": "m"});
    let result = fixture.gateway.admin("providers/testProvider", body).await;
    assert_eq!(result["code"], "no_token", "{result}");
    let message = result["message"].as_str().unwrap();
    assert!(message.contains("400 no identity for"), "{message}");
    let is_secret = env.iter().any(|(_, value)| *value == "a-secret-header");
    assert_eq!(message.ends_with("***"), is_secret, "{message}");
    asked[0].clone()
}

fn path_and_query(request: &Value) -> (&str, &str) {
    (request["path"].as_str().unwrap(), request["query"].as_str().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn googles_metadata_server_issues_the_token() {
    let issuer = Upstream::start().await;
    let host = issuer.url.trim_start_matches("http://").to_owned();
    let env = [("GCE_METADATA_HOST", &*host)];
    let key = json!({"type": "metadata"});
    let asked = issued(&issuer, &env, "gcp-service-account", key).await;
    let path = "/computeMetadata/v1/instance/service-accounts/default/token";
    assert_eq!(path_and_query(&asked), (path, ""));
    assert_eq!(asked["headers"]["metadata-flavor"], "Google");
}

#[tokio::test(flavor = "multi_thread")]
async fn azures_metadata_service_issues_the_token() {
    let issuer = Upstream::start().await;
    let env = [("AZURE_POD_IDENTITY_AUTHORITY_HOST", &*issuer.url)];
    let key = json!({"source": "managed_identity"});
    let asked = issued(&issuer, &env, "azure-entra", key).await;
    let query = format!("api-version=2018-02-01&{RESOURCE}");
    assert_eq!(path_and_query(&asked), ("/metadata/identity/oauth2/token", &*query));
    assert_eq!(asked["headers"]["metadata"], "true");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apps_endpoint_at_azure_issues_the_token() {
    let issuer = Upstream::start().await;
    let app = format!("{}/msi/token", issuer.url);
    let env = [("IDENTITY_ENDPOINT", &*app), ("IDENTITY_HEADER", "a-secret-header")];
    let key = json!({"source": "managed_identity", "client_id": "c-1"});
    let asked = issued(&issuer, &env, "azure-entra", key).await;
    let query = format!("api-version=2019-08-01&{RESOURCE}&client_id=c%2D1");
    assert_eq!(path_and_query(&asked), ("/msi/token", &*query));
    assert_eq!(asked["headers"]["x-identity-header"], "a-secret-header");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_federated_token_of_the_pod_is_exchanged() {
    let issuer = Upstream::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("federated").display().to_string();
    std::fs::write(&file, SUBJECT).unwrap();
    let env = [
        ("AZURE_TENANT_ID", "tenant-1"),
        ("AZURE_CLIENT_ID", "client-1"),
        ("AZURE_FEDERATED_TOKEN_FILE", &*file),
        ("AZURE_AUTHORITY_HOST", &*issuer.url),
    ];
    let key = json!({"source": "workload_identity"});
    let asked = issued(&issuer, &env, "azure-entra", key).await;
    assert_eq!(path_and_query(&asked), ("/tenant-1/oauth2/v2.0/token", ""));
    let form = asked["body"].as_str().unwrap();
    assert!(form.contains(&SUBJECT.replace('.', "%2E")), "{form}");
}
