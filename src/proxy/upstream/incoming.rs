//! The state of a provider's answer in one attempt: nothing yet, an error reply, or a reply to
//! relay.
//!
//! A reply is held back until its first meaningful part. Until then, an error as first event, an
//! empty reply or a stream that breaks at once still allows another attempt.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use pingora::http::ResponseHeader;

use super::error_body::{ErrorBody, text};
use super::failure::Failure;
use super::relay::{Relay, Unsure};
use super::render::ReplyForm;
use crate::domain::format::BROKEN_CALLS;
use crate::formats::convert::StreamConverter;
use crate::formats::route::Operation;
use crate::formats::usage::{Bill, UsageReader};
use crate::policy::client_error;
use crate::policy::error_reply::ErrorReply;
use crate::policy::failure::UnusableReply;
use crate::proxy::coding::{Coding, StreamDecoder};
use crate::proxy::context::RequestContext;
use crate::proxy::reply::refusal::Refusal;
use crate::proxy::reply::relay::{Reply, Shape, Whole};
use crate::proxy::request::body_budget::BodyReservation;

/// The cause of a reply that cannot continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakCause {
    /// Its bytes ended early, or came too late.
    Network,
    /// The provider reported an error within it.
    Provider,
    /// What the model wrote cannot be read, or was refused: one client alone can cause that.
    Content,
    /// It takes too long, which one client alone can cause too.
    Slow,
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
            Some(error) => {
                let reply = ErrorReply {
                    status: relay.status,
                    kind: error.kind.as_deref(),
                    code: error.code.as_deref(),
                    message: Some(&error.message),
                    ..ErrorReply::default()
                };
                match error.kind.as_deref() {
                    Some(kind) if BROKEN_CALLS.contains(&kind) => BreakCause::Model,
                    _ if client_error::refuses_request(&reply) => BreakCause::Content,
                    _ => BreakCause::Provider,
                }
            }
            None if relay.reply.problem().is_some() => BreakCause::Content,
            None => BreakCause::Network,
        }
    }

    /// The provider's status, once its head has arrived.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Awaited => None,
            Self::Error(error) => Some(error.status()),
            Self::Reply(relay) => Some(relay.status),
        }
    }

    /// What is billed of a reply that did not complete. A request that was sent completely costs at
    /// least its input, unless the provider answered it with an error.
    #[must_use]
    pub fn partial_usage(&self, estimated_input: u64, is_billable: bool) -> Option<Bill> {
        match self {
            // An error in place of a reply.
            Self::Reply(relay) if !relay.is_released() && relay.reply.error().is_some() => None,
            Self::Reply(relay) => relay.bill(estimated_input),
            Self::Awaited if is_billable => Some(Bill::of_input(estimated_input)),
            Self::Awaited | Self::Error(_) => None,
        }
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
    let (bodies, most) = (Arc::clone(&ctx.gateway.bodies), ctx.live.max_inflight_body_bytes);
    let forwarding = ctx.forwarding()?;
    let reservation = BodyReservation::new(&bodies, forwarding.identified.caller.user_id());
    let (stream_asked, generates) =
        (forwarding.inbound.stream, forwarding.route.operation == Operation::Generate);
    let Some(attempt) = &mut forwarding.attempt else { return Ok(()) };
    let format = attempt.provider.kind.format();
    if !head.status.is_success() {
        attempt.incoming = Incoming::Error(Box::new(ErrorBody::new(head, format)));
        return Ok(());
    }
    attempt.is_billable = false;
    let status = head.status.as_u16();
    let unusable = |what| Failure::Unusable { what, status, usage: None };
    let content_type = text(head, &CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    if content_type.starts_with("text/html") {
        return Err(unusable(UnusableReply::Html).into());
    }
    let decoder = Coding::of(head.headers.get(CONTENT_ENCODING))
        .and_then(StreamDecoder::new)
        .map_err(|_| unusable(UnusableReply::WrongFormat))?
        .map(Box::new);
    let form = std::mem::replace(&mut attempt.form, ReplyForm::AsIs);
    let converted = matches!(form, ReplyForm::Convert(_));
    let hides_usage = matches!(form, ReplyForm::HideUsage);
    let asked = stream_asked && generates;
    let (streamed, unsure) = match Sort::of(&content_type, asked) {
        // An error may stand in the place of a stream, under the stream's type.
        Sort::Stream => (true, converted.then_some(Unsure { format, hides_usage })),
        Sort::Json => (false, None),
        Sort::Unsure => (converted, Some(Unsure { format, hides_usage })),
    };
    // A stream that was not requested cannot be converted, nor can a single reply in place of a
    // stream.
    if converted && streamed != stream_asked {
        return Err(unusable(UnusableReply::WrongFormat).into());
    }
    let shape = match form {
        _ if !generates => Shape::Count(Vec::new()),
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
            reservation,
            most,
        })),
    };
    let reader = match &shape {
        // A converter reads the stream itself, usage included.
        Shape::Events(_) => None,
        _ => generates.then(|| UsageReader::new(format, streamed)),
    };
    let reply = Reply::new(decoder, reader, shape);
    let relay = Relay::new(status, (streamed, converted), reply, unsure);
    attempt.incoming = Incoming::Reply(Box::new(relay));
    Ok(())
}

/// What a reply is by its type.
enum Sort {
    Stream,
    Json,
    /// A stream was asked for, and the type is another one.
    Unsure,
}

impl Sort {
    /// Some services name no type for a stream, or another one.
    fn of(content_type: &str, asked: bool) -> Self {
        if content_type.starts_with("text/event-stream") {
            return Self::Stream;
        }
        if asked { Self::Unsure } else { Self::Json }
    }
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
            let mut bytes = Bytes::new();
            if let Some(plain) = body.take().and_then(|piece| relay.reply.decode(piece)) {
                relay.begins(&plain);
                bytes = relay.reply.take(plain);
            }
            if end && !std::mem::replace(&mut relay.is_over, true) {
                let rest = relay.reply.finish();
                if !rest.is_empty() {
                    bytes = if bytes.is_empty() { rest } else { [bytes, rest].concat().into() };
                }
            }
            *body = Some(bytes);
            // A provider of the client's own format may answer: nothing of that reply is kept.
            relay.reply.budget().map_err(|full| Failure::Unfit(Refusal::from(full)))?;
            // A complete reply is not affected by later problems.
            if is_settled { Ok(()) } else { relay.check() }
        }
    }
}
