//! The client's connection after the handshake. What is read of a message that is not complete
//! counts towards the budget of all bodies.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::pipe::Pipe;
use crate::proxy::body_budget::BodyReservation;

/// Bytes of a connection that do not count towards the budget.
const FREE: usize = 64 * 1024;

/// The connection.
pub(super) struct Metered<'c> {
    pub client: Pipe<'c>,
    /// When the client last sent something.
    pub heard: Instant,
    /// The connection was refused more bytes.
    pub is_full: bool,
    /// Bytes since the last complete message, and when the first of them came.
    partial: usize,
    since: Option<Instant>,
    /// Of the largest message so far: the protocol's buffer keeps its size.
    reservation: BodyReservation,
    bounds: Bounds,
}

/// Bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Of one message.
    pub message: usize,
    /// Of all bodies together.
    pub budget: usize,
}

impl<'c> Metered<'c> {
    pub(super) fn new(client: Pipe<'c>, reservation: BodyReservation, bounds: Bounds) -> Self {
        let heard = Instant::now();
        Self { client, heard, is_full: false, partial: 0, since: None, reservation, bounds }
    }

    /// A message is complete.
    pub(super) const fn message_ends(&mut self) {
        (self.partial, self.since) = (0, None);
    }

    /// A control frame, which may stand within a message.
    pub(super) fn control_ends(&mut self, payload: usize) {
        // Its header and mask have six bytes.
        self.partial = self.partial.saturating_sub(payload + 6);
        if self.partial == 0 {
            self.since = None;
        }
    }

    /// How long the client has been sending the current message.
    pub(super) fn sending(&self) -> Option<Duration> {
        self.since.map(|since| since.elapsed())
    }

    /// Notes bytes that were read; `false`: there is no room for them.
    fn note(&mut self, bytes: usize) -> bool {
        self.heard = Instant::now();
        self.since = self.since.or(Some(self.heard));
        self.partial += bytes;
        // Fragments without content would never end otherwise.
        if self.partial <= FREE {
            return true;
        }
        let wanted = self.partial.max(self.reservation.bytes());
        self.partial <= 2 * self.bounds.message + FREE
            && self.reservation.hold(wanted, self.bounds.budget).is_ok()
    }
}

impl AsyncRead for Metered<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        ready!(Pin::new(&mut this.client).poll_read(cx, into))?;
        let read = into.filled().len() - before;
        if read > 0 && !this.note(read) {
            this.is_full = true;
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Metered<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().client).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().client).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().client).poll_shutdown(cx)
    }
}
