//! The texts from a client to a model, in one pass over a body of any of the four formats.
//!
//! Texts are passed on with escapes resolved, so `caf\u00e9` is "café". `texts::places` defines
//! which strings are texts. Each string is a separate text: a word that is spread over two blocks
//! is in neither. Skipped: base64 data (except a document given as plain text), addresses, ids,
//! names, and the model's own encrypted notes.
//!
//! [`every_string`] does not need to know which strings are texts: a word in none of a piece's
//! strings is in none of its texts.

mod places;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;

use self::places::{BODY, TextPlace};
use super::scan::{Found, Kind, ScanError, Scanner, unescape_into};

/// Calls `each` with every text that overlaps one of `ranges` (which are in order) of a body that
/// is given as its chunks, and with its range. `max_depth` is the bound that the body was accepted
/// with.
///
/// # Errors
/// The body is not JSON, or nests deeper.
pub fn each(
    chunks: &[Bytes],
    max_depth: usize,
    ranges: &[Range<usize>],
    each: impl FnMut(&Range<usize>, &str),
) -> Result<(), ScanError> {
    // Texts are cut out of the body by their spans, which requires it to be in one piece.
    let body = match chunks {
        [one] => Cow::Borrowed(one.as_ref()),
        several => Cow::Owned(several.concat()),
    };
    let mut reader = TextReader {
        body: &body,
        from: 0,
        ranges,
        each,
        plain: Vec::new(),
        inner: Vec::new(),
        sources: Vec::new(),
    };
    let mut scanner = Scanner::new(&BODY, max_depth);
    let mut sink = |found: Found<'_, TextPlace>| reader.found(&found);
    scanner.feed(&body, &mut sink)?;
    scanner.finish(&mut sink)
}

/// Calls `each` with every string that overlaps one of `ranges`, including names of members, as if
/// it were a text. `piece` is a part of a body of valid JSON that begins at `from` and cuts no
/// string; ranges and places count from the body's start.
pub fn every_string(
    piece: &[u8],
    from: usize,
    ranges: &[Range<usize>],
    each: impl FnMut(&Range<usize>, &str),
) {
    let mut reader = TextReader {
        body: piece,
        from,
        ranges,
        each,
        plain: Vec::new(),
        inner: Vec::new(),
        sources: Vec::new(),
    };
    let mut at = 0;
    while let Some(open) = memchr::memchr(b'"', &piece[at..]).map(|skipped| at + skipped) {
        let mut escaped = false;
        at = open + 1;
        while let Some(special) =
            memchr::memchr2(b'"', b'\\', &piece[at..]).map(|skipped| at + skipped)
        {
            at = special + 1;
            if piece[special] == b'"' {
                reader.text(from + open..from + at, escaped, true);
                break;
            }
            escaped = true;
            at = (at + 1).min(piece.len());
        }
    }
}

/// Part of a source whose end has not arrived yet.
enum SourcePart {
    /// It is plain text.
    IsText,
    Data {
        span: Range<usize>,
        escaped: bool,
    },
}

struct TextReader<'b, F> {
    /// All of it, or a piece that begins at `from`.
    body: &'b [u8],
    from: usize,
    ranges: &'b [Range<usize>],
    each: F,
    /// The current text without its escapes, and the same once more for JSON within it.
    plain: Vec<u8>,
    inner: Vec<u8>,
    /// Parts of the open sources, each with its start.
    sources: Vec<(usize, SourcePart)>,
}

impl<F: FnMut(&Range<usize>, &str)> TextReader<'_, F> {
    fn found(&mut self, found: &Found<'_, TextPlace>) {
        match (found.tag, found.kind) {
            (TextPlace::Text, Kind::String) => self.text(found.span.clone(), found.escaped, false),
            (TextPlace::Json, Kind::String) => self.text(found.span.clone(), found.escaped, true),
            (TextPlace::SourceType, Kind::String) if found.text == b"text" => {
                self.sources.push((found.span.start, SourcePart::IsText));
            }
            (TextPlace::SourceData, Kind::String) => {
                let data = SourcePart::Data { span: found.span.clone(), escaped: found.escaped };
                self.sources.push((found.span.start, data));
            }
            (TextPlace::Source, Kind::Object) => self.source(found.span.start),
            _ => {}
        }
    }

    /// A source that began at `start` is complete. One within another ended before, so the rest
    /// after `start` is its own.
    fn source(&mut self, start: usize) {
        let own = self.sources.partition_point(|(at, _)| *at <= start);
        let parts = self.sources.split_off(own);
        if !parts.iter().any(|(_, part)| matches!(part, SourcePart::IsText)) {
            return;
        }
        for (_, part) in parts {
            if let SourcePart::Data { span, escaped } = part {
                self.text(span, escaped, false);
            }
        }
    }

    fn text(&mut self, span: Range<usize>, escaped: bool, json: bool) {
        let first = self.ranges.partition_point(|range| range.end <= span.start);
        if self.ranges.get(first).is_none_or(|range| range.start >= span.end) {
            return;
        }
        let raw =
            self.body.get(span.start + 1 - self.from..span.end - 1 - self.from).unwrap_or_default();
        if !escaped {
            if let Ok(text) = std::str::from_utf8(raw) {
                (self.each)(&span, text);
            }
            return;
        }
        self.plain.clear();
        unescape_into(raw, &mut self.plain);
        if let Ok(text) = std::str::from_utf8(&self.plain) {
            (self.each)(&span, text);
        }
        // JSON inside a text has a second level of escapes.
        if json && memchr::memchr(b'\\', &self.plain).is_some() {
            self.inner.clear();
            unescape_into(&self.plain, &mut self.inner);
            if let Ok(text) = std::str::from_utf8(&self.inner) {
                (self.each)(&span, text);
            }
        }
    }
}
