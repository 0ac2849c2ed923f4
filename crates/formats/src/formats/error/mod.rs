//! Error bodies and mid-stream error events, in the shape that each format's real service and
//! clients use.
//!
//! - native: `{type: "error", error: {type, message, …}, request_id?}`, in a stream as `event:
//!   error`.
//! - chat-compatible and responses: `{error: {message, type, code, param, …}}`. A chat stream
//!   carries it as a data line without the terminator, which would mean success. A responses stream
//!   carries an `error` event, flat as documented and nested as the service sends it, and then
//!   `response.failed`: the SDKs act on the one, the coding client on the other.
//! - alt-cli: `{error: {code: <status>, message, status, …, details}}` with `error` as first key
//!   and a numeric code: its SDKs recognise an error within a stream by just that.
//!
//! [`read()`] parses upstream errors. Other modules decide the status and kind of an error.

mod read;
pub mod words;

use serde_json::{Map, Value, json};

use super::sse;
use crate::domain::format::WireFormat;

pub use self::read::{UpstreamError, looks_like_html, read};

/// An error for a client, in any format.
#[derive(Debug, Clone, Copy)]
pub struct ErrorReply<'a> {
    /// The HTTP status; alt-cli bodies repeat it.
    pub status: u16,
    /// The native format's error type: `authentication_error`, `rate_limit_error`, … see
    /// [`kind_of_status`].
    pub kind: &'a str,
    /// The text for people.
    pub message: &'a str,
    /// A finer reason: `rate_limit_exceeded`, `model_not_found`.
    pub code: Option<&'a str>,
    /// Further members of the error object (`limit_type`, `current`, `limit`, `reset_at`), in
    /// order.
    ///
    /// Some names are taken out of it. `param` (the invalid field) and `request_id` go to their
    /// place in each format. `response_id`, `model`, `created_at` and `sequence_number` complete a
    /// responses stream's last events. `resets_at` (seconds of the epoch) and `retry_delay_s` say
    /// when to retry, in the formats that have a field for it.
    pub extra: &'a [(&'a str, Value)],
}

impl ErrorReply<'_> {
    fn extra(&self, name: &str) -> Option<&Value> {
        self.extra.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    fn plain_extras(&self) -> impl Iterator<Item = &(&str, Value)> {
        const PLACED: [&str; 8] = [
            "param",
            "request_id",
            "response_id",
            "model",
            "created_at",
            "sequence_number",
            "resets_at",
            "retry_delay_s",
        ];
        self.extra.iter().filter(|(key, _)| !PLACED.contains(key))
    }
}

/// The kind of a money limit that is used up. Each format uses the form of its service that
/// makes clients stop:
///
/// - native: `rate_limit_error`.
/// - chat-compatible: type and code `insufficient_quota`.
/// - responses: type `usage_limit_reached` with `resets_at`, code `insufficient_quota`. Codex
///   reports both at once; with the type it also shows [`headers`]' message in place of a fixed
///   text.
/// - alt-cli: `google.rpc.QuotaFailure` with a quota of a day. Gemini CLI shows a fixed text for
///   it, unless the message says that the limit is 0 (`limit: 0`), as the service does where there
///   is not a quota at all.
pub const SPENT: &str = "insufficient_quota";

/// A header that carries the message to clients that do not show the body's.
pub fn headers(format: WireFormat, error: &ErrorReply<'_>) -> Option<(&'static str, String)> {
    let wanted = format == WireFormat::Responses && error.kind == SPENT;
    // The client adds "…, or try again at <time>."
    wanted.then(|| ("x-codex-promo-message", error.message.trim_end_matches('.').to_owned()))
}

/// The body of an error reply: one JSON object.
pub fn body(format: WireFormat, error: &ErrorReply<'_>) -> Vec<u8> {
    bytes(&value(format, error))
}

/// The bytes that end a stream with an error: complete events, to be sent after a whole event.
pub fn stream_event(format: WireFormat, error: &ErrorReply<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    match format {
        WireFormat::Native => sse::write(&mut out, Some("error"), &body(format, error)),
        WireFormat::Chat | WireFormat::AltCli => sse::write(&mut out, None, &body(format, error)),
        WireFormat::Responses => {
            let sequence = error.extra("sequence_number").and_then(Value::as_u64).unwrap_or(0);
            sse::write(&mut out, Some("error"), &bytes(&responses_event(error, sequence)));
            sse::write(
                &mut out,
                Some("response.failed"),
                &bytes(&response_failed(error, sequence + 1)),
            );
        }
    }
    out
}

/// What ends a stream that has not begun, in place of an error reply with this status and body.
/// `array`: the client reads one JSON array.
pub fn in_stream(format: WireFormat, array: bool, status: u16, body: &[u8]) -> Vec<u8> {
    if array {
        return [b"[", body, b"]"].concat();
    }
    let error = read(format, status, body);
    let kind = kind_for(format, error.kind.as_deref(), status);
    let (message, code) = (error.message.as_str(), error.code.as_deref());
    stream_event(format, &ErrorReply { status, kind, message, code, extra: &[] })
}

/// Whether an error body has the shape that clients of the format read.
pub fn has_shape(format: WireFormat, body: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return false };
    // alt-cli streams without SSE are arrays, and so are their errors.
    let value = match (format, value.get(0)) {
        (WireFormat::AltCli, Some(first)) => first,
        _ => &value,
    };
    let Some(error) = value.get("error").filter(|error| error.is_object()) else { return false };
    match format {
        WireFormat::Native => value.get("type").is_some_and(|kind| kind == "error"),
        WireFormat::AltCli => error.get("code").is_some_and(Value::is_number),
        WireFormat::Chat | WireFormat::Responses => true,
    }
}

/// The native format's error kinds.
const NATIVE_KINDS: [&str; 10] = [
    "invalid_request_error",
    "authentication_error",
    "billing_error",
    "permission_error",
    "not_found_error",
    "request_too_large",
    "rate_limit_error",
    "timeout_error",
    "api_error",
    "overloaded_error",
];

/// The error kind for a status, in the native format's terms.
pub const fn kind_of_status(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 | 504 => "timeout_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

/// The error kind for a client of this format: the provider's own `kind` if the format has such
/// kinds, else that of the status. alt-cli has names in capitals in their place, others the number.
pub fn kind_for(client: WireFormat, kind: Option<&str>, status: u16) -> &str {
    let fits = |kind: &&str| match client {
        WireFormat::Native => NATIVE_KINDS.contains(kind),
        _ => kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
    };
    kind.filter(fits).unwrap_or_else(|| kind_of_status(status))
}

/// The same error as a JSON value, for a reply that is built elsewhere.
pub fn value(format: WireFormat, error: &ErrorReply<'_>) -> Value {
    match format {
        WireFormat::Native => native(error),
        WireFormat::Chat => json!({ "error": chat_object(error) }),
        WireFormat::Responses => json!({ "error": responses_object(error) }),
        WireFormat::AltCli => alt_cli(error),
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn native(error: &ErrorReply<'_>) -> Value {
    let mut object = Map::new();
    let kind = if error.kind == SPENT { "rate_limit_error" } else { error.kind };
    object.insert("type".to_owned(), kind.into());
    object.insert("message".to_owned(), error.message.into());
    if let Some(code) = error.code {
        object.insert("code".to_owned(), code.into());
    }
    add_extras(&mut object, error);
    let mut whole = json!({ "type": "error", "error": object });
    if let Some(id) = error.extra("request_id") {
        whole["request_id"] = id.clone();
    }
    whole
}

fn chat_object(error: &ErrorReply<'_>) -> Value {
    Value::Object(chat_members(error))
}

fn responses_object(error: &ErrorReply<'_>) -> Value {
    let mut object = chat_members(error);
    if error.kind == SPENT {
        object.insert("type".to_owned(), "usage_limit_reached".into());
        if let Some(at) = error.extra("resets_at") {
            object.insert("resets_at".to_owned(), at.clone());
        }
    }
    Value::Object(object)
}

fn chat_members(error: &ErrorReply<'_>) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("message".to_owned(), error.message.into());
    object.insert("type".to_owned(), chat_kind(error.kind).into());
    object.insert("param".to_owned(), error.extra("param").cloned().unwrap_or(Value::Null));
    let code = if error.kind == SPENT { Some(SPENT) } else { error.code };
    object.insert("code".to_owned(), code.map_or(Value::Null, Value::from));
    add_extras(&mut object, error);
    object
}

/// The kinds that have another name in the chat-compatible and responses formats.
fn chat_kind(kind: &str) -> &str {
    match kind {
        "not_found_error" | "request_too_large" => "invalid_request_error",
        "api_error" | "overloaded_error" | "timeout_error" => "server_error",
        other => other,
    }
}

fn responses_event(error: &ErrorReply<'_>, sequence: u64) -> Value {
    let object = chat_object(error);
    json!({
        "type": "error",
        "code": object["code"].clone(),
        "message": object["message"].clone(),
        "param": object["param"].clone(),
        "sequence_number": sequence,
        "error": object,
    })
}

/// A complete response object, as the SDKs require in this event.
fn response_failed(error: &ErrorReply<'_>, sequence: u64) -> Value {
    let code = error.code.unwrap_or(match error.kind {
        "rate_limit_error" => "rate_limit_exceeded",
        "invalid_request_error" => "invalid_prompt",
        _ => "server_error",
    });
    let or = |name: &str, default: Value| error.extra(name).cloned().unwrap_or(default);
    json!({
        "type": "response.failed",
        "sequence_number": sequence,
        "response": {
            "id": or("response_id", "resp_failed".into()),
            "object": "response",
            "created_at": or("created_at", 0.into()),
            "status": "failed",
            "error": { "code": code, "message": error.message },
            "incomplete_details": null,
            "instructions": null,
            "metadata": {},
            "model": or("model", "".into()),
            "output": [],
            "parallel_tool_calls": true,
            "temperature": null,
            "tool_choice": "auto",
            "tools": [],
            "top_p": null,
            "usage": null,
        },
    })
}

fn alt_cli(error: &ErrorReply<'_>) -> Value {
    let mut object = Map::new();
    object.insert("code".to_owned(), error.status.into());
    let message = if error.kind == SPENT {
        format!("{} Left of this limit: 0.", error.message)
    } else {
        error.message.into()
    };
    object.insert("message".to_owned(), message.into());
    object.insert("status".to_owned(), rpc_status(error.status).into());
    add_extras(&mut object, error);
    object.insert("details".to_owned(), rpc_details(error));
    json!({ "error": object })
}

/// The finer reason has no separate member, as `code` is a number here: it goes where the SDKs look
/// for reasons.
fn rpc_details(error: &ErrorReply<'_>) -> Value {
    let spent = error.kind == SPENT;
    let mut metadata = Map::new();
    metadata.insert("type".to_owned(), if spent { "rate_limit_error" } else { error.kind }.into());
    for (key, value) in error.plain_extras() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        metadata.insert((*key).to_owned(), text.into());
    }
    if let Some(field) = error.extra("param").and_then(Value::as_str) {
        metadata.insert("field".to_owned(), field.into());
    }
    let mut details = vec![json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": error.code.unwrap_or(error.kind).to_ascii_uppercase(),
        "domain": "tollgate",
        "metadata": metadata,
    })];
    if spent {
        let limit = error.extra("limit_type").and_then(Value::as_str).unwrap_or("money");
        // "PerDay" whatever the limit's window: clients know no longer one, and stop at it.
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaMetric": format!("tollgate/{limit}"), "quotaId": format!("{limit}-SpendPerDay")}],
        }));
    }
    if let Some(seconds) = error.extra("retry_delay_s") {
        details.push(json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s")}));
    }
    Value::Array(details)
}

/// The canonical RPC status name that goes with an HTTP status.
const fn rpc_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        499 => "CANCELLED",
        501 => "UNIMPLEMENTED",
        502 | 503 | 529 => "UNAVAILABLE",
        408 | 504 => "DEADLINE_EXCEEDED",
        400..=498 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    }
}

fn add_extras(object: &mut Map<String, Value>, error: &ErrorReply<'_>) {
    for (key, value) in error.plain_extras() {
        if !object.contains_key(*key) {
            object.insert((*key).to_owned(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests;
