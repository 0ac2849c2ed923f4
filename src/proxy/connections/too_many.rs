//! The answer to a connection above the limit, and where connections are counted.
//!
//! A refused client gets a complete answer: 503 with a reason and `Retry-After`, over HTTP/1 and
//! over HTTP/2, after the TLS handshake if there is one. A connection that is closed without an
//! answer looks like a network fault. At most [`REFUSALS`] of these answers are in progress, each
//! for at most [`REFUSAL_TIMEOUT`]. Further connections are closed at once, before their handshake.
//!
//! With TLS a connection is counted before its handshake ([`BeforeHandshake`]), so that clients
//! that never finish it are bounded too. Pingora gives a handshake a minute.
//!
//! See docs/decisions/07-count-before-tls.md.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use pingora::http::ResponseHeader;
use pingora::listeners::PreTlsProcess;
use pingora::protocols::http::v2::server::{H2Accept, HttpSession, handshake};
use pingora::protocols::l4::stream::Stream as Tcp;
use pingora::protocols::raw_connect::ProxyDigest;
use pingora::protocols::{Digest, GetProxyDigest as _, GetSocketDigest as _, SocketDigest, Stream};
use pingora::{Error, ErrorType, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::lingering_close::{Bounds, LingeringClose};
use crate::state::{ConnectionSlot, Entry, Full};

/// Connections that may be refused at the same time.
const REFUSALS: usize = 256;
/// How long to wait for a client's first bytes, so that the answer follows a request.
pub const FIRST_BYTES: Duration = Duration::from_millis(500);
/// How long a refusal may take.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
const RETRY_AFTER_S: &str = "5";
/// A shape in which clients of every format find the message.
const BODY: &str = r#"{"type":"error","error":{"type":"overloaded_error","code":"too_many_connections","message":"the gateway has too many connections: try again in a few seconds"}}"#;

/// The connection count, and the permits for refusals.
pub struct Counted {
    entry: Entry,
    refusals: Arc<Semaphore>,
}

/// The result for a connection: a slot, or a permit to answer with a refusal.
pub enum Admission {
    /// Serve the connection; it keeps the slot until it is dropped.
    Admitted(ConnectionSlot),
    /// Answer with a refusal; the permit bounds their number.
    Refused(OwnedSemaphorePermit),
    /// Too many refusals are in progress.
    Dropped,
}

impl Counted {
    /// `entry` has the bounds; no connection is counted yet.
    pub fn new(entry: Entry) -> Arc<Self> {
        Arc::new(Self { entry, refusals: Arc::new(Semaphore::new(REFUSALS)) })
    }

    /// Counts a connection, unless it was counted before its handshake.
    pub fn admit(&self, connection: &Stream) -> Admission {
        let before = connection.get_proxy_digest();
        let before = before.as_ref().and_then(|digest| {
            digest.user_data.as_ref()?.downcast_ref::<Mutex<Option<Admission>>>()
        });
        match before.and_then(|admission| admission.lock().take()) {
            Some(admission) => admission,
            None => self.count(connection.get_socket_digest()),
        }
    }

    fn count(&self, digest: Option<Arc<SocketDigest>>) -> Admission {
        match (self.entry)(peer(digest)) {
            Ok(slot) => Admission::Admitted(slot),
            Err(Full::Total | Full::Address) => {
                match Arc::clone(&self.refusals).try_acquire_owned() {
                    Ok(room) => Admission::Refused(room),
                    Err(_) => Admission::Dropped,
                }
            }
        }
    }
}

fn peer(digest: Option<Arc<SocketDigest>>) -> Option<IpAddr> {
    Some(digest?.peer_addr()?.as_inet()?.ip())
}

/// Counts connections before their TLS handshake. The slot travels with the connection, in the
/// digest that Pingora keeps for a proxy in front, and is released with it if the handshake fails.
pub struct BeforeHandshake(pub Arc<Counted>);

#[async_trait]
impl PreTlsProcess for BeforeHandshake {
    async fn process(&self, connection: &mut Tcp) -> Result<()> {
        let admission = self.0.count(connection.get_socket_digest());
        if matches!(admission, Admission::Dropped) {
            return Error::e_explain(
                ErrorType::AcceptError,
                "too many connections are being refused",
            );
        }
        let head = Box::new(ResponseHeader::build(200, None)?);
        connection
            .set_proxy_digest(ProxyDigest::new(head, Some(Box::new(Mutex::new(Some(admission))))));
        Ok(())
    }
}

/// Answers 503 and closes. `http2`: its bounds, where the client speaks HTTP/2.
pub(in crate::proxy) async fn refuse(
    connection: Stream,
    http2: Option<Bounds>,
    _room: OwnedSemaphorePermit,
) {
    // The connection is closed whether the answer could be sent or not.
    let _ = match http2 {
        Some(bounds) => timeout(REFUSAL_TIMEOUT, refuse_http2(connection, bounds)).await.is_ok(),
        None => timeout(REFUSAL_TIMEOUT, refuse_http1(connection)).await.is_ok(),
    };
}

/// Waits for the first bytes, so that the answer follows a request, and reads the rest of what
/// arrives: closing with unread bytes would reset the connection before the client has read its
/// answer.
async fn refuse_http1(mut connection: Stream) -> std::io::Result<()> {
    let mut piece = [0; 2048];
    let first = timeout(FIRST_BYTES, connection.read(&mut piece)).await;
    if matches!(first, Ok(Ok(0) | Err(_))) {
        return Ok(());
    }
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: \
         {RETRY_AFTER_S}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{BODY}",
        BODY.len()
    );
    connection.write_all(head.as_bytes()).await?;
    connection.flush().await?;
    AsyncWriteExt::shutdown(&mut connection).await?;
    while connection.read(&mut piece).await? > 0 {}
    Ok(())
}

/// Answers each request that arrives, and sends a GOAWAY so that no more follow.
async fn refuse_http2(connection: Stream, bounds: Bounds) -> Result<()> {
    let digest = Arc::new(Digest::default());
    let connection: Stream = Box::new(LingeringClose::new(connection, bounds));
    let mut connection = handshake(connection, None).await?;
    let mut is_reported = false;
    while let Some(accepted) =
        HttpSession::from_h2_conn(&mut connection, Arc::clone(&digest)).await?
    {
        let H2Accept::Session(mut session) = accepted else { continue };
        let mut head = ResponseHeader::build(503, Some(3))?;
        head.insert_header("content-type", "application/json")?;
        head.insert_header("retry-after", RETRY_AFTER_S)?;
        head.insert_header("content-length", BODY.len())?;
        session.write_response_header(Box::new(head), false)?;
        // The answer is queued at once, and sent as the connection is driven. A client without a
        // window for it gets a reset.
        if let Some(written) =
            session.write_body(Bytes::from_static(BODY.as_bytes()), true).now_or_never()
        {
            written?;
        }
        if !is_reported {
            connection.graceful_shutdown();
            is_reported = true;
        }
    }
    Ok(())
}
