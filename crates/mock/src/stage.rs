//! Converts a directive and a request to the bytes of an answer, and these to the steps that play
//! it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use serde_json::Value;

use super::answer;
use super::ask::MockAsk;
use super::directive::{Chunking, Directive};
use super::endpoints;
use super::path::{MockOperation, Route};
use super::play::{PlayStep, gzip, writes};
use super::query::query;
use super::reply::MockReply;
use super::strict;
use super::wire::{self, WireFault, models};
use tollgate_formats::domain::format::WireFormat;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream; charset=utf-8";
const HTML: &str = "<!DOCTYPE html>\n<html><head><title>Mock</title></head><body><h1>A page, not a \
                    reply</h1></body></html>\n";

/// The answer: the head's values, and the body in its natural pieces (a stream's events, or one
/// piece).
#[derive(Debug)]
pub(super) struct StagedAnswer {
    pub format: WireFormat,
    pub status: u16,
    pub content_type: &'static str,
    pub pieces: Vec<Bytes>,
    pub streaming: bool,
    /// Headers that only this answer has.
    pub headers: Vec<(&'static str, String)>,
}

impl StagedAnswer {
    pub(super) fn whole(format: WireFormat, status: u16, body: impl Into<Bytes>) -> Self {
        let (content_type, pieces, streaming) = (JSON, vec![body.into()], false);
        Self { format, status, content_type, pieces, streaming, headers: Vec::new() }
    }

    pub(super) fn json(format: WireFormat, value: &Value) -> Self {
        Self::whole(format, 200, value.to_string())
    }

    /// An error reply.
    pub(super) fn fault(format: WireFormat, fault: &WireFault) -> Self {
        Self::whole(format, fault.status, fault.body(format).to_string())
    }

    pub(super) fn stream(format: WireFormat, events: Vec<String>) -> Self {
        let pieces = events.into_iter().map(Bytes::from).collect();
        let whole = Self::whole(format, 200, Bytes::new());
        Self { content_type: EVENTS, pieces, streaming: true, ..whole }
    }

    /// The same with a header.
    pub(super) fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }
}

/// The answer to a request with a valid credential.
pub(super) fn answer(
    route: &Route,
    directive: &Directive,
    parts: &Parts,
    body: Result<Value, WireFault>,
    asked: &MockAsk,
    serial: u64,
) -> StagedAnswer {
    let format = route.format;
    if let Some(scripted) = scripted(format, directive, asked.stream) {
        return scripted;
    }
    match &route.operation {
        MockOperation::ListModels => {
            return StagedAnswer::json(format, &models::list(format, &shown_models(directive)));
        }
        MockOperation::GetModel(id) => return model(format, directive, id),
        MockOperation::Stored(id, rest) => {
            return StagedAnswer::json(format, &stored(id, rest, parts));
        }
        MockOperation::Endpoint(endpoint) => {
            return match body {
                Ok(body) => endpoints::answer(endpoint, &asked.model, &body, directive),
                Err(fault) => StagedAnswer::fault(format, &fault),
            };
        }
        // `held` has answered it.
        MockOperation::Held(..) => return StagedAnswer::json(format, &Value::Null),
        MockOperation::Generate
        | MockOperation::CountTokens
        | MockOperation::Token
        | MockOperation::AwsKeys(_) => {}
    }
    let body = match body {
        Ok(body) => body,
        Err(fault) => return StagedAnswer::fault(format, &fault),
    };
    if let Err(fault) =
        strict::request(route, parts, &body, asked, directive.strict.unwrap_or(true))
    {
        return StagedAnswer::fault(format, &fault);
    }
    if route.operation == MockOperation::CountTokens {
        return StagedAnswer::json(format, &counted(format, asked));
    }
    let mut reply = answer::compose(route, asked, directive, body, serial);
    reply.sse = query(parts).get("alt").is_some_and(|alt| alt == "sse");
    if asked.stream {
        streamed(format, &reply, directive)
    } else {
        StagedAnswer::json(format, &wire::whole(format, &reply))
    }
}

/// Replies that a directive defines for any request.
pub(super) fn scripted(
    format: WireFormat,
    directive: &Directive,
    stream: bool,
) -> Option<StagedAnswer> {
    let status = directive.status;
    if let Some(body) = &directive.body {
        let text = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        let kind = if stream && status.unwrap_or(200) < 400 { EVENTS } else { JSON };
        return Some(StagedAnswer {
            content_type: kind,
            ..StagedAnswer::whole(format, status.unwrap_or(200), text)
        });
    }
    if directive.html {
        let page = StagedAnswer::whole(format, status.unwrap_or(200), HTML);
        return Some(StagedAnswer { content_type: "text/html; charset=utf-8", ..page });
    }
    if directive.empty {
        let kind = if stream { EVENTS } else { JSON };
        let nothing = StagedAnswer::whole(format, status.unwrap_or(200), Bytes::new());
        return Some(StagedAnswer { content_type: kind, pieces: Vec::new(), ..nothing });
    }
    let failed = status.filter(|status| *status >= 400);
    if directive.error_in_200 {
        let fault = WireFault::from_spec(failed.unwrap_or(500), directive.error.as_ref());
        if stream {
            return Some(StagedAnswer::stream(format, vec![wire::stream_error(format, &fault, 0)]));
        }
        return Some(StagedAnswer { status: 200, ..StagedAnswer::fault(format, &fault) });
    }
    let mid_stream = directive.error_after.is_some();
    if failed.is_some() || (directive.error.is_some() && !mid_stream) {
        return Some(StagedAnswer::fault(
            format,
            &WireFault::from_spec(failed.unwrap_or(500), directive.error.as_ref()),
        ));
    }
    None
}

/// The answer to a call about a stored reply.
fn stored(id: &str, rest: &str, parts: &Parts) -> Value {
    if parts.method == http::Method::DELETE {
        return serde_json::json!({"id": id, "object": "response", "deleted": true});
    }
    if rest == "input_items" {
        let item = serde_json::json!({"id": "msg_mock", "type": "message", "role": "user",
            "content": [{"type": "input_text", "text": "hello"}]});
        return serde_json::json!({"object": "list", "data": [item], "first_id": "msg_mock",
            "last_id": "msg_mock", "has_more": false});
    }
    let status = if rest == "cancel" { "cancelled" } else { "completed" };
    serde_json::json!({"id": id, "object": "response", "created_at": wire::CREATED, "status": status,
        "output": [], "usage": {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}})
}

fn shown_models(directive: &Directive) -> Vec<String> {
    directive.models.clone().unwrap_or_else(|| models::DEFAULT.map(str::to_owned).to_vec())
}

fn model(format: WireFormat, directive: &Directive, id: &str) -> StagedAnswer {
    if shown_models(directive).iter().any(|shown| shown == id) {
        return StagedAnswer::json(format, &models::one(format, id));
    }
    StagedAnswer::fault(format, &strict::no_model(format, id))
}

fn counted(format: WireFormat, asked: &MockAsk) -> Value {
    let tokens = answer::count_tokens(asked);
    if format == WireFormat::AltCli {
        let details = serde_json::json!([{"modality": "TEXT", "tokenCount": tokens}]);
        serde_json::json!({"totalTokens": tokens, "promptTokensDetails": details})
    } else if format == WireFormat::Responses {
        serde_json::json!({"object": "response.input_tokens", "input_tokens": tokens})
    } else {
        serde_json::json!({"input_tokens": tokens})
    }
}

fn streamed(format: WireFormat, reply: &MockReply, directive: &Directive) -> StagedAnswer {
    let mut events = wire::events(format, reply);
    let array = format == WireFormat::AltCli && !reply.sse;
    if let Some(after) = directive.error_after {
        let fault = WireFault::from_spec(directive.status.unwrap_or(500), directive.error.as_ref());
        events.truncate(after);
        events.push(if array {
            format!("{}{}]", if after == 0 { "[" } else { ",\r\n" }, fault.body(format))
        } else {
            wire::stream_error(format, &fault, after)
        });
    }
    let stream = StagedAnswer::stream(format, events);
    if array { StagedAnswer { content_type: JSON, ..stream } } else { stream }
}

impl StagedAnswer {
    /// The steps that play this answer, and the length to declare (none for a stream).
    pub(super) fn steps(&self, directive: &Directive) -> (Vec<PlayStep>, Option<u64>) {
        if directive.hang_up {
            return (vec![PlayStep::Cut], None);
        }
        let breaks = directive.cut_after.is_some() || directive.stall_after.is_some();
        let mut pieces = self.pieces.clone();
        if !self.streaming && breaks {
            pieces = pieces
                .iter()
                .flat_map(|all| [all.slice(..all.len() / 2), all.slice(all.len() / 2..)])
                .collect();
        }
        if directive.gzip && !pieces.is_empty() {
            pieces = gzip(pieces).unwrap_or_default();
        }
        let length = (!self.streaming).then(|| pieces.iter().map(|piece| piece.len() as u64).sum());
        let mut steps = Vec::new();
        if directive.first_byte_ms > 0 {
            steps.push(PlayStep::Pause(Duration::from_millis(directive.first_byte_ms)));
        }
        let (kept, end) = self.broken_off(directive, pieces.len());
        pieces.truncate(kept);
        let held =
            directive.hold_after.filter(|_| self.streaming).map(|after| after.min(pieces.len()));
        play_pieces(pieces, directive, held, &mut steps);
        if let Some(end) = end {
            steps.extend([PlayStep::Flush, end]);
        }
        (steps, length)
    }

    /// How many pieces are played, and the step in place of the rest.
    fn broken_off(&self, directive: &Directive, pieces: usize) -> (usize, Option<PlayStep>) {
        let at = |after: usize| if self.streaming { after.min(pieces) } else { 1.min(pieces) };
        match (directive.cut_after, directive.stall_after) {
            (Some(cut), Some(stall)) if stall < cut => (at(stall), Some(PlayStep::Stall)),
            (Some(cut), _) => (at(cut), Some(PlayStep::Cut)),
            (None, Some(stall)) => (at(stall), Some(PlayStep::Stall)),
            (None, None) => (pieces, None),
        }
    }
}

/// `held`: the piece before which the operator is waited for; the number of pieces means after the
/// last.
fn play_pieces(
    pieces: Vec<Bytes>,
    directive: &Directive,
    held: Option<usize>,
    steps: &mut Vec<PlayStep>,
) {
    let pause = (directive.between_events_ms > 0)
        .then(|| Duration::from_millis(directive.between_events_ms));
    let pieces = if directive.chunking == Chunking::Whole && pause.is_none() && held.is_none() {
        let mut all = BytesMut::new();
        pieces.iter().for_each(|piece| all.extend_from_slice(piece));
        vec![all.freeze()]
    } else {
        pieces
    };
    for (index, piece) in pieces.iter().enumerate() {
        if index > 0 {
            steps.push(pause.map_or(PlayStep::Flush, PlayStep::Pause));
        }
        if held == Some(index) {
            steps.push(PlayStep::Hold);
        }
        for (part, write) in writes(piece, directive.chunking).into_iter().enumerate() {
            if part > 0 {
                steps.push(PlayStep::Flush);
            }
            if !write.is_empty() {
                steps.push(PlayStep::Write(write));
            }
        }
    }
    if held == Some(pieces.len()) {
        steps.extend([PlayStep::Flush, PlayStep::Hold]);
    }
}
