//! Providers behind a proxy: HTTP and SOCKS5, with and without a login, over TLS, and proxies that
//! fail in every way. A proxy of these tests knows one name, which nothing else resolves.

mod failing;
mod mock;
mod passwords;

use serde_json::{Value, json};

use self::mock::{Kind, MockProxy};
use super::fixture::Fixture;
use crate::resilience::http2_provider::trusted;
use crate::support::upstream::Upstream;

/// Resolved by the proxy alone.
const PROVIDER: &str = "http://provider.invalid";
const PASSWORD: &str = "p@ss:of/the proxy%";
const ENCODED: &str = "p%40ss:of/the%20proxy%25";

/// The result of a test of the provider.
async fn tested(fixture: &Fixture, id: i64) -> Value {
    let body = json!({"providerId": id, "model": "m"});
    fixture.gateway.admin("providers/testProvider", body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_the_gateways_own_exchanges_go_through_the_proxy() {
    let trusted = trusted();
    let env: Vec<_> = trusted.iter().map(|(name, value)| (*name, &**value)).collect();
    for (scheme, kind, login) in [
        ("http", Kind::Http, false),
        ("http", Kind::Http, true),
        ("https", Kind::Https, true),
        ("socks5", Kind::Socks, false),
        ("socks5", Kind::Socks, true),
        ("socks5h", Kind::Socks, true),
    ] {
        let fixture = Fixture::bare(&env).await;
        let wanted = login.then_some(("user", PASSWORD));
        let proxy = MockProxy::start(kind, wanted, &fixture.upstream.url).await;
        let user = if login { format!("user:{ENCODED}@") } else { String::new() };
        let url = format!("{scheme}://{user}localhost:{}", proxy.port);
        let id = fixture.gateway.provider("native", PROVIDER, json!({"proxy_url": url})).await;
        let case = format!("{scheme} {login}");
        assert_eq!(fixture.ask().send().await.unwrap().status(), 200, "{case}");
        assert_eq!(proxy.targets(), ["provider.invalid:80"], "{case}");
        let result = tested(&fixture, id).await;
        assert_eq!(result["code"], "ok", "{case}: {result}");
        assert!(result["models"][0].is_string(), "{case}: {result}");
        assert!(proxy.targets().len() > 1, "{case}: the test has a way of its own");
        let listed = fixture.gateway.client.get(format!("{}/v1/models", fixture.gateway.proxy));
        let listed = listed.header("x-api-key", &fixture.key).send().await.unwrap();
        assert_eq!(listed.status(), 200, "{case}");
        let record = fixture.gateway.admin("providers/getProviders", json!({})).await;
        let shown = record[0]["proxyUrl"].as_str().unwrap();
        let masked = url.replace(ENCODED, "***");
        assert_eq!(shown, masked, "{case}");
        let everything = format!("{record}{}", fixture.gateway.log());
        assert!(!everything.contains(PASSWORD) && !everything.contains(ENCODED), "{case}");
    }
}

/// An access token is asked for through the proxy too, and a metadata service is not.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_fetched_through_the_proxy() {
    let issuer = Upstream::start().await;
    let behind_tls = mock::with_tls(&issuer.url).await;
    let trusted = trusted();
    let metadata = issuer.url.trim_start_matches("http://").to_owned();
    let env: Vec<_> = trusted
        .iter()
        .map(|(name, value)| (*name, &**value))
        .chain([("GCE_METADATA_HOST", &*metadata)])
        .collect();
    let fixture = Fixture::bare(&env).await;
    let login = Some(("user", PASSWORD));
    let proxy = MockProxy::start(Kind::Socks, login, &fixture.upstream.url).await;
    let secret = json!({"tenant_id": "tenant-1", "client_id": "client-1", "client_secret": "a-secret",
        "authority": format!("https://localhost:{}", behind_tls)});
    let url = format!("socks5://user:{ENCODED}@127.0.0.1:{}", proxy.port);
    let fields = json!({"auth": "azure-entra", "key": secret.to_string(), "proxy_url": url});
    let id = fixture.gateway.provider("native", PROVIDER, fields).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    let token = format!("localhost:{behind_tls}");
    assert_eq!(proxy.targets(), [&token, "provider.invalid:80"]);
    let edit =
        json!({"providerId": id, "auth": "gcp-service-account", "key": "{\"type\": \"metadata\"}"});
    fixture.gateway.admin("providers/editProvider", edit).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    let targets = proxy.targets();
    assert_eq!(targets.iter().filter(|one| **one == token).count(), 1, "{targets:?}");
    assert_eq!(issuer.requests().await.len(), 2);
}
