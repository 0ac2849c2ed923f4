//! One connection to a provider: sends the request, reads head and body. Each step has a time
//! bound, and ends at once if the client closes its connection.
//!
//! Errors are Pingora's: from downstream if the client has closed, else from upstream with a
//! [`Failure`] as their cause.
//!
//! See docs/decisions/05-stale-connections.md.

use std::pin::pin;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::protocols::Digest;
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorType, Result, RetryType};

use super::sending::SendResult;
use super::up::Up;
use super::waiter::{Wait, Waiter};
use crate::policy::failure::NetworkFailure;
use crate::proxy::context::millis;
use crate::proxy::ready;
use crate::proxy::upstream::failure::Failure;
use crate::proxy::upstream::timing::Bound;
use crate::upstream::proxy_error::{ProxyError, ProxyFault};
use crate::upstream::{Link, Upstreams};

/// After a failed send an early answer (a 413, for example) may still arrive: how long to wait for
/// it.
const EARLY_ANSWER: Duration = Duration::from_millis(200);
/// If a reused connection breaks within this time of sending, before any byte of an answer, the
/// provider closed it before the request arrived. Later, the provider may have worked on the
/// request.
const STALE_WITHIN: Duration = Duration::from_secs(1);
/// How long closing may take: a peer that reads nothing must not delay it.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes joined into one write at most.
const JOIN_MAX: usize = 64 * 1024;
/// Room for the pieces that are joined first: a burst of fifty events needs no second allocation.
const JOIN_ROOM: usize = 16 * 1024;

/// A piece of a reply.
pub(super) struct ReplyPiece {
    /// For the client.
    pub body: Option<Bytes>,
    /// Whether it is the last.
    pub end: bool,
    /// Bytes that came from the provider.
    pub received: usize,
}

/// An open exchange with a provider.
pub(in crate::proxy) struct Wire {
    up: Up,
    reused: bool,
    sent_whole: bool,
    /// An answer began before the request was sent.
    is_early: bool,
    /// The provider took no byte of the request for so long.
    stalled: Option<Duration>,
    /// The final head has arrived, not only a 1xx.
    has_head: bool,
    /// A 1xx has arrived: the provider has the request.
    has_informational: bool,
    /// The client has closed its connection, and the reply is still read.
    detached: bool,
    /// A break that was noticed while sending, or while joining: reported in place of an answer, or
    /// once the bytes before it are delivered.
    broken: Option<Box<Error>>,
}

fn broken(mut error: Box<Error>) -> Box<Error> {
    error.set_retry(false);
    caused(error, NetworkFailure::Broken)
}

/// Assigns the cause to an error of the connection.
fn caused(mut error: Box<Error>, what: NetworkFailure) -> Box<Error> {
    let detail = error.etype().as_str();
    error.set_cause(Failure::network(what, detail));
    error.into_up()
}

/// Why no connection was made within `took`.
fn connect_failure(mut error: Box<Error>, peer: &HttpPeer, took: Duration) -> Box<Error> {
    use ErrorType::{
        ConnectTimedout, InvalidCert, TLSHandshakeFailure, TLSHandshakeTimedout, TLSWantX509Lookup,
    };
    let options = &peer.options;
    // The system may give up before the bound.
    let waited = |bound: Option<Duration>| bound.map_or(took, |bound| bound.min(took));
    let failure = match error.etype() {
        ErrorType::ConnectProxyFailure => by_proxy(&error),
        _ if is_handshake_timeout(&error, peer) => {
            Failure::timed_out(NetworkFailure::TlsTimeout, waited(options.connection_timeout))
        }
        ConnectTimedout | TLSHandshakeTimedout => Failure::timed_out(
            NetworkFailure::ConnectTimeout,
            waited(options.total_connection_timeout),
        ),
        TLSHandshakeFailure | InvalidCert | TLSWantX509Lookup => {
            Failure::network(NetworkFailure::Tls, error.etype().as_str())
        }
        _ => Failure::network(NetworkFailure::Connect, error.etype().as_str()),
    };
    error.set_cause(failure);
    error.set_retry(false);
    error.into_up()
}

/// What a proxy says of the connection that it did not make.
fn by_proxy(error: &Error) -> Failure {
    match error.root_cause().downcast_ref::<ProxyError>() {
        Some(error) if matches!(error.fault, ProxyFault::Late(_)) => {
            Failure::network(NetworkFailure::ConnectTimeout, error.to_string())
        }
        Some(error) => Failure::network(NetworkFailure::Connect, error.to_string()),
        None => Failure::network(NetworkFailure::Connect, error.etype().as_str()),
    }
}

/// Whether the TLS handshake timed out. Only Pingora's message says so
/// (connectors/tls/rustls/mod.rs, `connect`; connectors/mod.rs has the other one).
fn is_handshake_timeout(error: &Error, peer: &HttpPeer) -> bool {
    peer.is_tls()
        && *error.etype() == ErrorType::ConnectTimedout
        && error.context.as_ref().is_some_and(|context| {
            context.as_str().contains(", timeout ")
                && !context.as_str().contains("total-connection")
        })
}

impl Wire {
    /// Takes a connection from the pool or makes one.
    ///
    /// # Errors
    /// When none can be opened in time, or the client closes its connection.
    pub(in crate::proxy) async fn over_http(
        waiter: &mut impl Waiter,
        upstreams: &Upstreams,
        peer: &HttpPeer,
        began: Instant,
    ) -> Result<Self> {
        let connecting = pin!(upstreams.connect(peer));
        let (up, reused) = unbounded(waiter.on(Wait::from(began), connecting).await)?
            .map_err(|e| connect_failure(e, peer, began.elapsed()))?;
        Ok(Self::new(Up::Http(Box::new(up)), reused))
    }

    pub(super) const fn new(up: Up, reused: bool) -> Self {
        Self {
            up,
            reused,
            sent_whole: false,
            is_early: false,
            stalled: None,
            has_head: false,
            has_informational: false,
            detached: false,
            broken: None,
        }
    }

    /// Whether the connection had been used before.
    pub(in crate::proxy) const fn is_reused(&self) -> bool {
        self.reused
    }

    /// The connection's socket, and Pingora's digest of it.
    pub(in crate::proxy) fn identity(&self) -> (i32, Option<&Digest>) {
        self.up.identity()
    }

    /// From now on, the client closing its connection ends nothing.
    pub(in crate::proxy) const fn detach(&mut self) {
        self.detached = true;
    }

    /// Whether the whole request was sent.
    pub(in crate::proxy) const fn is_sent(&self) -> bool {
        self.sent_whole
    }

    /// Whether a WebSocket stands for the connection.
    pub(in crate::proxy) const fn is_socket(&self) -> bool {
        matches!(self.up, Up::Socket(_))
    }

    pub(in crate::proxy) fn is_http2(&self) -> bool {
        self.up.is_http2()
    }

    /// Sends head and body. A failed send is not a failure yet: the provider may have answered
    /// early.
    ///
    /// # Errors
    /// When the client closes its connection.
    pub(in crate::proxy) async fn send(
        &mut self,
        waiter: &mut impl Waiter,
        head: RequestHeader,
        body: &[Bytes],
        now: Instant,
    ) -> Result<()> {
        // Pinned here: what is passed by value is kept more than once as long as a stream lives.
        let sending = pin!(self.up.send(head, body));
        match unbounded(waiter.on(Wait::from(now), sending).await)? {
            SendResult::Whole => self.sent_whole = true,
            SendResult::InPart { answered, stalled } => {
                (self.is_early, self.stalled) = (answered, stalled);
            }
            SendResult::Ended(error) => self.broken = Some(error),
            // The provider is closing the connection (GOAWAY): there is no stream to wait on.
            SendResult::Nothing(mut error) => {
                error.set_retry(true);
                return Err(caused(error, NetworkFailure::Broken));
            }
        }
        Ok(())
    }

    /// Reads the head of the answer, after any 1xx.
    ///
    /// # Errors
    /// When none arrives in time, the connection breaks, or the client closes its connection.
    pub(in crate::proxy) async fn head(
        &mut self,
        waiter: &mut impl Waiter,
        bound: Bound,
        sent: Instant,
    ) -> Result<Box<ResponseHeader>> {
        if let Some(error) = self.broken.take() {
            return Err(self.unanswered(error, sent));
        }
        let is_sent = self.sent_whole || self.is_early;
        // For all heads together: a provider may send any number of 1xx.
        let until = if is_sent { bound.until } else { Some(sent + EARLY_ANSWER) };
        let late = |stalled: Option<Duration>| match (is_sent, stalled) {
            (true, _) => Failure::timed_out(bound.timeout, bound.time),
            (false, Some(time)) => {
                let what = format!("no byte of the request was taken within {} ms", millis(time));
                Failure::network(bound.timeout, what)
            }
            (false, None) => {
                Failure::network(NetworkFailure::Broken, "the request could not be sent")
            }
        };
        let mut now = sent;
        loop {
            // The time-out cannot fire while the next head is always ready.
            if until.is_some_and(|until| until <= now) {
                return Err(late(self.stalled).into());
            }
            let came = {
                let next = pin!(self.up.next_head());
                waiter.on(Wait { now, until, detached: self.detached }, next).await?
            };
            match came {
                None => {
                    if let Up::Socket(socket) = &self.up {
                        // It may be open to something in between that passes nothing on.
                        socket.unanswered("no frame in time");
                        waiter.needs_new_connection()?;
                    }
                    return Err(late(self.stalled).into());
                }
                Some(Err(e)) => return Err(self.unanswered(e, sent)),
                Some(Ok(())) => {}
            }
            match self.up.response_header() {
                Some(head) if head.status.is_informational() => {
                    self.has_informational = true;
                    now = Instant::now();
                }
                Some(head) => {
                    self.has_head = true;
                    // Without the names' letter case, which nothing needs.
                    return Ok(Box::new(head.as_owned_parts().into()));
                }
                None => return Err(Failure::network(NetworkFailure::Broken, "no head").into()),
            }
        }
    }

    /// A connection that broke before the head of the answer. `retry` stays set only if the
    /// provider cannot have worked on the request: its HTTP/2 side says so, or a pooled connection
    /// breaks at once.
    fn unanswered(&self, mut error: Box<Error>, sent: Instant) -> Box<Error> {
        let at_once = self.reused && !self.has_informational && sent.elapsed() < STALE_WITHIN;
        let unprocessed = if let Up::Socket(socket) = &self.up {
            // A reply begins at once (`response.created`): without it the provider did not begin.
            socket.unanswered(&error.to_string());
            true
        } else if self.is_http2() {
            match (&error.retry, error.etype()) {
                // GOAWAY without an error, or REFUSED_STREAM: the provider did not begin.
                (RetryType::Decided(true), ErrorType::H2Error) => true,
                (RetryType::ReusedOnly, _) => at_once,
                _ => false,
            }
        } else {
            // Only Pingora's message contains the byte count (v1/client.rs, `read_response`).
            at_once
                && error
                    .context
                    .as_ref()
                    .is_some_and(|context| context.as_str().ends_with("already read: 0"))
        };
        error.set_retry(unprocessed);
        caused(error, NetworkFailure::Broken)
    }

    /// Reads the next piece of the body, joined with what is already available; `None` at the end.
    ///
    /// # Errors
    /// When none arrives in time, the connection breaks, or the client closes its connection.
    pub(in crate::proxy) async fn piece(
        &mut self,
        waiter: &mut impl Waiter,
        bound: Bound,
        now: Instant,
    ) -> Result<Option<Bytes>> {
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        if self.is_done() {
            return Ok(None);
        }
        let read = {
            let reading = pin!(self.up.read_body());
            let wait = Wait { now, until: bound.until, detached: self.detached };
            waiter.on(wait, reading).await?
        };
        let first = match read {
            None => return Err(Failure::incomplete(bound.timeout, bound.time).into()),
            Some(Err(e)) => return Err(broken(e)),
            Some(Ok(None)) => return Ok(None),
            Some(Ok(Some(first))) => first,
        };
        Ok(Some(self.join_ready(first).await))
    }

    /// Joins what has already arrived without waiting, so that several pieces need one write to the
    /// client.
    async fn join_ready(&mut self, first: Bytes) -> Bytes {
        let mut joined: Option<BytesMut> = None;
        let mut len = first.len();
        while len < JOIN_MAX && !self.is_done() {
            // A read that is not ready is dropped without loss: it takes bytes from the connection
            // only when it completes.
            let reading = pin!(self.up.read_body());
            match ready::now(reading).await {
                Some(Ok(Some(next))) => {
                    len += next.len();
                    joined
                        .get_or_insert_with(|| {
                            let mut joined = BytesMut::with_capacity(JOIN_ROOM.max(len));
                            joined.extend_from_slice(&first);
                            joined
                        })
                        .extend_from_slice(&next);
                }
                Some(Err(e)) => {
                    self.broken = Some(broken(e));
                    break;
                }
                Some(Ok(None)) | None => break,
            }
        }
        joined.map_or(first, BytesMut::freeze)
    }

    /// Whether the answer ended as its framing requires.
    pub(in crate::proxy) fn is_done(&mut self) -> bool {
        self.broken.is_none() && self.has_head && self.up.response_done()
    }

    /// Returns the connection to the pool if its exchange is over, or closes it. After a part of a
    /// request it is dropped: an orderly end would wait until the provider takes the bytes before.
    pub(in crate::proxy) async fn close(mut self, upstreams: &Upstreams, link: &Link) {
        let is_done = self.sent_whole && self.is_done();
        match self.up {
            Up::Http(up) if is_done => upstreams.release(up, link).await,
            Up::Http(mut up) if self.sent_whole => {
                let _ = pingora::time::timeout(CLOSE_TIMEOUT, up.shutdown()).await;
            }
            Up::Socket(socket) if is_done => socket.keep(),
            // With a WebSocket its reply ends, if there is one.
            Up::Http(_) | Up::Socket(_) => {}
        }
    }
}

/// The result of work without a time bound.
pub(super) fn unbounded<T>(done: Result<Option<T>>) -> Result<T> {
    done?.ok_or_else(|| Error::explain(ErrorType::InternalError, "a bound that nobody set"))
}
