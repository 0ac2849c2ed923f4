//! A client's HTTP/2 connection below Pingora's session: bounds on silence, on the time of a head
//! and on frames (`state/frame_watch.rs`), and a lingering close, so that the client reads the last
//! bytes that were sent.
//!
//! If a socket is closed while bytes of the peer are unread or still in transit, the kernel resets
//! the connection. The peer's next write then fails, and it drops the connection without reading
//! the end of a reply, or the GOAWAY that lists the requests it may repeat. HTTP/2 peers nearly
//! always have bytes in transit (window updates, answers to pings, new requests). So the writing
//! side is closed first, and incoming bytes are discarded until the peer closes too.
//!
//! `connections` decides when a connection ends.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use pingora::protocols::{Peek, Shutdown, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::state::FrameWatch;
use crate::telemetry::IntCounter;
use crate::upstream::inner_stream::passes_on;

/// Longest wait for the peer to close its side.
const LINGER_MAX: Duration = Duration::from_secs(5);
/// Bytes per read that is discarded.
const PIECE: usize = 2 << 10;

/// Bounds of an HTTP/2 connection.
pub(in crate::proxy) struct Bounds {
    /// How long the client may send nothing at all.
    pub first_bytes: Duration,
    /// For the whole head of a request; zero = none.
    pub head: Duration,
    /// Counts connections that were closed because of their frames.
    pub floods: IntCounter,
}

/// A connection whose shutdown waits until the peer has closed its side, or until the wait ends.
pub(in crate::proxy) struct LingeringClose {
    connection: Stream,
    bounds: Bounds,
    watch: FrameWatch,
    /// Ends the wait for the client's first bytes, and later for the rest of a head. Pingora bounds
    /// neither.
    silent: Option<Pin<Box<Sleep>>>,
    /// The first bytes have arrived.
    has_begun: bool,
    /// Set once the writing side is closed.
    late: Option<Pin<Box<Sleep>>>,
}

impl LingeringClose {
    pub(in crate::proxy) fn new(connection: Stream, bounds: Bounds) -> Self {
        let silent = Some(Box::pin(sleep(bounds.first_bytes)));
        Self { connection, bounds, watch: FrameWatch::new(), silent, has_begun: false, late: None }
    }

    /// Counts the frames that arrived, and times their heads.
    fn came(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.watch.take(bytes).is_err() {
            self.bounds.floods.inc();
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "too many frames without requests",
            ));
        }
        if !self.watch.is_in_head() || self.bounds.head.is_zero() {
            self.silent = None;
        } else if self.silent.is_none() {
            self.silent = Some(Box::pin(sleep(self.bounds.head)));
        }
        Ok(())
    }

    /// Discards incoming bytes until the peer's end or a failure: both end the connection.
    fn poll_drained(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut piece = [0; PIECE];
        loop {
            let mut read = ReadBuf::new(&mut piece);
            let came = ready!(Pin::new(&mut self.connection).poll_read(cx, &mut read));
            if came.is_err() || read.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }
}

impl AsyncWrite for LingeringClose {
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.late.is_none() {
            ready!(Pin::new(&mut this.connection).poll_shutdown(cx))?;
        }
        let late = this.late.get_or_insert_with(|| Box::pin(sleep(LINGER_MAX)));
        if late.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        this.poll_drained(cx).map(Ok)
    }

    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(cx)
    }
}

impl AsyncRead for LingeringClose {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = into.filled().len();
        let read = Pin::new(&mut this.connection).poll_read(cx, into);
        let is_late =
            this.silent.as_mut().is_some_and(|silent| silent.as_mut().poll(cx).is_ready());
        // If a head drips, each read has bytes; so the bound also applies when a read is ready.
        if is_late && (read.is_pending() || this.has_begun) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        ready!(read)?;
        if !this.has_begun {
            (this.has_begun, this.silent) = (true, None);
        }
        this.came(&into.filled()[before..])?;
        Poll::Ready(Ok(()))
    }
}

passes_on!(LingeringClose: this => this.connection);

#[async_trait]
impl Shutdown for LingeringClose {
    async fn shutdown(&mut self) {
        self.connection.shutdown().await;
    }
}

#[async_trait]
impl Peek for LingeringClose {
    async fn try_peek(&mut self, into: &mut [u8]) -> io::Result<bool> {
        self.connection.try_peek(into).await
    }
}

#[cfg(test)]
mod tests {
    use pingora::protocols::l4::stream::Stream as Tcp;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// A connection of the gateway's and its peer.
    async fn pair() -> (LingeringClose, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let connecting = TcpStream::connect(listener.local_addr().unwrap());
        let (accepted, peer) = tokio::join!(listener.accept(), connecting);
        let floods = IntCounter::new("floods", "a test's").unwrap();
        let bounds = Bounds { first_bytes: LINGER_MAX, head: LINGER_MAX, floods };
        (LingeringClose::new(Box::new(Tcp::from(accepted.unwrap().0)), bounds), peer.unwrap())
    }

    #[tokio::test]
    async fn a_peer_that_goes_on_sending_reads_what_was_said_last() {
        let (mut ours, mut peer) = pair().await;
        peer.write_all(b"never read").await.unwrap();
        ours.write_all(b"goodbye").await.unwrap();
        let leaving = async move {
            AsyncWriteExt::shutdown(&mut ours).await.unwrap();
            drop(ours);
        };
        let listening = async move {
            // More than both kernels' buffers hold: the write completes only if the connection
            // reads.
            peer.write_all(&vec![7; 16 << 20]).await.unwrap();
            let mut heard = String::new();
            peer.read_to_string(&mut heard).await.unwrap();
            heard
        };
        let began = tokio::time::Instant::now();
        let ((), heard) = tokio::join!(leaving, listening);
        assert_eq!(heard, "goodbye");
        assert!(began.elapsed() < LINGER_MAX, "it did not see that the peer had left");
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_says_nothing_at_all_is_left_and_one_that_said_something_is_not() {
        let (mut ours, mut peer) = pair().await;
        ours.silent = Some(Box::pin(sleep(Duration::from_millis(50))));
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        peer.write_all(preface).await.unwrap();
        ours.read_exact(&mut [0; 24]).await.unwrap();
        let waiting = tokio::time::timeout(Duration::from_millis(200), ours.read_u8()).await;
        assert!(waiting.is_err(), "it ended: {waiting:?}");
        let (mut ours, _peer) = pair().await;
        ours.silent = Some(Box::pin(sleep(Duration::from_millis(50))));
        assert_eq!(ours.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_does_not_leave_is_left() {
        let (mut ours, mut peer) = pair().await;
        ours.write_all(b"goodbye").await.unwrap();
        ours.late = Some(Box::pin(sleep(Duration::from_millis(20))));
        AsyncWriteExt::shutdown(&mut ours).await.unwrap();
        drop(ours);
        let mut heard = String::new();
        peer.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "goodbye");
    }

    #[tokio::test]
    async fn a_peer_that_has_left_is_not_waited_for() {
        let (mut ours, peer) = pair().await;
        drop(peer);
        let began = tokio::time::Instant::now();
        let _ = AsyncWriteExt::shutdown(&mut ours).await;
        assert!(began.elapsed() < LINGER_MAX);
    }
}
