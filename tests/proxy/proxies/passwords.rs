//! The password of a proxy: kept where its mask is sent back, and asked for again for another
//! proxy.

use serde_json::{Value, json};

use super::mock::{Kind, MockProxy};
use super::{ENCODED, PASSWORD, PROVIDER, tested};
use crate::proxy::fixture::Fixture;

async fn shown(fixture: &Fixture) -> Value {
    fixture.gateway.admin("providers/getProviders", json!({})).await[0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_stays_with_its_proxy() {
    let fixture = Fixture::bare(&[]).await;
    let login = Some(("user", PASSWORD));
    let proxy = MockProxy::start(Kind::Socks, login, &fixture.upstream.url).await;
    let place = format!("localhost:{}", proxy.port);
    let masked = format!("socks5://user:***@{place}");
    let url = format!("socks5://user:{ENCODED}@{place}");
    let id = fixture.gateway.provider("native", PROVIDER, json!({"proxy_url": url})).await;
    let edit = async |mut fields: Value| {
        fields["providerId"] = id.into();
        fixture.gateway.call("providers/editProvider", fields).await
    };
    // The mask keeps it, in an edit and in a test.
    assert_eq!(edit(json!({"proxy_url": masked, "weight": 3})).await.0, 200);
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    let body = json!({"providerId": id, "model": "m", "proxy_url": masked});
    let result = fixture.gateway.admin("providers/testProvider", body).await;
    assert_eq!(result["code"], "ok", "{result}");
    // Another proxy gets neither the key nor the password.
    let thief = MockProxy::start(Kind::Socks, login, &fixture.upstream.url).await;
    let other = format!("socks5://user:***@localhost:{}", thief.port);
    for (key, field) in [(None, "key"), (Some("another-key"), "proxy_url")] {
        let mut body = json!({"proxy_url": other, "providerId": id});
        if let Some(key) = key {
            body["key"] = key.into();
        }
        for operation in ["providers/editProvider", "providers/testProvider"] {
            let (status, answer) = fixture.gateway.call(operation, body.clone()).await;
            let params = &answer["errorParams"];
            let said = (status, &params["field"], &params["reason"]);
            assert_eq!(said, (400, &json!(field), &json!("other_proxy")), "{answer}");
        }
    }
    assert!(thief.targets().is_empty());
    // Another password for the same proxy needs no key, and old connections are not used for it.
    proxy.change("the-next-one");
    let before = proxy.targets().len();
    let next = format!("socks5://user:the-next-one@{place}");
    assert_eq!(edit(json!({"proxy_url": next})).await.0, 200);
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    assert_eq!(proxy.targets().len(), before + 1);
    assert_eq!(shown(&fixture).await["proxyUrl"], masked);
    // Without a password the stored one is forgotten.
    assert_eq!(edit(json!({"proxy_url": format!("socks5://user@{place}")})).await.0, 200);
    assert_eq!(tested(&fixture, id).await["code"], "proxy_login");
    let (status, answer) = edit(json!({"proxy_url": masked})).await;
    let reason = &answer["errorParams"]["reason"];
    assert_eq!((status, reason), (400, &json!("is_masked")), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_of_proxies_are_checked() {
    let fixture = Fixture::bare(&[]).await;
    for url in [
        "socks4://localhost:1080",
        "http://:password@localhost:1",
        "http://user:pass@localhost:1/path",
        "http://user:a%0Ab@localhost:1",
        "socks5://localhost:0",
        "socks5://user:pass@",
        "localhost:1080",
    ] {
        let body = json!({"name": "n", "url": PROVIDER, "key": "k", "proxy_url": url});
        let (status, answer) = fixture.gateway.call("providers/addProvider", body).await;
        let reason = &answer["errorParams"]["reason"];
        assert_eq!((status, reason), (400, &json!("must_be_proxy_address")), "{url}: {answer}");
    }
}
