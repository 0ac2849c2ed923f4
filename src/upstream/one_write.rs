//! A provider's HTTP/1 connection that sends a request's head together with its body.
//!
//! Pingora flushes the head before the body is written: two packets, two calls of the kernel, and
//! the provider may wake twice. Here the flush of the head is deferred to the body, if
//! [`OneWrite::defer`] was called before. TLS then needs one record.
//!
//! A write that is blocked fails if the provider has already answered with an error
//! (`early_answer`). A request that is written without waiting costs no look.
//!
//! See docs/decisions/02-head-with-body.md.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use bytes::{Buf as _, BytesMut};
use pingora::protocols::{Peek, Shutdown, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::early_answer::EarlyAnswer;
use super::inner_stream::passes_on;

/// Bytes of head and body that are joined at most: as many as a TLS record holds. The rest of a
/// longer body is written as it is.
const JOINED_MAX: usize = 16 * 1024;

/// A connection whose next flush can be deferred.
pub struct OneWrite {
    stream: Stream,
    /// Head and beginning of the body, not yet written.
    held: BytesMut,
    /// The next flush is that of a head that a body follows.
    deferred: AtomicBool,
    early: EarlyAnswer,
}

impl OneWrite {
    /// Wraps a connection.
    pub(super) fn around(stream: Stream) -> Stream {
        let (held, deferred) = (BytesMut::new(), AtomicBool::new(false));
        Box::new(Self { stream, held, deferred, early: EarlyAnswer::default() })
    }

    /// A head is written next, and a body at once after it.
    pub fn defer(stream: &Stream) {
        if let Some(this) = stream.as_any().downcast_ref::<Self>() {
            this.deferred.store(true, Ordering::Relaxed);
        }
    }

    /// Whether an answer began while its request was written.
    pub fn has_answer(stream: &Stream) -> bool {
        stream.as_any().downcast_ref::<Self>().is_some_and(|this| this.early.has_begun())
    }

    /// What was done, or for a write that is blocked, the reason to give it up.
    fn unless_answered<T>(
        &mut self,
        done: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        match done {
            Poll::Pending => self.early.poll_stop(&mut self.stream, cx).map(Err),
            done => done,
        }
    }

    /// Writes what is held.
    fn poll_held(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.held.is_empty() {
            let written = Pin::new(&mut self.stream).poll_write(cx, &self.held);
            let written = ready!(self.unless_answered(written, cx))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.held.advance(written);
        }
        // A stream, or an idle connection, keeps no part of a prompt in memory.
        self.held = BytesMut::new();
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for OneWrite {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.early.take(into) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for OneWrite {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let in_head = *this.deferred.get_mut();
        if in_head || !this.held.is_empty() {
            let room = JOINED_MAX.saturating_sub(this.held.len());
            let taken = if in_head { bytes.len() } else { bytes.len().min(room) };
            if taken > 0 {
                this.held.extend_from_slice(&bytes[..taken]);
                return Poll::Ready(Ok(taken));
            }
            ready!(this.poll_held(cx))?;
        }
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.unless_answered(written, cx)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if std::mem::take(this.deferred.get_mut()) {
            return Poll::Ready(Ok(()));
        }
        ready!(this.poll_held(cx))?;
        let flushed = Pin::new(&mut this.stream).poll_flush(cx);
        this.unless_answered(flushed, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_held(cx))?;
        Pin::new(&mut this.stream).poll_shutdown(cx)
    }
}

passes_on!(OneWrite: this => this.stream);

#[async_trait]
impl Shutdown for OneWrite {
    async fn shutdown(&mut self) {
        self.stream.shutdown().await;
    }
}

#[async_trait]
impl Peek for OneWrite {}
