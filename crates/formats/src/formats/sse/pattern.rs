//! Events that differ from an earlier one only in one text, recognised without reading their JSON.
//!
//! Nearly all events of a stream bring a few words each, in JSON that does not change. What an
//! event means is known if all its bytes but those of the text are known. Two values may differ as
//! well, which no reader uses ([`IGNORED`]).
//!
//! Per event of 230 bytes, a comparison takes a few hundred instructions, reading the JSON twice
//! (for its usage, and to convert it) 14 000.
//!
//! See docs/decisions/19-stream-patterns.md.

use std::ops::Range;

use super::super::scan::string_end;

/// The longest event without its text that is kept, in bytes. The events that bring text have a few
/// hundred.
const MOST: usize = 4096;

/// Members whose values no reader of a stream uses, up to the value: they differ in each event. A
/// reader that begins to use one must take it from this list.
const IGNORED: [(&[u8], PatternValue); 2] = [
    (b"\"sequence_number\":", PatternValue::Number),
    (b"\"obfuscation\":\"", PatternValue::String),
];

#[derive(Debug, Clone, Copy)]
enum PatternValue {
    /// A whole number.
    Number,
    /// A string, after its quote.
    String,
}

/// A text as JSON has it, valid and not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawText<'d> {
    /// The text with its quotes.
    pub quoted: &'d [u8],
    /// It has escapes.
    pub escaped: bool,
}

impl<'d> RawText<'d> {
    /// The text without its quotes.
    pub fn bytes(&self) -> &'d [u8] {
        self.quoted.get(1..self.quoted.len() - 1).unwrap_or_default()
    }
}

/// An event without its text.
#[derive(Debug)]
pub struct Pattern {
    before: Fragment,
    after: Fragment,
}

/// Bytes with at most one value between them that may differ.
#[derive(Debug)]
struct Fragment {
    bytes: Box<[u8]>,
    /// Where the value was.
    value: Option<(usize, PatternValue)>,
}

impl Pattern {
    /// The pattern of a valid event, unless it is large. `text`: the range of its text, without
    /// quotes.
    pub fn new(event: &[u8], text: Range<usize>) -> Option<Self> {
        let (before, after) = (event.get(..text.start)?, event.get(text.end..)?);
        if before.len() + after.len() > MOST {
            return None;
        }
        Some(Self { before: Fragment::new(before)?, after: Fragment::new(after)? })
    }

    /// The text of the event at the start of `bytes`, and the bytes after the event. `None` if
    /// there is not a complete event of this pattern, or if its text is empty.
    pub fn text<'d>(&self, bytes: &'d [u8]) -> Option<(RawText<'d>, &'d [u8])> {
        let rest = self.before.strip(bytes)?;
        let (end, escaped) = string_end(rest, 0)?;
        let start = bytes.len() - rest.len();
        let quoted = bytes.get(start.checked_sub(1)?..=start + end)?;
        let rest = self.after.strip(rest.get(end..)?)?;
        (end > 0).then_some((RawText { quoted, escaped }, rest))
    }
}

impl Fragment {
    fn new(bytes: &[u8]) -> Option<Self> {
        let found = IGNORED.iter().find_map(|(member, value)| {
            let at = memchr::memmem::find(bytes, member)? + member.len();
            Some((at, *value))
        });
        let Some((at, value)) = found else {
            return Some(Self { bytes: bytes.into(), value: None });
        };
        let (start, rest) = bytes.split_at_checked(at)?;
        let end = value.skip(rest)?;
        Some(Self { bytes: [start, end].concat().into(), value: Some((at, value)) })
    }

    /// What follows these bytes.
    fn strip<'d>(&self, bytes: &'d [u8]) -> Option<&'d [u8]> {
        let Some((at, value)) = self.value else { return bytes.strip_prefix(&*self.bytes) };
        let (start, end) = self.bytes.split_at_checked(at)?;
        value.skip(bytes.strip_prefix(start)?)?.strip_prefix(end)
    }
}

impl PatternValue {
    /// What follows a value at the start of `bytes`.
    fn skip(self, bytes: &[u8]) -> Option<&[u8]> {
        let end = match self {
            Self::Number => {
                let end = bytes.iter().position(|byte| !byte.is_ascii_digit())?;
                // No number begins with a zero but zero.
                if end == 0 || (bytes[0] == b'0' && end > 1) {
                    return None;
                }
                end
            }
            Self::String => string_end(bytes, 0)?.0,
        };
        bytes.get(end..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(event: &str, text: &str) -> Pattern {
        let start = event.find(text).unwrap();
        Pattern::new(event.as_bytes(), start..start + text.len()).unwrap()
    }

    fn text<'d>(pattern: &Pattern, bytes: &'d str) -> Option<(&'d str, bool, &'d str)> {
        let (text, rest) = pattern.text(bytes.as_bytes())?;
        let str = |bytes| std::str::from_utf8(bytes).unwrap();
        Some((str(text.bytes()), text.escaped, str(rest)))
    }

    #[test]
    fn an_event_with_another_text_is_of_the_pattern() {
        let of = pattern("data: {\"a\":1,\"text\":\"one\",\"b\":2}\n\n", "one");
        for (bytes, expected) in [
            ("data: {\"a\":1,\"text\":\"two\",\"b\":2}\n\n", Some(("two", false, ""))),
            ("data: {\"a\":1,\"text\":\"tw\\no\",\"b\":2}\n\nd", Some(("tw\\no", true, "d"))),
            ("data: {\"a\":1,\"text\":\"\\\"\",\"b\":2}\n\n", Some(("\\\"", true, ""))),
            ("data: {\"a\":1,\"text\":\"über\",\"b\":2}\n\n", Some(("über", false, ""))),
            ("data: {\"a\":1,\"text\":\"\",\"b\":2}\n\n", None),
            ("data: {\"a\":2,\"text\":\"two\",\"b\":2}\n\n", None),
            ("data: {\"a\":1,\"text\":\"two\",\"b\":3}\n\n", None),
            ("data: {\"a\":1,\"text\":\"two\",\"b\":2}\n", None),
            ("data: {\"a\":1,\"text\":\"tw", None),
            ("data: {\"a\":1,\"text\":\"t\\wo\",\"b\":2}\n\n", None),
            ("data: {\"a\":1,\"text\":\"t\u{1}o\",\"b\":2}\n\n", None),
            ("", None),
        ] {
            assert_eq!(text(&of, bytes), expected, "{bytes:?}");
        }
        let invalid = b"data: {\"a\":1,\"text\":\"\xff\",\"b\":2}\n\n";
        assert_eq!(of.text(invalid), None);
    }

    #[test]
    fn a_large_event_is_not_kept() {
        for (size, kept) in [(10, true), (MOST - 20, true), (MOST, false)] {
            let event = format!("{{\"a\":\"{}\",\"text\":\"one\"}}", "x".repeat(size));
            let start = event.find("one").unwrap();
            assert_eq!(Pattern::new(event.as_bytes(), start..start + 3).is_some(), kept, "{size}");
        }
    }

    #[test]
    fn values_that_no_reader_uses_may_differ() {
        let event = |number: &str, text: &str, noise: &str| {
            format!(
                "{{\"sequence_number\":{number},\"delta\":\"{text}\",\"obfuscation\":\"{noise}\"}}"
            )
        };
        let of = pattern(&event("9", "one", "xyz"), "one");
        for (number, noise) in [("10", "x"), ("0", ""), ("18446744073709551616", "a\\\"b")] {
            let event = event(number, "two", noise);
            assert_eq!(text(&of, &event), Some(("two", false, "")), "{event}");
        }
        for (number, noise) in [("", "x"), ("010", "x"), ("-1", "x"), ("1.5", "x"), ("1", "\n")] {
            let event = event(number, "two", noise);
            assert_eq!(text(&of, &event), None, "{event}");
        }
    }
}
