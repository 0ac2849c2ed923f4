//! Time-outs of requests to providers, each set so that only it can end the request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::proxy::fixture::Fixture;
use crate::resilience::raw::{self, Provider};

/// Far below every default, far above a time-out of half a second on a busy machine.
const SOON: Duration = Duration::from_secs(30);

/// It accepts connections and sends nothing.
async fn silent() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((tcp, _)) = listener.accept().await {
            held.push(tcp);
        }
    });
    address
}

/// The last request's decision chain, including its error message.
async fn why(fixture: &Fixture) -> String {
    let row = &fixture.gateway.logs(1).await[0];
    format!("{} {}", row["decisionChain"], row["errorMessage"])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_does_not_begin_or_go_on_is_given_up_in_time() {
    let late = json!({"delay_ms": 600_000});
    for (setting, stream, directive, reason) in [
        (
            "TOLLGATE_TIMEOUTS_FIRST_BYTE_STREAMING",
            true,
            late.clone(),
            "no first byte in time: nothing within",
        ),
        (
            "TOLLGATE_TIMEOUTS_STREAMING_IDLE",
            true,
            json!({"events": 50, "stall_after": 8}),
            "the stream stood still",
        ),
        (
            "TOLLGATE_TIMEOUTS_REQUEST_NON_STREAMING",
            false,
            late,
            "no reply in time: nothing within",
        ),
    ] {
        let fixture = Fixture::bare(&[(setting, "500ms")]).await;
        fixture
            .gateway
            .provider("native", &fixture.upstream.url, json!({"max_retry_attempts": 1}))
            .await;
        fixture.upstream.default(directive).await;
        let began = Instant::now();
        let asked = if stream { fixture.ask_stream() } else { fixture.ask() };
        let _ = asked.send().await.unwrap().text().await;
        assert!(began.elapsed() < SOON, "{setting}: {:?}", began.elapsed());
        let why = why(&fixture).await;
        assert!(why.contains(reason), "{setting}: {why}");
    }
}

/// A proxy in front of the provider that never answers: TLS has not begun, so its own bound does
/// not apply.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_not_made_is_given_up_in_time() {
    let fixture = Fixture::bare(&[
        ("TOLLGATE_TIMEOUTS_CONNECT", "500ms"),
        ("TOLLGATE_TIMEOUTS_TLS", "400ms"),
    ])
    .await;
    let fields =
        json!({"max_retry_attempts": 1, "proxy_url": format!("http://{}", silent().await)});
    fixture.gateway.provider("native", "https://provider.example", fields).await;
    let began = Instant::now();
    assert_eq!(fixture.ask().send().await.unwrap().status(), 502);
    // The default would be ten seconds.
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    let why = why(&fixture).await;
    assert!(why.contains("no connection in time"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_to_a_provider_is_kept_so_long() {
    let closed = Arc::new(Notify::new());
    let told = Arc::clone(&closed);
    let provider = Provider::start(move |mut tcp: TcpStream, _| {
        let told = Arc::clone(&told);
        async move {
            raw::write(&mut tcp, raw::reply().as_bytes()).await;
            let next = tcp.peek(&mut [0; 1]).await;
            if next.is_ok_and(|bytes| bytes > 0) {
                return Some(tcp);
            }
            told.notify_one();
            None
        }
    })
    .await;
    let with = async |keepalive: &str, url: &str| {
        let fixture = Fixture::bare(&[("TOLLGATE_TIMEOUTS_UPSTREAM_KEEPALIVE", keepalive)]).await;
        fixture.gateway.provider("native", url, json!({})).await;
        fixture
    };
    let short = with("1s", &provider.url).await;
    let long = with("10m", &short.upstream.url).await;
    for fixture in [&long, &short] {
        assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    }
    tokio::time::timeout(SOON, closed.notified()).await.expect("the short one is closed");
    for (fixture, new) in [(&short, 2), (&long, 1)] {
        assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
        let wanted = format!("tollgate_upstream_connections_total{{connection=\"new\"}} {new}\n");
        let metrics = fixture.gateway.scrape().await;
        assert!(metrics.contains(&wanted), "{wanted} is not in {metrics}");
    }
}
