//! What one request notes for its spans while it runs.
//!
//! A request that is not sampled notes nothing: it has ids, so that the trace context goes on.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

use super::content::Content;
use super::gen_ai::Parameters;
use crate::domain::format::WireFormat;
use crate::domain::provider::Provider;
use crate::domain::trace::{SpanContext, SpanId};
use crate::domain::usage::Usage;
use crate::formats::convert;

/// The header with the ids.
pub(super) const TRACEPARENT: &str = "traceparent";
/// The header with other systems' notes.
pub(super) const TRACESTATE: &str = "tracestate";
/// Bytes of `tracestate` that are passed on: the standard asks for at least 512.
const MAX_STATE: usize = 1024;

/// The facts of the head that only spans need.
#[derive(Debug, Clone, Default)]
pub struct RequestHead {
    /// The method.
    pub method: http::Method,
    /// The connection is encrypted.
    pub tls: bool,
    /// `1.1`, `2`.
    pub protocol: &'static str,
    /// The `Host` header or the authority.
    pub host: Option<Box<str>>,
}

/// The trace of one request.
#[derive(Debug)]
pub struct RequestTrace {
    /// The request's own span.
    pub own: SpanContext,
    /// The client's span.
    pub(super) parent: Option<SpanId>,
    /// The client's `tracestate`.
    pub(super) state: Option<HeaderValue>,
    /// Whether providers get the context.
    pub(super) to_providers: bool,
    /// What the sampled request was asked for.
    pub(super) head: RequestHead,
    /// Stages that ended, with the time since the request's start.
    pub(super) stages: Vec<(&'static str, Duration)>,
    /// Attempts, in order.
    pub(super) attempts: Vec<AttemptTrace>,
    /// The request's parameters.
    pub(super) parameters: Option<Box<Parameters>>,
    /// Prompt and reply, if the setting asks for them.
    pub(super) content: Option<Box<Content>>,
}

/// One attempt at a provider. Times are since the request's start.
#[derive(Debug)]
pub(super) struct AttemptTrace {
    pub(super) span_id: SpanId,
    pub(super) provider: Arc<Provider>,
    /// As the provider was asked for it.
    pub(super) model: Arc<str>,
    pub(super) began: Duration,
    /// The first meaningful part of the reply went to the client.
    pub(super) first_chunk: Option<Duration>,
    /// `None` for an attempt that ended with the request.
    pub(super) end: Option<AttemptEnd>,
}

/// How an attempt failed.
#[derive(Debug, Clone, Copy)]
pub struct AttemptEnd {
    /// Since the request's start.
    pub at: Duration,
    /// The provider's status, if one came.
    pub status: Option<u16>,
    /// The kind of failure, as one word.
    pub kind: &'static str,
    /// Usage that the failed attempt reported.
    pub usage: Option<Usage>,
}

impl RequestTrace {
    /// A stage of the gateway has ended.
    pub fn stage(&mut self, name: &'static str, at: Duration) {
        if self.own.sampled {
            self.stages.push((name, at));
        }
    }

    /// An attempt at a provider begins, the first or a repeated one.
    pub fn attempt_begins(&mut self, provider: &Arc<Provider>, model: &Arc<str>, began: Duration) {
        if !self.own.sampled {
            return;
        }
        self.attempts.push(AttemptTrace {
            span_id: SpanId(fastrand::u64(1..)),
            provider: Arc::clone(provider),
            model: Arc::clone(model),
            began,
            first_chunk: None,
            end: None,
        });
    }

    /// The attempt failed.
    pub fn attempt_failed(&mut self, end: AttemptEnd) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.end = Some(end);
        }
    }

    /// The first meaningful part of the reply goes to the client.
    pub fn first_chunk(&mut self, at: Duration) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.first_chunk = Some(at);
        }
    }

    /// The headers of the trace context for a provider, in place of the client's: those of the
    /// attempt, or none if providers get none.
    pub fn provider_headers(&self) -> [(&'static str, Option<HeaderValue>); 2] {
        let names = [TRACEPARENT, TRACESTATE];
        if !self.to_providers {
            return names.map(|name| (name, None));
        }
        let span_id = self.attempts.last().map_or(self.own.span_id, |attempt| attempt.span_id);
        // Hexadecimal digits and hyphens are always valid.
        let parent = HeaderValue::from_str(&SpanContext { span_id, ..self.own }.to_string()).ok();
        [(TRACEPARENT, parent), (TRACESTATE, self.state.clone())]
    }

    /// Reads the parameters of a sampled request, and its prompt if the setting asks for it.
    pub fn request(&mut self, format: WireFormat, pieces: &[Bytes]) {
        if !self.own.sampled {
            return;
        }
        let body: Cow<'_, [u8]> = match pieces {
            [one] => Cow::Borrowed(one),
            pieces => Cow::Owned(pieces.concat()),
        };
        // What cannot be read is refused, or passed on as it is: the spans then say less.
        let Ok(request) = convert::read_request(format, &body) else { return };
        self.parameters = Some(Box::new(Parameters::of(&request)));
        if let Some(content) = &mut self.content {
            content.prompt(&request);
        }
    }

    /// Prompt and reply, if the setting asks for them and the request is sampled.
    pub fn content(&mut self) -> Option<&mut Content> {
        self.content.as_deref_mut()
    }
}

/// The client's context. Two `traceparent` headers are as good as none; `tracestate` means nothing
/// without one.
pub(super) fn parent(headers: &HeaderMap) -> (Option<SpanContext>, Option<HeaderValue>) {
    let mut given = headers.get_all(TRACEPARENT).iter();
    let parent = match (given.next(), given.next()) {
        (Some(one), None) => SpanContext::parse(one.as_bytes()),
        _ => None,
    };
    let state = parent.and_then(|_| state(headers));
    (parent, state)
}

/// All `tracestate` headers as one list.
fn state(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut given = headers.get_all(TRACESTATE).iter();
    let first = given.next()?;
    let mut list = first.as_bytes().to_vec();
    for more in given {
        list.push(b',');
        list.extend_from_slice(more.as_bytes());
    }
    let is_plain = list.iter().all(|byte| matches!(byte, b' '..=b'~'));
    if !is_plain || list.is_empty() || list.len() > MAX_STATE {
        return None;
    }
    HeaderValue::from_bytes(&list).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_context_is_read_once_and_its_state_is_bounded() {
        let parent_text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let read = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, HeaderValue::from_str(value).unwrap());
            }
            let (parent, state) = parent(&headers);
            (
                parent.map(|parent| parent.to_string()),
                state.map(|state| state.to_str().unwrap().to_owned()),
            )
        };
        let known = Some(parent_text.to_owned());
        assert_eq!(read(&[]), (None, None));
        assert_eq!(read(&[(TRACEPARENT, parent_text)]), (known.clone(), None));
        assert_eq!(read(&[(TRACEPARENT, parent_text), (TRACEPARENT, parent_text)]), (None, None));
        assert_eq!(read(&[(TRACESTATE, "a=1")]), (None, None));
        let both = [(TRACEPARENT, parent_text), (TRACESTATE, "a=1"), (TRACESTATE, "b=2")];
        assert_eq!(read(&both), (known.clone(), Some("a=1,b=2".to_owned())));
        let long = format!("a={}", "x".repeat(MAX_STATE));
        assert_eq!(read(&[(TRACEPARENT, parent_text), (TRACESTATE, &long)]), (known, None));
    }
}
