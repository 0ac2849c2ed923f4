//! One request inside the process, and the events of its reply.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, TRANSFER_ENCODING};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

use crate::formats::sse::Assembler;
use crate::formats::websocket::{Kind, kind};
use crate::http_client::in_process;

/// Bytes of an answer that is not a stream.
const MOST: usize = 1 << 20;
/// Bytes of an event.
const MAX_EVENT: usize = 32 << 20;

/// What becomes of a request.
pub(super) enum Event {
    /// An event of the reply.
    Data { kind: Kind, data: String },
    /// An answer that is not a stream. Boxed: each connection has room for some events.
    Answer(Box<Answer>),
    /// The reply is over; why, if it broke off.
    End(Option<String>),
}

/// An answer that is not a stream.
pub(super) struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// Where the events of a request go, with its number.
pub(super) struct Events {
    pub number: u64,
    pub to: mpsc::Sender<(u64, Event)>,
}

impl Events {
    /// `false`: nobody waits for them any more.
    async fn send(&self, event: Event) -> bool {
        self.to.send((self.number, event)).await.is_ok()
    }
}

/// Makes the request. Dropping the future cancels it.
pub(super) async fn run(connection: DuplexStream, request: Request<Full<Bytes>>, events: Events) {
    let why = relay(connection, request, &events).await.err();
    let _ = events.send(Event::End(why)).await;
}

async fn relay(
    connection: DuplexStream,
    request: Request<Full<Bytes>>,
    events: &Events,
) -> Result<(), String> {
    let (answer, _open) = in_process::begin(connection, request).await?;
    let (head, body) = answer.into_parts();
    let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if head.status == 200 && kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return stream(body, events).await;
    }
    let body = Limited::new(body, MOST).collect().await.map_err(|e| e.to_string())?.to_bytes();
    let (status, headers) = (head.status.as_u16(), shown(&head.headers));
    events.send(Event::Answer(Box::new(Answer { status, headers, body }))).await;
    Ok(())
}

async fn stream(mut body: Incoming, events: &Events) -> Result<(), String> {
    let (mut assembler, mut ready) = (Assembler::new(MAX_EVENT), Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|e| e.to_string())?.into_data() else { continue };
        let fed = assembler.feed(&piece, |event| {
            if event.data.starts_with(b"{") {
                let data = String::from_utf8_lossy(event.data).into_owned();
                ready.push(Event::Data { kind: kind(event.name, event.data), data });
            }
        });
        for event in ready.drain(..) {
            if !events.send(event).await {
                return Ok(());
            }
        }
        fed.map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// The headers of an answer that its error frame repeats.
fn shown(headers: &HeaderMap) -> Vec<(String, String)> {
    let of_body = [CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, TRANSFER_ENCODING];
    let shown = headers.iter().filter(|(name, _)| !of_body.contains(name));
    shown
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect()
}
