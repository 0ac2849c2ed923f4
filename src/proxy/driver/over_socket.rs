//! One exchange over a WebSocket to the provider, in the form of one over HTTP: a head, and the
//! pieces of a stream of events.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue};
use pingora::http::ResponseHeader;
use pingora::{Error, ErrorType, Result};

use super::sending::SendResult;
use crate::formats::websocket::{self, ProviderFrame};
use crate::proxy::blocking;
use crate::proxy::body_budget::BodyReservation;
use crate::upstream::sockets::{Place, Socket};

/// Bytes of frames before a reply.
const MOST_BESIDE: usize = 64 << 10;

/// Headers of the handshake's answer, and of an error frame, that no reply over HTTP repeats.
fn is_of_handshake(name: &HeaderName) -> bool {
    [CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING].contains(name)
        || matches!(name.as_str(), "connection" | "upgrade" | "keep-alive" | "date" | "set-cookie")
        || name.as_str().starts_with("sec-websocket-")
}

/// An exchange.
pub(super) struct OverSocket {
    socket: Socket,
    place: Place,
    /// The provider's name.
    provider: String,
    /// What the frame takes beside the body, until it is sent.
    held: BodyReservation,
    head: Option<ResponseHeader>,
    /// The event, or the body of an error, that came with the head.
    first: Option<Bytes>,
    is_over: bool,
    /// It ended with an `error` event, after which another one of the reply may come.
    is_spoilt: bool,
}

impl OverSocket {
    pub(super) fn new(
        (socket, place): (Socket, Place),
        provider: String,
        held: BodyReservation,
    ) -> Self {
        Self {
            socket,
            place,
            provider,
            held,
            head: None,
            first: None,
            is_over: false,
            is_spoilt: false,
        }
    }

    /// Whether the socket has served a reply before.
    pub(super) const fn is_used(&self) -> bool {
        self.socket.is_used()
    }

    /// Sends the request. A large body is read on another thread.
    pub(super) async fn send(&mut self, body: &[Bytes]) -> SendResult {
        let (pieces, bytes) = (body.to_vec(), body.iter().map(Bytes::len).sum());
        let frame = blocking::by_size(bytes, move || match pieces.as_slice() {
            [one] => websocket::create(one),
            pieces => websocket::create(&pieces.concat()),
        });
        let sent = match frame.await.flatten() {
            Some(frame) => self.socket.send(frame).await,
            None => Err("the request is no JSON object".to_owned()),
        };
        let _ = self.held.hold(0, 0);
        match sent {
            Ok(()) => SendResult::Whole,
            Err(why) => SendResult::Ended(broken(why)),
        }
    }

    /// The head of the answer, once.
    pub(super) const fn response_header(&self) -> Option<&ResponseHeader> {
        self.head.as_ref()
    }

    /// Waits for the first frame that belongs to the reply, or refuses it. Others before it
    /// (`codex.rate_limits`) are passed on with it.
    pub(super) async fn read_head(&mut self) -> Result<()> {
        let mut before = String::new();
        let frame = loop {
            match self.frame().await? {
                ProviderFrame::Event { text, ends: false } if is_beside(&text) => {
                    before += &text;
                    if before.len() > MOST_BESIDE {
                        return Err(broken("too many frames before the reply"));
                    }
                }
                frame => break frame,
            }
        };
        let (status, headers, kind, first) = match frame {
            ProviderFrame::Event { text, ends } => {
                self.event(&text, ends);
                (200, self.socket.take_headers(), "text/event-stream", before + &text)
            }
            ProviderFrame::Refusal { status, headers, body } => {
                self.is_over = true;
                (status, map(&headers), "application/json", body)
            }
            ProviderFrame::TooOld => return Err(broken("the WebSocket is too old")),
        };
        let mut head = ResponseHeader::build(status, Some(headers.len() + 1))?;
        head.insert_header(CONTENT_TYPE, kind)?;
        for (name, value) in headers.iter().filter(|(name, _)| !is_of_handshake(name)) {
            head.append_header(name, value)?;
        }
        self.head = Some(head);
        self.first = Some(first.into());
        Ok(())
    }

    /// The next event; `None` after the last one.
    pub(super) async fn read_body(&mut self) -> Result<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        if self.is_over {
            return Ok(None);
        }
        match self.frame().await? {
            ProviderFrame::Event { text, ends } => {
                self.event(&text, ends);
                Ok(Some(text.into()))
            }
            ProviderFrame::Refusal { body, .. } => {
                self.is_over = true;
                Ok(Some(within_stream(&body).into()))
            }
            ProviderFrame::TooOld => Err(broken("the WebSocket is too old")),
        }
    }

    fn event(&mut self, text: &str, ends: bool) {
        self.is_over = ends;
        self.is_spoilt |= text.starts_with("event: error\n");
    }

    async fn frame(&mut self) -> Result<ProviderFrame> {
        let text = self.socket.next().await.map_err(broken)?;
        websocket::provider_frame(&text).ok_or_else(|| broken("a frame is no event"))
    }

    /// Whether the whole reply was read.
    pub(super) const fn response_done(&self) -> bool {
        self.is_over && self.first.is_none()
    }

    /// The socket ended before the provider answered. A new one that does is as good as refused.
    pub(super) fn unanswered(&self, why: &str) {
        if !self.socket.is_used() {
            self.place.refused(&self.provider, why);
        }
    }

    /// Keeps the socket for the session's next request; no reply may be in flight.
    pub(super) fn keep(self) {
        if !self.is_spoilt {
            self.place.keep(self.socket);
        }
    }
}

/// Whether an event is of no reply.
fn is_beside(event: &str) -> bool {
    !event.starts_with("event: response.") && !event.starts_with("event: error\n")
}

/// An error after content, as the event of a stream.
fn within_stream(body: &str) -> String {
    let members = body.strip_prefix('{').unwrap_or("}").replace(['\r', '\n'], " ");
    format!("event: error\ndata: {{\"type\":\"error\",{members}\n\n")
}

fn broken(why: impl Into<String>) -> Box<Error> {
    let why: String = why.into();
    Error::explain(ErrorType::ConnectionClosed, why)
}

fn map(headers: &[(String, String)]) -> HeaderMap {
    let one = |(name, value): &(String, String)| {
        Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
    };
    headers.iter().filter_map(one).collect()
}
