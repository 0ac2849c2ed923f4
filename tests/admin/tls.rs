//! The administration's listener: TLS with HTTP/1.1 and HTTP/2, and graceful shutdown.

use std::net::TcpListener;
use std::path::PathBuf;

use axum::Router;
use axum::routing::get;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tollgate::admin::serve;
use tollgate::config::TlsFiles;

use super::gate::client;
use super::places::slots;
use crate::support::wait;

fn file(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "admin", "tls", name].iter().collect()
}

fn listener() -> (TcpListener, std::net::SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[tokio::test]
async fn tls_serves_http_1_and_http_2() {
    client();
    let (listener, address) = listener();
    let (_stop, stopped) = oneshot::channel::<()>();
    let mut tasks = JoinSet::new();
    let router = Router::new().route(
        "/",
        get(|request: axum::extract::Request| async move { format!("{:?}", request.version()) }),
    );
    let files = Some(TlsFiles { cert: file("cert.pem"), key: file("key.pem") });
    tasks.spawn(async move {
        serve(listener, files, router, slots(), async move { stopped.await.unwrap_or_default() })
            .await
            .unwrap();
    });
    let authority =
        reqwest::Certificate::from_pem(&std::fs::read(file("cert.pem")).unwrap()).unwrap();
    let builder = || reqwest::Client::builder().no_proxy().tls_certs_only([authority.clone()]);
    for (builder, version) in [(builder(), "HTTP/2.0"), (builder().http1_only(), "HTTP/1.1")] {
        let url = format!("https://localhost:{}/", address.port());
        let reply = builder.build().unwrap().get(url).send().await.unwrap();
        assert_eq!(reply.text().await.unwrap(), version);
    }
}

#[tokio::test]
async fn a_missing_certificate_file_is_named_in_the_error() {
    let (listener, _) = listener();
    let files = Some(TlsFiles { cert: file("none.pem"), key: file("key.pem") });
    let error =
        serve(listener, files, Router::new(), slots(), std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains("none.pem"), "{error}");
}

#[tokio::test]
async fn at_shutdown_in_flight_requests_finish_and_new_connections_are_refused() {
    let (listener, address) = listener();
    let (stop, stopped) = oneshot::channel::<()>();
    let (entered, mut has_entered) = watch::channel(false);
    let (release, released) = watch::channel(false);
    let slow = move || {
        let (entered, mut released) = (entered.clone(), released.clone());
        async move {
            entered.send_replace(true);
            released.wait_for(|go| *go).await.unwrap();
            "done"
        }
    };
    let mut tasks = JoinSet::new();
    let router = Router::new().route("/", get(slow));
    tasks.spawn(async move {
        serve(listener, None, router, slots(), async move { stopped.await.unwrap_or_default() })
            .await
    });
    let url = format!("http://{address}/");
    let mut requests = JoinSet::new();
    let request = client().get(&url);
    requests.spawn(async move { request.send().await.unwrap().text().await.unwrap() });
    has_entered.wait_for(|entered| *entered).await.unwrap();
    stop.send(()).unwrap();
    // The listener closes before the in-flight request has ended.
    let is_closed = async || tokio::net::TcpStream::connect(address).await.is_err();
    wait::until(|| "it listens".to_owned(), is_closed).await;
    release.send_replace(true);
    assert_eq!(requests.join_next().await.unwrap().unwrap(), "done");
    tasks.join_next().await.unwrap().unwrap().unwrap();
}
