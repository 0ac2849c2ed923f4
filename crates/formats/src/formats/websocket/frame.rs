//! Reads a client's frame.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::items::{Items, are_user_messages};
use super::members::{Members, push};

/// Longest name of a lane, in bytes.
const MAX_LANE: usize = 256;
/// The members of `client_metadata` that stand for headers: a frame has none.
const HEADER: &str = "ws_request_header_";

/// What a frame asks for.
#[derive(Debug)]
pub enum Frame {
    /// `response.create`: a reply.
    Create(Create),
    /// `response.append`: a reply to more input, with the settings of the one before it.
    Append {
        /// The lane.
        lane: Option<String>,
        /// The input.
        input: Items,
    },
    /// `response.processed`: the client has read a reply.
    Processed,
    /// `response.steer`: more input for a reply in flight.
    Steer {
        /// The reply.
        response: String,
        /// The input as the client sent it.
        input: Box<RawValue>,
        /// What is wrong with it.
        fault: Option<&'static str>,
    },
}

/// A request for a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// `stream_id`.
    pub lane: Option<String>,
    /// `previous_response_id`.
    pub previous: Option<String>,
    /// Not a prewarming request (`generate: false`).
    pub generates: bool,
    /// Not `store: false`.
    pub is_stored: bool,
    /// All other members of the request's body, joined by commas.
    pub settings: Arc<str>,
    /// Its input.
    pub input: Items,
    /// The headers that the frame carries, by name.
    pub headers: Vec<(String, String)>,
}

impl Create {
    /// The body of the HTTP request, given all of the conversation that it sends.
    pub fn body(&self, input: &Items) -> String {
        let mut body = String::with_capacity(self.settings.len() + input.bytes() + 128);
        body.push_str(&self.settings);
        if let Some(previous) = &self.previous {
            push(
                &mut body,
                "previous_response_id",
                &serde_json::Value::from(&**previous).to_string(),
            );
        }
        push(&mut body, "input", &input.list());
        push(&mut body, "stream", "true");
        format!("{{{body}}}")
    }
}

/// Why a frame is refused.
#[derive(Debug, PartialEq, Eq)]
pub struct FrameError {
    /// The lane of the frame, if it is valid.
    pub lane: Option<String>,
    /// The error's code.
    pub code: Option<&'static str>,
    /// The member that is wrong.
    pub param: Option<&'static str>,
    /// What is wrong.
    pub message: String,
}

impl FrameError {
    fn new(param: Option<&'static str>, message: impl Into<String>) -> Self {
        Self { lane: None, code: None, param, message: message.into() }
    }
}

/// Reads a frame.
///
/// # Errors
/// When it is not a JSON object, or not a frame of this API.
pub fn read(text: &str) -> Result<Frame, FrameError> {
    let Members(members) = serde_json::from_str(text)
        .map_err(|e| FrameError::new(None, format!("the frame is not a JSON object: {e}")))?;
    let find = |name: &str| members.iter().rev().find(|(key, _)| key == name).map(|(_, raw)| *raw);
    let kind = find("type").map(|raw| text_of(raw, "type")).transpose()?.unwrap_or_default();
    if kind == "response.processed" {
        return Ok(Frame::Processed);
    }
    let lane = find("stream_id").map(lane).transpose()?.flatten();
    let frame = match kind.as_str() {
        "response.create" => create(&members, lane.clone()).map(Frame::Create),
        "response.append" => {
            input(&members).map(|input| Frame::Append { lane: lane.clone(), input })
        }
        "response.steer" => steer(find("previous_response_id"), find("input")),
        other => Err(FrameError::new(
            Some("type"),
            format!("frames of the type {other:?} are not taken: use response.create"),
        )),
    };
    frame.map_err(|error| FrameError { lane, ..error })
}

fn text_of(raw: &RawValue, param: &'static str) -> Result<String, FrameError> {
    serde_json::from_str(raw.get())
        .map_err(|_| FrameError::new(Some(param), format!("`{param}` is not a text")))
}

fn flag(raw: &RawValue, param: &'static str) -> Result<bool, FrameError> {
    serde_json::from_str::<Option<bool>>(raw.get())
        .map(Option::unwrap_or_default)
        .map_err(|_| FrameError::new(Some(param), format!("`{param}` is not true or false")))
}

fn lane(raw: &RawValue) -> Result<Option<String>, FrameError> {
    let lane: Option<String> = serde_json::from_str(raw.get()).unwrap_or(Some(String::new()));
    let fits = |lane: &str| {
        let one = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        (1..=MAX_LANE).contains(&lane.len()) && lane.bytes().all(one)
    };
    match lane {
        Some(lane) if !fits(&lane) => {
            let message = "`stream_id` has 1 to 256 letters, digits, dots, hyphens or underscores";
            let error = FrameError::new(Some("stream_id"), message);
            Err(FrameError { code: Some("invalid_stream_id"), ..error })
        }
        lane => Ok(lane),
    }
}

fn input(members: &[(String, &RawValue)]) -> Result<Items, FrameError> {
    let input = members.iter().rev().find(|(name, _)| name == "input");
    let items = input.map(|(_, raw)| Items::of_input(raw)).transpose();
    items.map(Option::unwrap_or_default).map_err(|why| FrameError::new(Some("input"), why))
}

fn create(members: &[(String, &RawValue)], lane: Option<String>) -> Result<Create, FrameError> {
    let (mut settings, mut headers) = (String::new(), Vec::new());
    let (mut previous, mut generates, mut is_stored) = (None, true, true);
    for (name, raw) in members {
        match name.as_str() {
            "type" | "stream_id" | "input" | "stream" => {}
            "previous_response_id" if raw.get() == "null" => previous = None,
            "previous_response_id" => previous = Some(text_of(raw, "previous_response_id")?),
            "generate" => generates = raw.get() == "null" || flag(raw, "generate")?,
            "background" if flag(raw, "background")? => {
                let why = "replies in the background are not made over a WebSocket";
                return Err(FrameError::new(Some("background"), why));
            }
            "background" => {}
            "client_metadata" => metadata(raw, &mut settings, &mut headers),
            name => {
                is_stored &= name != "store" || raw.get() != "false";
                push(&mut settings, name, raw.get());
            }
        }
    }
    let input = input(members)?;
    let settings = settings.into();
    Ok(Create { lane, previous, generates, is_stored, settings, input, headers })
}

/// Takes the headers out of `client_metadata`.
fn metadata(raw: &RawValue, settings: &mut String, headers: &mut Vec<(String, String)>) {
    let Ok(Members(members)) = serde_json::from_str(raw.get()) else {
        return push(settings, "client_metadata", raw.get());
    };
    let mut rest = String::new();
    for (name, value) in &members {
        match name.strip_prefix(HEADER) {
            None => push(&mut rest, name, value.get()),
            Some(header) => {
                let header = header.replace('_', "-").to_ascii_lowercase();
                let value = serde_json::from_str(value.get()).ok().filter(|_| may_be_sent(&header));
                headers.extend(value.map(|value| (header, value)));
            }
        }
    }
    if members.is_empty() || !rest.is_empty() {
        push(settings, "client_metadata", &format!("{{{rest}}}"));
    }
}

/// Headers of the client's own, and of traces: none that could carry a credential or an address.
fn may_be_sent(header: &str) -> bool {
    matches!(header, "traceparent" | "tracestate")
        || header.starts_with("x-codex-")
        || header.starts_with("x-openai-")
}

fn steer(response: Option<&RawValue>, input: Option<&RawValue>) -> Result<Frame, FrameError> {
    let missing = |name| FrameError::new(Some(name), format!("`{name}` is missing"));
    let response = response.ok_or_else(|| missing("previous_response_id"))?;
    let input = input.ok_or_else(|| missing("input"))?;
    let fault = (!are_user_messages(input))
        .then_some("`input` is neither a text nor a list of messages of the role user");
    let response = text_of(response, "previous_response_id")?;
    Ok(Frame::Steer { response, input: input.to_owned(), fault })
}
