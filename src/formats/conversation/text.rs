//! Strings that borrow from the body if possible, and fields that are a string or a list.
//!
//! serde's own `Cow` copies inside an `Option`, and its untagged enums buffer everything they read:
//! both would double the memory of a large prompt. These two types do neither.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Text, borrowed from the body unless it contained escapes.
pub type Text<'a> = Cow<'a, str>;

/// A JSON string as [`Text`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Str<'a>(pub Text<'a>);

impl<'a> Str<'a> {
    /// The text itself.
    #[must_use]
    pub fn into_text(self) -> Text<'a> {
        self.0
    }
}

impl std::ops::Deref for Str<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

struct StrVisitor;

impl<'de> Visitor<'de> for StrVisitor {
    type Value = Str<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Str(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Str(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Str(Cow::Owned(text)))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(StrVisitor)
    }
}

/// A field that is a string, a list of `T`, a single `T`, or null.
#[derive(Debug, Clone, PartialEq)]
pub enum Content<'a, T> {
    /// A single string.
    Text(Text<'a>),
    /// The elements of a list. A single object is a list of one, null is an empty list.
    Parts(Vec<T>),
}

impl<T> Default for Content<'_, T> {
    fn default() -> Self {
        Self::Parts(Vec::new())
    }
}

struct ContentVisitor<'a, T>(PhantomData<&'a T>);

impl<'de: 'a, 'a, T: Deserialize<'de>> Visitor<'de> for ContentVisitor<'a, T> {
    type Value = Content<'a, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an array")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Content::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut parts = Vec::with_capacity(list.size_hint().unwrap_or(0).min(64));
        while let Some(part) = list.next_element()? {
            parts.push(part);
        }
        Ok(Content::Parts(parts))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|part| Content::Parts(vec![part]))
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de> + 'a> Deserialize<'de> for Content<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borrows_unless_there_are_escapes() {
        let plain: Option<Str<'_>> = serde_json::from_str(r#""abc""#).unwrap();
        assert!(matches!(plain, Some(Str(Cow::Borrowed("abc")))));
        let escaped: Str<'_> = serde_json::from_str(r#""a\nc""#).unwrap();
        assert!(matches!(escaped, Str(Cow::Owned(ref text)) if text == "a\nc"));
    }

    #[test]
    fn content_takes_every_form() {
        let read = |text: &'static str| serde_json::from_str::<Content<'_, Str<'_>>>(text).unwrap();
        assert_eq!(read("null"), Content::Parts(vec![]));
        assert_eq!(read(r#""x""#), Content::Text("x".into()));
        assert_eq!(read(r#"["x"]"#), Content::Parts(vec![Str("x".into())]));
    }
}
