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
    json_read::read(body).map_err(|error| problem(body, &error))
}

/// What is wrong with an element of a list, and where in the element.
pub fn unread(unread: &Unread<'_>) -> Unsupported {
    problem(unread.json.as_bytes(), &unread.error)
}

/// The refusal of an element of a list, whose path is `field`.
pub fn element(field: &str, unread: &Unread<'_>) -> Unsupported {
    let Unsupported { field: inner, message } = self::unread(unread);
    let field = if inner == "body" { field.to_owned() } else { format!("{field}.{inner}") };
    Unsupported { field, message }
}

/// The texts of the list at `field`.
///
/// # Errors
/// An element that is not text.
pub fn texts<'a>(
    list: Option<List<'a, Str<'a>>>,
    field: &str,
) -> Result<Vec<Text<'a>>, Unsupported> {
    let texts = list.unwrap_or_default().collect(|text| Some(text.into_text()));
    texts.map_err(|unread| element(field, &unread))
}

/// What is wrong with `body`, and where: without the reader's own words, and without the value.
pub fn problem(body: &[u8], error: &serde_json::Error) -> Unsupported {
    let full = error.to_string();
    // A value before it may contain the same words.
    let message = full.rsplit_once(" at line ").map_or(&*full, |(message, _)| message);
    let offset = offset_of(body, error);
    match missing_field(message) {
        Some(name) => Unsupported::missing(beside(&path_at(body, offset), name)),
        None => Unsupported { field: path(body, offset, true), message: in_words(message) },
    }
}

fn in_words(message: &str) -> String {
    if let Some((_, expected)) = message.rsplit_once(", expected ") {
        let kind = match expected {
            "a JSON number" | "f32" | "f64" => "a number",
            "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => "a whole number",
            "a sequence" => "an array",
            "a borrowed string" => "a string",
            known
                if ["a string", "a boolean", "an array", "a whole"]
                    .iter()
                    .any(|words| known.starts_with(words)) =>
            {
                known
            }
            // A structure's or a map's own name.
            _ => "an object",
        };
        return format!("{kind} is expected");
    }
    let words = [
        ("duplicate field", "this member occurs more than once"),
        ("recursion limit", "it nests too deep"),
        ("number out of range", "the number is out of range"),
    ];
    let found = words.iter().find(|(theirs, _)| message.starts_with(theirs));
    found.map_or("not valid JSON", |(_, ours)| ours).to_owned()
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

enum LocateLevel<'a> {
    Object(&'a [u8]),
    Array(usize),
}

/// The path of the value that ends at or covers byte `offset`; `body` if it is the document itself.
pub fn path_at(body: &[u8], offset: usize) -> String {
    path(body, offset, false)
}

/// As [`path_at`]. `is_outside`: of an object or a list that ends at the offset, its own path, not
/// that of its last member.
fn path(body: &[u8], offset: usize, is_outside: bool) -> String {
    let mut levels: Vec<LocateLevel<'_>> = Vec::new();
    let mut at = 0;
    let mut expects_key = false;
    while at < offset {
        match body[at] {
            b'{' => {
                levels.push(LocateLevel::Object(b""));
                expects_key = true;
            }
            b'[' => levels.push(LocateLevel::Array(0)),
            // The value that ends at the offset itself is the invalid one: it stays on the path.
            b'}' | b']' if is_outside || at + 1 < offset => {
                levels.pop();
            }
            b',' => match levels.last_mut() {
                Some(LocateLevel::Array(index)) => *index += 1,
                Some(LocateLevel::Object(_)) => expects_key = true,
                None => {}
            },
            b'"' => {
                let end = string_end(body, at);
                if expects_key && let Some(LocateLevel::Object(key)) = levels.last_mut() {
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
            LocateLevel::Object(b"") => None,
            LocateLevel::Object(key) => Some(String::from_utf8_lossy(key).into_owned()),
            LocateLevel::Array(index) => Some(index.to_string()),
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
            let ours = problem.message.ends_with(" is expected")
                || ["this field is required", "not a JSON object"].contains(&&*problem.message);
            assert!(ours, "{problem}");
        }
    }

    #[test]
    fn problems_are_told_in_our_own_words() {
        let cases = [
            (r#"{"list":[],"n":"x at line 3, expected y"}"#, "n: a number is expected"),
            (r#"{"list":[{"text":["secret"]}]}"#, "list.0.text: a string is expected"),
            (r#"{"list":{}}"#, "list: an array is expected"),
            (r#"{"list":[3]}"#, "list.0: an object is expected"),
            (r#"{"list":[],"list":[]}"#, "list: this member occurs more than once"),
            (r#"{"list":[],"n":1e999}"#, "n: the number is out of range"),
            (r#"{"list":[}"#, "list.0: not valid JSON"),
        ];
        for (body, expected) in cases {
            assert_eq!(parse::<Outer>(body.as_bytes()).unwrap_err().to_string(), expected);
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
