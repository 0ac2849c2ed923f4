//! The provider's side of an exchange: HTTP, or a WebSocket that stands for it.

use bytes::Bytes;
use pingora::Result;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::protocols::Digest;
use pingora::protocols::UniqueID as _;
use pingora::protocols::http::client::HttpSession;

use super::over_socket::OverSocket;
use super::sending::{self, SendResult};

/// The provider's side. Boxed: each future that holds one reserves memory for it as long as a
/// stream lives.
pub(super) enum Up {
    Http(Box<HttpSession>),
    Socket(Box<OverSocket>),
}

impl Up {
    /// The connection's socket, and Pingora's digest of it.
    pub(super) fn identity(&self) -> (i32, Option<&Digest>) {
        let Self::Http(http) = self else { return (-1, None) };
        let socket = match &**http {
            HttpSession::H1(h1) => h1.id(),
            HttpSession::H2(h2) => h2.fd(),
            HttpSession::Custom(_) => -1,
        };
        (socket, http.digest())
    }

    pub(super) fn is_http2(&self) -> bool {
        matches!(self, Self::Http(http) if matches!(**http, HttpSession::H2(_)))
    }

    /// Sends head and body. The head of a WebSocket's handshake was sent before.
    pub(super) async fn send(&mut self, head: RequestHeader, body: &[Bytes]) -> SendResult {
        match self {
            Self::Http(http) => sending::send(http, head, body).await,
            Self::Socket(socket) => Box::pin(socket.send(body)).await,
        }
    }

    /// Reads the next head, unless it came while the request was sent.
    pub(super) async fn next_head(&mut self) -> Result<()> {
        match self {
            Self::Http(http) => match &mut **http {
                HttpSession::H2(h2) if h2.response_header().is_some() => Ok(()),
                http => http.read_response_header().await,
            },
            Self::Socket(socket) => Box::pin(socket.read_head()).await,
        }
    }

    /// The last head that was read.
    pub(super) fn response_header(&self) -> Option<&ResponseHeader> {
        match self {
            Self::Http(http) => http.response_header(),
            Self::Socket(socket) => socket.response_header(),
        }
    }

    /// The next piece of the body; `None` at its end. Dropping the future loses nothing.
    pub(super) async fn read_body(&mut self) -> Result<Option<Bytes>> {
        match self {
            Self::Http(http) => http.read_response_body().await,
            Self::Socket(socket) => Box::pin(socket.read_body()).await,
        }
    }

    /// Whether the body has ended. Only after the final head: Pingora's own method panics before.
    pub(super) fn response_done(&mut self) -> bool {
        match self {
            Self::Http(http) => http.response_done(),
            Self::Socket(socket) => socket.response_done(),
        }
    }
}
