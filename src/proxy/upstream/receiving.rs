//! What comes from a provider: its head decides between an error reply and a reply to forward, and
//! each piece goes on as the client's bytes.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, Method, StatusCode};
use pingora::http::ResponseHeader;
use pingora::proxy::Session;

use super::attempt::Attempt;
use super::credential;
use super::error_body::ErrorBody;
use super::failure::Failure;
use super::forwarded_reply::{ForwardedReply, Unsure};
use super::forwarding::Forwarding;
use super::incoming::Incoming;
use super::rendered::ReplyForm;
use super::running::Running;
use crate::domain::cloud::ClaudeCloud;
use crate::domain::endpoint::ApiEndpoint;
use crate::domain::format::WireFormat;
use crate::formats::convert::StreamConverter;
use crate::formats::count;
use crate::formats::event_stream::{self, EventStreamDecoder};
use crate::formats::route::{self, Operation, UploadCall};
use crate::formats::usage::{BodyKind, UsageReader};
use crate::policy::aws_error;
use crate::policy::failure::UnusableReply;
use crate::proxy::body_budget::BodyReservation;
use crate::proxy::coding::{Coding, CodingError, StreamDecoder};
use crate::proxy::context::RequestContext;
use crate::proxy::reply::client_head::ReplyFacts;
use crate::proxy::reply::refusal::Refusal;
use crate::proxy::reply::reshape::{CountReply, ReshapedReply, Shape};
use crate::proxy::reply::whole_reply::{WholeForm, WholeReply};
use crate::proxy::request::upload;

/// Whether a stored reply is asked for that is not billed yet.
fn is_unbilled(request: &RequestContext, forwarding: &Forwarding, attempt: &Attempt) -> bool {
    let Operation::Stored(call) = &forwarding.route.operation else { return false };
    *call.collection == route::REPLIES
        && request.gateway.pending_replies.has(attempt.provider.id, &call.id)
}

/// Takes the head of a provider's reply (`upstream_response_filter`).
///
/// # Errors
/// When no reply can follow this head.
pub(in crate::proxy) fn begin(running: Running<'_>, head: &ResponseHeader) -> pingora::Result<()> {
    let Running { request, forwarding, attempt } = running;
    let (stream_asked, generates) =
        (forwarding.inbound.stream, forwarding.route.operation == Operation::Generate);
    let format = attempt.provider.kind.format();
    credential::note_windows(request, attempt, head);
    note_refused_token(request, attempt, head);
    if !head.status.is_success() {
        attempt.may_have_made = false;
        let signed_at = attempt.provider.auth.is_signature().then(|| request.now());
        attempt.incoming = Incoming::Error(Box::new(ErrorBody::new(head, format, signed_at)));
        return Ok(());
    }
    attempt.is_billable = false;
    let status = head.status.as_u16();
    let unusable = |what| Failure::Unusable { what, status, usage: None };
    let content_type = head.headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let is_content = is_content(&forwarding.route.operation);
    if begins_with(content_type, b"text/html") && !is_content {
        return Err(unusable(UnusableReply::Html).into());
    }
    let cloud = attempt.provider.cloud.for_model(&attempt.model);
    let (decoder, content_type) =
        decoder(cloud, head, content_type).map_err(|_| unusable(UnusableReply::WrongFormat))?;
    let form = std::mem::take(&mut attempt.rendered.reply);
    let endpoint = forwarding.route.operation.endpoint();
    let converted = form.is_converted();
    let hides_usage = matches!(form, ReplyForm::HideUsage);
    let asked = stream_asked && generates;
    let (streamed, unsure) = match is_content {
        true => (false, None),
        false => Sort::of(content_type, asked).layout(converted, Unsure { format, hides_usage }),
    };
    // A stream that was not requested cannot be converted, nor can a single reply in place of a
    // stream.
    if converted && streamed != asked {
        return Err(unusable(UnusableReply::WrongFormat).into());
    }
    let awaits_more = awaits_more(&forwarding.route.operation, head);
    let is_converse = cloud == ClaudeCloud::Converse;
    let shape = shape(request, forwarding, (format, is_converse), form, streamed)
        .map(|shape| if awaits_more { Shape::AsIs } else { shape })
        .ok_or_else(|| unusable(UnusableReply::WrongFormat))?;
    let kind = if is_content { BodyKind::Other } else { kind(endpoint, content_type, streamed) };
    // A converter reads the stream itself, usage included. What Converse says is not of the format
    // yet.
    let is_read = !awaits_more && !matches!(shape, Shape::Events(_)) && !is_converse;
    let reader = match endpoint {
        _ if !is_read => None,
        Some(endpoint) => Some(Box::new(UsageReader::of_endpoint(endpoint.figures, kind))),
        // It says where a stream of a stored reply ends.
        None => (generates || streamed).then(|| Box::new(UsageReader::new(format, streamed))),
    };
    let mut reply = ReshapedReply::new(decoder, reader, shape);
    reply.check = attempt.rendered.check.take();
    if !streamed && is_unbilled(request, forwarding, attempt) {
        reply.observer = Some(Box::new(UsageReader::new(format, false)));
    }
    let is_opaque = kind == BodyKind::Other;
    let is_upload = forwarding.route.operation.is_upload();
    let facts = ReplyFacts { streamed, converted, is_opaque, is_upload, ..ReplyFacts::default() };
    let mut forwarded = ForwardedReply::new(status, facts, reply, unsure);
    forwarded.may_be_empty = awaits_more;
    attempt.incoming = Incoming::Reply(Box::new(forwarded));
    Ok(())
}

/// Replaces the address of an upload by one at the gateway: the client has no credential for the
/// provider's own.
///
/// # Errors
/// The provider names an address elsewhere.
pub(in crate::proxy) fn replace_address(
    session: &Session,
    running: Running<'_>,
    head: &mut ResponseHeader,
) -> pingora::Result<()> {
    let Running { request, forwarding, attempt } = running;
    if !forwarding.route.operation.is_upload() {
        return Ok(());
    }
    let Some(address) = head.remove_header(upload::ADDRESS) else { return Ok(()) };
    let (link, provider) = (attempt.link()?, &attempt.provider);
    let target = upload::target_of(&address, &link.endpoint().authority);
    let key = forwarding.identified.caller.key_id();
    let own = target.zip(key).and_then(|(target, key)| {
        let credential = provider.credential_id();
        let call = UploadCall { key, provider: provider.id, credential, target };
        upload::address(session, request, &call)
    });
    let what = UnusableReply::WrongFormat;
    let unusable = || Failure::Unusable { what, status: head.status.as_u16(), usage: None };
    let own = own.ok_or_else(unusable)?;
    head.insert_header(upload::ADDRESS, own)
}

/// What decodes a reply, and the type of what is decoded.
fn decoder<'h>(
    cloud: ClaudeCloud,
    head: &ResponseHeader,
    content_type: &'h [u8],
) -> Result<(Option<Box<StreamDecoder>>, &'h [u8]), CodingError> {
    let coding = Coding::of(head.headers.get(CONTENT_ENCODING))?;
    let is_framed = matches!(cloud, ClaudeCloud::Bedrock | ClaudeCloud::Converse)
        && begins_with(content_type, event_stream::CONTENT_TYPE);
    if !is_framed {
        return Ok((StreamDecoder::new(coding)?.map(Box::new), content_type));
    }
    match coding {
        Coding::Identity => {
            let decoder = match cloud {
                ClaudeCloud::Converse => EventStreamDecoder::of_converse(),
                _ => EventStreamDecoder::default(),
            };
            let decoder = StreamDecoder::EventStream(Box::new(decoder));
            Ok((Some(Box::new(decoder)), b"text/event-stream"))
        }
        _ => Err(CodingError::Unknown),
    }
}

/// Drops the access token that the provider refuses. AWS refuses keys with 403, and says so in a
/// header.
fn note_refused_token(request: &RequestContext, attempt: &Attempt, head: &ResponseHeader) {
    if let Some(token) = &attempt.token
        && (head.status == StatusCode::UNAUTHORIZED
            || head.status == StatusCode::FORBIDDEN
                && head
                    .headers
                    .get("x-amzn-errortype")
                    .is_some_and(|name| name.to_str().is_ok_and(aws_error::refuses_keys)))
    {
        request.gateway.upstreams.token_refused(&attempt.provider, token);
    }
}

/// Whether an upload goes on: until its last piece has come, it is answered without a body.
fn awaits_more(operation: &Operation, head: &ResponseHeader) -> bool {
    let status = || head.headers.get("x-goog-upload-status");
    operation.is_upload() && status().is_some_and(|status| status != "final")
}

/// Whether the reply is a file's content, of any kind, or the results of a batch.
fn is_content(operation: &Operation) -> bool {
    matches!(operation, Operation::Stored(call) if call.is_content())
}

/// Whether the reply describes a batch or a file.
fn is_described(operation: &Operation) -> bool {
    match operation {
        Operation::Endpoint(endpoint) => endpoint.is_held(),
        // Google's batches have their results in them, which may be long: they are not collected.
        Operation::Stored(call) if *call.collection == route::GOOGLE_BATCHES => {
            call.method == Method::DELETE
        }
        Operation::Stored(call) => {
            *call.collection != route::REPLIES && matches!(call.rest, "" | "/cancel")
        }
        Operation::Upload(_) => true,
        _ => false,
    }
}

/// What an endpoint's reply is by its type.
fn kind(endpoint: Option<&ApiEndpoint>, content_type: &[u8], streamed: bool) -> BodyKind {
    match endpoint {
        _ if streamed => BodyKind::Events,
        Some(endpoint) if endpoint.has_sound() && !is_json(content_type) => BodyKind::Other,
        _ => BodyKind::Json,
    }
}

/// How the reply of a provider of the format `from` is changed; `None` if it cannot be.
/// `is_converse`: it is one of Bedrock's `Converse`.
fn shape(
    request: &RequestContext,
    forwarding: &Forwarding,
    (from, is_converse): (WireFormat, bool),
    form: ReplyForm,
    streamed: bool,
) -> Option<Shape> {
    let to = request.format;
    if forwarding.route.operation == Operation::CountTokens {
        let to = Some(to).filter(|_| form.is_converted());
        return Some(Shape::Count(CountReply { to, collected: Vec::new() }));
    }
    if is_described(&forwarding.route.operation) {
        return Some(Shape::Described(Vec::new()));
    }
    Some(match form {
        ReplyForm::Count => return None,
        ReplyForm::HideUsage if streamed => Shape::HideUsage(Box::default()),
        ReplyForm::AsIs | ReplyForm::HideUsage => Shape::AsIs,
        ReplyForm::Convert(context) if streamed => {
            Shape::Events(Box::new(StreamConverter::new(from, to, *context)))
        }
        ReplyForm::Convert(context) => {
            let context = *context;
            let form = match is_converse {
                true => WholeForm::Converse { to, context },
                false => WholeForm::Reply { to, context },
            };
            whole(request, forwarding, from, form)
        }
        ReplyForm::Embeddings(form) => {
            whole(request, forwarding, from, WholeForm::Embeddings(*form))
        }
    })
}

/// A reply that is converted in one piece.
fn whole(
    request: &RequestContext,
    forwarding: &Forwarding,
    from: WireFormat,
    form: WholeForm,
) -> Shape {
    let user = forwarding.identified.caller.user_id();
    Shape::Whole(Box::new(WholeReply {
        from,
        form,
        estimated_input: count::from_peek(&forwarding.inbound.peek),
        collected: Vec::new(),
        reservation: BodyReservation::new(&request.gateway.bodies, user),
        most: request.live.max_inflight_body_bytes,
    }))
}

/// Whether a type is JSON, or none is named.
fn is_json(content_type: &[u8]) -> bool {
    let is_json = content_type.windows(4).any(|word| word.eq_ignore_ascii_case(b"json"));
    content_type.is_empty() || is_json
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
    fn of(content_type: &[u8], asked: bool) -> Self {
        if begins_with(content_type, b"text/event-stream") {
            return Self::Stream;
        }
        if asked { Self::Unsure } else { Self::Json }
    }

    /// Whether it is read as a stream, and what its first bytes decide about that.
    fn layout(self, converted: bool, unsure: Unsure) -> (bool, Option<Unsure>) {
        match self {
            // An error may stand in the place of a stream, under the stream's type.
            Self::Stream => (true, converted.then_some(unsure)),
            Self::Json => (false, None),
            Self::Unsure => (converted, Some(unsure)),
        }
    }
}

/// Whether a content type is this one, in any case of its letters, with whatever parameters.
fn begins_with(content_type: &[u8], name: &[u8]) -> bool {
    content_type.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
}

/// Takes a piece of a provider's reply (`upstream_response_body_filter`) and replaces it by the
/// bytes for the client.
///
/// # Errors
/// When an error reply is complete, or a reply cannot continue.
pub(in crate::proxy) fn take(
    running: Running<'_>,
    body: &mut Option<Bytes>,
    end: bool,
) -> pingora::Result<()> {
    let Running { request, attempt, .. } = running;
    match &mut attempt.incoming {
        Incoming::Awaited => Ok(()),
        Incoming::Error(error) => {
            let full = body.take().is_some_and(|piece| error.add(&piece));
            if !full && !end {
                return Ok(());
            }
            Err(error.failure(attempt.own.is_some()).into())
        }
        Incoming::Reply(forwarded) => {
            let mut bytes = Bytes::new();
            if let Some(plain) = body.take().and_then(|piece| forwarded.reply.decode(piece)) {
                forwarded.begins(&plain);
                bytes = forwarded.reply.take(plain);
            }
            if end && !std::mem::replace(&mut forwarded.is_over, true) {
                let rest = forwarded.reply.finish();
                if !rest.is_empty() {
                    bytes = if bytes.is_empty() { rest } else { [bytes, rest].concat().into() };
                }
            }
            *body = Some(bytes);
            // A provider of the client's own format may answer: nothing of that reply is kept.
            forwarded.reply.budget().map_err(|full| Failure::Unfit(Refusal::from(full)))?;
            // A complete reply is not affected by later problems.
            if request.is_open() { forwarded.check() } else { Ok(()) }
        }
    }
}
