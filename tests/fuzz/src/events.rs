//! Streams: splitting them, reading their usage, converting them. The result must not depend on
//! where the bytes are cut.

use bytes::Bytes;
use serde::de::IgnoredAny;

use crate::domain::format::WireFormat;
use crate::domain::usage::Usage;
use crate::formats::convert::{StreamConverter, StreamProblem};
use crate::formats::error::{ErrorReply, UpstreamError};
use crate::formats::sse::{self, Assembler};
use crate::formats::usage::{HideUsageChunk, UsageReader};
use crate::input::Input;

/// An event above this is too large for the assembler under test.
const SMALL: usize = 4096;

type Events = Result<Vec<(String, Vec<u8>)>, ()>;

fn split(pieces: &[&[u8]], max: usize) -> Events {
    let mut assembler = Assembler::new(max);
    let mut all = Vec::new();
    for piece in pieces {
        assembler.feed(piece, |event| all.push((event.name.to_owned(), event.data.to_vec()))).map_err(|_| ())?;
    }
    assembler.finish(|event| all.push((event.name.to_owned(), event.data.to_vec())));
    Ok(all)
}

/// Splitting, and writing the result.
pub fn split_and_write(input: &Input<'_>) {
    let events = split(&[input.body], SMALL);
    assert_eq!(split(&input.pieces(), SMALL), events, "in pieces and whole");
    let Ok(events) = events else { return };
    let mut written = Vec::new();
    for (name, data) in &events {
        sse::write(&mut written, Some(name.as_str()).filter(|name| !name.is_empty()), data);
    }
    // Line ends within the data are newlines once it has been written.
    let plain = |data: &[u8]| String::from_utf8_lossy(data).replace("\r\n", "\n").replace('\r', "\n").into_bytes();
    let again = split(&[&written], usize::MAX).unwrap_or_default();
    assert_eq!(again.len(), events.len());
    for (given, got) in events.iter().zip(&again) {
        assert_eq!((&given.0, plain(&given.1)), (&got.0, plain(&got.1)));
    }
}

#[derive(Debug, PartialEq)]
struct Reading {
    usage: Option<Usage>,
    content: bool,
    end: bool,
    error: Option<UpstreamError>,
    output: usize,
}

fn read(input: &Input<'_>, pieces: &[&[u8]]) -> Reading {
    let mut reader = UsageReader::new(input.from, !input.flag(0));
    for piece in pieces {
        reader.feed(piece);
    }
    reader.finish();
    Reading {
        usage: reader.usage(),
        content: reader.seen_content(),
        end: reader.seen_end(),
        error: reader.seen_error().cloned(),
        output: reader.output_chars(),
    }
}

fn hidden(pieces: &[&[u8]]) -> Vec<u8> {
    let mut hide = HideUsageChunk::new();
    let mut out = Vec::new();
    for piece in pieces {
        hide.feed(&Bytes::copy_from_slice(piece), &mut out);
    }
    out.extend(hide.finish());
    out.concat()
}

/// Reading a reply's usage. Switch 0: no stream was requested.
pub fn usage(input: &Input<'_>) {
    let whole = read(input, &[input.body]);
    assert_eq!(read(input, &input.pieces()), whole, "in pieces and whole");
    if input.from == WireFormat::Chat {
        let out = hidden(&[input.body]);
        assert!(out.len() <= input.body.len());
        // A comment before the chunk passes with it, or separately if it came before.
        let events = |bytes: &[u8]| split(&[bytes], usize::MAX);
        assert!(events(&hidden(&input.pieces())) == events(&out), "the hidden chunk, in pieces and whole");
    }
}

fn converted(input: &Input<'_>, pieces: &[&[u8]]) -> (Vec<u8>, Result<(), StreamProblem>) {
    let mut converter = StreamConverter::new(input.from, input.to, input.context());
    let mut out = Vec::new();
    let mut result = Ok(());
    for piece in pieces {
        result = result.and_then(|()| converter.feed(piece, &mut out));
    }
    result = result.and_then(|()| converter.finish(&mut out));
    assert_eq!(converter.is_complete(), result.is_ok());
    if let Err(problem) = &result {
        let message = problem.to_string();
        let error = ErrorReply { status: 502, kind: "api_error", message: &message, code: None, extra: &[] };
        converter.fail(&error, &mut out);
    }
    (out, result)
}

/// Converting a stream: well-formed to its end, and complete if and only if the provider's was.
///
/// Switches: 0 to 3 the context.
pub fn convert(input: &Input<'_>) {
    let (out, result) = converted(input, &[input.body]);
    let (in_pieces, same) = converted(input, &input.pieces());
    assert_eq!(same, result, "in pieces and whole");
    assert!(in_pieces == out, "in pieces:\n{}\nwhole:\n{}", text(&in_pieces), text(&out));
    if input.to == WireFormat::AltCli && input.flag(2) {
        let list = serde_json::from_slice::<Vec<IgnoredAny>>(&out);
        assert!(list.is_ok(), "no JSON array: {:?}\n{}", list.err(), text(&out));
        return;
    }
    for (_, data) in split(&[&out], usize::MAX).unwrap_or_default() {
        let json = serde_json::from_slice::<IgnoredAny>(&data);
        assert!(json.is_ok() || data == b"[DONE]", "no JSON: {:?}\n{}", json.err(), text(&data));
    }
    must_end_alike(input, &out, result.is_ok());
}

/// The client's format's own reader must find the stream complete exactly if the provider's was.
fn must_end_alike(input: &Input<'_>, out: &[u8], complete: bool) {
    let mut context = input.context();
    (context.wrapped, context.json_array) = (false, false);
    let mut reader = StreamConverter::new(input.to, input.to, context);
    let mut again = Vec::new();
    let result = reader.feed(out, &mut again).and_then(|()| reader.finish(&mut again));
    // A chunk that is only rewrapped is the provider's own text.
    let passed = input.from == input.to && input.flag(1);
    assert!(result.is_ok() == complete || passed, "complete: {complete}, read: {result:?}\n{}", text(out));
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
