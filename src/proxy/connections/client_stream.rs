//! A client's HTTP/1 connection below Pingora's session: bounds on the head of each request, and
//! detection of a client that closes the connection while its request is being answered.
//!
//! Pingora bounds each read of a head, but not the whole head, and accepts heads of up to 1 MiB. It
//! detects a closed connection by reading one byte, and stops checking once that byte has come.
//! HTTP/2 has all of this in its own framing (`proxy/connections/lingering_close.rs` wraps those
//! connections).
//!
//! See docs/decisions/06-wrapped-http1-connections.md.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Buf as _, BytesMut};
use parking_lot::Mutex;
use pingora::protocols::{GetSocketDigest as _, Peek, Shutdown, Stream};
use pingora::proxy::Session;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::head_refusal::{self, HeadRefusal, Linger};
use crate::proxy::gateway::Gateway;
use crate::upstream::inner_stream::passes_on;

/// Bytes of pipelined requests that are read ahead while a request is answered. If a client sends
/// more and then closes, the gateway notices when it cannot write the reply.
const AHEAD_MAX: usize = 64 * 1024;
/// Bytes per read ahead.
const PIECE: usize = 1024;

/// Bounds of a request's head.
#[derive(Debug, Clone, Copy)]
pub struct HeadBounds {
    /// From its first byte to the empty line; a longer head is answered 431.
    pub bytes: usize,
    /// From its first byte to its last; zero = none.
    pub time: Duration,
}

/// A client's connection.
pub struct ClientStream {
    io: Mutex<Io>,
    bounds: HeadBounds,
    phase: AtomicU8,
    head: HeadProgress,
    /// Written at the next flush, in place of Pingora's bytes.
    own: BytesMut,
    /// The head was refused; how the connection ends.
    refused: Option<Linger>,
    gateway: Arc<Gateway>,
}

/// A request is being answered.
const EXCHANGE: u8 = 0;
/// The connection waits for a request's head.
const NEXT_HEAD: u8 = 1;
/// A request's head is being read.
const HEAD: u8 = 2;
/// As [`EXCHANGE`], and the answer's head gets the connection option `upgrade`.
const UPGRADE_REQUIRED: u8 = 3;

struct Io {
    stream: Stream,
    /// Bytes that arrived while a request was answered.
    ahead: BytesMut,
}

/// How much of the current head has arrived.
#[derive(Default)]
struct HeadProgress {
    bytes: usize,
    late: Option<Pin<Box<Sleep>>>,
}

impl ClientStream {
    /// Wraps a connection that waits for its first request.
    pub fn new(stream: Stream, bounds: HeadBounds, gateway: Arc<Gateway>) -> Self {
        let io = Mutex::new(Io { stream, ahead: BytesMut::new() });
        Self {
            io,
            bounds,
            phase: AtomicU8::new(NEXT_HEAD),
            head: HeadProgress::default(),
            own: BytesMut::new(),
            refused: None,
            gateway,
        }
    }

    /// The client's connection of an HTTP/1 session.
    pub fn of(session: &Session) -> Option<&Self> {
        session.as_downstream().stream()?.as_any().downcast_ref()
    }

    /// The next bytes are the head of another request on a connection that has already served one.
    pub fn await_head(stream: &Stream) {
        if let Some(client) = stream.as_any().downcast_ref::<Self>() {
            client.phase.store(NEXT_HEAD, Ordering::Relaxed);
        }
    }

    /// A request's head has been read.
    pub fn head_is_read(&self) {
        self.phase.store(EXCHANGE, Ordering::Relaxed);
    }

    /// The answer says that the client must use another protocol.
    pub fn upgrade_is_required(&self) {
        self.phase.store(UPGRADE_REQUIRED, Ordering::Relaxed);
    }

    /// Whether more has arrived than the head of the current request, of this many bytes.
    pub fn has_more_than(&self, head: usize) -> bool {
        self.head.bytes > head || !self.io.lock().ahead.is_empty()
    }

    /// Resolves when the client has closed the connection. Bytes that arrive meanwhile are kept for
    /// the next request.
    pub async fn closed(&self) {
        std::future::poll_fn(|cx| self.io.lock().poll_closed(cx)).await;
    }
}

impl Io {
    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, into);
        }
        let most = self.ahead.len().min(into.remaining());
        into.put_slice(&self.ahead[..most]);
        self.ahead.advance(most);
        Poll::Ready(Ok(()))
    }

    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.ahead.len() < AHEAD_MAX {
            let mut piece = [0; PIECE];
            let mut read = ReadBuf::new(&mut piece);
            let came = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read));
            if came.is_err() || read.filled().is_empty() {
                return Poll::Ready(());
            }
            self.ahead.extend_from_slice(read.filled());
        }
        Poll::Pending
    }
}

impl HeadProgress {
    /// The bound that the head has broken.
    fn broken(&mut self, cx: &mut Context<'_>, bounds: HeadBounds) -> Option<HeadRefusal> {
        if self.bytes == 0 {
            return None;
        }
        if self.bytes >= bounds.bytes {
            return Some(HeadRefusal::TooLarge { limit: bounds.bytes });
        }
        if bounds.time.is_zero() {
            return None;
        }
        let late = self.late.get_or_insert_with(|| Box::pin(sleep(bounds.time)));
        let is_late = late.as_mut().poll(cx).is_ready();
        is_late.then_some(HeadRefusal::TooLate { time: bounds.time })
    }
}

impl ClientStream {
    fn refuse(&mut self, why: HeadRefusal) {
        if self.refused.is_none() {
            let digest = self.get_socket_digest();
            let peer = digest.and_then(|digest| Some(digest.peer_addr()?.as_inet()?.ip()));
            self.own.extend_from_slice(why.answer(&self.gateway, peer).as_bytes());
            self.refused = Some(Linger::default());
        }
    }

    /// Whether another read of the head may begin.
    fn poll_allowed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.refused.is_none()
            && let Some(why) = self.head.broken(cx, self.bounds)
        {
            self.refuse(why);
        }
        if self.refused.is_none() {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_own(cx))?;
        ready!(Pin::new(&mut self.io.get_mut().stream).poll_flush(cx))?;
        Poll::Ready(Err(io::ErrorKind::InvalidData.into()))
    }

    /// Takes Pingora's bytes where the gateway writes others; `false`: they are written as they
    /// are.
    fn replaces(&mut self, bytes: &[u8]) -> bool {
        match *self.phase.get_mut() {
            EXCHANGE => return false,
            // Before a request has begun, Pingora writes only to refuse its head.
            NEXT_HEAD | HEAD => self.refuse(HeadRefusal::of_answer(bytes)),
            _ => self.own.unsplit(head_refusal::with_upgrade_option(bytes)),
        }
        true
    }

    fn poll_own(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        head_refusal::poll_out(&mut self.own, &mut self.io.get_mut().stream, cx)
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let phase = this.phase.get_mut();
        if *phase == NEXT_HEAD {
            (*phase, this.head) = (HEAD, HeadProgress::default());
        }
        let in_head = *phase == HEAD;
        if in_head {
            ready!(this.poll_allowed(cx))?;
        }
        let before = into.filled().len();
        ready!(this.io.get_mut().poll_read(cx, into))?;
        if in_head {
            this.head.bytes += into.filled().len() - before;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.replaces(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut this.io.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if *this.phase.get_mut() != EXCHANGE {
            let first = pieces.iter().find(|piece| !piece.is_empty());
            return Pin::new(this).poll_write(cx, first.map_or(&[][..], |piece| piece));
        }
        Pin::new(&mut this.io.get_mut().stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.lock().stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_own(cx))?;
        Pin::new(&mut this.io.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_own(cx))?;
        let stream = &mut this.io.get_mut().stream;
        match &mut this.refused {
            Some(linger) => linger.poll_end(stream, cx),
            None => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// The connection after it has changed to another protocol: past Pingora's session.
impl AsyncRead for &ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.io.lock().poll_read(cx, into)
    }
}

impl AsyncWrite for &ClientStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io.lock().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io.lock().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io.lock().stream).poll_shutdown(cx)
    }
}

passes_on!(ClientStream: this => this.io.lock().stream);

#[async_trait]
impl Shutdown for ClientStream {
    async fn shutdown(&mut self) {
        self.io.get_mut().stream.shutdown().await;
    }
}

#[async_trait]
impl Peek for ClientStream {}
