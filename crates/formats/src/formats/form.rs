//! Reads a body of `multipart/form-data` (RFC 7578) where it lies: the texts of its fields, and how
//! large its files are. Files are neither copied nor joined.
//!
//! The fields are given as a JSON object, so that what reads a JSON body reads a form too: the
//! model, the features, and the texts that are searched for sensitive words. A field that occurs
//! several times becomes a list.

use std::ops::Range;

use bytes::Bytes;
use memchr::memmem;
use serde_json::{Map, Value};

use super::bad_request::BadRequest;
use super::edit;

/// A form that was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Its fields, as a JSON object.
    pub fields: Map<String, Value>,
    /// Where the model's name is.
    pub model: Option<Range<usize>>,
    /// Bytes of all files.
    pub file_bytes: u64,
    /// The first bytes of the first file.
    pub file_head: Vec<u8>,
}

/// The longest head of a part, in bytes.
const MAX_HEAD: usize = 8 * 1024;
/// The longest text of a field, in bytes.
const MAX_TEXT: usize = 1024 * 1024;
/// The most parts of a form.
const MAX_PARTS: usize = 256;
/// Bytes of a file that are looked at.
const FILE_HEAD: usize = 64;

/// The boundary that a content type names; `None` if it is not that of a form, or names none.
pub fn boundary(content_type: &str) -> Option<String> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = parameter(parameters, "boundary")?;
    // RFC 2046, section 5.1.1.
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "'()+_,-./:=? ".contains(c);
    ((1..=70).contains(&boundary.len()) && boundary.chars().all(is_valid)).then_some(boundary)
}

/// The content type of a form with this boundary: written anew, so that the provider reads no other
/// boundary out of the client's than [`boundary`] did.
pub fn content_type(boundary: &str) -> String {
    format!("multipart/form-data; boundary=\"{boundary}\"")
}

/// Reads a form, given as its chunks.
///
/// # Errors
/// When it is not a form with this boundary, a part has no name, or the model is given twice or as
/// a file.
pub fn read(chunks: &[Bytes], boundary: &str) -> Result<Form, BadRequest> {
    let delimiter = format!("\r\n--{boundary}");
    let starts = delimiters(chunks, delimiter.as_bytes());
    let mut form = Form::default();
    let mut walk = edit::Walk::new(chunks);
    let mut is_closed = false;
    for (at, start) in starts.iter().map(|delimiter| delimiter.end).enumerate() {
        let head = edit::slices(chunks, start..start + MAX_HEAD);
        let head: Vec<u8> = head.flatten().copied().collect();
        if head.starts_with(b"--") {
            is_closed = true;
            break;
        }
        let Some(next) = starts.get(at + 1) else { break };
        if at >= MAX_PARTS {
            return Err(BadRequest::whole("the form has too many parts"));
        }
        let length = memmem::find(&head, b"\r\n\r\n").ok_or_else(damaged)?;
        let content = start + length + 4..next.start;
        if content.start > content.end {
            return Err(damaged());
        }
        let part = PartHead::read(&head[..length])?;
        form.add(part, content, &mut walk)?;
    }
    if is_closed { Ok(form) } else { Err(damaged()) }
}

fn damaged() -> BadRequest {
    BadRequest::whole("the form is damaged, or ends too early")
}

/// Finds the delimiters, also those that are split over chunks.
fn delimiters(chunks: &[Bytes], delimiter: &[u8]) -> Vec<Range<usize>> {
    let finder = memmem::Finder::new(delimiter);
    let most = delimiter.len() - 1;
    // The body's start is the start of a line.
    let (mut ends, mut at, mut tail) = (Vec::new(), 0, b"\r\n".to_vec());
    for chunk in chunks {
        let kept = tail.len();
        tail.extend_from_slice(&chunk[..chunk.len().min(most)]);
        let within = finder.find_iter(&tail).map(|start| start + delimiter.len());
        let split = within.filter(|end| *end > kept && *end < kept + delimiter.len());
        ends.extend(split.map(|end| at + end - kept));
        ends.extend(finder.find_iter(chunk).map(|start| at + start + delimiter.len()));
        at += chunk.len();
        let joined = if chunk.len() > most { &chunk[..] } else { &tail[..] };
        tail = joined[joined.len().saturating_sub(most)..].to_vec();
    }
    ends.into_iter().map(|end| end.saturating_sub(delimiter.len())..end).collect()
}

/// What a part's head says.
#[derive(Debug, PartialEq, Eq)]
struct PartHead {
    name: String,
    is_file: bool,
}

impl PartHead {
    fn read(head: &[u8]) -> Result<Self, BadRequest> {
        let nameless = || BadRequest::whole("a part of the form has no name");
        let head = std::str::from_utf8(head).map_err(|_| damaged())?;
        let (padding, head) = head.split_once("\r\n").ok_or_else(nameless)?;
        if !padding.trim_matches([' ', '\t']).is_empty() {
            return Err(damaged());
        }
        let lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
        let mut disposition =
            lines.filter(|(name, _)| name.trim().eq_ignore_ascii_case("content-disposition"));
        let (_, value) = disposition.next().ok_or_else(nameless)?;
        let (_, parameters) = value.split_once(';').ok_or_else(nameless)?;
        let name = parameter(parameters, "name").filter(|name| !name.is_empty());
        let is_file = ["filename", "filename*"].iter().any(|n| parameter(parameters, n).is_some());
        Ok(Self { name: name.ok_or_else(nameless)?, is_file })
    }
}

/// A parameter of a header, without its quotes.
fn parameter(parameters: &str, wanted: &str) -> Option<String> {
    let mut rest = parameters;
    loop {
        let (name, value) = rest.split_once('=')?;
        let name = name.trim_matches([' ', '\t', ';']);
        let (value, after) = match value.trim_start().strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let (value, after) = value.split_once(';').unwrap_or((value, ""));
                (value.trim().to_owned(), after)
            }
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        rest = after;
    }
}

/// The text up to the closing quote, and what follows.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()? {
                // Browsers send a file's path with its backslashes.
                (_, c @ ('"' | '\\')) => value.push(c),
                (_, c) => value.extend(['\\', c]),
            },
            c => value.push(c),
        }
    }
    None
}

impl Form {
    fn add(
        &mut self,
        part: PartHead,
        content: Range<usize>,
        walk: &mut edit::Walk<'_>,
    ) -> Result<(), BadRequest> {
        let is_model = part.name == "model";
        if part.is_file {
            if is_model {
                return Err(BadRequest::field("model", "a text is expected, not a file"));
            }
            if self.file_bytes == 0 {
                let head = content.start..content.end.min(content.start + FILE_HEAD);
                self.file_head = walk.slices(head).flatten().copied().collect();
            }
            self.file_bytes += content.len() as u64;
            return Ok(());
        }
        if content.len() > MAX_TEXT {
            return Err(BadRequest::field(&part.name, "the text is too long"));
        }
        let text: Vec<u8> = walk.slices(content.clone()).flatten().copied().collect();
        let Ok(text) = String::from_utf8(text) else {
            return Err(BadRequest::field(&part.name, "the text is not UTF-8"));
        };
        if is_model && self.model.replace(content).is_some() {
            return Err(BadRequest::field("model", "this field occurs twice"));
        }
        let value = value(&part.name, text);
        match self.fields.get_mut(&part.name) {
            None => drop(self.fields.insert(part.name, value)),
            Some(Value::Array(list)) => list.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
        Ok(())
    }
}

/// A field's value: numbers and booleans as JSON has them.
fn value(name: &str, text: String) -> Value {
    match name {
        "n" => text.trim().parse::<u64>().map_or(Value::String(text), Value::from),
        "stream" => text.trim().parse::<bool>().map_or(Value::String(text), Value::from),
        _ => Value::String(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm-1\r\n--b\r\n\
        content-disposition: form-data; name=\"file\"; filename=\"a\\\"b.wav\"\r\n\
        Content-Type: audio/wav\r\n\r\nRIFF\r\n--bRIFF\r\n--b\r\n\
        Content-Disposition: form-data; name=prompt\r\n\r\nhello\r\n--b--\r\n";

    fn cut(body: &str, size: usize) -> Vec<Bytes> {
        body.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect()
    }

    #[test]
    fn a_form_is_read_however_it_is_cut() {
        // `--bRIFF` in the file looks like a delimiter, and is damaged.
        assert!(read(&cut(BODY, 7), "b").is_err());
        let body = BODY.replace("--bRIFF", "-bRIFF");
        for size in 1..=body.len() {
            let form = read(&cut(&body, size), "b").unwrap_or_else(|e| panic!("{size}: {e:?}"));
            assert_eq!(
                Value::from(form.fields),
                serde_json::json!({"model": "m-1", "prompt": "hello"})
            );
            let model = form.model.unwrap();
            assert_eq!(&body[model], "m-1", "{size}");
            assert_eq!(form.file_bytes, "RIFF\r\n-bRIFF".len() as u64);
            assert_eq!(form.file_head, b"RIFF\r\n-bRIFF");
        }
    }

    #[test]
    fn what_is_not_a_form_is_refused() {
        let part = |head: &str| format!("--b\r\n{head}\r\n\r\nx\r\n--b--\r\n");
        let named = |name: &str| part(&format!("Content-Disposition: form-data; name=\"{name}\""));
        for (body, message) in [
            (String::new(), "damaged"),
            ("{}".to_owned(), "damaged"),
            (named("model").replace("--b--", ""), "damaged"),
            (part("Content-Disposition: form-data"), "no name"),
            (part("Content-Disposition: form-data; name=\"\""), "no name"),
            (part("Content-Type: text/plain"), "no name"),
            (part("Content-Disposition: form-data; name=\"model\"; filename=\"m\""), "not a file"),
            (named("model").replace("--b--\r\n", &named("model")), "occurs twice"),
        ] {
            let refused = read(&cut(&body, 5), "b").expect_err(&body);
            assert!(refused.message.contains(message), "{body}: {}", refused.message);
        }
        let list = named("a").replace("--b--\r\n", &named("a"));
        assert_eq!(read(&cut(&list, 9), "b").unwrap().fields["a"], serde_json::json!(["x", "x"]));
    }

    #[test]
    fn a_boundary_is_read_from_the_type() {
        for (text, expected) in [
            ("multipart/form-data; boundary=abc", Some("abc")),
            ("Multipart/Form-Data; charset=utf-8; boundary=\"a b\"", Some("a b")),
            ("multipart/form-data", None),
            ("multipart/form-data; boundary=\"a;b\"", None),
            ("multipart/form-data; boundary=a; boundary=b", Some("a")),
            ("multipart/mixed; boundary=abc", None),
            ("application/json", None),
        ] {
            assert_eq!(boundary(text).as_deref(), expected, "{text}");
        }
    }
}
