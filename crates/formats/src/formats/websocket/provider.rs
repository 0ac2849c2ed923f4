//! A provider's side: the frame that asks it for a reply, and the frames of the reply as the events
//! of a stream.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::members::{Members, push};
use super::output::{Kind, kind};

/// The code of the error of a connection that is too old.
const TOO_OLD: &str = "websocket_connection_limit_reached";

/// What a frame of a provider is.
#[derive(Debug, PartialEq, Eq)]
pub enum ProviderFrame {
    /// An event of the reply, as a stream has it.
    Event {
        /// The event.
        text: String,
        /// Whether the reply ends with it.
        ends: bool,
    },
    /// An error in place of a reply.
    Refusal {
        /// The status that it would have over HTTP.
        status: u16,
        /// The headers that it would have.
        headers: Vec<(String, String)>,
        /// The body that it would have.
        body: String,
    },
    /// The connection takes no further request.
    TooOld,
}

/// The frame for a request, given the body that it would have over HTTP. `None`: the body is not a
/// JSON object.
pub fn create(body: &[u8]) -> Option<String> {
    let Members(members) = serde_json::from_slice(body).ok()?;
    let mut frame = String::with_capacity(body.len() + 32);
    push(&mut frame, "type", r#""response.create""#);
    for (name, value) in members {
        // What a frame has in their place, and what would make another request of it.
        if !matches!(&*name, "type" | "stream" | "stream_id" | "background" | "generate") {
            push(&mut frame, &name, value.get());
        }
    }
    Some(format!("{{{frame}}}"))
}

/// Reads a frame. `None`: it is not a JSON object with a type.
pub fn provider_frame(text: &str) -> Option<ProviderFrame> {
    #[derive(Deserialize)]
    struct Envelope<'j> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'j, str>,
        #[serde(borrow)]
        status: Option<&'j RawValue>,
        #[serde(borrow)]
        status_code: Option<&'j RawValue>,
        #[serde(borrow)]
        error: Option<&'j RawValue>,
        #[serde(borrow)]
        headers: Option<&'j RawValue>,
    }
    #[derive(Deserialize)]
    struct Code<'j> {
        #[serde(borrow)]
        code: Option<Cow<'j, str>>,
    }
    let envelope: Envelope<'_> = serde_json::from_str(text).ok()?;
    let event = kind(&envelope.kind, &[]);
    let status = envelope
        .status
        .or(envelope.status_code)
        .and_then(|status| status.get().parse::<u16>().ok());
    if let (Kind::Error, Some(error), Some(status @ 400..=599)) = (event, envelope.error, status) {
        let code = serde_json::from_str::<Code<'_>>(error.get()).ok().and_then(|it| it.code);
        if code.is_some_and(|code| code == TOO_OLD) {
            return Some(ProviderFrame::TooOld);
        }
        let headers = envelope.headers.map_or_else(Vec::new, texts);
        let body = format!(r#"{{"error":{}}}"#, error.get());
        return Some(ProviderFrame::Refusal { status, headers, body });
    }
    if envelope.kind.contains(['\r', '\n']) {
        return None;
    }
    // Between the values of JSON they are spaces; within a text they are escaped.
    let data: Cow<'_, str> = match text.contains(['\r', '\n']) {
        true => text.replace(['\r', '\n'], " ").into(),
        false => text.into(),
    };
    let text = format!("event: {}\ndata: {data}\n\n", envelope.kind);
    Some(ProviderFrame::Event { text, ends: event.is_end() || event == Kind::Error })
}

/// The members of an object that are texts or numbers.
fn texts(object: &RawValue) -> Vec<(String, String)> {
    let members: BTreeMap<String, Value> = serde_json::from_str(object.get()).unwrap_or_default();
    let text = |value: Value| match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    members.into_iter().filter_map(|(name, value)| Some((name, text(value)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_the_body_without_what_makes_another_request_of_it() {
        let body = br#"{"stream":true,"model":"m","type":"response.steer","generate":false,"input":"a\u000ab","stream_id":"x","background":false}"#;
        assert_eq!(
            create(body).unwrap(),
            r#"{"type":"response.create","model":"m","input":"a\u000ab"}"#
        );
        assert_eq!((create(b"[1]"), create(b"{"), create(b"")), (None, None, None));
    }

    #[test]
    fn frames_are_events_or_the_answers_of_http() {
        let event = |text: &str, ends| Some(ProviderFrame::Event { text: text.to_owned(), ends });
        for (frame, is) in [
            (
                r#"{"type":"response.created","response":{}}"#,
                event(
                    "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{}}\n\n",
                    false,
                ),
            ),
            (
                "{\"type\":\r\n\"response.failed\",\"status\":\"failed\"}",
                event(
                    "event: response.failed\ndata: {\"type\":  \"response.failed\",\"status\":\"failed\"}\n\n",
                    true,
                ),
            ),
            (
                r#"{"type":"error","message":"m"}"#,
                event("event: error\ndata: {\"type\":\"error\",\"message\":\"m\"}\n\n", true),
            ),
            (
                r#"{"type":"error","status_code":429,"error":{"code":"c"},"headers":{"retry-after":7,"x":[]}}"#,
                Some(ProviderFrame::Refusal {
                    status: 429,
                    headers: vec![("retry-after".to_owned(), "7".to_owned())],
                    body: r#"{"error":{"code":"c"}}"#.to_owned(),
                }),
            ),
            (
                r#"{"type":"error","status":400,"error":{"code":"websocket_connection_limit_reached"}}"#,
                Some(ProviderFrame::TooOld),
            ),
            ("{}", None),
            ("7", None),
            ("{\"type\":\"a\\nb\"}", None),
        ] {
            assert_eq!(provider_frame(frame), is, "{frame}");
        }
    }
}
