//! The listeners of the administration and of the metrics: HTTP/1.1 and HTTP/2, with or without
//! TLS, with bounds against idle clients.
//!
//! A connection must send its handshake and each request's head in time, and needs a slot
//! (`state/connection_slots.rs`); a connection without one is answered with 503 and closed. A
//! request that is answered before the end of its body keeps its connection (`unread_body.rs`).
//! After the shutdown signal no more connections are accepted; requests in flight may end within
//! [`GRACE`].

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::header::{CONNECTION, EXPECT, RETRY_AFTER};
use axum::http::{HeaderValue, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tower::{ServiceExt, service_fn};

use super::envelope::{ApiError, Code};
use super::head_timer::{Answering, HeadTimer, HeadTimes};
use super::unread_body::UnreadBody;
use crate::config::TlsFiles;
use crate::state::Entry;

/// Connections that may be refused at the same time; more are closed without an answer.
const REFUSALS: usize = 64;
/// How long a refusal may take, including its TLS handshake.
const REFUSAL: Duration = Duration::from_secs(1);
const HANDSHAKE: Duration = Duration::from_secs(10);
const HEAD: Duration = Duration::from_secs(20);
/// For a connection without a request: longer than clients keep one for their next request, so that
/// the client closes it (browsers, reqwest and Go: 90 s and less).
const IDLE: Duration = Duration::from_secs(180);
const GRACE: Duration = Duration::from_secs(10);

/// Serves `router` on `listener` until `shutdown` resolves.
///
/// # Errors
/// When the listener, the certificate or the key cannot be used.
pub async fn serve(
    listener: StdListener,
    tls: Option<TlsFiles>,
    router: Router,
    entry: Entry,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let tls = tls.map(|files| acceptor(&files.cert, &files.key)).transpose()?;
    let refusals = Arc::new(Semaphore::new(REFUSALS));
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        let (stream, peer) = tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a listener could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        while connections.try_join_next().is_some() {}
        let (tls, watcher) = (tls.clone(), graceful.watcher());
        let Ok(slot) = entry(Some(peer.ip())) else {
            if let Ok(room) = Arc::clone(&refusals).try_acquire_owned() {
                connections.spawn(async move {
                    let refusing =
                        connection(stream, peer, tls, Router::new().fallback(too_many), watcher);
                    // The connection is closed whether the answer could be sent or not.
                    let _ = tokio::time::timeout(REFUSAL, refusing).await;
                    drop(room);
                });
            }
            continue;
        };
        let router = router.clone();
        connections.spawn(async move {
            let _slot = slot;
            if let Err(error) = connection(stream, peer, tls, router, watcher).await {
                tracing::debug!(%peer, error, "a connection broke");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(GRACE, graceful.shutdown()).await.is_err() {
        tracing::warn!("administration requests were cut off at shutdown");
    }
    Ok(())
}

/// The answer to every request on a connection without a slot.
async fn too_many() -> Response<Body> {
    let message = "the administration has too many connections: try again in a few seconds";
    ApiError::by_code(Code("TOO_MANY_CONNECTIONS"), message)
        .at(StatusCode::SERVICE_UNAVAILABLE)
        .header(RETRY_AFTER, HeaderValue::from_static("5"))
        .header(CONNECTION, HeaderValue::from_static("close"))
        .into_response()
}

type Watcher = hyper_util::server::graceful::Watcher;

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    router: Router,
    watcher: Watcher,
) -> Result<(), String> {
    stream.set_nodelay(true).map_err(|e| e.to_string())?;
    match tls {
        None => exchange(stream, peer, router, watcher).await,
        Some(tls) => {
            let handshake = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await;
            let stream =
                handshake.map_err(|_| "no TLS handshake in time")?.map_err(|e| e.to_string())?;
            exchange(stream, peer, router, watcher).await
        }
    }
}

async fn exchange<S>(
    stream: S,
    peer: SocketAddr,
    router: Router,
    watcher: Watcher,
) -> Result<(), String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = HeadTimer::new(stream, HeadTimes { idle: IDLE, head: HEAD });
    let answering = stream.answering();
    let service = service_fn(move |request: Request<Incoming>| {
        let (router, answering) = (router.clone(), answering.clone());
        async move {
            let _until_answered = answering.begin();
            let answered: Result<_, Infallible> =
                Ok(answer(request, peer, router, &answering).await);
            answered
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(HEAD).keep_alive_timeout(HEAD);
    let serving = builder
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
        .into_owned();
    watcher.watch(serving).await.map_err(|e| e.to_string())
}

async fn answer(
    request: Request<Incoming>,
    peer: SocketAddr,
    router: Router,
    answering: &Answering,
) -> Response<Body> {
    let is_http1 = request.version() <= Version::HTTP_11;
    let is_awaited = request.headers().contains_key(EXPECT);
    let (mut has_begun, runtime) = (None, Handle::current());
    let mut request = request.map(|body| {
        if !is_http1 {
            // Its streams end one by one, and the connection stays open.
            return Body::new(body);
        }
        let body = UnreadBody::new(body, is_awaited, answering.begin(), runtime);
        has_begun = Some(body.has_begun());
        Body::new(body)
    });
    request.extensions_mut().insert(ConnectInfo(peer));
    let Ok(mut response) = router.oneshot(request).await;
    let has_begun = has_begun.is_none_or(|begun| begun.load(Ordering::Relaxed));
    if is_http1 && is_awaited && !has_begun {
        // The client will not send its body now, so the next bytes cannot be distinguished from it.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn acceptor(certificate: &Path, key: &Path) -> io::Result<TlsAcceptor> {
    let fault = |path: &Path, error: &dyn std::fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {error}", path.display()))
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| fault(certificate, &error))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| fault(key, &error))?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|error| fault(certificate, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
