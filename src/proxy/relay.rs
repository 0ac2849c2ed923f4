//! Passing the reply on: held back until its first meaningful part, then piece by piece, accounted for before its end.
//!
//! Until the first meaningful part nothing goes to the client, so that an error as first event, an empty reply or a
//! stream that dies at once can still be tried elsewhere. Before the part that completes the reply goes out, the record
//! is in the journal: a reply that the client has whole is never lost.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use pingora::http::ResponseHeader;
use pingora::protocols::http::ServerSession as Session;

use super::attempt::{Judged, Step};
use super::exchange::{End, Exchange, Running};
use super::failure::{ErrorStatus, Failure};
use super::reply::Reply;
use super::wire::{Stop, Wire};
use super::{answer, keep, settle};
use crate::domain::format::WireFormat;
use crate::domain::record::RequestOutcome;
use crate::formats::count;
use crate::formats::error::UpstreamError;
use crate::policy::classify::{NetworkFailure, UnusableReply};

/// Bytes held back at most while no meaningful part has come.
const HOLD_MAX: usize = 256 * 1024;

/// Names of a reply's head that do not go on: they belong to one connection, or to the provider's own account.
const NEVER: [&str; 12] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
    "transfer-encoding",
    "set-cookie",
    "alt-svc",
    "strict-transport-security",
    "content-encoding",
];

/// A success head, and what is made of the body behind it.
pub struct Incoming<'a> {
    pub status: u16,
    /// The provider's head, until the client's is made from it.
    pub head: Option<Box<ResponseHeader>>,
    pub reply: Reply,
    /// The reply is a stream of events.
    pub streamed: bool,
    pub by: Judged<'a>,
}

impl Incoming<'_> {
    /// The end of a reply that came to its own.
    fn completed(&self) -> End {
        End { outcome: RequestOutcome::Completed, status: self.status, error: None }
    }

    /// Whether a body that is over is also whole: a stream says so itself.
    fn is_whole(&self) -> bool {
        !self.streamed || self.reply.has_end()
    }
}

/// Relays a reply to its end.
pub async fn relay(session: &mut Session, x: &mut Exchange, mut wire: Wire, mut incoming: Box<Incoming<'_>>) -> Step {
    let gateway = Arc::clone(&x.gateway);
    let step = match hold(session, x, &mut wire, &mut incoming).await {
        Err(step) => {
            // Nothing has gone to the client: only what the provider itself reported counts.
            x.usage = incoming.reply.usage();
            x.usage_estimated = x.usage.is_some();
            step
        }
        Ok(held) => pass_on(session, x, &mut wire, &mut incoming, held).await,
    };
    wire.close(&gateway.upstreams, incoming.by.link).await;
    step
}

/// What was held back, and whether the reply is already at its end.
struct Held {
    bytes: Bytes,
    over: bool,
}

/// Reads until there is something to show, or a reason to try elsewhere.
async fn hold(
    session: &mut Session,
    x: &mut Exchange,
    wire: &mut Wire,
    incoming: &mut Incoming<'_>,
) -> Result<Held, Step> {
    let mut held = BytesMut::new();
    let reply = &mut incoming.reply;
    loop {
        let waiting = Instant::now();
        let piece = wire.piece(session, incoming.by.timing.until_content()).await;
        x.waited += waiting.elapsed();
        let over = match piece {
            Ok(Some(piece)) => {
                held.extend_from_slice(&reply.take(piece));
                wire.is_done()
            }
            Ok(None) => true,
            Err(Stop::ClientGone) => return Err(Step::ClientGone),
            Err(Stop::Failed(failure)) => return Err(Step::Failed(failure)),
        };
        if over {
            held.extend_from_slice(&reply.finish());
        }
        if let Some(error) = reply.error() {
            return Err(error_in_place(error, reply).into());
        }
        if reply.problem().is_some() {
            return Err(Failure::Unusable { what: UnusableReply::WrongFormat, usage: reply.usage() }.into());
        }
        if reply.has_content() || held.len() > HOLD_MAX {
            return Ok(Held { bytes: held.freeze(), over });
        }
        if over {
            // A proper end without content is a reply too: a stop at once, say.
            if reply.has_end() && !held.is_empty() {
                return Ok(Held { bytes: held.freeze(), over });
            }
            let what = match (held.is_empty(), incoming.streamed) {
                (true, _) => UnusableReply::Empty,
                (false, true) => UnusableReply::StreamWithoutContent,
                (false, false) => UnusableReply::WrongFormat,
            };
            return Err(Failure::Unusable { what, usage: reply.usage() }.into());
        }
    }
}

/// A success status whose body is an error: judged by what the error says.
fn error_in_place(error: UpstreamError, reply: &Reply) -> Failure {
    let (retry_after, content_type, body) = (None, None, Bytes::new());
    Failure::ErrorReply(ErrorStatus { status: 200, retry_after, content_type, error, body, usage: reply.usage() })
}

/// Sends head and body; from here on nothing can be tried again.
async fn pass_on(
    session: &mut Session,
    x: &mut Exchange,
    wire: &mut Wire,
    incoming: &mut Incoming<'_>,
    held: Held,
) -> Step {
    x.first_byte = Some(x.started.elapsed());
    x.let_body_go();
    let _streaming = incoming.streamed.then(|| Running::enter(&x.gateway.metrics.streams_live));
    let head = incoming.head.take().map(|from| client_head(session, x, incoming, (&from, &held)));
    let Some(Ok(head)) = head else {
        return Failure::network(NetworkFailure::Broken, "a head that cannot be passed on").into();
    };
    if session.write_response_header(Box::new(head)).await.is_err() {
        return gone(x, &incoming.reply);
    }
    let mut part = Part { bytes: held.bytes, over: held.over };
    loop {
        let whole = incoming.is_whole() && (part.over || incoming.streamed);
        if whole {
            note_usage(x, &incoming.reply);
            settle::settle(x, &incoming.completed());
        }
        let last = part.over && whole;
        if (!part.bytes.is_empty() || last) && !write(session, x, part.bytes, last).await {
            return gone(x, &incoming.reply);
        }
        if last {
            return Step::Answered { end: incoming.completed(), provider_ok: true };
        }
        if part.over {
            let why =
                incoming.reply.error().map_or_else(|| "the provider ended the stream early".to_owned(), |e| e.message);
            return break_off(session, x, incoming, why).await;
        }
        part = match next(session, x, wire, incoming).await {
            Ok(part) => part,
            Err(Stop::ClientGone) => return gone(x, &incoming.reply),
            // The reply was whole: how the provider ends the connection behind it is of no matter.
            Err(Stop::Failed(_)) if x.settled || incoming.reply.lacks_only_the_end() => {
                Part { bytes: incoming.reply.finish(), over: true }
            }
            Err(Stop::Failed(failure)) => return break_off(session, x, incoming, failure.describe()).await,
        };
        if let Some(problem) = incoming.reply.problem().filter(|_| !x.settled) {
            let why = incoming.reply.error().map_or_else(|| problem.to_owned(), |e| e.message);
            return break_off(session, x, incoming, why).await;
        }
    }
}

/// What goes to the client next, and whether the provider's body is over.
struct Part {
    bytes: Bytes,
    over: bool,
}

/// Waits for the provider's next piece.
async fn next(
    session: &mut Session,
    x: &mut Exchange,
    wire: &mut Wire,
    incoming: &mut Incoming<'_>,
) -> Result<Part, Stop> {
    let waiting = Instant::now();
    let piece = wire.piece(session, incoming.by.timing.until_next(incoming.reply.last_progress)).await;
    x.waited += waiting.elapsed();
    let piece = piece?;
    let over = piece.is_none() || wire.is_done();
    let mut bytes = piece.map_or_else(Bytes::new, |piece| incoming.reply.take(piece));
    if over {
        let rest = incoming.reply.finish();
        if !rest.is_empty() {
            bytes = [bytes, rest].concat().into();
        }
    }
    Ok(Part { bytes, over })
}

/// Writes to the client; whether that worked.
async fn write(session: &mut Session, x: &mut Exchange, bytes: Bytes, last: bool) -> bool {
    keep::note(x, &bytes);
    let writing = Instant::now();
    let written = session.write_response_body(bytes, last).await;
    x.waited += writing.elapsed();
    written.is_ok()
}

/// The head for the client: the provider's, less what does not go on.
fn client_head(
    session: &Session,
    x: &Exchange,
    incoming: &Incoming<'_>,
    (from, held): (&ResponseHeader, &Held),
) -> pingora::Result<ResponseHeader> {
    // As many places as a usual head takes: Pingora keeps it for the whole stream. It grows where that is too few.
    let places = if incoming.by.converted { 5 } else { from.headers.len() + 2 };
    let mut head = ResponseHeader::build_no_case(from.status, Some(places))?;
    let live = x.gateway.live.load();
    let dropped = |name: &str| NEVER.contains(&name) || live.forward_headers.drop_response.iter().any(|d| d == name);
    if incoming.by.converted {
        let json_array = x.format == WireFormat::AltCli && !x.asked_for_events();
        let events = incoming.streamed && !json_array;
        head.insert_header(CONTENT_TYPE, if events { "text/event-stream" } else { "application/json" })?;
        head.insert_header(CACHE_CONTROL, "no-cache")?;
    }
    for (name, value) in &from.headers {
        let foreign = incoming.by.converted;
        if !foreign && !dropped(name.as_str()) && name != CONTENT_LENGTH {
            head.append_header(name.clone(), value.clone())?;
        }
    }
    let untouched = !from.headers.contains_key(CONTENT_ENCODING) && !incoming.by.converted && !incoming.streamed;
    match from.headers.get(CONTENT_LENGTH) {
        _ if held.over && incoming.is_whole() => head.insert_header(CONTENT_LENGTH, held.bytes.len())?,
        Some(length) if untouched => head.insert_header(CONTENT_LENGTH, length.clone())?,
        _ => unknown_length(session, &mut head)?,
    }
    answer::own_headers(&mut head, x)?;
    Ok(head)
}

/// Chunked for HTTP/1.1; HTTP/2 needs nothing; HTTP/1.0 reads until the connection closes.
fn unknown_length(session: &Session, head: &mut ResponseHeader) -> pingora::Result<()> {
    match session.req_header().version {
        http::Version::HTTP_11 => head.insert_header(TRANSFER_ENCODING, "chunked"),
        http::Version::HTTP_2 => Ok(()),
        _ => head.insert_header(CONNECTION, "close"),
    }
}

/// Ends a reply that had begun: a stream gets its format's error event and a proper end of the body; a reply in one piece
/// is cut, so that no client takes it for whole.
async fn break_off(session: &mut Session, x: &mut Exchange, incoming: &mut Incoming<'_>, why: String) -> Step {
    note_usage(x, &incoming.reply);
    let end = End { outcome: RequestOutcome::BrokenOff, status: incoming.status, error: Some(why) };
    settle::settle(x, &end);
    if incoming.streamed {
        let last = incoming.reply.fail(x.format, end.error.as_deref().unwrap_or_default());
        keep::note(x, last.as_ref());
        // The client may have left too: the record is made, so nothing depends on this write.
        let _ = session.write_response_body(last.into(), true).await;
    } else {
        session.shutdown().await;
    }
    Step::Answered { end, provider_ok: false }
}

/// The client left: in mid-reply, or once it had the end that it was waiting for.
fn gone(x: &mut Exchange, reply: &Reply) -> Step {
    if x.settled {
        let end = End { outcome: RequestOutcome::Completed, status: 200, error: None };
        return Step::Answered { end, provider_ok: true };
    }
    note_usage(x, reply);
    Step::ClientGone
}

/// Keeps what the reply is billed by: the provider's final figures, or else an estimate from what
/// came.
fn note_usage(x: &mut Exchange, reply: &Reply) {
    let Some((usage, estimated)) = reply.bill(estimated_input(x)) else { return };
    x.usage = Some(usage);
    x.usage_estimated = estimated;
}

/// Where not even the input was reported: what the request's own size says.
fn estimated_input(x: &Exchange) -> u64 {
    x.inbound.as_ref().map_or(0, |inbound| count::from_peek(&inbound.peek))
}
