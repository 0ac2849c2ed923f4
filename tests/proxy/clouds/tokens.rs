//! Access tokens: fetched once for all, renewed early, and reported when there is none.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};
use tollgate::domain::clock::Timestamp;
use tollgate::domain::provider::Provider;
use tollgate::domain::provider_auth::ProviderAuth;
use tollgate::domain::secret::Secret;
use tollgate::upstream::tokens::TokenSource;

use super::super::fixture::{Fixture, request};
use super::{ask, newest};
use crate::support::upstream::Upstream;

const PEM: &str = include_str!("key.pem");
const SECRET: &str = "secret-of-the-application";

/// The key file of a service account whose tokens this upstream issues.
pub(super) fn account(upstream: &Upstream) -> String {
    json!({"type": "service_account", "project_id": "p", "private_key_id": "key-1", "private_key": PEM,
        "client_email": "gateway@p.iam.example", "token_uri": format!("{}/google/token", upstream.url)})
    .to_string()
}

fn application(upstream: &Upstream) -> String {
    json!({"tenant_id": "tenant-1", "client_id": "client-1", "client_secret": SECRET, "authority": upstream.url})
        .to_string()
}

/// The forms that the token endpoint received.
pub(super) async fn forms(upstream: &Upstream) -> Vec<Value> {
    let requests = upstream.requests().await;
    requests.into_iter().filter(|one| one["path"].as_str().unwrap().ends_with("/token")).collect()
}

pub(super) fn field<'a>(form: &'a str, name: &str) -> &'a str {
    let pair = form.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    pair.unwrap_or_default()
}

pub(super) fn source(auth: ProviderAuth, key: String) -> TokenSource {
    let mut provider = Provider::blank(Timestamp(0));
    (provider.auth, provider.key) = (auth, Secret::new(key));
    TokenSource::of(&provider).unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_account_signs_for_a_token() {
    let upstream = Upstream::start().await;
    let source = source(ProviderAuth::GcpServiceAccount, account(&upstream));
    let now = Timestamp(1_800_000_000_000);
    let token = source.token(now).await.unwrap();
    let token = token.header().unwrap();
    assert!(token.is_sensitive() && token.to_str().unwrap().starts_with("Bearer mock-token-"));
    let form = forms(&upstream).await[0]["body"].as_str().unwrap().to_owned();
    assert_eq!(
        field(&form, "grant%5Ftype"),
        "urn%3Aietf%3Aparams%3Aoauth%3Agrant%2Dtype%3Ajwt%2Dbearer"
    );
    let assertion =
        field(&form, "assertion").replace("%2E", ".").replace("%2D", "-").replace("%5F", "_");
    let (signed, signature) = assertion.rsplit_once('.').unwrap();
    let der = PrivatePkcs8KeyDer::from_pem_slice(PEM.as_bytes()).unwrap();
    let pair = ring::rsa::KeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
    public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    let part = |text: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
    };
    let (header, claims) = signed.split_once('.').unwrap();
    assert_eq!(part(header), json!({"alg": "RS256", "typ": "JWT", "kid": "key-1"}));
    let url = format!("{}/google/token", upstream.url);
    assert_eq!(
        part(claims),
        json!({"iss": "gateway@p.iam.example", "scope": "https://www.googleapis.com/auth/cloud-platform",
            "aud": url, "iat": 1_800_000_000, "exp": 1_800_003_600})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_fetches_a_token_for_all_and_renews_it_early() {
    let upstream = Upstream::start().await;
    let source = source(ProviderAuth::AzureEntra, application(&upstream));
    let at = |seconds: i64| Timestamp(1_800_000_000_000 + seconds * 1000);
    upstream.script(json!([{"delay_ms": 200}])).await;
    let first = join_all((0..20).map(|_| source.token(at(0)))).await;
    assert!(first.iter().all(|token| token.as_ref().unwrap() == first[0].as_ref().unwrap()));
    let seen = forms(&upstream).await;
    assert_eq!((seen.len(), &seen[0]["path"]), (1, &json!("/tenant-1/oauth2/v2.0/token")));
    let form = seen[0]["body"].as_str().unwrap();
    assert_eq!(field(form, "grant%5Ftype"), "client%5Fcredentials");
    assert_eq!(field(form, "client%5Fid"), "client%2D1");
    assert_eq!(field(form, "client%5Fsecret"), SECRET.replace('-', "%2D"));
    assert_eq!(field(form, "scope"), "https%3A%2F%2Fcognitiveservices%2Eazure%2Ecom%2F%2Edefault");
    // Until five minutes before its end (3 599 s) it is used; then one request renews it.
    assert_eq!(&source.token(at(3298)).await.unwrap(), first[0].as_ref().unwrap());
    assert_eq!(forms(&upstream).await.len(), 1);
    let renewed = source.token(at(3300)).await.unwrap();
    assert_ne!(&renewed, first[0].as_ref().unwrap());
    // If that fails, the present one is used to its end, and the next try is later.
    upstream.script(json!([{"status": 500}, {"status": 500}])).await;
    assert_eq!(source.token(at(6800)).await.unwrap(), renewed);
    assert_eq!(source.token(at(6820)).await.unwrap(), renewed);
    assert_eq!(forms(&upstream).await.len(), 3);
    let why = source.token(at(6900)).await.unwrap_err();
    let said = "The mock was asked to answer 500.";
    assert_eq!(why, format!("no access token: the token endpoint answered 500 {said}"));
    // For a moment nobody asks again.
    assert_eq!(forms(&upstream).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_the_provider_refuses_is_not_used_again() {
    let (fixture, issuer) = (Fixture::bare(&[]).await, Upstream::start().await);
    let fields = json!({"auth": "azure-entra", "key": application(&issuer)});
    fixture.gateway.provider("chat-compatible", &fixture.upstream.url, fields).await;
    fixture.upstream.script(json!([{"status": 401}])).await;
    let mut sent = Vec::new();
    for _ in 0..3 {
        ask(&fixture, "chat-compatible", false).await;
        sent.push(newest(&fixture.upstream).await["headers"]["authorization"].clone());
    }
    assert!(sent[0] != sent[1] && sent[1] == sent[2], "{sent:?}");
    assert_eq!(forms(&issuer).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_the_next_provider_is_asked() {
    let (fixture, issuer) = (Fixture::bare(&[]).await, Upstream::start().await);
    let refusal = json!({"error": "invalid_client", "error_description":
        format!("AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 1 {SECRET}")});
    issuer.default(json!({"status": 401, "body": refusal})).await;
    let fields = json!({"auth": "azure-entra", "key": application(&issuer), "priority": 0, "name": "entra",
        "max_retry_attempts": 1});
    let id = fixture.gateway.provider("chat-compatible", &fixture.upstream.url, fields).await;
    let spare = Upstream::start().await;
    fixture.gateway.provider("chat-compatible", &spare.url, json!({"priority": 5})).await;
    assert_eq!(ask(&fixture, "chat-compatible", false).await.0, 200);
    assert_eq!((spare.requests().await.len(), fixture.upstream.requests().await.len()), (1, 0));
    let row = fixture.gateway.logs(1).await.remove(0);
    let detail = json!({"requestId": row["requestId"]});
    let chain = fixture.gateway.admin("usage-logs/getUsageLogDetail", detail).await.to_string();
    assert!(chain.contains("AADSTS7000215") && chain.contains("no_token"), "{chain}");
    let health = fixture.gateway.admin("providers/getProvidersHealthStatus", json!({})).await;
    let message = health[0]["lastError"]["message"].as_str().unwrap();
    assert!(message.contains("Invalid client secret provided.  Trace ID: 1 ***"), "{message}");
    let tested = json!({"providerId": id, "model": "m"});
    let tested = fixture.gateway.admin("providers/testProvider", tested).await;
    assert_eq!((&tested["ok"], &tested["code"]), (&json!(false), &json!("no_token")), "{tested}");
    // With the right secret it is asked, with the token and not the secret.
    issuer.default(json!({})).await;
    let edit = json!({"providerId": id, "key": application(&issuer)});
    fixture.gateway.admin("providers/editProvider", edit).await;
    let asked = fixture.post("/v1/chat/completions", &request("chat-compatible", false));
    assert_eq!(asked.header("x-session-id", "other").send().await.unwrap().status(), 200);
    let seen = fixture.upstream.requests().await.pop().unwrap();
    let sent = seen["headers"]["authorization"].as_str().unwrap();
    assert!(sent.starts_with("Bearer mock-token-"), "{seen}");
    assert!(!seen.to_string().contains(SECRET), "{seen}");
    let log = fixture.gateway.log();
    assert!(!log.contains(SECRET) && !log.contains("mock-token-"), "{log}");
}
