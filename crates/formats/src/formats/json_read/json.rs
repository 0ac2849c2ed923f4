//! A value that is not parsed.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde_json::value::RawValue;

use super::ANY_AS_WRITTEN;

/// A value of any type as JSON has it: its grammar was checked, without a limit of nesting. Escaped
/// halves of surrogate pairs are still in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    /// Text that is JSON.
    pub const fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// The value's text, without white space around it.
    pub const fn get(self) -> &'a str {
        self.0
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_some<D: Deserializer<'de>>(self, text: D) -> Result<Self::Value, D::Error> {
        <&str>::deserialize(text).map(Json)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, other: D) -> Result<Self::Value, D::Error> {
        <&RawValue>::deserialize(other).map(|value| Json(value.get()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(ANY_AS_WRITTEN, JsonVisitor)
    }
}
