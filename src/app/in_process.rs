//! Connections to the proxy from inside this process, for requests on behalf of a key.
//!
//! A connection is a pipe in memory: it needs no address, certificate or credential, and works
//! whatever the proxy listens on. The proxy serves it like an HTTP/1.1 client, on its own runtime.
//! It takes one request.
//!
//! See docs/decisions/12-playground-in-process.md.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use pingora::apps::HttpServerApp as _;
use pingora::http::ResponseHeader;
use pingora::protocols::http::ServerSession;
use pingora::protocols::raw_connect::ProxyDigest;
use pingora::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream,
    TimingDigest, UniqueID, UniqueIDType,
};
use pingora::proxy::HttpProxy;
use pingora::server::ShutdownWatch;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::http_client::in_process::{AsKey, InProcessProxy};
use crate::proxy::connections::client_stream::{ClientStream, HeadBounds};
use crate::proxy::gateway::Gateway;
use crate::proxy::request::on_behalf::OnBehalf;
use crate::proxy::service::Service;
use crate::state::Phase;

/// Bytes that are buffered in either direction.
const BUFFER: usize = 16 << 10;
/// The descriptor of a connection without a socket.
const NO_SOCKET: i32 = -1;

/// The administration's access to the proxy; unavailable until the proxy is up.
#[derive(Default)]
pub(super) struct InProcess {
    proxy: OnceLock<Reached>,
    runtime: OnceLock<Handle>,
}

/// The parts that serve a connection.
pub(super) struct Reached {
    pub proxy: Arc<HttpProxy<Service>>,
    pub gateway: Arc<Gateway>,
    pub phase: watch::Receiver<Phase>,
    pub goaway: ShutdownWatch,
}

impl InProcess {
    pub(super) fn reach(&self, reached: Reached) {
        let _ = self.proxy.set(reached);
    }

    /// The proxy has begun to accept connections, on this runtime.
    pub(super) fn open(&self, runtime: Handle) {
        let _ = self.runtime.set(runtime);
    }
}

impl InProcessProxy for InProcess {
    fn connect(&self, as_key: AsKey) -> Option<DuplexStream> {
        let (reached, runtime) = (self.proxy.get()?, self.runtime.get()?);
        if *reached.phase.borrow() != Phase::Serving {
            return None;
        }
        let (ours, theirs) = duplex(BUFFER);
        let connection: Stream = Box::new(Connection {
            pipe: ours,
            identity: identity(as_key)?,
            address: as_key.client.map(address),
        });
        let bounds = HeadBounds {
            bytes: reached.gateway.node.live.load().max_head_bytes,
            time: Duration::ZERO,
        };
        let connection = ClientStream::new(connection, bounds, Arc::clone(&reached.gateway));
        let mut session = ServerSession::new_http1(Box::new(connection));
        session.set_keepalive(None);
        let (proxy, goaway) = (Arc::clone(&reached.proxy), reached.goaway.clone());
        runtime.spawn(async move {
            // The connection takes only one request, so there is nothing to reuse.
            let _ = proxy.process_new_http(session, &goaway).await;
        });
        Some(theirs)
    }

    fn until_stopping(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let phase = self.proxy.get().map(|reached| reached.phase.clone());
        Box::pin(async move {
            if let Some(mut phase) = phase {
                // The sender is dropped with the process.
                let _ = phase.wait_for(|phase| *phase != Phase::Serving).await;
            }
        })
    }
}

fn identity(as_key: AsKey) -> Option<Arc<ProxyDigest>> {
    let head = Box::new(ResponseHeader::build(200, None).ok()?);
    let on_behalf = OnBehalf { key: as_key.key, request: as_key.request, purpose: as_key.purpose };
    Some(Arc::new(ProxyDigest::new(head, Some(Box::new(on_behalf)))))
}

/// The digest of a peer at this address.
fn address(peer: IpAddr) -> Arc<SocketDigest> {
    let digest = SocketDigest::from_raw_fd(NO_SOCKET);
    let _ = digest.peer_addr.set(Some(SocketAddr::new(peer, 0).into()));
    let _ = digest.local_addr.set(None);
    let _ = digest.original_dst.set(None);
    Arc::new(digest)
}

/// The proxy's end of the pipe.
struct Connection {
    pipe: DuplexStream,
    identity: Arc<ProxyDigest>,
    /// The address of the client that the request is made for.
    address: Option<Arc<SocketDigest>>,
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().pipe).poll_read(cx, into)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().pipe).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().pipe).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().pipe).poll_shutdown(cx)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a connection inside the process")
    }
}

#[async_trait]
impl Shutdown for Connection {
    async fn shutdown(&mut self) {
        let _ = tokio::io::AsyncWriteExt::shutdown(&mut self.pipe).await;
    }
}

#[async_trait]
impl Peek for Connection {}

impl UniqueID for Connection {
    fn id(&self) -> UniqueIDType {
        NO_SOCKET
    }
}

impl Ssl for Connection {}

impl GetTimingDigest for Connection {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

impl GetProxyDigest for Connection {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        Some(Arc::clone(&self.identity))
    }
}

impl GetSocketDigest for Connection {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.address.clone()
    }
}
