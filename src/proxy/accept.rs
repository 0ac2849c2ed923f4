//! The clients' connections: how many there may be, and how they end at a stop.
//!
//! When a stop begins, Pingora closes its listeners. If idle connections were closed at the same
//! moment, clients with a request in transit would get a reset. In a hand-over, requests would fail
//! that the next process could have answered. So idle connections stay open a little longer, and a
//! request on one is answered with `connection: close`.
//!
//! HTTP/2 connections get their GOAWAY at the end of that time: a client that receives one before
//! its first request gives that request up, where it would repeat any other. `lingering_close` ends
//! them.
//!
//! See docs/decisions/09-a-task-per-connection.md.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pingora::apps::{HttpServerApp, ReusedHttpStream, ServerApp};
use pingora::protocols::http::ServerSession;
use pingora::protocols::{ALPN, Stream};
use pingora::proxy::HttpProxy;
use pingora::server::ShutdownWatch;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::connections::client_stream::{ClientStream, HeadBounds};
use super::connections::lingering_close::{Bounds, LingeringClose};
use super::connections::too_many::{self, Admission, Counted};
use super::gateway::Gateway;
use super::service::Service;
use crate::state::ConnectionSlot;
use crate::state::Phase;

/// The connection that was accepted last is counted within this time.
const SETTLE: Duration = Duration::from_millis(100);
/// How long idle connections stay open after the listeners have closed, at a stop.
const LINGER: Duration = Duration::from_millis(300);
/// The same after a hand-over, when nothing waits for this process to exit.
const LINGER_HANDED_OVER: Duration = Duration::from_secs(2);
/// How often connections are counted during that time.
const LOOK: Duration = Duration::from_millis(10);
/// The first bytes of an HTTP/2 client.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How many of those bytes are compared, step by step. The shortest HTTP/1 request has 18.
const LOOKED_AT: [usize; 3] = [3, 16, PREFACE.len()];

/// The proxy as the service that Pingora's listeners call.
pub struct Connections {
    /// Answers the requests of a connection.
    pub proxy: Arc<HttpProxy<Service>>,
    /// Has the time-outs in effect, and the metrics of connections.
    pub gateway: Arc<Gateway>,
    /// Whether the process serves, stops or hands over.
    pub phase: watch::Receiver<Phase>,
    /// Set when idle connections have been closed.
    pub closed: watch::Sender<bool>,
    /// Receives that. Never read here: each connection has to see it as changed.
    pub goaway: ShutdownWatch,
    /// Counts and bounds the connections.
    pub counted: Arc<Counted>,
}

impl Connections {
    async fn linger(&self) {
        if *self.phase.borrow() == Phase::HandingOver {
            return tokio::time::sleep(LINGER_HANDED_OVER).await;
        }
        let until = Instant::now() + LINGER;
        tokio::time::sleep(SETTLE).await;
        while self.gateway.node.metrics.connections.open.get() > 0 && Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Whether a connection's client speaks HTTP/2. Without TLS, where HTTP/2 is accepted, its
    /// first bytes decide; they must arrive within the idle time of a connection.
    async fn is_http2(&self, connection: &mut Stream) -> io::Result<bool> {
        let may_be_h2c = self.proxy.server_options().is_some_and(|options| options.h2c);
        if !may_be_h2c || connection.get_ssl_digest().is_some() {
            return Ok(connection.selected_alpn_proto() == Some(ALPN::H2));
        }
        timeout(self.idle_timeout(), begins_as_http2(connection)).await?
    }

    fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.gateway.node.live.load().keepalive_timeout_ms)
    }

    fn http2_bounds(&self) -> Bounds {
        Bounds {
            first_bytes: self.idle_timeout(),
            head: Duration::from_millis(self.gateway.node.live.load().head_timeout_ms),
            floods: self.gateway.node.metrics.connections.floods.clone(),
        }
    }

    /// Serves a connection to its end.
    async fn hold(
        self: Arc<Self>,
        mut connection: Stream,
        shutdown: ShutdownWatch,
        _slot: ConnectionSlot,
    ) {
        match self.is_http2(&mut connection).await {
            Ok(false) => {}
            Ok(true) => {
                let connection = LingeringClose::new(connection, self.http2_bounds());
                self.proxy.process_new(Box::new(connection), &self.goaway).await;
                return;
            }
            // The client closed, or sent nothing.
            Err(_) => return,
        }
        // As Pingora does it, but without the 4 KB per connection that its future reserves for
        // HTTP/2.
        let mut reused =
            self.proxy.process_new_http(self.first(connection, &shutdown), &shutdown).await;
        while let Some(connection) = reused {
            reused = self.proxy.process_new_http(next(connection), &shutdown).await;
        }
    }

    /// Starts a connection: its first request.
    fn first(&self, connection: Stream, shutdown: &ShutdownWatch) -> ServerSession {
        let live = self.gateway.node.live.load();
        let bounds = HeadBounds {
            bytes: live.max_head_bytes,
            time: Duration::from_millis(live.head_timeout_ms),
        };
        let connection = ClientStream::new(connection, bounds, Arc::clone(&self.gateway));
        let mut session = ServerSession::new_http1(Box::new(connection));
        let idle_s = live.keepalive_timeout_ms.div_ceil(1000);
        session.set_keepalive((!*shutdown.borrow()).then_some(idle_s));
        // Pingora counts the reuses that remain after this request.
        session.set_keepalive_reuses_remaining(live.keepalive_requests.checked_sub(1));
        session
    }

    /// Answers a connection above the limit.
    async fn refuse(&self, mut connection: Stream, room: OwnedSemaphorePermit) {
        // A client that sends nothing is answered in HTTP/1.
        let looked = timeout(too_many::FIRST_BYTES, self.is_http2(&mut connection)).await;
        match looked {
            Ok(Err(_)) => {}
            Ok(Ok(is_http2)) => {
                too_many::refuse(connection, is_http2.then(|| self.http2_bounds()), room).await
            }
            Err(_) => too_many::refuse(connection, None, room).await,
        }
    }
}

/// Whether the first bytes are HTTP/2's. An HTTP/1 request may be shorter than HTTP/2's preface.
async fn begins_as_http2(connection: &mut Stream) -> io::Result<bool> {
    let mut first = [0; PREFACE.len()];
    for length in LOOKED_AT {
        connection.try_peek(&mut first[..length]).await?;
        if first[..length] != PREFACE[..length] {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Continues a connection with its next request.
fn next(reused: ReusedHttpStream) -> ServerSession {
    let (connection, settings) = reused.consume();
    ClientStream::await_head(&connection);
    let mut session = ServerSession::new_http1(connection);
    if let Some(settings) = settings {
        settings.apply_to_session(&mut session);
    }
    session
}

#[async_trait]
impl ServerApp for Connections {
    /// Gives the connection its own task: Pingora's keeps 9 KB for the TLS handshake, which is
    /// complete.
    async fn process_new(
        self: &Arc<Self>,
        connection: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<Stream> {
        match self.counted.admit(&connection) {
            Admission::Admitted(slot) => {
                Handle::current().spawn(Arc::clone(self).hold(connection, shutdown.clone(), slot));
            }
            // Boxed: the other branches need no memory for this.
            Admission::Refused(room) => Box::pin(self.refuse(connection, room)).await,
            Admission::Dropped => {}
        }
        None
    }

    /// Called when the listeners have closed.
    async fn cleanup(&self) {
        self.linger().await;
        self.proxy.http_cleanup().await;
        self.closed.send_replace(true);
    }
}
