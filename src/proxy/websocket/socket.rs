//! Messages from and to the client.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::metered::{Bounds, Metered};
use super::pipe::Pipe;
use crate::domain::ids::UserId;
use crate::proxy::body_budget::BodyReservation;
use crate::proxy::context::RequestContext;

/// Bytes per read, and bytes of a message that are collected before they are written.
const BUFFER: usize = 2 * 1024;
/// For the last frame.
const CLOSE: Duration = Duration::from_secs(5);
/// How long, and how many bytes, are read of a connection that is closed: closing it with unread
/// bytes would reset it before the client has read the last frame.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 4 << 20;

/// The client cannot be reached any more.
#[derive(Debug)]
pub(super) struct Gone;

/// What came.
pub(super) enum Received {
    Text(Utf8Bytes),
    /// Nothing for the connection: a ping, a pong.
    Control,
    /// The client has closed the connection.
    Closed,
    /// The client broke the protocol; how to close.
    Broken(CloseCode, &'static str),
}

/// The client's WebSocket.
pub(super) struct Socket<'c> {
    stream: WebSocketStream<Metered<'c>>,
    /// For each message that the client reads; `None`: without a bound.
    write: Option<Duration>,
}

impl<'c> Socket<'c> {
    pub(super) async fn new(client: Pipe<'c>, ctx: &RequestContext, user: Option<UserId>) -> Self {
        let most = ctx.live.max_body_bytes;
        let config = WebSocketConfig::default()
            .read_buffer_size(BUFFER)
            .write_buffer_size(BUFFER)
            .max_message_size(Some(most))
            .max_frame_size(Some(most));
        let reservation = BodyReservation::new(&ctx.gateway.bodies, user);
        let bounds = Bounds { message: most, budget: ctx.live.max_inflight_body_bytes };
        let client = Metered::new(client, reservation, bounds);
        let stream = WebSocketStream::from_raw_socket(client, Role::Server, Some(config)).await;
        let ms = ctx.live.reply_write_timeout_ms;
        Self { stream, write: (ms > 0).then(|| Duration::from_millis(ms)) }
    }

    /// The next message. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Received {
        let message = match self.stream.next().await {
            Some(Ok(message)) => message,
            Some(Err(error)) => return self.broken(&error),
            None => return Received::Closed,
        };
        let client = self.stream.get_mut();
        match message {
            Message::Text(text) => {
                client.message_ends();
                Received::Text(text)
            }
            Message::Binary(_) => Received::Broken(CloseCode::Unsupported, "binary frames"),
            Message::Close(_) => {
                // The library has its answer ready.
                let _closed = timeout(CLOSE, self.stream.flush()).await;
                Received::Closed
            }
            Message::Ping(payload) | Message::Pong(payload) => {
                client.control_ends(payload.len());
                Received::Control
            }
            Message::Frame(_) => Received::Control,
        }
    }

    fn broken(&self, error: &Error) -> Received {
        match error {
            Error::Capacity(_) => Received::Broken(CloseCode::Size, "a message is too large"),
            Error::Utf8(_) => Received::Broken(CloseCode::Invalid, "a text is not UTF-8"),
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Received::Closed,
            Error::Protocol(_) => Received::Broken(CloseCode::Protocol, "a malformed frame"),
            Error::Io(_) if self.stream.get_ref().is_full => {
                Received::Broken(CloseCode::Again, "too many bytes are held now")
            }
            _ => Received::Closed,
        }
    }

    /// Sends a text.
    pub(super) async fn send(&mut self, text: String) -> Result<(), Gone> {
        bounded(self.write, self.stream.send(Message::text(text))).await
    }

    /// Asks whether the client is there.
    pub(super) async fn ping(&mut self) -> Result<(), Gone> {
        bounded(self.write, self.stream.send(Message::Ping(Bytes::new()))).await
    }

    /// The connection below.
    pub(super) fn client(&self) -> &Metered<'c> {
        self.stream.get_ref()
    }

    /// Closes the connection.
    pub(super) async fn close(&mut self, code: CloseCode, reason: &str) {
        let frame = CloseFrame { code, reason: reason.into() };
        if !matches!(timeout(CLOSE, self.stream.close(Some(frame))).await, Ok(Ok(()))) {
            return;
        }
        let client = &mut self.stream.get_mut().client;
        let lingering = async {
            let _ = client.shutdown().await;
            let (mut piece, mut read) = (vec![0; 4096], 0);
            while read < LINGER_BYTES {
                match client.read(&mut piece).await {
                    Ok(bytes) if bytes > 0 => read += bytes,
                    _ => break,
                }
            }
        };
        let _closed = timeout(LINGER, Box::pin(lingering)).await;
    }
}

async fn bounded(
    time: Option<Duration>,
    sending: impl Future<Output = Result<(), Error>>,
) -> Result<(), Gone> {
    let sent = match time {
        Some(time) => timeout(time, sending).await.map_err(|_| Gone)?,
        None => sending.await,
    };
    sent.map_err(|_| Gone)
}
