//! The spans of a finished request: a server span, and a client span for each attempt.
//!
//! Errors of providers may repeat the prompt, so their texts are in spans only with
//! `telemetry.otlp.content`.
//!
//! See docs/decisions/40-spans-after-the-request.md.

use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status, span};
use rust_decimal::prelude::ToPrimitive as _;

use super::gen_ai;
use super::proto::{Attributes, nanos};
use super::trace::AttemptTrace;
use super::tracer::Finished;
use crate::domain::ids::SessionId;
use crate::domain::record::{Decision, DecisionStep, Record, RequestOutcome};
use crate::domain::trace::SpanId;
use crate::domain::usage::Usage;
use crate::formats::route::{self, Operation};

/// The flags of a span beside the trace's own: it is known whether the parent is remote, and it is.
const PARENT_KNOWN: u32 = 0x100;
const PARENT_REMOTE: u32 = 0x200;

/// The ends of alt-cli paths.
const ACTIONS: [&str; 3] = ["generateContent", "streamGenerateContent", "countTokens"];

/// All spans of a request, the server span first.
pub(super) fn of(finished: &Finished) -> Vec<Span> {
    let operation =
        route::match_path(&finished.trace.head.method, finished.record.path()).map(|r| r.operation);
    let mut spans = Vec::with_capacity(1 + finished.trace.attempts.len());
    spans.push(server(finished, operation.as_ref()));
    let operation = operation.unwrap_or(Operation::Generate);
    for (index, attempt) in finished.trace.attempts.iter().enumerate() {
        let is_last = index + 1 == finished.trace.attempts.len();
        spans.push(client(finished, attempt, &operation, is_last));
    }
    spans
}

impl Finished {
    /// Nanoseconds since 1970 at a time of the request.
    fn at(&self, since_start: Duration) -> u64 {
        let start = nanos(self.record.started_at);
        start.saturating_add(u64::try_from(since_start.as_nanos()).unwrap_or(u64::MAX))
    }

    /// A span of the request's time from `began` to `end`.
    fn span(&self, id: SpanId, parent: Option<SpanId>, began: Duration, end: Duration) -> Span {
        let own = &self.trace.own;
        Span {
            trace_id: own.trace_id.0.to_be_bytes().to_vec(),
            span_id: id.0.to_be_bytes().to_vec(),
            parent_span_id: parent.map(|id| id.0.to_be_bytes().to_vec()).unwrap_or_default(),
            trace_state: self
                .trace
                .state
                .as_ref()
                .and_then(|state| state.to_str().ok())
                .unwrap_or_default()
                .to_owned(),
            flags: u32::from(own.sampled) | PARENT_KNOWN,
            start_time_unix_nano: self.at(began),
            end_time_unix_nano: self.at(end),
            ..Span::default()
        }
    }
}

fn server(finished: &Finished, operation: Option<&Operation>) -> Span {
    let (trace, record) = (&finished.trace, &finished.record);
    let method = trace.head.method.as_str();
    let route = operation.map(|operation| route_of(record.path(), operation));
    let mut attributes = Attributes::default();
    attributes
        .text("http.request.method", method)
        .text_if_any("http.route", route.as_deref())
        .text("url.path", record.path())
        .text("url.scheme", if trace.head.tls { "https" } else { "http" })
        .number("http.response.status_code", record.status_code)
        .text("network.protocol.name", "http")
        .text("network.protocol.version", trace.head.protocol);
    if let Some(host) = trace.head.host.as_deref() {
        address(host, trace.head.tls, &mut attributes);
    }
    attributes
        .text_if_any("client.address", record.client_addr.as_deref())
        .text_if_any("user_agent.original", record.user_agent.as_deref())
        .text_if_any("user.name", record.user_name.as_deref());
    if let Some(id) = record.user_id {
        attributes.text("user.id", id.to_string());
    }
    attributes.text_if_any("tollgate.key.name", record.key_name.as_deref());
    attributes.text("tollgate.request_id", record.request_id.to_string());
    attributes.text("tollgate.outcome", record.outcome.as_str());
    attributes.number("tollgate.attempts", record.attempts);
    attributes
        .text_if_any("gen_ai.conversation.id", record.session_id.as_ref().map(SessionId::as_str));
    if let Some(usd) = record.cost.and_then(|cost| cost.to_decimal().to_f64()) {
        attributes.float("tollgate.cost_usd", usd);
    }
    let mut span = finished.span(trace.own.span_id, trace.parent, Duration::ZERO, finished.took);
    if trace.parent.is_some() {
        span.flags |= PARENT_REMOTE;
    }
    // Of a server span, only the server's own errors are errors.
    if record.status_code >= 500 || record.outcome == RequestOutcome::BrokenOff {
        let kind = error_type(record.outcome, record.status_code);
        span.status = Some(failed(finished, &kind, record.error_message.as_deref()));
        attributes.text("error.type", kind);
    }
    span.name = route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}"));
    span.kind = span::SpanKind::Server.into();
    span.attributes = attributes.0;
    span.events = events(finished);
    span
}

/// The path with a placeholder for the model: a bounded set.
fn route_of(endpoint: &str, operation: &Operation) -> String {
    let endpoint = endpoint.strip_suffix('/').unwrap_or(endpoint);
    if let Operation::Stored(call) = operation {
        return format!("{}/{{id}}{}", call.collection.path, call.rest);
    }
    for prefix in ["/v1beta/models/", "/v1/models/"] {
        let Some(rest) = endpoint.strip_prefix(prefix) else { continue };
        let own = operation.endpoint().map(|endpoint| endpoint.path);
        let is_call = matches!(operation, Operation::Generate | Operation::CountTokens);
        let mut known = ACTIONS.into_iter().filter(|_| is_call).chain(own);
        let action = known.find(|action| rest.ends_with(action));
        return action.map_or_else(
            || format!("{prefix}{{model}}"),
            |action| format!("{prefix}{{model}}:{action}"),
        );
    }
    endpoint.to_owned()
}

fn client(
    finished: &Finished,
    attempt: &AttemptTrace,
    operation: &Operation,
    is_last: bool,
) -> Span {
    let (trace, record) = (&finished.trace, &finished.record);
    let end = attempt.end.map_or(finished.took, |end| end.at);
    let format = attempt.provider.kind.format();
    let uri: Option<http::Uri> = attempt.provider.url.trim().parse().ok();
    let host = uri.as_ref().and_then(http::Uri::host).unwrap_or_default();
    let operation_name = gen_ai::operation_name(operation, format);
    let mut attributes = Attributes::default();
    attributes
        .text("gen_ai.operation.name", operation_name)
        .text("gen_ai.provider.name", gen_ai::provider_name(host, format))
        .text("gen_ai.request.model", &*attempt.model)
        .flag("gen_ai.request.stream", record.streamed)
        .text("tollgate.provider.name", attempt.provider.name.as_str())
        .text_if_any("gen_ai.conversation.id", record.session_id.as_ref().map(SessionId::as_str));
    if let Some(uri) = &uri {
        let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        address(authority, uri.scheme_str() == Some("https"), &mut attributes);
    }
    if let Some(parameters) = &trace.parameters {
        parameters.add(&mut attributes);
    }
    if let Some(at) = attempt.first_chunk.filter(|_| record.streamed) {
        let time = at.saturating_sub(attempt.began);
        attributes.float("gen_ai.response.time_to_first_chunk", time.as_secs_f64());
    }
    let mut span = finished.span(attempt.span_id, Some(trace.own.span_id), attempt.began, end);
    let (status, usage) = match attempt.end {
        Some(end) => (end.status, end.usage),
        None => (Some(record.status_code), is_last.then_some(record.usage)),
    };
    // A client that leaves before the provider answers has no status of the provider.
    if let Some(status) = status.filter(|status| *status != 499) {
        attributes.number("http.response.status_code", status);
    }
    if let Some(usage) = usage.filter(|usage| *usage != Usage::default()) {
        gen_ai::usage(&usage, &mut attributes);
        attributes.flag("tollgate.usage.estimated", attempt.end.is_none() && record.estimated);
    }
    if let Some(kind) = attempt_error(attempt, record) {
        span.status =
            Some(failed(finished, &kind, record.error_message.as_deref().filter(|_| is_last)));
        attributes.text("error.type", kind);
    }
    if is_last {
        gen_ai::parts(&record.parts, &mut attributes);
        content(finished, &mut attributes);
    }
    span.name = format!("{operation_name} {}", attempt.model);
    span.kind = span::SpanKind::Client.into();
    span.attributes = attributes.0;
    span
}

/// Prompt and reply, if they were kept.
fn content(finished: &Finished, attributes: &mut Attributes) {
    let Some(content) = &finished.trace.content else { return };
    for (name, text) in &content.prompt {
        attributes.text(name, text.as_str());
    }
    if let Some((text, reason)) = content.output(finished.record.client_format) {
        attributes.text("gen_ai.output.messages", text);
        attributes.texts("gen_ai.response.finish_reasons", [reason.to_owned()]);
    }
    if content.is_cut {
        attributes.flag("tollgate.content.incomplete", true);
    }
}

/// Why an attempt is an error; `None` if it is none.
fn attempt_error(attempt: &AttemptTrace, record: &Record) -> Option<String> {
    match attempt.end {
        Some(end) => Some(match end.status {
            Some(status) if status >= 400 => status.to_string(),
            _ => end.kind.to_owned(),
        }),
        None => match record.outcome {
            RequestOutcome::Completed => None,
            outcome => Some(outcome.as_str().to_owned()),
        },
    }
}

fn error_type(outcome: RequestOutcome, status: u16) -> String {
    if outcome == RequestOutcome::BrokenOff {
        outcome.as_str().to_owned()
    } else {
        status.to_string()
    }
}

/// The status of a failed span. The message only if content may be shown.
fn failed(finished: &Finished, kind: &str, message: Option<&str>) -> Status {
    let message = message.filter(|_| finished.trace.content.is_some()).unwrap_or(kind);
    Status { code: StatusCode::Error.into(), message: message.to_owned() }
}

/// `server.address` and `server.port` of a host with a port or without.
fn address(authority: &str, tls: bool, attributes: &mut Attributes) {
    let Ok(authority) = authority.parse::<http::uri::Authority>() else { return };
    attributes
        .text("server.address", authority.host().trim_start_matches('[').trim_end_matches(']'));
    attributes.number("server.port", authority.port_u16().unwrap_or(if tls { 443 } else { 80 }));
}

/// The stages, and the decisions about providers.
fn events(finished: &Finished) -> Vec<span::Event> {
    let stages = finished.trace.stages.iter().map(|(name, at)| span::Event {
        time_unix_nano: finished.at(*at),
        name: format!("tollgate.{name}"),
        ..span::Event::default()
    });
    let decisions = finished.record.decisions.iter().map(|decision| decided(finished, decision));
    let mut events: Vec<span::Event> = stages.chain(decisions).collect();
    events.sort_by_key(|event| event.time_unix_nano);
    events
}

fn decided(finished: &Finished, decision: &Decision) -> span::Event {
    let mut attributes = Attributes::default();
    let step = serde_json::to_value(decision.step).ok();
    attributes.text_if_any("tollgate.decision.step", step.as_ref().and_then(|step| step.as_str()));
    if !decision.provider_name.is_empty() {
        attributes.text("tollgate.provider.name", &*decision.provider_name);
    }
    if let Some(status) = decision.status {
        attributes.number("http.response.status_code", status);
    }
    let is_own = !matches!(
        decision.step,
        DecisionStep::Retried
            | DecisionStep::AttemptFailed
            | DecisionStep::ClientError
            | DecisionStep::FormatNotConvertible
            | DecisionStep::Refused
            | DecisionStep::Exhausted
    );
    if is_own || finished.trace.content.is_some() {
        attributes.text_if_any("tollgate.decision.reason", decision.detail.as_deref());
    }
    span::Event {
        time_unix_nano: finished.at(Duration::from_millis(decision.at_ms)),
        name: "tollgate.decision".to_owned(),
        attributes: attributes.0,
        ..span::Event::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_never_names_a_model() {
        let generate = Operation::Generate;
        for (endpoint, operation, route) in [
            ("/v1/messages", &generate, "/v1/messages"),
            ("/v1/messages/", &generate, "/v1/messages"),
            (
                "/v1beta/models/g-2.5:generateContent",
                &generate,
                "/v1beta/models/{model}:generateContent",
            ),
            (
                "/v1beta/models/ft:g%3AgenerateContent",
                &generate,
                "/v1beta/models/{model}:generateContent",
            ),
            ("/v1/models/m-1", &Operation::GetModel("m-1".to_owned()), "/v1/models/{model}"),
        ] {
            assert_eq!(route_of(endpoint, operation), route);
        }
    }
}
