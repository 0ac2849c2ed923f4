//! The gateway's own exchanges with a provider, and with the token endpoints of its credential: the
//! provider's proxy and certificates are those of its requests.
//!
//! Connections are not kept, redirects are not followed, and no proxy comes from the environment.
//!
//! See docs/decisions/45-own-client-for-providers.md.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::client::legacy::{Client as HyperClient, Error as HyperError};
use hyper_util::rt::{TokioExecutor, TokioIo};
use pingora::protocols::l4::stream::Stream;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::certificates::{self, CertificateFault};
use super::proxy::Proxy;
use super::proxy_error::{ProxyAddressError, ProxyError};
use super::resolve::Resolver;
use crate::domain::provider::Provider;
use crate::domain::provider_tls::ProviderTls;

/// For a TCP connection, or a tunnel.
const CONNECT: Duration = Duration::from_secs(10);

/// Sends single requests.
pub(super) struct Client(HyperClient<HttpsConnector<Connector>, Full<Bytes>>);

/// The answer to a request, to be read piece by piece.
pub struct Answer {
    head: http::response::Parts,
    body: Incoming,
    /// How long each piece may take.
    time: Duration,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientFault {
    /// The address of the proxy cannot be read.
    #[error(transparent)]
    Proxy(#[from] ProxyAddressError),
    /// The provider's own certificates cannot be used.
    #[error("the provider's own certificate {0}")]
    Certificate(#[from] CertificateFault),
}

/// Why an answer broke off.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// The connection broke.
    #[error("the answer broke off: {0}")]
    Broken(#[from] hyper::Error),
    /// The next piece did not arrive in time.
    #[error("nothing within {} s", .0.as_secs())]
    Late(Duration),
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    /// By the proxy.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// The name does not resolve.
    #[error("the name {host} does not resolve: {error}")]
    Name { host: String, error: io::Error },
    /// By the other side, or by the network.
    #[error("no connection to {host}:{port}: {error}")]
    Tcp { host: String, port: u16, error: io::Error },
}

impl Client {
    /// To a provider's origin, with its own certificates.
    pub(super) fn to(provider: &Provider) -> Result<Self, ClientFault> {
        let proxy = Proxy::of(provider, &Resolver::default()).transpose()?;
        Ok(Self::new(proxy.map(Arc::new), &provider.tls)?)
    }

    /// Through this proxy, with these certificates.
    pub(super) fn new(
        proxy: Option<Arc<Proxy>>,
        tls: &ProviderTls,
    ) -> Result<Self, CertificateFault> {
        let config = certificates::client_config(tls)?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config((*config).clone())
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(Connector { proxy });
        let mut builder = HyperClient::builder(TokioExecutor::new());
        builder.pool_max_idle_per_host(0).retry_canceled_requests(false);
        Ok(Self(builder.build(connector)))
    }

    /// Sends a request. `time`: how long each piece of the answer may take.
    pub(super) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        time: Duration,
    ) -> Result<Answer, HyperError> {
        let (head, body) = self.0.request(request).await?.into_parts();
        Ok(Answer { head, body, time })
    }
}

impl Answer {
    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// The header `Retry-After`.
    pub fn retry_after(&self) -> Option<String> {
        Some(self.head.headers.get(RETRY_AFTER)?.to_str().ok()?.to_owned())
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// The body is not complete.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, AnswerError> {
        loop {
            let next = timeout(self.time, self.body.frame()).await;
            match next.map_err(|_| AnswerError::Late(self.time))?.transpose()? {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }
}

/// Makes the connections of a client.
#[derive(Clone)]
struct Connector {
    proxy: Option<Arc<Proxy>>,
}

impl Connector {
    async fn connect(self, target: Uri) -> Result<Conn, ConnectError> {
        let host = target.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let own_port = if target.scheme_str() == Some("https") { 443 } else { 80 };
        let port = target.port_u16().unwrap_or(own_port);
        if let Some(proxy) = &self.proxy {
            return Ok(Conn(TokioIo::new(proxy.connect(&host, port, Some(CONNECT)).await?)));
        }
        let found = tokio::net::lookup_host((host.as_str(), port)).await;
        let addresses = match found.map(Iterator::collect::<Vec<_>>) {
            Ok(addresses) => addresses,
            Err(error) => return Err(ConnectError::Name { host, error }),
        };
        let late = |_| Err(io::ErrorKind::TimedOut.into());
        let connected =
            timeout(CONNECT, TcpStream::connect(&*addresses)).await.unwrap_or_else(late);
        match connected.and_then(|tcp| tcp.set_nodelay(true).map(|()| tcp)) {
            Ok(tcp) => Ok(Conn(TokioIo::new(Stream::from(tcp)))),
            Err(error) => Err(ConnectError::Tcp { host, port, error }),
        }
    }
}

impl tower::Service<Uri> for Connector {
    type Response = Conn;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Conn, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        Box::pin(self.clone().connect(target))
    }
}

/// A connection, direct or through a proxy.
struct Conn(TokioIo<Stream>);

impl Connection for Conn {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Conn {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(cx, into)
    }
}

impl Write for Conn {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }
}
