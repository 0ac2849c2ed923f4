//! A time-out for request heads on a connection, counted from their first byte.
//!
//! hyper has one bound for both: the wait for a head's first byte and the rest of the head. A short
//! bound also closes idle connections that clients keep for their next request. A request that is
//! sent at that moment gets a closed connection in place of an answer, and clients do not retry a
//! POST. So hyper's bound is the idle time, longer than clients keep connections, and this module
//! bounds a head that has begun. Of HTTP/2 hyper bounds neither: the frames are followed
//! (`state/frame_watch.rs`). Nor does hyper bound the wait for the first byte of a connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::state::FrameWatch;

/// The first bytes of an HTTP/2 client.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Whether a request is being answered, or the rest of its body read: bytes that arrive then are no
/// head.
#[derive(Debug, Clone, Default)]
pub(super) struct Answering(Arc<HeadCounts>);

#[derive(Debug, Default)]
struct HeadCounts {
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
pub(super) struct AnsweringGuard(Arc<HeadCounts>);

impl Drop for AnsweringGuard {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long a client may send nothing before its first request, and how long a head may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeadTimes {
    pub idle: Duration,
    pub head: Duration,
}

pub(super) struct HeadTimer<S> {
    stream: S,
    answering: Answering,
    head: Duration,
    /// Runs until the first byte, and later while a head is incomplete.
    until: Option<Pin<Box<Sleep>>>,
    /// How many requests had begun when bytes were last awaited.
    begun: usize,
    /// How many bytes have arrived, up to those of HTTP/2's preface.
    seen: usize,
    /// `None` once the client's bytes are HTTP/1's.
    frames: Option<FrameWatch>,
}

impl<S> HeadTimer<S> {
    pub(super) fn new(stream: S, times: HeadTimes) -> Self {
        Self {
            stream,
            answering: Answering::default(),
            head: times.head,
            until: Some(Box::pin(sleep(times.idle))),
            begun: 0,
            seen: 0,
            frames: Some(FrameWatch::new()),
        }
    }

    /// The counter to notify when a request is being answered.
    pub(super) fn answering(&self) -> Answering {
        self.answering.clone()
    }

    /// Follows the bytes that arrived, and times the head that they belong to.
    fn came(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.seen == 0 {
            self.until = None;
        }
        let awaited = PREFACE.get(self.seen..).unwrap_or_default();
        let compared = awaited.len().min(bytes.len());
        if awaited[..compared] != bytes[..compared] {
            self.frames = None;
        }
        self.seen += compared;
        if self.frames.is_none() {
            self.seen = PREFACE.len();
        }
        let in_head = match &mut self.frames {
            Some(frames) => {
                let spent = |_| io::Error::new(io::ErrorKind::InvalidData, "too many frames");
                frames.take(bytes).map_err(spent)?;
                frames.is_in_head()
            }
            None => self.answering.0.running.load(Ordering::Relaxed) == 0,
        };
        if !in_head {
            self.until = None;
        } else if self.until.is_none() {
            self.until = Some(Box::pin(sleep(self.head)));
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadTimer<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let HeadCounts { running, begun } = &*this.answering.0;
        let begun = begun.load(Ordering::Relaxed);
        let is_new = std::mem::replace(&mut this.begun, begun) != begun;
        if this.frames.is_none() && (is_new || running.load(Ordering::Relaxed) > 0) {
            this.until = None;
        }
        let before = into.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, into);
        if let Poll::Ready(Ok(())) = read
            && let Some(bytes) = into.filled().get(before..).filter(|bytes| !bytes.is_empty())
        {
            this.came(bytes)?;
        }
        // If a head drips, each read has bytes: the bound applies to those too.
        if this.until.as_mut().is_some_and(|until| until.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
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
