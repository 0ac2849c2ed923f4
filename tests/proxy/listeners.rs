//! Listeners and connections to providers: TLS with HTTP/2, the administration on the proxy's
//! origin, a CONNECT proxy to a provider.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::fixture::{Fixture, request};
use crate::support::gateway::ADMIN_TOKEN;

#[tokio::test(flavor = "multi_thread")]
async fn tls_with_http2_and_http1() {
    let file = |name: &str| format!("{}/tests/admin/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let (cert, key) = (file("cert.pem"), file("key.pem"));
    let env =
        [("TOLLGATE_PROXY_TLS_CERT", cert.as_str()), ("TOLLGATE_PROXY_TLS_KEY", key.as_str())];
    let fixture = Fixture::bare(&env).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    let url = fixture.gateway.proxy.replace("http://", "https://");
    for (http1_only, version) in
        [(false, reqwest::Version::HTTP_2), (true, reqwest::Version::HTTP_11)]
    {
        let builder = reqwest::Client::builder().no_proxy().danger_accept_invalid_certs(true);
        let client = if http1_only { builder.http1_only() } else { builder }.build().unwrap();
        for stream in [false, true] {
            let post = client.post(format!("{url}/v1/messages")).bearer_auth(&fixture.key);
            let answer = post.json(&request("native", stream)).send().await.unwrap();
            assert_eq!((answer.version(), answer.status().as_u16()), (version, 200));
            assert!(!answer.text().await.unwrap().is_empty());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_administration_is_on_the_proxys_origin_only_where_that_is_set() {
    let call = |fixture: &Fixture, path: &str| {
        let post = fixture
            .gateway
            .client
            .post(format!("{}{path}", fixture.gateway.proxy))
            .bearer_auth(ADMIN_TOKEN);
        post.json(&json!({})).send()
    };
    let fixture = Fixture::bare(&[("TOLLGATE_PROXY_EXPOSE_ADMIN", "true")]).await;
    let answer = call(&fixture, "/api/actions/users/getUsers").await.unwrap();
    assert_eq!(answer.status(), 200);
    let users: Value = answer.json().await.unwrap();
    assert_eq!(users["data"][0]["name"], "ada", "{users}");
    assert_eq!(call(&fixture, "/api/actions/nobody/knows").await.unwrap().status(), 404);
    let get =
        |path: &str| fixture.gateway.client.get(format!("{}{path}", fixture.gateway.proxy)).send();
    let page = get("/dashboard").await.unwrap();
    assert_eq!(page.status(), 200);
    assert!(page.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    // The clients' paths, and requests that are not a page, stay the proxy's.
    assert_eq!(get("/v1/models").await.unwrap().status(), 401);
    let stray: Value = call(&fixture, "/chat/completions").await.unwrap().json().await.unwrap();
    assert!(stray["error"]["message"].is_string(), "{stray}");
    let fixture = Fixture::bare(&[]).await;
    let answer = call(&fixture, "/api/actions/users/getUsers").await.unwrap();
    assert_eq!(answer.status(), 404, "not served here by default");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_is_reached_through_its_connect_proxy() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy_url = format!("http://{}", listener.local_addr().unwrap());
    let tunnels = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tunnels);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(tunnel(client));
        }
    });
    let fixture = Fixture::bare(&[]).await;
    fixture
        .gateway
        .provider("native", &fixture.upstream.url, json!({"proxy_url": proxy_url}))
        .await;
    // A connection returns to the pool a moment after the client has its answer, so an immediate
    // request may get a new one.
    let mut used_again = false;
    for _ in 0..20 {
        let before = tunnels.load(Ordering::SeqCst);
        assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
        used_again |= tunnels.load(Ordering::SeqCst) == before;
    }
    assert!(used_again, "the tunnel is kept in the pool");
    assert!(tunnels.load(Ordering::SeqCst) > 0, "it goes through the proxy");
}

/// The behaviour of a CONNECT proxy.
async fn tunnel(mut client: TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let target = head.strip_prefix("CONNECT ").unwrap().split(' ').next().unwrap();
    let mut provider = TcpStream::connect(target).await.unwrap();
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut client, &mut provider).await;
}
