//! One WebSocket to a provider.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, Request};
use pingora::connectors::TransportConnector;
use pingora::protocols::Stream;
use pingora::upstreams::peer::HttpPeer;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// Bytes per read, and bytes that are collected before they are written.
const BUFFER: usize = 4 * 1024;
/// Bytes of a message. An event of a stream may have as many.
const MOST: usize = 32 << 20;
/// Bytes of a frame that is sent: the buffer keeps the size of the largest one.
const FRAME: usize = 64 * 1024;
/// How long sending a frame may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// For the last frame.
const CLOSE: Duration = Duration::from_secs(1);

/// A WebSocket to a provider.
pub struct Socket {
    stream: WebSocketStream<Stream>,
    opened: Instant,
    /// Bytes of the largest message that came.
    largest: usize,
    /// The headers of the answer to the handshake, until the first reply takes them.
    headers: Option<HeaderMap>,
    /// It was kept after a reply.
    pub(super) is_used: bool,
}

/// Why there is no socket.
pub(super) struct Unopened {
    pub(super) why: String,
    /// The provider serves none, as far as its answer says.
    pub(super) is_refusal: bool,
}

impl Socket {
    /// Connects, and does the handshake.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn open(
        transport: &TransportConnector,
        peer: &HttpPeer,
        handshake: Request<()>,
    ) -> Result<Self, Unopened> {
        let failed = |why: String| Unopened { why, is_refusal: false };
        let stream = transport.new_stream(peer).await;
        let stream = stream.map_err(|e| failed(e.etype().as_str().to_owned()))?;
        let config = WebSocketConfig::default()
            .read_buffer_size(BUFFER)
            .write_buffer_size(BUFFER)
            .max_message_size(Some(MOST))
            .max_frame_size(Some(MOST));
        let opened = client_async_with_config(handshake, stream, Some(config)).await;
        let (stream, answer) = opened.map_err(|error| match error {
            Error::Http(answer) => {
                let status = answer.status();
                // Of one credential, or of this moment.
                let is_passing = matches!(status.as_u16(), 401 | 403 | 408 | 429)
                    || status.is_server_error() && status.as_u16() != 501;
                let why = format!("the answer is {}", status.as_u16());
                Unopened { why, is_refusal: !is_passing }
            }
            error => failed(error.to_string()),
        })?;
        let headers = Some(answer.into_parts().0.headers);
        Ok(Self { stream, opened: Instant::now(), largest: 0, headers, is_used: false })
    }

    /// Since the handshake.
    pub(super) fn age(&self) -> Duration {
        self.opened.elapsed()
    }

    /// Bytes of the largest message that came.
    pub(super) const fn largest(&self) -> usize {
        self.largest
    }

    /// Whether it has served a reply before.
    pub const fn is_used(&self) -> bool {
        self.is_used
    }

    /// The headers of the answer to the handshake, once.
    pub fn take_headers(&mut self) -> HeaderMap {
        self.headers.take().unwrap_or_default()
    }

    /// Sends a text.
    ///
    /// # Errors
    /// When the connection has ended, or takes nothing for 30 s.
    pub async fn send(&mut self, text: String) -> Result<(), String> {
        let mut rest = Bytes::from(text);
        let mut code = OpCode::Data(Data::Text);
        loop {
            let part = rest.split_to(rest.len().min(FRAME));
            let frame = Message::Frame(Frame::message(part, code, rest.is_empty()));
            match timeout(WRITE_TIMEOUT, self.stream.send(frame)).await {
                Ok(sent) => sent.map_err(|error| error.to_string())?,
                Err(_) => return Err("no byte of the request was taken".to_owned()),
            }
            if rest.is_empty() {
                return Ok(());
            }
            code = OpCode::Data(Data::Continue);
        }
    }

    /// The next text. Dropping the future loses nothing.
    ///
    /// # Errors
    /// When the connection ends, or the provider breaks the protocol.
    pub async fn next(&mut self) -> Result<Utf8Bytes, String> {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => {
                    self.largest = self.largest.max(text.len());
                    return Ok(text);
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(frame))) => {
                    let code = frame.map(|frame| u16::from(frame.code));
                    let code = code.map_or_else(String::new, |code| format!(" with {code}"));
                    return Err(format!("the WebSocket was closed{code}"));
                }
                Some(Ok(_)) => return Err("a binary frame".to_owned()),
                Some(Err(error)) => return Err(error.to_string()),
                None => return Err("the WebSocket was closed".to_owned()),
            }
        }
    }

    /// Resolves when the connection has ended. Answers pings; nothing else is expected.
    pub(super) async fn until_closed(&mut self) {
        while let Some(Ok(message)) = self.stream.next().await {
            if matches!(message, Message::Close(_)) {
                let _closed = timeout(CLOSE, self.stream.flush()).await;
                return;
            }
        }
    }

    /// Closes the connection.
    pub(super) async fn close(&mut self) {
        let _closed = timeout(CLOSE, self.stream.close(None)).await;
    }
}
