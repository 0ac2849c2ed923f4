//! Edits a body that is a list of chunks in place: all bytes outside the edited ranges stay the
//! same.
//!
//! Ranges are counted from the body's first byte, as the scanner reports them. Unchanged parts are
//! shared slices of their chunks, so that redirecting the model in a 200 KB prompt copies a few
//! dozen bytes.

mod cache;

use std::ops::Range;

use bytes::Bytes;

pub use self::cache::force_cache_ttl;
use super::peek::Peek;

/// The parts of the chunks that lie in `range`, in order.
pub fn slices(chunks: &[Bytes], range: Range<usize>) -> impl Iterator<Item = &[u8]> {
    let Range { start, end } = range;
    let mut from = 0;
    let placed = chunks.iter().map(move |chunk| {
        let at = from;
        from += chunk.len();
        (at, chunk)
    });
    placed.take_while(move |(at, _)| *at < end).filter_map(move |(at, chunk)| {
        let (a, b) = (start.saturating_sub(at), (end - at).min(chunk.len()));
        chunk.get(a..b).filter(|part| !part.is_empty())
    })
}

/// [`slices`] of ranges in ascending order: earlier chunks are not visited again.
pub struct Walk<'b> {
    chunks: &'b [Bytes],
    /// Where the first of them begins.
    from: usize,
}

impl<'b> Walk<'b> {
    /// From the start of a body, given as its chunks.
    pub const fn new(chunks: &'b [Bytes]) -> Self {
        Self { chunks, from: 0 }
    }

    /// The parts of the chunks that lie in `range`, which begins no earlier than the one before it.
    pub fn slices(&mut self, range: Range<usize>) -> impl Iterator<Item = &'b [u8]> + use<'b> {
        self.advance(range.start);
        slices(self.chunks, range.start - self.from..range.end - self.from)
    }

    /// The bytes of such a range, if they are in one chunk.
    #[inline]
    pub fn whole(&mut self, range: &Range<usize>) -> Option<&'b [u8]> {
        self.advance(range.start);
        self.chunks.first()?.get(range.start - self.from..range.end - self.from)
    }

    /// As [`Walk::slices`], appended as shared slices.
    fn share(&mut self, range: Range<usize>, out: &mut Vec<Bytes>) {
        self.advance(range.start);
        let mut from = self.from;
        for chunk in self.chunks {
            if from >= range.end {
                break;
            }
            let (a, b) = (range.start.max(from), range.end.min(from + chunk.len()));
            if a < b {
                out.push(chunk.slice(a - from..b - from));
            }
            from += chunk.len();
        }
    }

    /// Passes the chunks that end before `start`.
    fn advance(&mut self, start: usize) {
        while let Some((chunk, rest)) = self.chunks.split_first()
            && self.from + chunk.len() <= start
        {
            self.from += chunk.len();
            self.chunks = rest;
        }
    }
}

/// The body with `range` replaced. A range beyond the end is cut off there; an empty one makes this
/// an insertion.
pub fn replace(chunks: &[Bytes], range: Range<usize>, with: &[u8]) -> Vec<Bytes> {
    replace_all(chunks, &[(range, Bytes::copy_from_slice(with))])
}

/// The body with `text` inserted before the byte at `at`.
pub fn insert(chunks: &[Bytes], at: usize, text: &[u8]) -> Vec<Bytes> {
    replace(chunks, at..at, text)
}

/// The body with several ranges replaced. They must be in order and must not overlap: one that goes
/// back is left out.
pub fn replace_all(chunks: &[Bytes], edits: &[(Range<usize>, Bytes)]) -> Vec<Bytes> {
    let mut out = Vec::with_capacity(chunks.len() + 2 * edits.len());
    let (mut walk, mut done) = (Walk::new(chunks), 0);
    for (range, with) in edits {
        if range.start < done || range.end < range.start {
            continue;
        }
        walk.share(done..range.start, &mut out);
        if !with.is_empty() {
            out.push(with.clone());
        }
        done = range.end;
    }
    walk.share(done..usize::MAX, &mut out);
    out
}

/// Inserts a member at the start of the object whose `{` is at `object_start`. `member` is
/// `"name":value`.
pub fn insert_member(
    chunks: &[Bytes],
    object_start: usize,
    empty: bool,
    member: &str,
) -> Vec<Bytes> {
    let comma = if empty { "" } else { "," };
    insert(chunks, object_start + 1, format!("{member}{comma}").as_bytes())
}

/// The body without the member whose value is at `value`, a place that a peek found.
pub fn remove_member(chunks: &[Bytes], value: Range<usize>) -> Vec<Bytes> {
    let body = chunks.concat();
    let is_space = |byte: &u8| byte.is_ascii_whitespace();
    let quote = |before: usize| body.get(..before)?.iter().rposition(|byte| *byte == b'"');
    let Some(start) = quote(value.start).and_then(quote) else { return chunks.to_vec() };
    let space = |bytes: &[u8]| bytes.iter().take_while(|byte| is_space(byte)).count();
    let after = value.end + body.get(value.end..).map_or(0, space);
    if body.get(after) == Some(&b',') {
        return replace(chunks, start..after + 1, b"");
    }
    let before = body[..start].iter().rposition(|byte| !is_space(byte));
    let comma = before.filter(|at| body[*at] == b',');
    replace(chunks, comma.unwrap_or(start)..value.end, b"")
}

/// The body with another model; without a `model` member it gets one.
pub fn set_model(chunks: &[Bytes], peek: &Peek, model: &str) -> Vec<Bytes> {
    let value = serde_json::Value::from(model).to_string();
    match &peek.model_span {
        Some(span) => replace(chunks, span.clone(), value.as_bytes()),
        None => insert_member(
            chunks,
            peek.object_start,
            peek.object_empty,
            &format!("\"model\":{value}"),
        ),
    }
}

/// The body with `stream_options.include_usage` true, whatever its value; `None` if it is true
/// already.
pub fn ask_for_usage(chunks: &[Bytes], peek: &Peek) -> Option<Vec<Bytes>> {
    const MEMBER: &str = "\"include_usage\":true";
    let Some(options) = &peek.stream_options else {
        let member = format!("\"stream_options\":{{{MEMBER}}}");
        return Some(insert_member(chunks, peek.object_start, peek.object_empty, &member));
    };
    if options.is_null {
        return Some(replace(chunks, options.span.clone(), format!("{{{MEMBER}}}").as_bytes()));
    }
    match &options.include_usage_span {
        Some(_) if options.include_usage => None,
        Some(span) => Some(replace(chunks, span.clone(), b"true")),
        None => Some(insert_member(chunks, options.span.start, options.is_empty, MEMBER)),
    }
}

/// The native body with the question why the prompt cache did not have what led to this reply.
pub fn ask_for_diagnosis(chunks: &[Bytes], peek: &Peek, reply: &str) -> Vec<Bytes> {
    let reply = serde_json::Value::from(reply);
    let member = format!("\"diagnostics\":{{\"previous_message_id\":{reply}}}");
    insert_member(chunks, peek.object_start, peek.object_empty, &member)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{
        ask_for_usage, insert_member, remove_member, replace, replace_all, set_model, slices,
    };
    use crate::formats::peek::{PeekLimits, peek};

    fn cut(text: &str, size: usize) -> Vec<Bytes> {
        text.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect()
    }

    fn joined(chunks: &[Bytes]) -> String {
        String::from_utf8(chunks.concat()).unwrap()
    }

    #[test]
    fn ranges_are_replaced_wherever_chunks_are_cut() {
        let text = "0123456789";
        for size in 1..=10 {
            let chunks = cut(text, size);
            for start in 0..=10 {
                for end in start..=10 {
                    let expected = format!("{}AB{}", &text[..start], &text[end..]);
                    assert_eq!(
                        joined(&replace(&chunks, start..end, b"AB")),
                        expected,
                        "{size} {start}..{end}"
                    );
                    assert_eq!(
                        slices(&chunks, start..end).collect::<Vec<_>>().concat(),
                        &text.as_bytes()[start..end]
                    );
                }
            }
        }
    }

    #[test]
    fn several_edits_apply_in_order_and_overlaps_are_left_out() {
        let chunks = cut("0123456789", 4);
        let edit =
            |r: std::ops::Range<usize>, t: &'static str| (r, Bytes::from_static(t.as_bytes()));
        let out = replace_all(
            &chunks,
            &[edit(1..2, "a"), edit(1..3, "x"), edit(5..5, "b"), edit(9..99, "")],
        );
        assert_eq!(joined(&out), "0a234b5678");
    }

    #[test]
    fn untouched_bytes_are_shared_and_not_copied() {
        let chunks = cut("{\"model\":\"a\",\"rest\":1}", 100);
        let out = replace(&chunks, 9..12, b"\"b\"");
        assert_eq!(out[2].as_ptr(), chunks[0][12..].as_ptr());
        assert_eq!(joined(&insert_member(&cut("{}", 1), 0, true, "\"a\":1")), "{\"a\":1}");
    }

    #[test]
    fn the_model_is_exchanged_or_added() {
        for (text, expected) in [
            (r#"{"model":"a","x":[1]}"#, r#"{"model":"b\"c","x":[1]}"#),
            (r#"{"x": 1, "model" : "aaa" }"#, r#"{"x": 1, "model" : "b\"c" }"#),
            (r#" {"contents":[]}"#, r#" {"model":"b\"c","contents":[]}"#),
            ("{}", r#"{"model":"b\"c"}"#),
        ] {
            let chunks = cut(text, 3);
            let peek = peek(&chunks, PeekLimits { max_depth: 8 }).unwrap();
            assert_eq!(joined(&set_model(&chunks, &peek, "b\"c")), expected);
        }
    }

    #[test]
    fn usage_is_asked_for_whatever_is_there() {
        for (text, expected) in [
            (r#"{"model":"a"}"#, Some(r#"{"stream_options":{"include_usage":true},"model":"a"}"#)),
            (r#"{"stream_options":null}"#, Some(r#"{"stream_options":{"include_usage":true}}"#)),
            (r#"{"stream_options":{}}"#, Some(r#"{"stream_options":{"include_usage":true}}"#)),
            (
                r#"{"stream_options":{"x":1}}"#,
                Some(r#"{"stream_options":{"include_usage":true,"x":1}}"#),
            ),
            (
                r#"{"stream_options":{"include_usage":false}}"#,
                Some(r#"{"stream_options":{"include_usage":true}}"#),
            ),
            (
                r#"{"stream_options":{"include_usage":null}}"#,
                Some(r#"{"stream_options":{"include_usage":true}}"#),
            ),
            (r#"{"stream_options":{"include_usage":true}}"#, None),
        ] {
            for size in [1, 7, 100] {
                let chunks = cut(text, size);
                let peek = peek(&chunks, PeekLimits { max_depth: 8 }).unwrap();
                assert_eq!(
                    ask_for_usage(&chunks, &peek).map(|c| joined(&c)).as_deref(),
                    expected,
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn a_member_goes_with_one_comma() {
        let without = |body: &str| {
            let value = body.find("[7]").unwrap();
            let chunks = [Bytes::from(body[..4].to_owned()), Bytes::from(body[4..].to_owned())];
            String::from_utf8(remove_member(&chunks, value..value + 3).concat()).unwrap()
        };
        for (body, left) in [
            (r#"{"x":[7],"b":1}"#, r#"{"b":1}"#),
            (r#"{"a":1, "x" : [7] , "b":1}"#, r#"{"a":1,  "b":1}"#),
            (r#"{"a":1 , "x":[7] }"#, r#"{"a":1  }"#),
            (r#"{ "x": [7] }"#, "{  }"),
        ] {
            assert_eq!(without(body), left);
        }
    }
}
