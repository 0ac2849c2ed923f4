//! What the request context notes for its trace. Without a tracer, each call is one branch.

use std::sync::Arc;

use http::header::HOST;
use pingora::http::RequestHeader;
use pingora::proxy::Session;

use super::context::RequestContext;
use crate::domain::provider::Provider;
use crate::domain::trace::SpanContext;
use crate::otlp::{AttemptEnd, RequestHead};

impl RequestContext {
    /// Begins the trace of the request, if requests have traces.
    pub(super) fn begin_trace(&mut self, session: &Session) {
        if let Some(tracer) = &self.gateway.otlp.tracer {
            let head = session.req_header();
            self.trace = Some(tracer.begin(&head.headers, || facts(session, head)));
        }
    }

    /// The request's span, if requests have traces.
    pub fn span(&self) -> Option<SpanContext> {
        self.trace.as_ref().map(|trace| trace.own)
    }

    /// A stage has ended.
    pub(super) fn stage(&mut self, name: &'static str) {
        if let Some(trace) = &mut self.trace {
            trace.stage(name, self.started.elapsed());
        }
    }

    /// An attempt at a provider begins.
    pub(super) fn trace_attempt(&mut self, provider: &Arc<Provider>, model: &Arc<str>) {
        if let Some(trace) = &mut self.trace {
            trace.attempt_begins(provider, model, self.started.elapsed());
        }
    }

    /// The attempt failed. `end` is called with the time since the request's start.
    pub(super) fn trace_failure(&mut self, end: impl FnOnce(std::time::Duration) -> AttemptEnd) {
        if let Some(trace) = &mut self.trace {
            trace.attempt_failed(end(self.started.elapsed()));
        }
    }

    /// Puts the trace context into the head of a request to a provider.
    pub(super) fn propagate(&self, head: &mut RequestHeader) -> pingora::Result<()> {
        let Some(trace) = &self.trace else { return Ok(()) };
        for (name, value) in trace.provider_headers() {
            match value {
                Some(value) => head.insert_header(name, value)?,
                None => drop(head.remove_header(name)),
            }
        }
        Ok(())
    }
}

fn facts(session: &Session, head: &RequestHeader) -> RequestHead {
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| head.uri.authority().map(http::uri::Authority::as_str));
    RequestHead {
        method: head.method.clone(),
        tls: session.digest().is_some_and(|digest| digest.ssl_digest.is_some()),
        protocol: match head.version {
            http::Version::HTTP_2 => "2",
            http::Version::HTTP_10 => "1.0",
            _ => "1.1",
        },
        host: host.map(Box::from),
    }
}
