//! A time-out for request heads on a connection, counted from their first byte.
//!
//! hyper has one bound for both: the wait for a head's first byte and the rest of the head. A short
//! bound also closes idle connections that clients keep for their next request. A request that is
//! sent at that moment gets a closed connection in place of an answer, and clients do not retry a
//! POST. So hyper's bound is the idle time, longer than clients keep connections, and this module
//! bounds a head that has begun.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Whether a request is being answered, or the rest of its body read: bytes that arrive then are no
/// head.
#[derive(Debug, Clone, Default)]
pub(super) struct Answering(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    running: AtomicUsize,
    /// Since the connection began. A head that was complete at once is detected only by this count.
    begun: AtomicUsize,
}

impl Answering {
    /// Until the result is dropped.
    pub(super) fn begin(&self) -> AnsweringGuard {
        self.0.running.fetch_add(1, Ordering::Relaxed);
        self.0.begun.fetch_add(1, Ordering::Relaxed);
        AnsweringGuard(Arc::clone(&self.0))
    }
}

/// Ends the answering on drop.
pub(super) struct AnsweringGuard(Arc<Counts>);

impl Drop for AnsweringGuard {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(super) struct HeadTimer<S> {
    stream: S,
    answering: Answering,
    limit: Duration,
    /// Set once the first byte of a head has arrived.
    until: Option<Pin<Box<Sleep>>>,
    /// How many requests had begun when it was set.
    begun: usize,
    /// `None` before the first byte. HTTP/2 sends frames between requests, and pings for its idle
    /// time.
    is_http2: Option<bool>,
}

impl<S> HeadTimer<S> {
    pub(super) fn new(stream: S, limit: Duration) -> Self {
        Self {
            stream,
            answering: Answering::default(),
            limit,
            until: None,
            begun: 0,
            is_http2: None,
        }
    }

    /// The counter to notify when a request is being answered.
    pub(super) fn answering(&self) -> Answering {
        self.answering.clone()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadTimer<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let Counts { running, begun } = &*this.answering.0;
        let begun = begun.load(Ordering::Relaxed);
        if std::mem::replace(&mut this.begun, begun) != begun {
            this.until = None;
        }
        if this.is_http2 == Some(true) || running.load(Ordering::Relaxed) > 0 {
            this.until = None;
            return Pin::new(&mut this.stream).poll_read(cx, into);
        }
        let before = into.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut this.stream).poll_read(cx, into) {
            let came = into.filled().get(before..).unwrap_or_default();
            if !came.is_empty() {
                this.is_http2.get_or_insert(came.starts_with(b"PRI "));
                this.until.get_or_insert_with(|| Box::pin(sleep(this.limit)));
            }
            return Poll::Ready(read);
        }
        let Some(until) = &mut this.until else { return Poll::Pending };
        ready!(until.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadTimer<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
