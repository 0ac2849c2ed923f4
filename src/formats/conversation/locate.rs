//! Parses a body into a type, and names the field that does not fit.
//!
//! serde reports a line and a column; a client needs `messages.2.content.0.text`. The body is
//! scanned once more, and only after an error.

use serde::Deserialize;

use super::{Str, Text, Unsupported};
use crate::formats::json_read::{self, List, Unread};

/// Reads `body`.
///
/// # Errors
/// The field's path and what is wrong with it.
pub fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Unsupported> {
    // serde would read a list as an object's members in order.
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(Unsupported::new("body", "not a JSON object"));
    }
    json_read::read(body).map_err(|error| located(body, &error))
}

/// The refusal of an element of a list, whose path is `field`.
pub fn element(field: &str, unread: &Unread<'_>) -> Unsupported {
    let Unsupported { field: inner, message } = located(unread.json.as_bytes(), &unread.error);
    let field = if inner == "body" { field.to_owned() } else { format!("{field}.{inner}") };
    Unsupported { field, message }
}

/// The texts of the list at `field`.
///
/// # Errors
/// An element that is no text.
pub fn texts<'a>(
    list: Option<List<'a, Str<'a>>>,
    field: &str,
) -> Result<Vec<Text<'a>>, Unsupported> {
    let texts = list.unwrap_or_default().collect(|text| Some(text.into_text()));
    texts.map_err(|unread| element(field, &unread))
}

fn located(body: &[u8], error: &serde_json::Error) -> Unsupported {
    let full = error.to_string();
    let message = full.split(" at line ").next().unwrap_or(&full).to_owned();
    let field = path_at(body, offset_of(body, error));
    match missing_field(&message) {
        Some(name) => Unsupported {
            field: beside(&field, name),
            message: "this field is required".to_owned(),
        },
        None => Unsupported { field, message },
    }
}

fn missing_field(message: &str) -> Option<&str> {
    message.strip_prefix("missing field `")?.strip_suffix('`')
}

/// The error about a missing member is reported at its object's end, where the path is that of the
/// last member.
fn beside(last: &str, name: &str) -> String {
    match last.rsplit_once('.') {
        Some((object, _)) => format!("{object}.{name}"),
        None => name.to_owned(),
    }
}

fn offset_of(body: &[u8], error: &serde_json::Error) -> usize {
    let line_start = match error.line() {
        0 | 1 => 0,
        line => memchr::memchr_iter(b'\n', body).nth(line - 2).map_or(0, |at| at + 1),
    };
    // Columns count from one, and the error is found on the byte after the value.
    (line_start + error.column()).saturating_sub(1).min(body.len())
}

enum Level<'a> {
    Object(&'a [u8]),
    Array(usize),
}

/// The path of the value that ends at or covers byte `offset`; `body` if it is the document itself.
#[must_use]
pub fn path_at(body: &[u8], offset: usize) -> String {
    let mut levels: Vec<Level<'_>> = Vec::new();
    let mut at = 0;
    let mut expects_key = false;
    while at < offset {
        match body[at] {
            b'{' => {
                levels.push(Level::Object(b""));
                expects_key = true;
            }
            b'[' => levels.push(Level::Array(0)),
            // The value that ends at the offset itself is the invalid one: it stays on the path.
            b'}' | b']' if at + 1 < offset => {
                levels.pop();
            }
            b',' => match levels.last_mut() {
                Some(Level::Array(index)) => *index += 1,
                Some(Level::Object(_)) => expects_key = true,
                None => {}
            },
            b'"' => {
                let end = string_end(body, at);
                if expects_key && let Some(Level::Object(key)) = levels.last_mut() {
                    *key = &body[at + 1..end.min(body.len())];
                    expects_key = false;
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    let names: Vec<String> = levels
        .iter()
        .filter_map(|level| match level {
            Level::Object(b"") => None,
            Level::Object(key) => Some(String::from_utf8_lossy(key).into_owned()),
            Level::Array(index) => Some(index.to_string()),
        })
        .collect();
    if names.is_empty() { "body".to_owned() } else { names.join(".") }
}

/// Index of the quote that ends the string starting at `start`, or the body's end.
fn string_end(body: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(step) = body.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += step;
        if body[at] == b'"' {
            return at;
        }
        at += 2;
    }
    body.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Inner {
        #[expect(dead_code, reason = "only the reading is tested")]
        text: Option<String>,
    }

    #[derive(Debug, Deserialize)]
    struct Outer {
        #[expect(dead_code, reason = "only the reading is tested")]
        list: Vec<Inner>,
        #[expect(dead_code, reason = "only the reading is tested")]
        n: Option<f64>,
    }

    #[test]
    fn wrong_values_are_named() {
        let cases = [
            (r#"{"list":[{"text":"a,b"},{"text":7}]}"#, "list.1.text"),
            (r#"{"list":[{"text":"a\"{"}],"n":"x"}"#, "n"),
            ("{\"list\":\n [{\"text\":null},\n  3]}", "list.1"),
            (r#"{"n":1}"#, "list"),
            ("[]", "body"),
            ("", "body"),
        ];
        for (body, field) in cases {
            let problem = parse::<Outer>(body.as_bytes()).unwrap_err();
            assert_eq!(problem.field, field, "{body}: {problem}");
            assert!(!problem.message.contains(" line "), "{problem}");
        }
    }

    #[test]
    fn no_offset_panics() {
        let body = br#"{"a":[1,{"b":"c\""}],"d":{}}"#;
        for offset in 0..=body.len() {
            assert!(!path_at(body, offset).is_empty());
            let _whatever = path_at(&body[..offset], offset);
        }
    }
}
