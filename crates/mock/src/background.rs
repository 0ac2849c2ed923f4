//! Responses in the background: queued at first, then in progress, and complete after some calls
//! that ask for them.

use std::collections::HashMap;

use bytes::Bytes;
use http::request::Parts;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::directive::Directive;
use super::path::{MockOperation, Route};
use super::query::query;
use super::stage::StagedAnswer;
use tollgate_formats::domain::format::WireFormat;

/// Those of one instance, by their ids.
#[derive(Debug, Default)]
pub(super) struct BackgroundReplies(Mutex<HashMap<String, MadeReply>>);

#[derive(Debug)]
struct MadeReply {
    /// The response as it ends.
    whole: Value,
    /// Calls until then.
    calls: usize,
    /// Of one that was begun as a stream: its events.
    events: Vec<Bytes>,
}

impl BackgroundReplies {
    /// The answer to a request for a response in the background, or to a call about one; any other
    /// answer unchanged. `is_asked`: the body asks for it.
    pub(super) fn shape(
        &self,
        route: &Route,
        is_asked: bool,
        directive: &Directive,
        parts: &Parts,
        answer: StagedAnswer,
    ) -> StagedAnswer {
        if route.format != WireFormat::Responses || answer.status != 200 {
            return answer;
        }
        if answer.streaming {
            if is_asked {
                self.begin_stream(directive, &answer);
            }
            return answer;
        }
        let mut asked = query(parts);
        if let MockOperation::Stored(id, _) = &route.operation
            && asked.remove("stream").is_some_and(|value| value == "true")
        {
            let after = asked.remove("starting_after").and_then(|after| after.parse().ok());
            return self.events(id, after).unwrap_or(answer);
        }
        let shaped = match &route.operation {
            MockOperation::Generate if is_asked => self.begin(directive, &answer),
            MockOperation::Stored(id, rest) if rest != "input_items" => self.call(id, rest),
            _ => None,
        };
        shaped.map_or(answer, |body| StagedAnswer::json(route.format, &body))
    }

    fn begin(&self, directive: &Directive, answer: &StagedAnswer) -> Option<Value> {
        let mut whole: Value = serde_json::from_slice(answer.pieces.first()?).ok()?;
        let queued = unfinished(&whole, "queued");
        if directive.background_fails {
            whole = unfinished(&whole, "failed");
            whole["error"] = json!({"code": "server_error", "message": "The mock failed."});
        }
        let calls = directive.background_calls.unwrap_or(2);
        let made = MadeReply { whole, calls, events: Vec::new() };
        self.0.lock().insert(queued["id"].as_str()?.to_owned(), made);
        Some(queued)
    }

    /// Keeps a reply whose stream begins: it goes on whoever reads the stream.
    fn begin_stream(&self, directive: &Directive, answer: &StagedAnswer) -> Option<()> {
        let last = event(answer.pieces.iter().rfind(|piece| event(piece).is_some())?)?;
        let (whole, calls) = (last["response"].clone(), directive.background_calls.unwrap_or(2));
        let id = whole["id"].as_str()?.to_owned();
        self.0.lock().insert(id, MadeReply { whole, calls, events: answer.pieces.clone() });
        Some(())
    }

    /// The stream of a reply, or its rest after the event of this number.
    fn events(&self, id: &str, after: Option<u64>) -> Option<StagedAnswer> {
        let all = self.0.lock();
        let is_wanted = |piece: &&Bytes| {
            let number = event(piece).and_then(|event| event["sequence_number"].as_u64());
            after.is_none_or(|after| number.is_none_or(|number| number > after))
        };
        let wanted = all.get(id)?.events.iter().filter(is_wanted);
        let wanted = wanted.map(|piece| String::from_utf8_lossy(piece).into_owned()).collect();
        Some(StagedAnswer::stream(WireFormat::Responses, wanted))
    }

    /// `None` for a response that was not made in the background, or is to be deleted.
    fn call(&self, id: &str, rest: &str) -> Option<Value> {
        let mut all = self.0.lock();
        let made = all.get_mut(id)?;
        if rest == "cancel" && made.calls > 0 {
            let usage = made.whole["usage"].take();
            made.whole = unfinished(&made.whole, "cancelled");
            made.whole["usage"] = usage;
            made.calls = 0;
        }
        if made.calls == 0 {
            return Some(made.whole.clone());
        }
        made.calls -= 1;
        Some(unfinished(&made.whole, "in_progress"))
    }
}

/// The data of an event.
fn event(piece: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(piece).ok()?;
    serde_json::from_str(text.split_once("data: ")?.1.trim()).ok()
}

fn unfinished(whole: &Value, status: &str) -> Value {
    let mut body = whole.clone();
    (body["status"], body["output"]) = (json!(status), json!([]));
    body["usage"] = Value::Null;
    body
}
