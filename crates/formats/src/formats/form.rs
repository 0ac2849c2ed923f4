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
    /// The first bytes of the file that is named so.
    pub file_head: Vec<u8>,
    /// Where that file is.
    pub file: Range<usize>,
    /// Bytes of all texts.
    pub text_bytes: usize,
}

/// The longest head of a part, in bytes.
const MAX_HEAD: usize = 8 * 1024;
/// The most text of all fields together, in bytes.
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
    let is_whole = boundary.trim() == boundary && (1..=70).contains(&boundary.len());
    (is_whole && boundary.chars().all(is_valid)).then_some(boundary)
}

/// The content type of a form with this boundary: written anew, so that the provider reads no other
/// boundary out of the client's than [`boundary`] did.
pub fn content_type(boundary: &str) -> String {
    format!("multipart/form-data; boundary=\"{boundary}\"")
}

/// Reads a form, given as its chunks. What another reader could take for another form is refused:
/// the provider must find the model that was checked here.
///
/// # Errors
/// When it is not a form with this boundary, a part has no name, a head or a line's end is
/// ambiguous, there are too many parts or texts, or the model is given twice or as a file.
pub fn read(chunks: &[Bytes], boundary: &str) -> Result<Form, BadRequest> {
    let starts = delimiters(chunks, &format!("--{boundary}"))?;
    let mut form = Form::default();
    let mut walk = edit::Walk::new(chunks);
    for (at, start) in starts.iter().map(|delimiter| delimiter.end).enumerate() {
        let head = edit::slices(chunks, start..start + MAX_HEAD);
        let head: Vec<u8> = head.flatten().copied().collect();
        if head.starts_with(b"--") {
            return Ok(form);
        }
        let Some(next) = starts.get(at + 1) else { break };
        let length = memmem::find(&head, b"\r\n\r\n").ok_or_else(damaged)?;
        let content = start + length + 4..next.start;
        if content.start > content.end {
            return Err(damaged());
        }
        let part = PartHead::read(&head[..length])?;
        form.add(part, content, &mut walk)?;
    }
    Err(damaged())
}

fn damaged() -> BadRequest {
    BadRequest::whole("the form is damaged, or ends too early")
}

/// Finds the delimiters, with the line's end before each, also those that are split over chunks.
fn delimiters(chunks: &[Bytes], dashed: &str) -> Result<Vec<Range<usize>>, BadRequest> {
    let finder = memmem::Finder::new(dashed);
    let most = dashed.len() - 1;
    let (mut found, mut at, mut tail) = (Vec::new(), 0, Vec::new());
    let mut note = |end: usize| {
        let start = end - dashed.len();
        let before = edit::slices(chunks, start.saturating_sub(2)..start);
        match *before.flatten().copied().collect::<Vec<_>>() {
            [] => found.push(start..end),
            [b'\r', b'\n'] => found.push(start - 2..end),
            // Some readers take these for the end of a line too.
            [.., b'\n' | b'\r'] => return Err(damaged()),
            _ => {}
        }
        if found.len() > MAX_PARTS {
            return Err(BadRequest::whole("the form has too many parts"));
        }
        Ok(())
    };
    for chunk in chunks {
        let kept = tail.len();
        tail.extend_from_slice(&chunk[..chunk.len().min(most)]);
        let within = finder.find_iter(&tail).map(|start| start + dashed.len());
        for end in within.filter(|end| *end > kept && *end < kept + dashed.len()) {
            note(at + end - kept)?;
        }
        for start in finder.find_iter(chunk) {
            note(at + start + dashed.len())?;
        }
        at += chunk.len();
        let joined = if chunk.len() > most { &chunk[..] } else { &tail[..] };
        tail = joined[joined.len().saturating_sub(most)..].to_vec();
    }
    Ok(found)
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
        let mut lines = head.split("\r\n");
        // Up to the end of the delimiter's own line only spaces may stand.
        let padding = lines.next().unwrap_or_default();
        if !padding.trim_matches([' ', '\t']).is_empty() {
            return Err(damaged());
        }
        let mut disposition = None;
        for line in lines {
            let is_folded = line.starts_with([' ', '\t']) || line.contains(['\r', '\n']);
            let (name, value) = line.split_once(':').filter(|_| !is_folded).ok_or_else(damaged)?;
            if name.trim().eq_ignore_ascii_case("content-disposition")
                && disposition.replace(value).is_some()
            {
                return Err(BadRequest::whole("a part of the form has two names"));
            }
        }
        let (_, parameters) =
            disposition.and_then(|value| value.split_once(';')).ok_or_else(nameless)?;
        let parameters = all_parameters(parameters).ok_or_else(nameless)?;
        let mut names = parameters.iter().map(|(name, _)| name.to_ascii_lowercase());
        let known = |name: &String| matches!(&**name, "name" | "filename" | "filename*");
        if !names.clone().all(|name| known(&name)) || has_twice(names.clone()) {
            return Err(BadRequest::whole("a part of the form has several names or unknown ones"));
        }
        let is_file = names.any(|name| name.starts_with("filename"));
        let named = parameters.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("name"));
        let name = named.map(|(_, value)| value).filter(|name| !name.is_empty());
        Ok(Self { name: name.ok_or_else(nameless)?, is_file })
    }
}

fn has_twice(names: impl Iterator<Item = String>) -> bool {
    let mut names: Vec<_> = names.collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    names.len() < all
}

/// A parameter of a header, without its quotes.
fn parameter(parameters: &str, wanted: &str) -> Option<String> {
    let all = all_parameters(parameters)?;
    all.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
}

/// The parameters of a header, without their quotes; `None` if one is malformed.
fn all_parameters(parameters: &str) -> Option<Vec<(&str, String)>> {
    let (mut all, mut rest) = (Vec::new(), parameters);
    while !rest.trim_matches([' ', '\t', ';']).is_empty() {
        let (name, value) = rest.split_once('=')?;
        let (value, after) = match value.trim_start().strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let (value, after) = value.split_once(';').unwrap_or((value, ""));
                (value.trim().to_owned(), after)
            }
        };
        all.push((name.trim_matches([' ', '\t', ';']), value));
        rest = after;
    }
    Some(all)
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
            if part.name == "file" && self.file_head.is_empty() {
                let head = content.start..content.end.min(content.start + FILE_HEAD);
                self.file_head = walk.slices(head).flatten().copied().collect();
                self.file = content.clone();
            }
            self.file_bytes += content.len() as u64;
            return Ok(());
        }
        self.text_bytes += content.len();
        if self.text_bytes > MAX_TEXT {
            return Err(BadRequest::field(&part.name, "the form's texts are too long"));
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
    fn what_another_reader_could_take_for_another_form_is_refused() {
        let model = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\ncheap\r\n";
        let named = "Content-Disposition: form-data; name=\"prompt\"";
        let dear = "Content-Disposition: form-data; name=\"model\"";
        for part in [
            format!("{named}\r\n{dear}\r\n\r\ndear"),
            format!("{named}; name=\"model\"\r\n\r\ndear"),
            format!("{named}; name*=utf-8''model\r\n\r\ndear"),
            format!("X-A: b\r\n {named}\r\n\r\ndear"),
            format!("X-A: b\n{dear}\r\n{named}\r\n\r\ndear"),
            format!("{named}\r\n\r\nx\n--b\r\n{dear}\r\n\r\ndear"),
            format!("{named}\r\n\r\nx\r--b\r\n{dear}\r\n\r\ndear"),
        ] {
            for body in [
                format!("{model}--b\r\n{part}\r\n--b--\r\n"),
                format!("--b\r\n{part}\r\n{model}--b--\r\n"),
            ] {
                assert!(read(&cut(&body, 7), "b").is_err(), "{body}");
            }
        }
        let many = "\r\n--b".repeat(1_000_000);
        assert!(read(&cut(&many, 4096), "b").unwrap_err().message.contains("too many parts"));
        let long = "x".repeat(MAX_TEXT);
        let texts = format!("--b\r\n{named}\r\n\r\n{long}\r\n--b\r\n{named}\r\n\r\nx\r\n--b--");
        assert!(read(&cut(&texts, 4096), "b").unwrap_err().message.contains("too long"));
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
            ("multipart/form-data; boundary=\"b \"", None),
            ("multipart/form-data; boundary=\"a;b\"", None),
            ("multipart/form-data; boundary=a; boundary=b", Some("a")),
            ("multipart/mixed; boundary=abc", None),
            ("application/json", None),
        ] {
            assert_eq!(boundary(text).as_deref(), expected, "{text}");
        }
    }
}
