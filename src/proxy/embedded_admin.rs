//! The administration on the proxy's own listener, for deployments with a single origin.
//!
//! The proxy does not import the administration: `app` passes it an [`EmbeddedAdmin`], and
//! `local/administration.rs` passes requests to it.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use bytes::Bytes;
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use tokio::sync::mpsc;

/// The body of a reply, which may have no end (a live view).
pub type AdminBody = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// The administration's service in this process.
#[async_trait]
pub trait EmbeddedAdmin: Send + Sync {
    /// Answers a request.
    async fn call(
        &self,
        request: http::Request<ClientBody>,
        peer: Option<SocketAddr>,
    ) -> http::Response<AdminBody>;
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
