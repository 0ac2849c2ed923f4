//! Connections above the limits: in total and by address, of clients and to the administration,
//! before TLS and behind.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpSocket, TcpStream};

use super::attack::{Attack, SOON};
use crate::proxy::fixture::{Fixture, request};
use crate::support::gateway::{ADMIN_TOKEN, Gateway};

/// A connection from another address of this machine.
async fn from(address: &str, to: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
    socket.connect(to.parse().unwrap()).await.unwrap()
}

async fn hold(address: &str, count: usize) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for _ in 0..count {
        held.push(TcpStream::connect(address).await.unwrap());
    }
    held
}

fn client(http2: bool) -> reqwest::Client {
    // Installs the TLS provider.
    drop(crate::support::gateway::client());
    let builder =
        reqwest::Client::builder().no_proxy().danger_accept_invalid_certs(true).timeout(SOON);
    if http2 { builder.build() } else { builder.http1_only().build() }.unwrap()
}

/// The answer contains the reason and when to retry.
async fn refused(answer: reqwest::Response) {
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.headers()["retry-after"], "5");
    let body: Value = answer.json().await.unwrap();
    assert_eq!(body["error"]["code"], "too_many_connections", "{body}");
    assert!(body["error"]["message"].as_str().unwrap().contains("too many connections"), "{body}");
}

/// Clients that never finish their handshake take places too.
#[tokio::test(flavor = "multi_thread")]
async fn with_tls_handshakes_are_counted_and_both_versions_of_http_are_reported() {
    let file = |name: &str| format!("{}/tests/admin/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let (cert, key) = (file("cert.pem"), file("key.pem"));
    let env = [
        ("TOLLGATE_PROXY_TLS_CERT", cert.as_str()),
        ("TOLLGATE_PROXY_TLS_KEY", key.as_str()),
        ("TOLLGATE_PROXY_MAX_CONNECTIONS", "3"),
    ];
    let fixture = Fixture::native_with(&env).await;
    let gateway = &fixture.gateway;
    gateway.metric_shows("tollgate_connections", |open| open == 0.0).await;
    let mut handshakes = hold(gateway.proxy_addr(), 3).await;
    gateway.metric_shows("tollgate_connections", |open| open == 3.0).await;
    let url = format!("{}/v1/messages", gateway.proxy.replace("http://", "https://"));
    let ask = |http2| {
        client(http2).post(&url).bearer_auth(&fixture.key).json(&request("native", false)).send()
    };
    for http2 in [true, false] {
        let answer = ask(http2).await.unwrap();
        let version = if http2 { reqwest::Version::HTTP_2 } else { reqwest::Version::HTTP_11 };
        assert_eq!(answer.version(), version);
        refused(answer).await;
    }
    // An abandoned handshake releases its place.
    handshakes.pop();
    gateway.metric_shows("tollgate_connections", |open| open == 2.0).await;
    assert_eq!(ask(true).await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_tls_both_versions_of_http_are_answered() {
    let fixture = super::attack::fixture(&[("TOLLGATE_PROXY_MAX_CONNECTIONS", "3")]).await;
    fixture.gateway.metric_shows("tollgate_connections", |open| open == 0.0).await;
    let _held = hold(fixture.gateway.proxy_addr(), 3).await;
    fixture.gateway.metric_shows("tollgate_connections", |open| open == 3.0).await;
    let http2 = reqwest::Client::builder()
        .no_proxy()
        .http2_prior_knowledge()
        .timeout(SOON)
        .build()
        .unwrap();
    for client in [client(false), http2] {
        let url = format!("{}/v1/messages", fixture.gateway.proxy);
        refused(
            client
                .post(url)
                .bearer_auth(&fixture.key)
                .json(&request("native", false))
                .send()
                .await
                .unwrap(),
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_does_not_take_the_places_of_the_others() {
    let fixture =
        Fixture::native_with(&[("TOLLGATE_PROXY_MAX_CONNECTIONS_PER_ADDRESS", "3")]).await;
    let gateway = &fixture.gateway;
    gateway.metric_shows("tollgate_connections", |open| open == 0.0).await;
    let mut held = hold(gateway.proxy_addr(), 3).await;
    gateway.metric_shows("tollgate_connections", |open| open == 3.0).await;
    refused(fixture.ask().send().await.unwrap()).await;
    let metrics = gateway.client.get(format!("{}/metrics", gateway.metrics)).send().await.unwrap();
    let (by_address, in_total) = (
        "max_connections_per_address\",listener=\"proxy\"} 1",
        "max_connections\",listener=\"proxy\"} 0",
    );
    let metrics = metrics.text().await.unwrap();
    assert!(metrics.contains(by_address) && metrics.contains(in_total), "{metrics}");
    let log = gateway.log_shows("proxy.max_connections_per_address are open").await;
    assert!(log.contains("\"address\":\"127.0.0.1\""), "{log}");
    // Another address is served.
    let mut other = from("127.0.0.2", gateway.proxy_addr()).await;
    let asked = crate::resilience::raw::request(&fixture.key, &request("native", false));
    assert!(crate::resilience::raw::write(&mut other, &asked).await);
    let (head, _) = crate::resilience::raw::read_message(&mut other).await.expect("an answer");
    assert!(head.starts_with("http/1.1 200"), "{head}");
    // Of ten more refusals none is logged: the minute is not over.
    for _ in 0..10 {
        refused(fixture.ask().send().await.unwrap()).await;
    }
    assert_eq!(gateway.log().matches("connections are refused").count(), 1);
    held.pop();
    gateway.metric_shows("tollgate_connections", |open| open == 3.0).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_proxy_may_hold_as_many_as_there_are() {
    let env = [
        ("TOLLGATE_PROXY_MAX_CONNECTIONS_PER_ADDRESS", "3"),
        ("TOLLGATE_TRUSTED_PROXIES", "127.0.0.1"),
    ];
    let fixture = Fixture::native_with(&env).await;
    let _held = hold(fixture.gateway.proxy_addr(), 20).await;
    fixture.gateway.metric_shows("tollgate_connections", |open| open >= 20.0).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_administration_has_separate_limits() {
    for (setting, limit, by_another) in [
        ("TOLLGATE_ADMIN_MAX_CONNECTIONS", "max_connections\"", false),
        ("TOLLGATE_ADMIN_MAX_CONNECTIONS_PER_ADDRESS", "max_connections_per_address\"", true),
    ] {
        let gateway = Gateway::with(&[(setting, "3")]).await;
        let address = gateway.admin.trim_start_matches("http://").to_owned();
        let held = hold(&address, 3).await;
        gateway.metric_shows("tollgate_admin_connections", |open| open == 3.0).await;
        let ask = || {
            let url = format!("{}/api/actions/users/getUsers", gateway.admin);
            client(false).post(url).bearer_auth(ADMIN_TOKEN).json(&json!({})).send()
        };
        let answer = ask().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["retry-after"]),
            (503, &"5".parse().unwrap())
        );
        let body: Value = answer.json().await.unwrap();
        assert_eq!(
            (&body["ok"], &body["errorCode"]),
            (&json!(false), &json!("TOO_MANY_CONNECTIONS")),
            "{body}"
        );
        gateway.log_shows("admin.max_connections").await;
        let metrics = gateway
            .client
            .get(format!("{}/metrics", gateway.metrics))
            .send()
            .await
            .unwrap()
            .text()
            .await;
        assert!(metrics.unwrap().contains(&format!("{limit},listener=\"admin\"}} 1")), "{setting}");
        let mut other = from("127.0.0.2", &address).await;
        let mut first = [0; 1];
        let waiting = tokio::time::timeout(Duration::from_secs(3), other.read(&mut first)).await;
        assert!(waiting.is_err() || !by_another, "another address has places: {waiting:?}");
        drop((held, other));
        gateway.metric_shows("tollgate_admin_connections", |open| open == 0.0).await;
        assert_eq!(ask().await.unwrap().status(), 200);
    }
}

/// Each is answered, or closed at once if too many are being answered: none is left open.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_connections_above_the_limit_is_over_at_once() {
    const FLOOD: usize = 800;
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_MAX_CONNECTIONS", "5")]).await;
    let attack = Attack::begin(&fixture, "connections above the limit");
    let held = hold(fixture.gateway.proxy_addr(), 5).await;
    fixture.gateway.metric_shows("tollgate_connections", |open| open >= 5.0).await;
    let began = Instant::now();
    let mut waiting = Vec::new();
    for tcp in hold(fixture.gateway.proxy_addr(), FLOOD).await {
        waiting.push(tokio::spawn(async move {
            let (mut tcp, mut got) = (tcp, Vec::new());
            let _ = tokio::time::timeout(SOON, tcp.read_to_end(&mut got))
                .await
                .expect("it is left hanging");
            got.starts_with(b"HTTP/1.1 503 ")
        }));
    }
    let mut answered = 0;
    for one in waiting {
        answered += usize::from(one.await.unwrap());
    }
    assert!(answered > 0 && began.elapsed() < SOON, "{answered} answered in {:?}", began.elapsed());
    assert!(fixture.gateway.metric("tollgate_connections_refused_total").await >= FLOOD as f64);
    drop(held);
    fixture.gateway.metric_shows("tollgate_connections", |open| open == 0.0).await;
    attack.end(&fixture, FLOOD, 32).await;
}
