//! What carries the frames: an HTTP/1 connection after its upgrade, or one stream of an HTTP/2
//! connection (RFC 8441).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use h2::SendStream;
use pingora::protocols::http::ServerSession;
use pingora::protocols::http::v2::server::HttpSession as Http2Session;
use pingora::proxy::Session;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::proxy::connections::client_stream::ClientStream;

/// Bytes per piece that is written to a stream.
const PIECE: usize = 16 * 1024;

/// The bytes of one client.
pub(super) enum Pipe<'c> {
    Connection(&'c ClientStream),
    // Boxed: few connections have one.
    Stream(Box<Http2Stream<'c>>),
}

/// One stream, after the head of the answer.
pub(super) struct Http2Stream<'c> {
    session: &'c mut Http2Session,
    out: SendStream<Bytes>,
    /// What was received and not yet read.
    rest: Bytes,
}

impl<'c> Pipe<'c> {
    /// That of a session whose handshake was accepted.
    pub(super) fn of(session: &'c mut Session) -> Option<Self> {
        if ClientStream::of(session).is_some() {
            return ClientStream::of(session).map(Self::Connection);
        }
        let ServerSession::H2(session) = session.as_downstream_mut() else { return None };
        let out = session.take_response_body_writer()?;
        Some(Self::Stream(Box::new(Http2Stream { session, out, rest: Bytes::new() })))
    }
}

fn ended(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}

impl Http2Stream<'_> {
    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            match ready!(self.session.poll_read_body_bytes(cx)) {
                Some(came) => self.rest = came.map_err(ended)?,
                None => return Poll::Ready(Ok(())),
            }
        }
        let most = self.rest.len().min(into.remaining());
        into.put_slice(&self.rest[..most]);
        self.rest.advance(most);
        Poll::Ready(Ok(()))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.out.reserve_capacity(bytes.len().min(PIECE));
        while self.out.capacity() == 0 {
            match ready!(self.out.poll_capacity(cx)) {
                Some(more) => drop(more.map_err(ended)?),
                None => return Poll::Ready(Err(ended("the stream was reset"))),
            }
        }
        let most = bytes.len().min(PIECE).min(self.out.capacity());
        let sent = self.out.send_data(Bytes::copy_from_slice(&bytes[..most]), false);
        Poll::Ready(sent.map(|()| most).map_err(ended))
    }
}

impl AsyncRead for Pipe<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Connection(client) => Pin::new(client).poll_read(cx, into),
            Self::Stream(stream) => stream.poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Pipe<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Connection(client) => Pin::new(client).poll_write(cx, bytes),
            Self::Stream(stream) => stream.poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Connection(client) => Pin::new(client).poll_flush(cx),
            // The connection's own task writes.
            Self::Stream(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Connection(client) => Pin::new(client).poll_shutdown(cx),
            Self::Stream(stream) => {
                Poll::Ready(stream.out.send_data(Bytes::new(), true).map_err(ended))
            }
        }
    }
}
