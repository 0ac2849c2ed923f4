//! A client's HTTP/1 connection below Pingora's session: bounds on the head of each request, and
//! detection of a client that closes the connection while its request is being answered.
//!
//! Pingora bounds each read of a head, but not the whole head, and accepts heads of up to 1 MiB. It
//! detects a closed connection by reading one byte, and stops checking once that byte has come.
//! HTTP/2 has all of this in its own framing (`proxy/connections/lingering_close.rs` wraps those
//! connections).

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Buf, BytesMut};
use parking_lot::Mutex;
use pingora::protocols::raw_connect::ProxyDigest;
use pingora::protocols::tls::SslDigest;
use pingora::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    Stream, TimingDigest, UniqueID, UniqueIDType,
};
use pingora::proxy::Session;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

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
}

/// A request is being answered.
const EXCHANGE: u8 = 0;
/// The connection waits for a request's head.
const NEXT_HEAD: u8 = 1;
/// A request's head is being read.
const HEAD: u8 = 2;

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
    /// The unwritten rest of the answer to a head that broke a bound.
    refusal: Option<&'static [u8]>,
}

const TOO_LARGE: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: \
      close\r\n\r\n";
const TOO_LATE: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

impl ClientStream {
    /// Wraps a connection that waits for its first request.
    #[must_use]
    pub fn new(stream: Stream, bounds: HeadBounds) -> Self {
        let io = Mutex::new(Io { stream, ahead: BytesMut::new() });
        Self { io, bounds, phase: AtomicU8::new(NEXT_HEAD), head: HeadProgress::default() }
    }

    /// The client's connection of an HTTP/1 session.
    #[must_use]
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

    /// Resolves when the client has closed the connection. Bytes that arrive meanwhile are kept for
    /// the next request.
    pub async fn closed(&self) {
        std::future::poll_fn(|cx| self.io.lock().poll_closed(cx)).await;
    }
}

impl Io {
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
    /// Whether another read of the head may begin.
    fn poll_allowed(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut Io,
        bounds: HeadBounds,
    ) -> Poll<io::Result<()>> {
        if self.refusal.is_none() && self.bytes > 0 {
            if self.bytes >= bounds.bytes {
                self.refusal = Some(TOO_LARGE);
            } else if !bounds.time.is_zero() {
                let late = self.late.get_or_insert_with(|| Box::pin(sleep(bounds.time)));
                if late.as_mut().poll(cx).is_ready() {
                    self.refusal = Some(TOO_LATE);
                }
            }
        }
        while let Some(rest) = self.refusal {
            let written = ready!(Pin::new(&mut io.stream).poll_write(cx, rest))?;
            if written == rest.len() || written == 0 {
                ready!(Pin::new(&mut io.stream).poll_flush(cx))?;
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
            self.refusal = Some(&rest[written..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let io = this.io.get_mut();
        let phase = this.phase.get_mut();
        if *phase == NEXT_HEAD {
            (*phase, this.head) = (HEAD, HeadProgress::default());
        }
        let in_head = *phase == HEAD;
        if in_head {
            ready!(this.head.poll_allowed(cx, io, this.bounds))?;
        }
        if !io.ahead.is_empty() {
            let most = io.ahead.len().min(into.remaining());
            into.put_slice(&io.ahead[..most]);
            io.ahead.advance(most);
            this.head.bytes += if in_head { most } else { 0 };
            return Poll::Ready(Ok(()));
        }
        let before = into.filled().len();
        ready!(Pin::new(&mut io.stream).poll_read(cx, into))?;
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
        Pin::new(&mut self.get_mut().io.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io.get_mut().stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.lock().stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io.get_mut().stream).poll_shutdown(cx)
    }
}

impl fmt::Debug for ClientStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.io.lock().stream.fmt(f)
    }
}

#[async_trait]
impl Shutdown for ClientStream {
    async fn shutdown(&mut self) {
        self.io.get_mut().stream.shutdown().await;
    }
}

#[async_trait]
impl Peek for ClientStream {}

impl UniqueID for ClientStream {
    fn id(&self) -> UniqueIDType {
        self.io.lock().stream.id()
    }
}

impl Ssl for ClientStream {
    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.io.lock().stream.get_ssl_digest()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.io.lock().stream.selected_alpn_proto()
    }
}

impl GetTimingDigest for ClientStream {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.io.lock().stream.get_timing_digest()
    }
}

impl GetProxyDigest for ClientStream {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.io.lock().stream.get_proxy_digest()
    }
}

impl GetSocketDigest for ClientStream {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.io.lock().stream.get_socket_digest()
    }
}
