//! The clients' connections: how many there are, and how they end at a stop.
//!
//! As soon as a stop is asked for Pingora closes its listeners and says so. To let go of the waiting connections then would reset
//! those that were idle, and those whose request is on its way or not read yet: at a hand-over that fails requests which the
//! next process would have answered. So waiting connections are listened to for a while longer. A request that comes on
//! one of them is answered, with `connection: close`, and only then the connection ends.
//!
//! HTTP/2 connections are told to go (GOAWAY) at the end of that while: a client that has just connected and is told so before its
//! first request gives that one up, where it would send any other again. How they end is `farewell`'s.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pingora::apps::{HttpServerApp, ReusedHttpStream, ServerApp};
use pingora::protocols::http::ServerSession;
use pingora::protocols::{ALPN, Stream};
use pingora::server::ShutdownWatch;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use super::farewell::Farewell;
use super::signals::Phase;
use crate::proxy::service::Service;
use crate::telemetry::IntGauge;

/// What was accepted last gets this long to be seen.
const SETTLE: Duration = Duration::from_millis(100);
/// How long waiting connections are listened to after the listeners have closed, at a stop.
const LINGER: Duration = Duration::from_millis(300);
/// And when another process has taken over: nobody waits for this one to end.
const LINGER_HANDED_OVER: Duration = Duration::from_secs(2);
/// How long a client's connection is kept without a request, seconds.
const KEEPALIVE_S: u64 = 60;
/// How often connections are counted meanwhile.
const LOOK: Duration = Duration::from_millis(10);
/// What an HTTP/2 client sends first.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The proxy as Pingora's listeners see it.
pub struct Connections {
    pub proxy: Arc<Service>,
    pub open: IntGauge,
    pub phase: watch::Receiver<Phase>,
    /// Told when no connection is listened to any more.
    pub closed: watch::Sender<bool>,
    /// Hears that. Never looked at here: each connection has to find it changed.
    pub goodbye: ShutdownWatch,
}

impl Connections {
    async fn linger(&self) {
        if *self.phase.borrow() == Phase::HandingOver {
            return tokio::time::sleep(LINGER_HANDED_OVER).await;
        }
        let until = Instant::now() + LINGER;
        tokio::time::sleep(SETTLE).await;
        while self.open.get() > 0 && Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Whether a connection's client speaks HTTP/2. Without TLS, where that is accepted, its first bytes tell.
    async fn is_http2(&self, connection: &mut Stream) -> io::Result<bool> {
        let may_be_h2c = self.proxy.server_options().is_some_and(|options| options.h2c);
        if !may_be_h2c || connection.get_ssl_digest().is_some() {
            return Ok(connection.selected_alpn_proto() == Some(ALPN::H2));
        }
        let mut first = [0; PREFACE.len()];
        connection.try_peek(&mut first).await?;
        Ok(first == *PREFACE)
    }

    /// Serves a connection to its end.
    async fn hold(self: Arc<Self>, mut connection: Stream, shutdown: ShutdownWatch, _open: Open) {
        match self.is_http2(&mut connection).await {
            Ok(false) => {}
            Ok(true) => {
                self.proxy.process_new(Box::new(Farewell::new(connection)), &self.goodbye).await;
                return;
            }
            // It has gone.
            Err(_) => return,
        }
        // As Pingora does it, but without the 4 KB for each connection that its future has for HTTP/2.
        let mut reused = self.proxy.serve(first(connection, &shutdown), &shutdown).await;
        while let Some(connection) = reused {
            reused = self.proxy.serve(next(connection), &shutdown).await;
        }
    }
}

/// Begins with a connection: its first request.
fn first(connection: Stream, shutdown: &ShutdownWatch) -> Box<ServerSession> {
    let mut session = Box::new(ServerSession::new_http1(connection));
    session.set_keepalive((!*shutdown.borrow()).then_some(KEEPALIVE_S));
    session
}

/// Goes on with a connection: its next request.
fn next(reused: ReusedHttpStream) -> Box<ServerSession> {
    let (connection, settings) = reused.consume();
    let mut session = Box::new(ServerSession::new_http1(connection));
    if let Some(settings) = settings {
        settings.apply_to_session(&mut session);
    }
    session
}

#[async_trait]
impl ServerApp for Connections {
    /// Gives the connection to a task of its own: Pingora's has 9 KB of room for the TLS handshake, which is over.
    async fn process_new(self: &Arc<Self>, connection: Stream, shutdown: &ShutdownWatch) -> Option<Stream> {
        let open = Open::enter(&self.open);
        Handle::current().spawn(Arc::clone(self).hold(connection, shutdown.clone(), open));
        None
    }

    /// Called when the listeners have closed.
    async fn cleanup(&self) {
        self.linger().await;
        self.proxy.http_cleanup().await;
        self.closed.send_replace(true);
    }
}

/// A connection in the gauge; leaves it when dropped.
struct Open(IntGauge);

impl Open {
    fn enter(gauge: &IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}
