//! Parses an upstream's error body: JSON of any of the four formats and similar ones, text, HTML,
//! nothing.
//!
//! The kind and code stay unchanged, since classification uses them. The message is bounded;
//! control characters and anything that looks like a credential are removed. Nothing here fails: a
//! body without a message gives one that says so.

use serde_json::Value;

use crate::domain::format::WireFormat;
use crate::formats::{json_read, sse};

/// Messages are cut after so many characters.
const MAX_MESSAGE: usize = 4000;
/// A bound on kinds and codes, which become metric labels and log fields.
const MAX_WORD: usize = 100;

/// An upstream's error, in its own terms.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UpstreamError {
    /// The body's error type: `overloaded_error`, `insufficient_quota`; for alt-cli the status
    /// name, `RESOURCE_EXHAUSTED`.
    pub kind: Option<String>,
    /// The body's finer code: `context_length_exceeded`; for alt-cli the reason among the details,
    /// `API_KEY_INVALID`.
    pub code: Option<String>,
    /// The message for people: at most 4000 characters, credentials masked.
    pub message: String,
}

impl UpstreamError {
    /// The same with a message that may be shown and logged.
    pub(in crate::formats) fn cleaned(self) -> Self {
        let message = if self.message.is_empty() {
            self.kind
                .clone()
                .or_else(|| self.code.clone())
                .unwrap_or_else(|| "the upstream reported an error".to_owned())
        } else {
            clean(&self.message)
        };
        Self { message, ..self }
    }

    /// The error with the name that AWS has in a header, if the body did not have one. An address
    /// may follow the name after a colon.
    #[must_use]
    pub fn named(self, header: &str) -> Self {
        let name = header.split(':').next().unwrap_or_default();
        let name: String =
            name.chars().filter(char::is_ascii_alphanumeric).take(MAX_WORD).collect();
        Self { kind: self.kind.or_else(|| Some(name).filter(|name| !name.is_empty())), ..self }
    }

    /// True when kind or code is `word`, in any case.
    pub fn is(&self, word: &str) -> bool {
        [&self.kind, &self.code].into_iter().flatten().any(|w| w.eq_ignore_ascii_case(word))
    }
}

/// Reads an error body (bounded by the caller). `status` is the upstream's HTTP status.
///
/// The format is only a hint: an upstream's gateway, or one of its error paths, often answers in
/// another format's shape.
pub fn read(_format: WireFormat, status: u16, body: &[u8]) -> UpstreamError {
    let text = body.trim_ascii();
    if text.is_empty() {
        return bare(format!("the upstream answered {status} without a body"));
    }
    if looks_like_html(text) {
        let title = title(text).map_or_else(String::new, |t| format!(": {t}"));
        return bare(clean(&format!("the upstream answered {status} with an HTML page{title}")));
    }
    if let Some(value) = tree(text) {
        return from_value(&value).unwrap_or_else(|| bare(clean(&value.to_string())));
    }
    if text.starts_with(b"data:") || text.starts_with(b"event:") {
        let mut found = None;
        let mut assembler = sse::Assembler::new(text.len());
        let mut each = |event: sse::Event<'_>| {
            if found.is_none() {
                found = tree(event.data).and_then(|value| from_value(&value));
            }
        };
        if assembler.feed(text, &mut each).is_ok() {
            assembler.finish(&mut each);
        }
        if let Some(error) = found {
            return error;
        }
    }
    bare(clean(&String::from_utf8_lossy(text)))
}

/// JSON as a tree; `None` also if it is too large for one.
fn tree(json: &[u8]) -> Option<Value> {
    if json_read::is_too_large_for_a_tree(json) {
        return None;
    }
    serde_json::from_slice(json).ok()
}

/// The error in a JSON value; `None` if it contains nothing that looks like one.
pub(super) fn from_value(value: &Value) -> Option<UpstreamError> {
    // alt-cli streams without SSE are arrays, and so are their errors.
    if let Some(first) = value.as_array() {
        return first.iter().find_map(from_value);
    }
    let object = value.as_object()?;
    if let Some(inner) =
        object.get("response").filter(|r| r.get("error").is_some_and(|e| !e.is_null()))
    {
        return from_value(inner);
    }
    let flat = object.get("type").and_then(Value::as_str) == Some("error");
    match object.get("error") {
        Some(Value::Object(error)) => {
            let message = ["message", "msg", "detail"]
                .iter()
                .find_map(|k| error.get(*k))
                .and_then(message_text);
            // Some services nest one level deeper.
            if message.is_none() && error.get("error").is_some() {
                return from_value(object.get("error")?);
            }
            let kind = word(error.get("type")).or_else(|| word(error.get("status")));
            let code = if error.get("status").is_some_and(Value::is_string) {
                reason(error.get("details")).or_else(|| {
                    error.get("code").filter(|c| c.is_string()).and_then(|c| word(Some(c)))
                })
            } else {
                word(error.get("code"))
            };
            let message = message
                .or_else(|| error.get("metadata").and_then(|m| m.get("raw")).and_then(message_text))
                .or_else(|| kind.clone().or_else(|| code.clone()))
                .unwrap_or_else(|| value.to_string());
            Some(UpstreamError { kind, code, message: clean(&message) })
        }
        Some(Value::String(error)) => {
            let reported = ["error_description", "message", "detail"]
                .iter()
                .find_map(|k| object.get(*k))
                .and_then(message_text);
            // A single word is a code, with its text elsewhere; a sentence is the message.
            let is_word = !error.contains(' ') && error.len() <= MAX_WORD;
            let code = word(object.get("code")).or_else(|| is_word.then(|| error.clone()));
            Some(UpstreamError {
                kind: None,
                code,
                message: clean(&reported.unwrap_or_else(|| error.clone())),
            })
        }
        _ => {
            let message = message_of_relatives(object)?;
            let kind = if flat { None } else { word(object.get("type")) };
            Some(UpstreamError { kind, code: word(object.get("code")), message: clean(&message) })
        }
    }
}

/// True if a body is an HTML page: from a proxy or a portal, not the service's answer.
pub fn looks_like_html(body: &[u8]) -> bool {
    let start = body.trim_ascii_start();
    let start = &start[..start.len().min(15)];
    let lower = start.to_ascii_lowercase();
    [&b"<!doctype html"[..], b"<html", b"<head", b"<body"].iter().any(|tag| lower.starts_with(tag))
}

const fn bare(message: String) -> UpstreamError {
    UpstreamError { kind: None, code: None, message }
}

/// Bodies without an `error` member: `{message}`, `{detail}` (a text, or a list of `{msg}`),
/// `{errors: [{message}]}`, `{msg}`. AWS also writes `{Message}`.
fn message_of_relatives(object: &serde_json::Map<String, Value>) -> Option<String> {
    ["message", "Message", "detail", "msg", "errors", "fault", "faultstring"]
        .iter()
        .find_map(|k| object.get(*k))
        .and_then(message_text)
}

fn message_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => (!text.trim().is_empty()).then(|| text.clone()),
        Value::Array(items) => items.iter().find_map(message_text),
        Value::Object(object) => ["message", "msg", "faultstring", "detail"]
            .iter()
            .find_map(|k| object.get(*k))
            .and_then(message_text),
        _ => None,
    }
}

fn word(value: Option<&Value>) -> Option<String> {
    let text = match value? {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let text: String = text.trim().chars().filter(|c| !c.is_control()).take(MAX_WORD).collect();
    (!text.is_empty()).then_some(text)
}

/// The reason in an alt-cli error's details.
fn reason(details: Option<&Value>) -> Option<String> {
    details?.as_array()?.iter().find_map(|d| word(d.get("reason")))
}

fn title(page: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(&page[..page.len().min(4096)]).into_owned();
    let lower = text.to_ascii_lowercase();
    let from = lower.find("<title")?;
    let from = from + lower[from..].find('>')? + 1;
    let to = from + lower[from..].find('<')?;
    let title = text[from..to].trim();
    (!title.is_empty()).then(|| title.to_owned())
}

/// Bounds a message, replaces control characters by spaces and masks what looks like a credential.
fn clean(message: &str) -> String {
    let mut out = String::with_capacity(message.len().min(MAX_MESSAGE));
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '*');
    let bounded = match message.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => &message[..end],
        None => message,
    };
    let mut rest = bounded.trim();
    while let Some(first) = rest.chars().next() {
        if is_part(first) {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let (word, tail) = rest.split_at(end);
            out.push_str(if is_credential(word) { "***" } else { word });
            rest = tail;
        } else {
            out.push(if first.is_control() && first != '\n' { ' ' } else { first });
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

fn is_credential(word: &str) -> bool {
    word.len() >= 16 && ["sk-", "AIza", "ya29.", "key-"].iter().any(|start| word.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::{UpstreamError, looks_like_html, read};
    use crate::domain::format::WireFormat;

    type Row = (&'static str, Option<&'static str>, Option<&'static str>, &'static str);

    fn check(table: &[Row]) {
        for (body, kind, code, message) in table {
            let expected = UpstreamError {
                kind: kind.map(str::to_owned),
                code: code.map(str::to_owned),
                message: (*message).to_owned(),
            };
            assert_eq!(read(WireFormat::Chat, 500, body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn bodies_of_the_four_formats_tell_kind_code_and_message() {
        check(&[
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"},"request_id":"r"}"#,
                Some("overloaded_error"),
                None,
                "busy",
            ),
            (
                r#"{"error":{"message":"too long","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
                Some("invalid_request_error"),
                Some("context_length_exceeded"),
                "too long",
            ),
            (r#"{"error":{"message":"no","type":null,"code":404}}"#, None, Some("404"), "no"),
            (
                r#"{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}"#,
                Some("RESOURCE_EXHAUSTED"),
                None,
                "slow",
            ),
            (
                r#"[{"error":{"code":400,"message":"bad key","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]"#,
                Some("INVALID_ARGUMENT"),
                Some("API_KEY_INVALID"),
                "bad key",
            ),
            (
                r#"{"type":"error","code":"server_error","message":"oops","param":null,"sequence_number":3}"#,
                None,
                Some("server_error"),
                "oops",
            ),
            (
                r#"{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"wait"}}}"#,
                None,
                Some("rate_limit_exceeded"),
                "wait",
            ),
            (
                r#"{"error":"invalid_grant","error_description":"stale token"}"#,
                None,
                Some("invalid_grant"),
                "stale token",
            ),
        ]);
    }

    #[test]
    fn bodies_of_relatives_are_read_too() {
        check(&[
            (r#"{"error":"the model is not loaded"}"#, None, None, "the model is not loaded"),
            (r#"{"detail":"Not Found"}"#, None, None, "Not Found"),
            (
                r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#,
                None,
                None,
                "field required",
            ),
            (
                r#"{"success":false,"errors":[{"code":7003,"message":"no route"}]}"#,
                None,
                None,
                "no route",
            ),
            (r#"{"message":"limit","code":"E1"}"#, None, Some("E1"), "limit"),
            (
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"x\"}}\n\n",
                Some("api_error"),
                None,
                "x",
            ),
        ]);
    }

    #[test]
    fn what_is_no_json_still_gives_a_message() {
        check(&[
            ("upstream connect error", None, None, "upstream connect error"),
            ("{\"odd\":1}", None, None, "{\"odd\":1}"),
            ("", None, None, "the upstream answered 500 without a body"),
            (
                "<!DOCTYPE html><html><head><title>502 Bad Gateway</title>",
                None,
                None,
                "the upstream answered 500 with an HTML page: 502 Bad Gateway",
            ),
            ("<html>", None, None, "the upstream answered 500 with an HTML page"),
            ("{\"error\":", None, None, "{\"error\":"),
            ("{\"error\":{}}", None, None, "{\"error\":{}}"),
        ]);
    }

    #[test]
    fn messages_are_bounded_clean_and_hide_credentials() {
        let body = r#"{"error":{"message":"Incorrect key: sk-0123456789abcdef0123456789abcdef.\u0007 Ask 'AIzaSyA0000000000000000'."}}"#;
        let error = read(WireFormat::Chat, 401, body.as_bytes());
        assert_eq!(error.message, "Incorrect key: ***  Ask '***'.");
        assert_eq!(
            read(WireFormat::Chat, 500, "é".repeat(9000).as_bytes()).message.chars().count(),
            4000
        );
        assert_eq!(
            read(WireFormat::Chat, 500, b"\xff\xfe sk-short").message,
            "\u{fffd}\u{fffd} sk-short"
        );
    }

    #[test]
    fn pages_are_distinguished_from_replies() {
        for (body, html) in [
            ("  <!doctype HTML>", true),
            ("<HTML lang=x>", true),
            ("{\"a\":\"<html>\"}", false),
            ("<", false),
            ("", false),
        ] {
            assert_eq!(looks_like_html(body.as_bytes()), html, "{body}");
        }
    }
}
