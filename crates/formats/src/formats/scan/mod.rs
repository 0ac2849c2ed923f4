//! An incremental, validating JSON scanner: one pass over chunks of bytes, reporting the values at
//! paths of interest.
//!
//! It serves two readers: the request peek (a body as a list of chunks that are never joined) and
//! the usage reader (pieces of stream events). Both need a few values out of much text that must be
//! valid but is otherwise irrelevant. So there is no tree and no allocation: strings are skipped by
//! machine words (see `scan::string`), other containers are only checked for their grammar, and
//! memory is bounded by the depth limit and the captures' limits.
//!
//! The grammar is RFC 8259 in full. Control characters and invalid UTF-8 inside strings are
//! refused, as is anything after the value. Lone surrogate escapes are accepted, as real clients
//! send them (cut emoji). Keys are compared after unescaping: `"\u006dodel"` is `model`. **Each
//! occurrence of a duplicate key is reported**, in order; the reader decides what that means (the
//! peek refuses the request, the usage reader takes the last). Numbers may have any size; they are
//! text here.

mod blocks;
mod bytes;
mod machine;
mod number;
mod stack;
mod string;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

pub use self::machine::Scanner;
pub use self::number::number_end;
pub use self::string::{string_end, text_end};

/// A point of interest in the document: what to report there, and what is below it.
///
/// Trees of nodes are `static`; `T` is the reader's own enumeration of places.
#[derive(Debug)]
pub struct Node<T: 'static> {
    /// Report the value under this name.
    pub tag: Option<T>,
    /// How many bytes of a string's or number's text to report. 0 = only the span.
    pub take: usize,
    /// If the value is an object: its members of interest.
    pub keys: &'static [MemberKey<T>],
    /// If the value is an array: what to do with each item.
    pub items: Option<&'static Node<T>>,
    /// If the value is an object: what to do with the members that `keys` does not name.
    pub rest: Option<&'static Node<T>>,
    /// If the value is an object: report the names of its members under this name, as strings.
    pub names: Option<T>,
}

/// A member of interest.
#[derive(Debug)]
pub struct MemberKey<T: 'static> {
    /// The member's name, escapes resolved.
    pub name: &'static str,
    /// What to do with the member's value.
    pub node: Node<T>,
    /// Also report keys that differ in letter case only, by Unicode's folding; [`Found::exact`]
    /// tells them apart.
    pub any_case: bool,
}

impl<T> Node<T> {
    /// A value of any kind, with its text up to `take` bytes.
    pub const fn value(tag: T, take: usize) -> Self {
        Self { tag: Some(tag), take, keys: &[], items: None, rest: None, names: None }
    }

    /// An object, itself not reported.
    pub const fn object(keys: &'static [MemberKey<T>]) -> Self {
        Self { tag: None, take: 0, keys, items: None, rest: None, names: None }
    }

    /// An array, itself not reported.
    pub const fn array(items: &'static Self) -> Self {
        Self { tag: None, take: 0, keys: &[], items: Some(items), rest: None, names: None }
    }

    /// The same node, reported (a container: at its end).
    #[must_use]
    pub const fn tagged(self, tag: T) -> Self
    where
        T: Copy,
    {
        Self { tag: Some(tag), ..self }
    }

    /// Any value: reported if it is a scalar, and searched to any depth as `below` says.
    pub const fn deep(tag: T, keys: &'static [MemberKey<T>], below: &'static Self) -> Self {
        Self { tag: Some(tag), take: 0, keys, items: Some(below), rest: Some(below), names: None }
    }

    /// An object, itself not reported, with a rule for the members that `keys` does not name.
    pub const fn object_and(keys: &'static [MemberKey<T>], rest: &'static Self) -> Self {
        Self { tag: None, take: 0, keys, items: None, rest: Some(rest), names: None }
    }

    /// The same node, whose members' names are reported too.
    #[must_use]
    pub const fn with_names(self, tag: T) -> Self
    where
        T: Copy,
    {
        Self { names: Some(tag), ..self }
    }

    /// The same node, also searched if it is an array.
    #[must_use]
    pub const fn or_items(self, items: &'static Self) -> Self
    where
        T: Copy,
    {
        Self { items: Some(items), ..self }
    }
}

/// A member whose name must match exactly.
pub const fn key<T>(name: &'static str, node: Node<T>) -> MemberKey<T> {
    MemberKey { name, node, any_case: false }
}

/// What kind of value was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number of any size, as text.
    Number,
    /// A string.
    String,
    /// A list of values.
    Array,
    /// Members by name.
    Object,
}

/// A value of interest, complete.
#[derive(Debug, Clone)]
pub struct Found<'a, T> {
    /// The place where it was found.
    pub tag: T,
    /// What kind of value it is.
    pub kind: Kind,
    /// The range of the complete value (including quotes and brackets), counted from the document's
    /// first byte.
    pub span: Range<usize>,
    /// A scalar's text as written (a string without its quotes), cut after the node's `take` bytes
    /// (a boolean's never is). Empty for containers.
    pub text: &'a [u8],
    /// `text` was not cut.
    pub whole: bool,
    /// A string holds escapes.
    pub escaped: bool,
    /// How many items or members a container has.
    pub len: usize,
    /// The key was spelt as in the node (see [`MemberKey::any_case`]).
    pub exact: bool,
}

impl<T> Found<'_, T> {
    /// A string's value, escapes resolved (a lone surrogate becomes U+FFFD); `None` for other kinds
    /// and cut texts.
    pub fn as_str(&self) -> Option<Cow<'_, str>> {
        if self.kind != Kind::String || !self.whole {
            return None;
        }
        if self.escaped {
            return Some(Cow::Owned(unescape(self.text)));
        }
        std::str::from_utf8(self.text).ok().map(Cow::Borrowed)
    }

    /// A number's value, if it is a non-negative integer of plausible size (also written as `12.0`
    /// or `1e3`).
    pub fn as_u64(&self) -> Option<u64> {
        if self.kind != Kind::Number || !self.whole {
            return None;
        }
        let text = std::str::from_utf8(self.text).ok()?;
        text.parse().ok().or_else(|| {
            let float: f64 = text.parse().ok()?;
            let sane = float.fract() == 0.0 && (0.0..9.0e15).contains(&float);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked to be whole and in range"
            )]
            sane.then_some(float as u64)
        })
    }

    /// A boolean's value; `None` for any other kind.
    pub fn as_bool(&self) -> Option<bool> {
        (self.kind == Kind::Bool).then_some(self.text == b"true")
    }
}

/// Why a document is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScanProblem {
    /// There is only white space, or nothing.
    #[error("it is empty")]
    Empty,
    /// The document ends within a value.
    #[error("it ends too early")]
    Incomplete,
    /// A byte that no rule of the grammar allows here.
    #[error("unexpected character")]
    Unexpected,
    /// A control character in a string that is not escaped.
    #[error("control character in a string")]
    Control,
    /// A backslash before a letter that is not an escape, or `\u` without four hexadecimal digits.
    #[error("unknown escape in a string")]
    Escape,
    /// Bytes in a string that are not UTF-8.
    #[error("invalid UTF-8 in a string")]
    Utf8,
    /// A number with a leading zero, without digits or the like.
    #[error("malformed number")]
    Number,
    /// More arrays and objects are open at once than the limit allows.
    #[error("nested too deeply")]
    TooDeep,
    /// More elements in all lists together than the limit allows.
    #[error("more than {} elements in its lists", super::MOST_ELEMENTS)]
    TooManyElements,
    /// More than white space after the value.
    #[error("text after the end")]
    Trailing,
}

/// Why and where a document is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{problem} (at byte {offset})")]
pub struct ScanError {
    /// What is wrong.
    pub problem: ScanProblem,
    /// Counted from the document's first byte.
    pub offset: usize,
}

/// Resolves the escapes in a JSON string's content.
pub(super) fn unescape(text: &[u8]) -> String {
    let mut out = Vec::with_capacity(text.len());
    unescape_into(text, &mut out);
    String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// The same, appended to `out`. The appended bytes are UTF-8 if `text` is.
pub(super) fn unescape_into(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let Some((&kind, tail)) = rest.split_first() else { break };
        rest = tail;
        let plain = match kind {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let (c, tail) = unicode_escape(rest);
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = tail;
                continue;
            }
            b'"' | b'\\' | b'/' => kind,
            // No escape of JSON; texts that only claim to be JSON have such.
            other => {
                out.push(b'\\');
                other
            }
        };
        out.push(plain);
    }
    out.extend_from_slice(rest);
}

/// Whether an escape in a JSON string's valid content is half a surrogate pair without the other.
pub(super) fn has_lone_half(text: &[u8]) -> bool {
    // Most texts have no escape that may be a half.
    let may_be = |at: usize| matches!(text.get(at + 2), Some(b'd' | b'D'));
    if !memchr::memmem::find_iter(text, b"\\u").any(may_be) {
        return false;
    }
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let Some((kind, escape)) = rest.get(at + 1..).and_then(<[u8]>::split_first) else { break };
        rest = escape;
        if *kind == b'u' {
            let (character, tail) = unicode_escape(escape);
            let is_itself = escape.get(..4).is_some_and(|hex| hex.eq_ignore_ascii_case(b"fffd"));
            if character == char::REPLACEMENT_CHARACTER && !is_itself {
                return true;
            }
            rest = tail;
        }
    }
    false
}

/// The character of a `\u` escape whose digits (and possibly second half) are at the start of
/// `rest`.
fn unicode_escape(rest: &[u8]) -> (char, &[u8]) {
    let hex = |from: &[u8]| {
        from.get(..4)?.iter().try_fold(0u32, |sum, b| Some(sum * 16 + char::from(*b).to_digit(16)?))
    };
    let Some(first) = hex(rest) else { return (char::REPLACEMENT_CHARACTER, &[]) };
    let tail = &rest[4..];
    if (0xD800..0xDC00).contains(&first)
        && let Some(second) =
            tail.strip_prefix(b"\\u").and_then(hex).filter(|s| (0xDC00..0xE000).contains(s))
    {
        let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), &tail[6..]);
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), tail)
}
