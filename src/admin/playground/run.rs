//! One request through the proxy, and its reply as events, each a line of JSON, as they arrive. A
//! second request may follow, made from the reply to the first.
//!
//! Dropping the run closes the connection: the proxy treats that as a client that closed.

use std::pin::Pin;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::PlaygroundPlace;
use crate::admin::records::playground::{Header, PlaygroundEvent};

/// After this long without an event a heartbeat line is sent, so that proxies do not close the
/// connection.
const BEAT: Duration = Duration::from_secs(10);

/// Bytes of a reply that the next request is made from.
const MAX_FIRST: usize = 1 << 16;

type Sender = http1::SendRequest<Full<Bytes>>;
type Asking = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;
type Following = Pin<Box<dyn Future<Output = Result<Stage, &'static str>> + Send>>;
/// Makes the next request, from what the proxy answered to the first.
pub type MakeNext = Box<dyn FnOnce(&[u8]) -> Option<Request<Full<Bytes>>> + Send>;

/// A request that follows the first one, if that succeeds. Until then its reply is not shown.
pub struct NextRequest {
    /// Its first event.
    pub begin: PlaygroundEvent,
    /// `None`: the reply does not have what the request needs.
    pub make: MakeNext,
}

/// The request in progress.
pub struct PlaygroundRun {
    stage: Stage,
    next: Option<(Sender, NextRequest)>,
    began: Instant,
    text: TextPieces,
    /// The reply is not a text.
    is_binary: bool,
    _place: PlaygroundPlace,
    /// Drive the connections.
    _drivers: JoinSet<()>,
}

enum Stage {
    Begin(PlaygroundEvent, Asking),
    Asking(Asking),
    Following(Following),
    Reading(Incoming),
    Ended,
}

impl PlaygroundRun {
    /// Prepares the request, and one that follows it. It is sent when the second event is requested.
    ///
    /// # Errors
    /// When the proxy has closed the connection.
    pub async fn new(
        connection: DuplexStream,
        request: Request<Full<Bytes>>,
        begin: PlaygroundEvent,
        next: Option<(DuplexStream, NextRequest)>,
        place: PlaygroundPlace,
    ) -> hyper::Result<Self> {
        let mut drivers = JoinSet::new();
        let mut sender = open(connection, &mut drivers).await?;
        let next = match next {
            Some((connection, next)) => Some((open(connection, &mut drivers).await?, next)),
            None => None,
        };
        let asking: Asking = Box::pin(async move { sender.send_request(request).await });
        let stage = Stage::Begin(begin, asking);
        Ok(Self {
            stage,
            next,
            began: Instant::now(),
            text: TextPieces::default(),
            is_binary: false,
            _place: place,
            _drivers: drivers,
        })
    }

    /// The next line; `None` after the last.
    pub async fn next(&mut self) -> Option<Bytes> {
        let event = match timeout(BEAT, self.event()).await {
            Ok(event) => event?,
            Err(_) => PlaygroundEvent::Wait { at_ms: self.at_ms() },
        };
        let mut line = serde_json::to_vec(&event).unwrap_or_default();
        line.push(b'\n');
        Some(line.into())
    }

    async fn event(&mut self) -> Option<PlaygroundEvent> {
        loop {
            match &mut self.stage {
                Stage::Begin(..) => {
                    let Stage::Begin(event, asking) =
                        std::mem::replace(&mut self.stage, Stage::Ended)
                    else {
                        return None;
                    };
                    self.began = Instant::now();
                    self.stage = Stage::Asking(asking);
                    return Some(event);
                }
                Stage::Asking(asking) => match asking.await {
                    Ok(reply) if self.next.is_some() && reply.status().is_success() => {
                        self.follow(reply.into_body());
                    }
                    Ok(reply) => {
                        let (head, body) = reply.into_parts();
                        self.stage = Stage::Reading(body);
                        self.is_binary = is_binary(&head.headers);
                        let headers = head.headers.iter().map(Header::from).collect();
                        return Some(PlaygroundEvent::Head {
                            status: head.status.as_u16(),
                            headers,
                            at_ms: self.at_ms(),
                        });
                    }
                    Err(_) => {
                        return Some(
                            self.end(Some("the proxy closed the connection without an answer")),
                        );
                    }
                },
                Stage::Following(following) => match following.await {
                    Ok(stage) => self.stage = stage,
                    Err(why) => return Some(self.end(Some(why))),
                },
                Stage::Reading(body) => match body.frame().await {
                    Some(Ok(frame)) => {
                        let Ok(data) = frame.into_data() else { continue };
                        if self.is_binary && !data.is_empty() {
                            let (base64, at_ms) = (STANDARD.encode(&data), self.at_ms());
                            return Some(PlaygroundEvent::Bytes { base64, at_ms });
                        }
                        let text = self.text.push(&data);
                        if !text.is_empty() {
                            return Some(PlaygroundEvent::Data { text, at_ms: self.at_ms() });
                        }
                    }
                    Some(Err(_)) => return Some(self.end(Some("the reply broke off"))),
                    None => return Some(self.end(None)),
                },
                Stage::Ended => return None,
            }
        }
    }

    /// Goes on with the next request once the reply to the first is complete.
    fn follow(&mut self, reply: Incoming) {
        let Some((mut sender, NextRequest { begin, make })) = self.next.take() else { return };
        self.stage = Stage::Following(Box::pin(async move {
            let whole = Limited::new(reply, MAX_FIRST).collect().await;
            let whole = whole.map_err(|_| "the reply to the first request broke off")?;
            let request = make(&whole.to_bytes());
            let request = request.ok_or("the reply to the first request has no id")?;
            let asking: Asking = Box::pin(async move { sender.send_request(request).await });
            Ok(Stage::Begin(begin, asking))
        }));
    }

    fn end(&mut self, error: Option<&'static str>) -> PlaygroundEvent {
        self.stage = Stage::Ended;
        PlaygroundEvent::End { complete: error.is_none(), error, at_ms: self.at_ms() }
    }

    fn at_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Opens a connection, which one of the tasks drives.
async fn open(connection: DuplexStream, drivers: &mut JoinSet<()>) -> hyper::Result<Sender> {
    let (sender, connection) = http1::handshake(TokioIo::new(connection)).await?;
    drivers.spawn(async move {
        // The reply reports how it ended.
        let _ = connection.await;
    });
    Ok(sender)
}

/// Whether a reply with this head is sound, an image or a video.
fn is_binary(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    ["audio/", "image/", "video/", "application/octet-stream"]
        .iter()
        .any(|one| kind.starts_with(one))
}

/// UTF-8 in pieces: a character that is cut is held back until its rest arrives.
#[derive(Debug, Default)]
struct TextPieces {
    held: Vec<u8>,
}

impl TextPieces {
    /// The text that is complete with this piece; invalid UTF-8 is replaced.
    fn push(&mut self, piece: &[u8]) -> String {
        self.held.extend_from_slice(piece);
        let mut text = String::new();
        let mut rest: &[u8] = &self.held;
        loop {
            let error = match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => error,
            };
            let (valid, bad) = rest.split_at(error.valid_up_to());
            text.push_str(&String::from_utf8_lossy(valid));
            rest = bad;
            let Some(length) = error.error_len() else { break };
            text.push(char::REPLACEMENT_CHARACTER);
            rest = &rest[length..];
        }
        self.held = rest.to_vec();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::TextPieces;

    #[test]
    fn characters_survive_any_cut_and_other_bytes_are_replaced() {
        let text = "a é 漢 🦀 z";
        for size in 1..=text.len() {
            let mut pieces = TextPieces::default();
            let joined: String =
                text.as_bytes().chunks(size).map(|piece| pieces.push(piece)).collect();
            assert_eq!(joined, text, "in pieces of {size}");
        }
        let mut pieces = TextPieces::default();
        assert_eq!(pieces.push(b"a\xffb\xe6"), "a\u{fffd}b");
        assert_eq!(pieces.push(b"!"), "\u{fffd}!");
    }
}
