//! The administration on the proxy's own listener, for deployments with a single origin.
//!
//! The proxy does not import the administration: `app` passes it an [`EmbeddedAdmin`], and
//! `local/administration.rs` passes requests to it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use bytes::Bytes;
use http_body::Frame;
use tokio::sync::mpsc;

/// The administration's service in this process.
#[async_trait]
pub trait EmbeddedAdmin: Send + Sync {
    /// Answers a request.
    async fn call(
        &self,
        request: http::Request<ClientBody>,
        peer: Option<SocketAddr>,
    ) -> AdminReply;
}

/// A request's body: each piece is read from the client on request.
pub struct ClientBody {
    wanted: mpsc::Sender<()>,
    pieces: mpsc::Receiver<Bytes>,
    /// A piece has been requested and has not arrived.
    is_asked: bool,
}

impl http_body::Body for ClientBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !self.is_asked {
            // The channel cannot be full. If it is closed, the body is at its end.
            self.is_asked = self.wanted.try_send(()).is_ok();
        }
        let piece = ready!(self.pieces.poll_recv(cx));
        self.is_asked = false;
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// The other end of a [`ClientBody`].
pub(in crate::proxy) struct Feed {
    /// Receives for each piece that is wanted.
    pub wanted: mpsc::Receiver<()>,
    pub pieces: mpsc::Sender<Bytes>,
}

/// A body, and the end that feeds it.
pub(in crate::proxy) fn client_body() -> (ClientBody, Feed) {
    let ((wanted, asked), (pieces, body)) = (mpsc::channel(1), mpsc::channel(1));
    (ClientBody { wanted, pieces: body, is_asked: false }, Feed { wanted: asked, pieces })
}

/// A reply, its body piece by piece.
pub struct AdminReply {
    /// The status and the headers.
    pub head: http::response::Parts,
    /// The body, which may have no end (a live view).
    pub body: Box<dyn Pieces>,
}

/// The pieces of a body; `None` at its end.
#[async_trait]
pub trait Pieces: Send {
    /// Waits for the next piece. Dropped while it waits if the client closes the connection.
    async fn next(&mut self) -> Option<Bytes>;
}
