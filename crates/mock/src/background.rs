//! Responses in the background: queued at first, then in progress, and complete after some calls
//! that ask for them.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::directive::Directive;
use super::path::{MockOperation, Route};
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
}

impl BackgroundReplies {
    /// The answer to a request for a response in the background, or to a call about one; any other
    /// answer unchanged. `is_asked`: the body asks for it.
    pub(super) fn shape(
        &self,
        route: &Route,
        is_asked: bool,
        directive: &Directive,
        answer: StagedAnswer,
    ) -> StagedAnswer {
        let is_whole = route.format == WireFormat::Responses && answer.status == 200;
        if !is_whole || answer.streaming {
            return answer;
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
        let made = MadeReply { whole, calls: directive.background_calls.unwrap_or(2) };
        self.0.lock().insert(queued["id"].as_str()?.to_owned(), made);
        Some(queued)
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

fn unfinished(whole: &Value, status: &str) -> Value {
    let mut body = whole.clone();
    (body["status"], body["output"]) = (json!(status), json!([]));
    body["usage"] = Value::Null;
    body
}
