//! The state of a provider's answer in one attempt: nothing yet, an error reply, or a reply to
//! relay.
//!
//! A reply is held back until its first meaningful part. Until then, an error as first event, an
//! empty reply or a stream that breaks at once still allows another attempt.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use pingora::http::ResponseHeader;

use super::failure::{ErrorStatus, Failure};
use super::render::ReplyForm;
use super::wire::Bound;
use crate::domain::format::{BROKEN_CALLS, WireFormat};
use crate::domain::usage::Usage;
use crate::formats::convert::StreamConverter;
use crate::formats::error::{self, UpstreamError};
use crate::formats::route::Operation;
use crate::formats::usage::UsageReader;
use crate::policy::classify::{NetworkFailure, UnusableReply};
use crate::proxy::coding::{self, Coding, StreamDecoder};
use crate::proxy::context::{InFlight, RequestContext};
use crate::proxy::reply::relay::{Reply, Shape, Whole};
use crate::telemetry::IntGauge;

/// Bytes held back at most while no meaningful part has arrived.
const HOLD_MAX: usize = 256 * 1024;
/// How much of an error body is read, and for how long.
///
/// Some services repeat the request in it: what is wrong is only known from the whole body.
const ERROR_BODY_MAX: usize = 1024 * 1024;
const ERROR_BODY_TIME: Duration = Duration::from_secs(5);

/// The cause of a reply that cannot continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakCause {
    /// Its bytes ended early, or came too late.
    Network,
    /// The provider reported an error within it, or sent what is no reply.
    Provider,
    /// The model's call was malformed: no fault of the provider.
    Model,
}

/// What has come from the provider.
pub enum Incoming {
    /// The head has not arrived.
    Awaited,
    Error(Box<ErrorBody>),
    Reply(Box<Relay>),
}

impl Incoming {
    /// Why a reply cannot continue: the error that the provider reported within it, else what is
    /// wrong with its bytes.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let Self::Reply(relay) = self else { return None };
        let reported = relay.reply.error().map(|error| error.message);
        reported.or_else(|| relay.reply.problem().map(str::to_owned))
    }

    /// Who is the cause of a reply that cannot continue.
    #[must_use]
    pub fn cause(&self) -> BreakCause {
        let Self::Reply(relay) = self else { return BreakCause::Network };
        match relay.reply.error() {
            Some(error) => match error.kind.is_some_and(|k| BROKEN_CALLS.contains(&k.as_str())) {
                true => BreakCause::Model,
                false => BreakCause::Provider,
            },
            None if relay.reply.problem().is_some() => BreakCause::Provider,
            None => BreakCause::Network,
        }
    }

    /// The provider's status, once its head has arrived.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Awaited => None,
            Self::Error(error) => Some(error.head.status.as_u16()),
            Self::Reply(relay) => Some(relay.status),
        }
    }

    /// The usage of a reply that did not complete, and whether it is estimated. A request that was
    /// sent completely costs at least its input, unless the provider answered it with an error.
    #[must_use]
    pub fn partial_usage(&self, estimated_input: u64, is_billable: bool) -> (Option<Usage>, bool) {
        match self {
            // An error in place of a reply.
            Self::Reply(relay) if !relay.released && relay.reply.error().is_some() => (None, false),
            Self::Reply(relay) => relay.bill(estimated_input),
            Self::Awaited if is_billable => {
                (Some(Usage { input: estimated_input, ..Usage::default() }), true)
            }
            Self::Awaited | Self::Error(_) => (None, false),
        }
    }
}

/// An error reply, collected before it is judged.
pub struct ErrorBody {
    head: Box<ResponseHeader>,
    format: WireFormat,
    collected: BytesMut,
    until: Instant,
}

impl ErrorBody {
    /// How long to wait for the rest of it.
    #[must_use]
    pub fn bound(&self) -> Bound {
        let left = self.until.saturating_duration_since(Instant::now());
        Bound { time: Some(left), timeout: NetworkFailure::TotalTimeout }
    }

    /// Adds a piece. Returns whether the body is collected as far as needed.
    fn add(&mut self, piece: &[u8]) -> bool {
        let wanted = ERROR_BODY_MAX - self.collected.len();
        self.collected.extend_from_slice(&piece[..piece.len().min(wanted)]);
        self.collected.len() >= ERROR_BODY_MAX
    }

    fn failure(&mut self) -> Failure {
        let (status, raw) = (self.head.status.as_u16(), self.collected.split().freeze());
        let coding =
            Coding::of(self.head.headers.get(CONTENT_ENCODING)).unwrap_or(Coding::Identity);
        let body = coding::decode_whole(coding, vec![raw.clone()], ERROR_BODY_MAX)
            .ok()
            .and_then(|mut pieces| pieces.pop())
            .unwrap_or(raw);
        Failure::ErrorReply(ErrorStatus {
            status,
            retry_after: text(&self.head, &RETRY_AFTER),
            content_type: text(&self.head, &CONTENT_TYPE),
            error: error::read(self.format, status, &body),
            body,
            usage: None,
        })
    }
}

/// A reply on its way to the client.
pub struct Relay {
    pub status: u16,
    /// The reply is a stream of events.
    pub streamed: bool,
    /// The provider's format is not the client's.
    pub converted: bool,
    reply: Reply,
    held: BytesMut,
    /// The provider's body has ended.
    pub is_over: bool,
    released: bool,
    /// The length of the client's body, if all of it had arrived when the head was made.
    pub length: Option<usize>,
    /// Counts the stream as live.
    in_flight: Option<InFlight>,
}

/// What to do with a piece of a reply that is held back.
pub enum Hold {
    /// Nothing meaningful has arrived.
    Wait,
    /// The client's head is written, and these bytes with it.
    Release(Bytes),
}

impl Relay {
    /// Whether the client's head has been written, or is about to be.
    #[must_use]
    pub const fn is_released(&self) -> bool {
        self.released
    }

    /// When the last meaningful part arrived.
    #[must_use]
    pub const fn last_progress(&self) -> Instant {
        self.reply.last_progress
    }

    /// The client took nothing for this long: the provider's next part may come later by as much.
    pub fn was_held_up(&mut self, by: Duration) {
        self.reply.last_progress += by;
    }

    /// Holds a piece back until there is content to show, or a reason for another attempt.
    ///
    /// # Errors
    /// When the reply has ended without being a reply.
    pub fn hold(&mut self, piece: Bytes, end: bool) -> pingora::Result<Hold> {
        let whole = if self.held.is_empty() {
            piece
        } else {
            self.held.extend_from_slice(&piece);
            self.held.split().freeze()
        };
        // A regular end without content is a reply too: an immediate stop, for example.
        let is_empty_reply = end && self.reply.has_end() && !whole.is_empty();
        if self.reply.has_content() || whole.len() > HOLD_MAX || is_empty_reply {
            return Ok(Hold::Release(whole));
        }
        if !end {
            self.held = BytesMut::from(whole);
            return Ok(Hold::Wait);
        }
        let what = match (whole.is_empty(), self.streamed) {
            (true, _) => UnusableReply::Empty,
            (false, true) => UnusableReply::StreamWithoutContent,
            (false, false) => UnusableReply::WrongFormat,
        };
        Err(Failure::Unusable { what, usage: self.reply.usage() }.into())
    }

    /// The client's head is written: no further attempt is possible.
    pub fn release(&mut self, streams: &IntGauge, whole: Option<usize>) {
        self.released = true;
        self.length = whole.filter(|_| !self.streamed || self.reply.has_end());
        self.in_flight = self.streamed.then(|| InFlight::enter(streams));
    }

    /// Whether the reply is complete, given whether the provider's body has ended. A stream marks
    /// its own end, which may come before its body ends; of other bodies the end may be a broken
    /// connection.
    #[must_use]
    pub fn is_complete(&self, end: bool) -> bool {
        if self.streamed { self.reply.has_end() } else { end && self.reply.is_whole() }
    }

    /// The billed usage, and whether it is an estimate: the provider's final figures, else an
    /// estimate from the bytes that arrived.
    #[must_use]
    pub fn bill(&self, estimated_input: u64) -> (Option<Usage>, bool) {
        self.reply
            .bill(estimated_input)
            .map_or((None, false), |(usage, estimated)| (Some(usage), estimated))
    }

    /// Whether nothing is missing but the end of the provider's body.
    #[must_use]
    pub fn lacks_only_the_end(&self) -> bool {
        self.reply.lacks_only_the_end()
    }

    /// The client's error event, to end a stream that has begun.
    pub fn error_event(&mut self, format: WireFormat, message: &str) -> Bytes {
        self.reply.fail(format, message).into()
    }
}

/// Takes the head of a provider's reply (`upstream_response_filter`).
///
/// # Errors
/// When no reply can follow this head.
pub(in crate::proxy) fn begin(
    ctx: &mut RequestContext,
    head: &ResponseHeader,
) -> pingora::Result<()> {
    let client_format = ctx.format;
    let forwarding = ctx.forwarding()?;
    let (stream_asked, generates) =
        (forwarding.inbound.stream, forwarding.route.operation == Operation::Generate);
    let Some(attempt) = &mut forwarding.attempt else { return Ok(()) };
    let format = attempt.provider.kind.format();
    if !head.status.is_success() {
        let (head, collected) = (Box::new(head.clone()), BytesMut::new());
        let until = Instant::now() + ERROR_BODY_TIME;
        attempt.incoming = Incoming::Error(Box::new(ErrorBody { head, format, collected, until }));
        return Ok(());
    }
    attempt.is_billable = false;
    let unusable = |what| Failure::Unusable { what, usage: None };
    let content_type = text(head, &CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    if content_type.starts_with("text/html") {
        return Err(unusable(UnusableReply::Html).into());
    }
    let decoder = Coding::of(head.headers.get(CONTENT_ENCODING))
        .and_then(StreamDecoder::new)
        .map_err(|_| unusable(UnusableReply::WrongFormat))?
        .map(Box::new);
    let streamed = is_stream(&content_type, stream_asked && generates);
    let form = std::mem::replace(&mut attempt.form, ReplyForm::AsIs);
    let converted = matches!(form, ReplyForm::Convert(_));
    // A stream that was not requested cannot be converted, nor can a single reply in place of a
    // stream.
    if converted && streamed != stream_asked {
        return Err(unusable(UnusableReply::WrongFormat).into());
    }
    let shape = match form {
        ReplyForm::HideUsage if streamed => Shape::HideUsage(Box::default()),
        ReplyForm::AsIs | ReplyForm::HideUsage => Shape::AsIs,
        ReplyForm::Convert(context) if streamed => {
            Shape::Events(Box::new(StreamConverter::new(format, client_format, *context)))
        }
        ReplyForm::Convert(context) => Shape::Whole(Box::new(Whole {
            from: format,
            to: client_format,
            context: *context,
            collected: Vec::new(),
        })),
    };
    let reader = match &shape {
        // A converter reads the stream itself, usage included.
        Shape::Events(_) => None,
        _ => generates.then(|| UsageReader::new(format, streamed)),
    };
    let reply = Reply::new(decoder, reader, shape);
    let (status, held) = (head.status.as_u16(), BytesMut::new());
    let relay = Relay {
        status,
        streamed,
        converted,
        reply,
        held,
        is_over: false,
        released: false,
        length: None,
        in_flight: None,
    };
    attempt.incoming = Incoming::Reply(Box::new(relay));
    Ok(())
}

/// Whether a reply of this type is a stream. Some services name no type of theirs, or another one.
fn is_stream(content_type: &str, asked: bool) -> bool {
    content_type.starts_with("text/event-stream") || (asked && !content_type.contains("json"))
}

/// Takes a piece of a provider's reply (`upstream_response_body_filter`) and replaces it by the
/// bytes for the client.
///
/// # Errors
/// When an error reply is complete, or a reply cannot continue.
pub(in crate::proxy) fn take(
    ctx: &mut RequestContext,
    body: &mut Option<Bytes>,
    end: bool,
) -> pingora::Result<()> {
    let is_settled = !ctx.is_open();
    let attempt = ctx.attempt()?;
    match &mut attempt.incoming {
        Incoming::Awaited => Ok(()),
        Incoming::Error(error) => {
            let full = body.take().is_some_and(|piece| error.add(&piece));
            if full || end { Err(error.failure().into()) } else { Ok(()) }
        }
        Incoming::Reply(relay) => {
            let mut bytes = body.take().map_or_else(Bytes::new, |piece| relay.reply.take(piece));
            if end && !std::mem::replace(&mut relay.is_over, true) {
                let rest = relay.reply.finish();
                if !rest.is_empty() {
                    bytes = if bytes.is_empty() { rest } else { [bytes, rest].concat().into() };
                }
            }
            *body = Some(bytes);
            // A complete reply is not affected by later problems.
            if is_settled { Ok(()) } else { sound(relay) }
        }
    }
}

/// Whether the reply can continue.
fn sound(relay: &Relay) -> pingora::Result<()> {
    let reply = &relay.reply;
    if relay.released {
        // An error of the provider in mid-stream is forwarded unchanged.
        return match reply.problem() {
            Some(problem) => Err(Failure::network(NetworkFailure::Broken, problem).into()),
            None => Ok(()),
        };
    }
    if let Some(error) = reply.error() {
        return Err(error_in_place(error, reply.usage()).into());
    }
    if reply.problem().is_some() {
        return Err(
            Failure::Unusable { what: UnusableReply::WrongFormat, usage: reply.usage() }.into()
        );
    }
    Ok(())
}

/// A success status whose body is an error: judged by the error.
fn error_in_place(error: UpstreamError, usage: Option<Usage>) -> Failure {
    Failure::ErrorReply(ErrorStatus {
        status: 200,
        retry_after: None,
        content_type: None,
        error,
        body: Bytes::new(),
        usage,
    })
}

fn text(head: &ResponseHeader, name: &http::HeaderName) -> Option<String> {
    Some(String::from_utf8_lossy(head.headers.get(name)?.as_bytes()).into_owned())
}
