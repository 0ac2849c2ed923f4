//! One attempt at one provider: connect, send, read the head, judge it; then the relay takes over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use pingora::http::ResponseHeader;
use pingora::protocols::http::ServerSession as Session;

use super::coding::{Coding, StreamDecoder};
use super::exchange::{End, Exchange, Inbound};
use super::failure::{ErrorStatus, Failure};
use super::refusal::Refusal;
use super::relay;
use super::render::{self, Rendered, ReplyForm};
use super::reply::{Reply, Shape, Whole};
use super::timing::{self, Timing};
use super::wire::{Stop, Wire};
use crate::config::Live;
use crate::domain::format::WireFormat;
use crate::domain::provider::Provider;
use crate::formats::convert::StreamConverter;
use crate::formats::error;
use crate::formats::route::Operation;
use crate::formats::usage::UsageReader;
use crate::policy::classify::{NetworkFailure, UnusableReply};
use crate::upstream::headers::{self, HeadParts};
use crate::upstream::{Link, LinkError};

/// How much of an error body is read, and for how long.
const ERROR_BODY_MAX: usize = 64 * 1024;
const ERROR_BODY_TIME: Duration = Duration::from_secs(5);

/// What an attempt came to.
pub enum Step {
    /// The client has its reply, whole or broken off: nothing more can be tried.
    Answered {
        end: End,
        provider_ok: bool,
    },
    /// Nothing has gone to the client.
    Failed(Box<Failure>),
    /// The provider's format cannot express the request: the next one may.
    Unfit(Refusal),
    ClientGone,
}

impl From<Failure> for Step {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }
}

impl From<Stop> for Step {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::ClientGone => Self::ClientGone,
            Stop::Failed(failure) => Self::Failed(failure),
        }
    }
}

/// The provider of an attempt, and what it is asked for.
pub struct Target {
    pub provider: Arc<Provider>,
    pub model: Arc<str>,
    pub deadline: Option<Instant>,
    /// Not over a connection from the pool.
    pub fresh: bool,
}

/// Asks one provider once.
pub async fn attempt(session: &mut Session, x: &mut Exchange, target: &Target, live: &Live) -> Step {
    let Some(inbound) = x.inbound.clone() else { return Step::Unfit(Refusal::Internal) };
    let rendered = match render::render(x, &inbound, &target.provider, &target.model) {
        Ok(rendered) => rendered,
        Err(refusal) => return Step::Unfit(refusal),
    };
    let timing = Timing::start(&target.provider, live, inbound.stream, target.deadline);
    let gateway = Arc::clone(&x.gateway);
    let link = match gateway.upstreams.link(&target.provider, timing::link_times(live)).await {
        Ok(link) => link,
        Err(LinkError::Resolve(e)) => return Step::from(Failure::network(NetworkFailure::Resolve, e.to_string())),
        Err(e) => return Step::from(Failure::network(NetworkFailure::Connect, e.to_string())),
    };
    let waiting = Instant::now();
    let opened = open(session, x, &inbound, &Call { target, rendered: &rendered, link: &link, live }, &timing).await;
    x.waited += waiting.elapsed();
    let (wire, head) = match opened {
        Ok(opened) => opened,
        Err(step) => return step,
    };
    let by = Judged { target, link: &link, converted: rendered.is_converted(), timing };
    // Sent is sent: a further attempt renders anew, from what the exchange keeps until nothing can be tried again.
    let Rendered { body, reply, .. } = rendered;
    drop((inbound, body));
    judge(session, x, wire, head, (by, reply)).await
}

/// What one call is made from.
struct Call<'a> {
    target: &'a Target,
    rendered: &'a Rendered,
    link: &'a Link,
    live: &'a Live,
}

/// Sends the request and waits for the head of the answer.
async fn open(
    session: &mut Session,
    x: &Exchange,
    inbound: &Inbound,
    call: &Call<'_>,
    timing: &Timing,
) -> Result<(Wire, Box<ResponseHeader>), Step> {
    let mut wire = Wire::open(session, &x.gateway.upstreams, call.link, call.target.fresh).await?;
    let endpoint = call.link.endpoint();
    let mut path = endpoint.path(call.target.provider.kind.format(), render::call(x, inbound, &call.target.model));
    if let Some(query) = &call.rendered.query {
        path.push('?');
        path.push_str(query);
    }
    let head = headers::build(
        http::Method::POST,
        &HeadParts {
            client: &session.req_header().headers,
            provider: &call.target.provider,
            endpoint,
            target: &path,
            body_len: Some(call.rendered.len()),
            converted: call.rendered.is_converted(),
            http2: wire.is_http2(),
            client_ip: x.client_ip,
            credentials: &x.gateway.fixed.alt_key_headers,
            drop: &call.live.forward_headers.drop_request,
        },
    )
    .map_err(|e| Step::from(Failure::network(NetworkFailure::Connect, e.to_string())))?;
    wire.send(session, head, &call.rendered.body).await.map_err(|_| Step::ClientGone)?;
    match wire.head(session, timing.until_content()).await {
        Ok(head) => Ok((wire, head)),
        Err(stop) => {
            wire.close(&x.gateway.upstreams, call.link).await;
            Err(stop.into())
        }
    }
}

/// What the reply is judged and relayed with.
pub struct Judged<'a> {
    pub target: &'a Target,
    pub link: &'a Link,
    /// The provider's format is not the client's.
    pub converted: bool,
    pub timing: Timing,
}

async fn judge(
    session: &mut Session,
    x: &mut Exchange,
    mut wire: Wire,
    head: Box<ResponseHeader>,
    reply: (Judged<'_>, ReplyForm),
) -> Step {
    let (by, form) = reply;
    let gateway = Arc::clone(&x.gateway);
    if !head.status.is_success() {
        let step = match status_failure(session, &mut wire, &head, &by).await {
            Ok(failure) => failure.into(),
            Err(step) => step,
        };
        wire.close(&gateway.upstreams, by.link).await;
        return step;
    }
    let content_type = text(&head, &CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    if content_type.starts_with("text/html") {
        wire.close(&gateway.upstreams, by.link).await;
        return Failure::Unusable { what: UnusableReply::Html, usage: None }.into();
    }
    let coding = Coding::of(head.headers.get(CONTENT_ENCODING))
        .and_then(StreamDecoder::new)
        .map(|decoder| decoder.map(Box::new));
    let Ok(decoder) = coding else {
        wire.close(&gateway.upstreams, by.link).await;
        return Failure::Unusable { what: UnusableReply::WrongFormat, usage: None }.into();
    };
    let streamed = content_type.starts_with("text/event-stream");
    let Some(shape) = shape(x, by.target.provider.kind.format(), form, streamed) else {
        wire.close(&gateway.upstreams, by.link).await;
        return Failure::Unusable { what: UnusableReply::WrongFormat, usage: None }.into();
    };
    let reader = match (x.operation(), &shape) {
        // A converter reads the whole stream, and with it what a reader would.
        (_, Shape::Events(_)) => None,
        (Some(Operation::Generate), _) => Some(UsageReader::new(by.target.provider.kind.format(), streamed)),
        _ => None,
    };
    let (status, reply) = (head.status.as_u16(), Reply::new(decoder, reader, shape));
    let incoming = Box::new(relay::Incoming { status, head: Some(head), reply, streamed, by });
    relay::relay(session, x, wire, incoming).await
}

/// What is made of the reply's pieces; `None` when a stream came where none was asked for, or none where one was, and the
/// reply had to be converted: nothing that the client could use.
fn shape(x: &Exchange, from: WireFormat, form: ReplyForm, streamed: bool) -> Option<Shape> {
    let stream_asked = x.inbound.as_ref().is_some_and(|i| i.stream);
    Some(match form {
        ReplyForm::HideUsage if streamed => Shape::HideUsage(Box::default()),
        ReplyForm::AsIs | ReplyForm::HideUsage => Shape::AsIs,
        ReplyForm::Convert(_) if streamed != stream_asked => return None,
        ReplyForm::Convert(context) if streamed => {
            Shape::Events(Box::new(StreamConverter::new(from, x.format, *context)))
        }
        ReplyForm::Convert(context) => {
            Shape::Whole(Box::new(Whole { from, to: x.format, context: *context, collected: Vec::new() }))
        }
    })
}

async fn status_failure(
    session: &mut Session,
    wire: &mut Wire,
    head: &ResponseHeader,
    by: &Judged<'_>,
) -> Result<Failure, Step> {
    let status = head.status.as_u16();
    let raw = wire.error_body(session, ERROR_BODY_MAX, ERROR_BODY_TIME).await.map_err(|_| Step::ClientGone)?;
    let coding = Coding::of(head.headers.get(CONTENT_ENCODING)).unwrap_or(Coding::Identity);
    let body = super::coding::decode_whole(coding, vec![raw.clone()], ERROR_BODY_MAX)
        .ok()
        .and_then(|mut chunks| chunks.pop())
        .unwrap_or(raw);
    Ok(Failure::ErrorReply(ErrorStatus {
        status,
        retry_after: text(head, &RETRY_AFTER),
        content_type: text(head, &CONTENT_TYPE),
        error: error::read(by.target.provider.kind.format(), status, &body),
        body,
        usage: None,
    }))
}

fn text(head: &ResponseHeader, name: &http::HeaderName) -> Option<String> {
    Some(String::from_utf8_lossy(head.headers.get(name)?.as_bytes()).into_owned())
}
