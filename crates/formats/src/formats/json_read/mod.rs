//! Reads JSON into types: a `serde` deserializer beside `serde_json`'s.
//!
//! It differs in two points. A string is searched with vectors (`formats::scan`), not byte by byte
//! from one escape to the next. And a type may ask for a string as JSON has it ([`AS_WRITTEN`]):
//! its text can be written into another document without being decoded and escaped again.
//!
//! It reads a subset of what `serde_json` reads, to the same values; tests compare them. Only a
//! fraction of many digits may differ in its last bit: it is the nearest one here. A document that
//! it refuses goes to `serde_json`, whose error says what is wrong. So its own errors say nothing.
//!
//! Instructions for a native request of 2 KB of prose with code (`formats/native`): 12 300 in place
//! of 32 600. `sonic-rs` and `simd-json` take more than `serde_json` for such
//! texts (bench/RESULTS.md).
//!
//! See docs/decisions/18-texts-stay-json.md.

mod access;
mod json;
mod list;
mod parser;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::Deserialize;

pub use self::json::Json;
pub use self::list::{List, Unread, mismatch, raw, visit_elements};
use self::parser::Parser;

/// The name of a newtype whose visitor takes a string with escapes as JSON has it, without its
/// quotes, by `visit_some`. None of its escapes is half a surrogate pair alone. Others come by
/// `visit_borrowed_str` and `visit_string`, everything else as with any newtype.
pub const AS_WRITTEN: &str = "tollgate: a string as JSON has it";

/// The name of a newtype whose visitor takes a value of any type as JSON has it, by `visit_some`.
const ANY_AS_WRITTEN: &str = "tollgate: a value as JSON has it";

/// The name of a newtype whose visitor takes a text as with [`AS_WRITTEN`], and an array's elements
/// as those of a [`List`] (see [`visit_elements`]). From `serde_json`, which does not know the
/// name, it takes the complete value: see [`raw`].
pub const LIST: &str = "tollgate: a text or a list";

/// The name of a newtype whose visitor takes an element of a list, or by `visit_some` the text of
/// the rest of the list.
const ELEMENT: &str = "tollgate: an element of a list";

/// Values that are read may nest this deep, as in `serde_json`; others to any depth.
const MAX_DEPTH: u8 = 127;

/// This many elements of lists are read with the document that has them.
const READ_AT_ONCE: u16 = 1024;
/// As [`READ_AT_ONCE`], for an element that is read on its own.
const READ_WITH_ELEMENT: u16 = 64;

/// No tree of values is built that has more of them: each takes a hundred bytes, and `0,` is two.
pub const MOST_IN_TREE: usize = 20_000;

/// Whether a document has so many values that no tree is built of it.
pub fn is_too_large_for_a_tree(json: &[u8]) -> bool {
    json.len() > 2 * MOST_IN_TREE
        && memchr::memchr3_iter(b',', b'{', b'[', json).nth(MOST_IN_TREE).is_some()
}

/// Reads a value.
///
/// # Errors
/// `serde_json`'s, for what is not JSON or not of the type.
pub fn read<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> serde_json::Result<T> {
    // Checking the complete text for UTF-8 at once, with vectors, costs less than checking each
    // string.
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => from_str(text),
        // Its error contains the position.
        Err(_) => serde_json::from_slice(bytes),
    }
}

/// As [`read`], of a text.
///
/// # Errors
/// `serde_json`'s, for what is not JSON or not of the type.
pub fn from_str<'t, T: Deserialize<'t>>(text: &'t str) -> serde_json::Result<T> {
    Parser::new(text).document().or_else(|Refused| serde_json::from_str(text))
}

/// Not read here.
#[derive(Debug)]
struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not JSON of this type")
    }
}

impl std::error::Error for Refused {}

impl serde::de::Error for Refused {
    fn custom<M: fmt::Display>(_: M) -> Self {
        Self
    }

    fn invalid_type(_: serde::de::Unexpected<'_>, _: &dyn serde::de::Expected) -> Self {
        Self
    }

    fn invalid_value(_: serde::de::Unexpected<'_>, _: &dyn serde::de::Expected) -> Self {
        Self
    }

    fn invalid_length(_: usize, _: &dyn serde::de::Expected) -> Self {
        Self
    }

    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Self {
        Self
    }

    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        Self
    }

    fn missing_field(_: &'static str) -> Self {
        Self
    }

    fn duplicate_field(_: &'static str) -> Self {
        Self
    }
}
