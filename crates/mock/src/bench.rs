//! The fast path of the bench: prebuilt replies for the models `bench-json` and `bench-stream`.
//!
//! The model is searched in the path and at both ends of the body; nothing is parsed, recorded or
//! kept. A stream's 50 text events are sent at once, or `?pace_ms=` apart.

use std::sync::LazyLock;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use memchr::memmem;
use serde_json::Value;

use super::directive::{Finish, Verdict};
use super::path;
use super::play::{PlayStep, Playback};
use super::query::query;
use super::records::Exchange;
use super::reply::{MockPart, MockReply};
use super::wire;
use tollgate_formats::domain::format::WireFormat;
use tollgate_formats::domain::usage::Usage;

/// Bytes in which the model's name is searched, at each end of the body's first part, and of all of
/// it.
const WINDOW: usize = 256;
const TEXT_EVENTS: usize = 50;

/// A reply of the fast path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bench {
    format: WireFormat,
    stream: bool,
}

/// The prebuilt reply that a request selects, by its head and its body, or the first part of that.
pub(super) fn wanted(parts: &Parts, first: &[u8]) -> Option<Bench> {
    let path = parts.uri.path();
    let head = &first[..first.len().min(WINDOW)];
    let tail = &first[first.len().saturating_sub(WINDOW)..];
    let named = |name: &str| {
        let quoted = format!("\"{name}\"");
        path.contains(name)
            || [head, tail].iter().any(|part| memmem::find(part, quoted.as_bytes()).is_some())
    };
    let stream = match (named("bench-json"), named("bench-stream")) {
        (true, _) => false,
        (_, true) => true,
        _ => return None,
    };
    let route =
        path::parse(path).filter(|route| route.operation == path::MockOperation::Generate)?;
    Some(Bench { format: route.format, stream })
}

struct Prebuilt {
    whole: Bytes,
    events: Vec<Bytes>,
}

static PREBUILT: LazyLock<[Prebuilt; 4]> = LazyLock::new(|| WireFormat::ALL.map(prebuild));

fn prebuild(format: WireFormat) -> Prebuilt {
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(20);
    let usage = Usage { input: 500, output: 225, ..Usage::default() };
    let reply = MockReply {
        serial: 0,
        model: "bench".to_owned(),
        parts: vec![MockPart::Text(text)],
        finish: Finish::Stop,
        verdict: Verdict::default(),
        usage: Some(usage),
        include_usage: true,
        prompt_filter: false,
        deltas: Some(TEXT_EVENTS),
        pings: 0,
        wrapped: false,
        sse: true,
        request: Value::Null,
    };
    let events = wire::events(format, &reply).into_iter().map(Bytes::from).collect();
    Prebuilt { whole: wire::whole(format, &reply).to_string().into(), events }
}

/// The prebuilt reply.
pub(super) fn answer(bench: Bench, parts: &Parts, exchange: Exchange) -> Response {
    let prebuilt =
        &PREBUILT[WireFormat::ALL.iter().position(|format| *format == bench.format).unwrap_or(0)];
    let (steps, length, kind) = if bench.stream {
        (stream_steps(&prebuilt.events, parts), None, "text/event-stream")
    } else {
        (
            vec![PlayStep::Write(prebuilt.whole.clone())],
            Some(prebuilt.whole.len() as u64),
            "application/json",
        )
    };
    let mut response = Response::new(Body::new(Playback::new(steps, length, exchange)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn stream_steps(events: &[Bytes], parts: &Parts) -> Vec<PlayStep> {
    let pace = parts
        .uri
        .query()
        .and_then(|_| query(parts).remove("pace_ms"))
        .and_then(|ms| ms.parse().ok());
    let pause = pace.filter(|ms| *ms > 0).map(Duration::from_millis);
    let mut steps = Vec::with_capacity(events.len() * 2);
    for (index, event) in events.iter().enumerate() {
        if let Some(pause) = pause.filter(|_| index > 0) {
            steps.push(PlayStep::Pause(pause));
        }
        steps.push(PlayStep::Write(event.clone()));
    }
    steps
}
