//! `serve --upgrade` under load: no request fails, on new connections, kept ones, silent ones, and
//! HTTP/2 ones with many concurrent requests, with TLS and without.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::load::nothing_lost;
use super::raw;
use crate::proxy::fixture::{Fixture, request};
use crate::support::wait;

struct Shared {
    addr: String,
    request: Vec<u8>,
    stop: AtomicBool,
    done: AtomicU64,
}

/// A client that sends requests continuously and never retries: one failure fails the test. `keep`:
/// on one connection, as long as the gateway does not close it; else each time on a new one, which
/// then waits before its request.
async fn client(shared: Arc<Shared>, keep: bool, breath: Duration) {
    let mut kept: Option<TcpStream> = None;
    while !shared.stop.load(Ordering::SeqCst) {
        let reused = kept.is_some();
        let mut tcp = match kept.take() {
            Some(tcp) => tcp,
            None => TcpStream::connect(&shared.addr).await.expect("a process listens at any time"),
        };
        // Sleeps: accepted, and silent for a moment. The gateway has read nothing from it yet.
        tokio::time::sleep(breath).await;
        tcp.write_all(&shared.request).await.unwrap_or_else(|e| panic!("reused {reused}: {e}"));
        let (head, _) = raw::read_message(&mut tcp)
            .await
            .unwrap_or_else(|| panic!("no answer; reused {reused}"));
        assert!(head.starts_with("http/1.1 200"), "{head}");
        shared.done.fetch_add(1, Ordering::SeqCst);
        kept = (keep && !head.contains("connection: close")).then_some(tcp);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_under_load_fails_no_request() {
    let mut fixture = Fixture::native().await;
    let shared = Arc::new(Shared {
        addr: fixture.gateway.proxy_addr().to_owned(),
        request: raw::request(&fixture.key, &request("native", false)),
        stop: AtomicBool::new(false),
        done: AtomicU64::new(0),
    });
    let clients: Vec<_> = (0..16)
        .map(|n| {
            let breath = Duration::from_millis([0, 5, 40, 300][n / 4]);
            tokio::spawn(client(Arc::clone(&shared), n % 2 == 0, breath))
        })
        .collect();
    hand_over(&mut fixture, &shared, &clients).await;
    for client in clients {
        client.await.unwrap();
    }
    nothing_lost(&fixture, shared.done.load(Ordering::SeqCst)).await;
    let log = fixture.gateway.log();
    assert!(!log.contains("\"level\":\"ERROR\""), "a good upgrade logs no error:\n{log}");
}

/// Load before, during and after an upgrade. The clients are stopped then.
async fn hand_over(fixture: &mut Fixture, shared: &Shared, clients: &[JoinHandle<()>]) {
    let more = async |requests: u64| {
        let goal = shared.done.load(Ordering::SeqCst) + requests;
        let reached = async || {
            assert!(clients.iter().all(|c| !c.is_finished()), "it stopped");
            shared.done.load(Ordering::SeqCst) >= goal
        };
        wait::until(|| "it stopped".to_owned(), reached).await;
    };
    more(100).await;
    let mut old = fixture.gateway.upgrade().await;
    let began = Instant::now();
    while old.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(30), "the old process left");
        more(1).await;
    }
    more(100).await;
    shared.stop.store(true, Ordering::SeqCst);
}

/// As [`client`], over one HTTP/2 connection with several concurrent requests. The library retries
/// automatically what the gateway reports as unprocessed (GOAWAY), as every HTTP/2 client does;
/// nothing else is retried. If such a request had been processed, there would be a row too many.
async fn multiplexing_client(shared: Arc<Shared>, client: reqwest::RequestBuilder) {
    let asking: Vec<_> = (0..4)
        .map(|n| {
            let streamed = n % 2 == 0;
            let (ask, shared) = (
                client.try_clone().unwrap().json(&request("native", streamed)),
                Arc::clone(&shared),
            );
            tokio::spawn(async move {
                while !shared.stop.load(Ordering::SeqCst) {
                    let answer =
                        ask.try_clone().unwrap().send().await.unwrap_or_else(|e| panic!("{e:?}"));
                    assert_eq!(
                        (answer.status().as_u16(), answer.version()),
                        (200, reqwest::Version::HTTP_2)
                    );
                    let text = answer.text().await.unwrap_or_else(|e| panic!("{e:?}"));
                    assert!(!streamed || text.contains("message_stop"), "{text}");
                    shared.done.fetch_add(1, Ordering::SeqCst);
                    // Sleeps: so that the requests of a connection are not in step.
                    tokio::time::sleep(Duration::from_millis(5 * n)).await;
                }
            })
        })
        .collect();
    for one in asking {
        one.await.unwrap();
    }
}

/// An upgrade under four such clients, and two that use a new connection for each request.
async fn upgrade_over_http2(
    env: &[(&str, &str)],
    scheme: &str,
    client: impl Fn() -> reqwest::ClientBuilder,
) {
    let mut fixture = Fixture::bare(env).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    fixture.upstream.default(json!({"events": 3, "between_events_ms": 10})).await;
    let addr = fixture.gateway.proxy_addr().to_owned();
    let url = format!("{scheme}://{addr}/v1/messages");
    let shared = Arc::new(Shared {
        addr,
        request: Vec::new(),
        stop: AtomicBool::new(false),
        done: AtomicU64::new(0),
    });
    let clients: Vec<_> = (0..6)
        .map(|n| {
            let client = if n < 4 { client() } else { client().pool_max_idle_per_host(0) };
            // A request that is never answered is an error, and not a test without an end.
            let client = client.no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
            let ask = client.post(&url).header("x-api-key", &fixture.key);
            tokio::spawn(multiplexing_client(Arc::clone(&shared), ask))
        })
        .collect();
    hand_over(&mut fixture, &shared, &clients).await;
    for client in clients {
        client.await.unwrap();
    }
    nothing_lost(&fixture, shared.done.load(Ordering::SeqCst)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_under_load_fails_no_request_over_http2() {
    let env = [("TOLLGATE_PROXY_H2C", "true")];
    upgrade_over_http2(&env, "http", || reqwest::Client::builder().http2_prior_knowledge()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_under_load_fails_no_request_over_http2_with_tls() {
    let file = |name: &str| format!("{}/tests/admin/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let (cert, key) = (file("cert.pem"), file("key.pem"));
    let env =
        [("TOLLGATE_PROXY_TLS_CERT", cert.as_str()), ("TOLLGATE_PROXY_TLS_KEY", key.as_str())];
    upgrade_over_http2(&env, "https", || {
        reqwest::Client::builder().danger_accept_invalid_certs(true)
    })
    .await;
}
