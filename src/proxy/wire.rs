//! One connection to a provider: sending the request, reading head and body, each bounded in time, and each given up at
//! once when the client leaves.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::protocols::http::ServerSession as Session;
use pingora::protocols::http::client::HttpSession;

use super::failure::{Failure, NetworkTrouble};
use crate::policy::classify::NetworkFailure;
use crate::upstream::{Link, Upstreams};

/// After a failed send an early answer (a 413, say) may still be there: how long it is waited for.
const EARLY_ANSWER: Duration = Duration::from_millis(200);
/// Bytes joined into one write at most.
const JOIN_MAX: usize = 64 * 1024;

/// The client closed its connection.
#[derive(Debug)]
pub struct ClientGone;

/// Why waiting ended without a result.
#[derive(Debug)]
pub enum Stop {
    ClientGone,
    Failed(Box<Failure>),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }
}

impl From<ClientGone> for Stop {
    fn from(_: ClientGone) -> Self {
        Self::ClientGone
    }
}

/// How long to wait, and what it is called when it was too long.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// `None` = without end.
    pub time: Option<Duration>,
    pub timeout: NetworkFailure,
}

/// An open exchange with a provider. Small, because it is handed on from future to future, and each of them keeps a place
/// for it as long as a stream lives.
pub struct Wire {
    up: Box<HttpSession>,
    reused: bool,
    sent_whole: bool,
    /// The head of the answer itself is there, not only a 1xx.
    has_head: bool,
    /// A break that was noticed while joining: reported once what came before it is delivered.
    broken: Option<Box<Failure>>,
}

/// Runs `work` until it ends, or the client leaves.
async fn unless_gone<T>(session: &mut Session, work: impl Future<Output = T>) -> Result<T, ClientGone> {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        done = &mut work => Ok(done),
        _ = session.read_body_or_idle(true) => Err(ClientGone),
    }
}

/// `None` for the bound = no bound.
async fn within<T>(bound: Option<Duration>, work: impl Future<Output = T>) -> Result<T, Duration> {
    match bound {
        Some(bound) => pingora::time::timeout(bound, work).await.map_err(|_| bound),
        None => Ok(work.await),
    }
}

fn broken(error: &pingora::Error) -> Failure {
    Failure::network(NetworkFailure::Broken, error.etype().as_str())
}

/// Why no connection was made.
fn connect_failure(error: &pingora::Error) -> Failure {
    use pingora::ErrorType::{
        ConnectTimedout, InvalidCert, TLSHandshakeFailure, TLSHandshakeTimedout, TLSWantX509Lookup,
    };
    let what = match error.etype() {
        ConnectTimedout | TLSHandshakeTimedout => NetworkFailure::ConnectTimeout,
        TLSHandshakeFailure | InvalidCert | TLSWantX509Lookup => NetworkFailure::Tls,
        _ => NetworkFailure::Connect,
    };
    Failure::network(what, error.etype().as_str())
}

impl Wire {
    /// Takes a connection from the pool or makes one; with `fresh` it makes one.
    ///
    /// # Errors
    /// When none can be made in time, or the client leaves.
    pub async fn open(session: &mut Session, upstreams: &Upstreams, link: &Link, fresh: bool) -> Result<Self, Stop> {
        let connecting = async {
            if fresh { Ok((upstreams.connect_anew(link).await?, false)) } else { upstreams.connect(link).await }
        };
        let connected = unless_gone(session, connecting).await?;
        let (up, reused) = connected.map_err(|e| connect_failure(&e))?;
        Ok(Self { up: Box::new(up), reused, sent_whole: false, has_head: false, broken: None })
    }

    #[must_use]
    pub fn is_http2(&self) -> bool {
        matches!(*self.up, HttpSession::H2(_))
    }

    /// Sends head and body. A failure to send is no failure yet: the provider may have answered early.
    ///
    /// # Errors
    /// When the client leaves.
    pub async fn send(&mut self, session: &mut Session, head: RequestHeader, body: &[Bytes]) -> Result<(), ClientGone> {
        self.up.set_write_timeout(Some(Duration::from_secs(30)));
        let up = &mut self.up;
        let sending = async move {
            up.write_request_header(Box::new(head)).await?;
            for chunk in body {
                up.write_request_body(chunk.clone(), false).await?;
            }
            up.finish_request_body().await
        };
        self.sent_whole = unless_gone(session, sending).await?.is_ok();
        Ok(())
    }

    /// Reads the head of the answer, past any 1xx.
    ///
    /// # Errors
    /// When none comes in time, the connection breaks, or the client leaves.
    pub async fn head(&mut self, session: &mut Session, bound: Bound) -> Result<Box<ResponseHeader>, Stop> {
        let Bound { time, timeout } = bound;
        let bound = if self.sent_whole { time } else { Some(EARLY_ANSWER) };
        // For all heads together: a provider may send 1xx without end.
        let until = bound.map(|bound| Instant::now() + bound);
        loop {
            let up = &mut self.up;
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            // Time does not run out by itself where the next head is always there already.
            if left == Some(Duration::ZERO) {
                return Err(Failure::timed_out(timeout, bound.unwrap_or_default()).into());
            }
            match unless_gone(session, within(left, up.read_response_header())).await? {
                Err(_) => return Err(Failure::timed_out(timeout, bound.unwrap_or_default()).into()),
                Ok(Err(e)) => {
                    let (what, detail) = (NetworkFailure::Broken, e.etype().as_str().to_owned());
                    return Err(Failure::Network(NetworkTrouble { what, detail, stale_connection: self.reused }).into());
                }
                Ok(Ok(())) => {}
            }
            match self.up.response_header() {
                Some(head) if head.status.is_informational() => {}
                Some(head) => {
                    self.has_head = true;
                    return Ok(Box::new(head.clone()));
                }
                None => return Err(Failure::network(NetworkFailure::Broken, "no head").into()),
            }
        }
    }

    /// Reads the next piece of the body, joined with whatever else is ready; `None` at the end.
    ///
    /// # Errors
    /// When none comes in time, the connection breaks, or the client leaves.
    pub async fn piece(&mut self, session: &mut Session, bound: Bound) -> Result<Option<Bytes>, Stop> {
        let Bound { time, timeout } = bound;
        if let Some(failure) = self.broken.take() {
            return Err(Stop::Failed(failure));
        }
        if self.is_done() {
            return Ok(None);
        }
        let read = unless_gone(session, within(time, self.up.read_response_body())).await?;
        let first = match read {
            Err(after) => return Err(Failure::timed_out(timeout, after).into()),
            Ok(Err(e)) => return Err(broken(&e).into()),
            Ok(Ok(None)) => return Ok(None),
            Ok(Ok(Some(first))) => first,
        };
        Ok(Some(self.join_ready(first).await))
    }

    /// Joins what has already arrived, and never waits: one write to the client in place of many.
    async fn join_ready(&mut self, first: Bytes) -> Bytes {
        let mut joined: Option<BytesMut> = None;
        let mut len = first.len();
        while len < JOIN_MAX && !self.is_done() {
            match ready_now(self.up.read_response_body()).await {
                Some(Ok(Some(next))) => {
                    len += next.len();
                    joined.get_or_insert_with(|| BytesMut::from(&first[..])).extend_from_slice(&next);
                }
                Some(Err(e)) => {
                    self.broken = Some(Box::new(broken(&e)));
                    break;
                }
                Some(Ok(None)) | None => break,
            }
        }
        joined.map_or(first, BytesMut::freeze)
    }

    /// Whether the answer came to its proper end.
    pub fn is_done(&mut self) -> bool {
        // Pingora's own question panics before there is a head, and behind a 1xx without one.
        self.broken.is_none() && self.has_head && self.up.response_done()
    }

    /// Reads an error body: up to `max` bytes, for at most `bound`. What breaks off is what there is.
    pub async fn error_body(
        &mut self,
        session: &mut Session,
        max: usize,
        bound: Duration,
    ) -> Result<Bytes, ClientGone> {
        let until = Instant::now() + bound;
        let mut body = BytesMut::new();
        while body.len() < max {
            let left = until.saturating_duration_since(Instant::now());
            match self.piece(session, Bound { time: Some(left), timeout: NetworkFailure::TotalTimeout }).await {
                Ok(Some(piece)) => body.extend_from_slice(&piece[..piece.len().min(max - body.len())]),
                Ok(None) | Err(Stop::Failed(_)) => break,
                Err(Stop::ClientGone) => return Err(ClientGone),
            }
        }
        Ok(body.freeze())
    }

    /// Gives the connection back if its exchange is over, or closes it.
    pub async fn close(mut self, upstreams: &Upstreams, link: &Link) {
        if self.sent_whole && self.is_done() {
            upstreams.release(self.up, link).await;
        } else {
            self.up.shutdown().await;
        }
    }
}

/// The future's result if it has one now. A body read that is not ready is dropped, which loses nothing: it takes bytes
/// from the connection only when it completes.
async fn ready_now<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
