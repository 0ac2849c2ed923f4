//! Strings that borrow from the body, and fields that are a string or a list.
//!
//! serde's own `Cow` copies inside an `Option`, and its untagged enums buffer everything they read:
//! both would double the memory of a large prompt. These two types do neither.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::formats::json_read::{self, AS_WRITTEN, LIST, List};
use crate::formats::scan;

/// Decoded text, borrowed from the body unless it contained escapes.
pub type Text<'a> = Cow<'a, str>;

/// A JSON string. If it has escapes, it is kept as the body has it: most texts are only written
/// into another document, and are never decoded. It is decoded once, when something reads it as
/// `str`.
#[derive(Clone)]
pub struct Str<'a>(Form<'a>);

#[derive(Clone)]
enum Form<'a> {
    Plain(Text<'a>),
    /// With escapes, of which none is half a surrogate pair alone.
    Written {
        json: &'a str,
        plain: OnceCell<Box<str>>,
    },
}

impl<'a> Str<'a> {
    /// The content of a JSON string with escapes, without its quotes.
    fn written(json: &'a str) -> Self {
        Self(Form::Written { json, plain: OnceCell::new() })
    }

    /// The text itself.
    pub fn into_text(self) -> Text<'a> {
        match self.0 {
            Form::Plain(text) => text,
            Form::Written { json, plain } => {
                Text::Owned(plain.into_inner().map_or_else(|| decoded(json), String::from))
            }
        }
    }

    /// One text from several, with a separator between them.
    pub fn join(mut texts: Vec<Self>, separator: &str) -> Self {
        if texts.len() == 1 {
            return texts.swap_remove(0);
        }
        texts.iter().map(|text| &**text).collect::<Vec<_>>().join(separator).into()
    }

    /// Appends a text.
    pub fn push_str(&mut self, more: &str) {
        let mut text = std::mem::take(self).into_text().into_owned();
        text.push_str(more);
        *self = text.into();
    }

    /// The content of the JSON string, if it is at hand.
    pub const fn as_written(&self) -> Option<&'a str> {
        match &self.0 {
            Form::Plain(_) => None,
            Form::Written { json, .. } => Some(json),
        }
    }

    /// Whether it has no characters.
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Form::Plain(text) => text.is_empty(),
            Form::Written { .. } => false,
        }
    }

    /// Whether it only has white space.
    pub fn is_blank(&self) -> bool {
        let Some(json) = self.as_written() else { return self.trim().is_empty() };
        let mut rest = json.trim_start();
        let escapes = ["\\n", "\\r", "\\t", "\\f"];
        while let Some(more) = escapes.iter().find_map(|escape| rest.strip_prefix(escape)) {
            rest = more.trim_start();
        }
        rest.is_empty() || (rest.starts_with("\\u") && self.trim().is_empty())
    }

    /// About how many bytes it takes in a document.
    pub fn size(&self) -> usize {
        match &self.0 {
            Form::Plain(text) => text.len(),
            Form::Written { json, .. } => json.len(),
        }
    }
}

fn decoded(json: &str) -> String {
    scan::unescape(json.as_bytes())
}

impl std::ops::Deref for Str<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            Form::Plain(text) => text,
            Form::Written { json, plain } => plain.get_or_init(|| decoded(json).into_boxed_str()),
        }
    }
}

impl<'a, T: Into<Text<'a>>> From<T> for Str<'a> {
    fn from(text: T) -> Self {
        Self(Form::Plain(text.into()))
    }
}

impl Default for Str<'_> {
    fn default() -> Self {
        Self(Form::Plain(Text::default()))
    }
}

impl PartialEq for Str<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Str<'_> {}

impl PartialEq<str> for Str<'_> {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for Str<'_> {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

struct StrVisitor;

impl<'de> Visitor<'de> for StrVisitor {
    type Value = Str<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(text.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.to_owned().into())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(text.into())
    }

    fn visit_some<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        <&str>::deserialize(json).map(Str::written)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, other: D) -> Result<Self::Value, D::Error> {
        other.deserialize_str(self)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(AS_WRITTEN, StrVisitor)
    }
}

/// A field that is a string, a list of `T`, a single `T`, or null.
#[derive(Debug, Clone, PartialEq)]
pub enum Content<'a, T> {
    /// A single string.
    Text(Str<'a>),
    /// The elements of a list. A single object is a list of one, null is an empty list.
    Parts(List<'a, T>),
}

impl<T> Default for Content<'_, T> {
    fn default() -> Self {
        Self::Parts(List::default())
    }
}

struct ContentVisitor<'a, T>(PhantomData<&'a T>);

impl<'de: 'a, 'a, T: Deserialize<'de>> Visitor<'de> for ContentVisitor<'a, T> {
    type Value = Content<'a, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an array")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        StrVisitor.visit_borrowed_str(text).map(Content::Text)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        StrVisitor.visit_str(text).map(Content::Text)
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        StrVisitor.visit_string(text).map(Content::Text)
    }

    fn visit_some<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        StrVisitor.visit_some(json).map(Content::Text)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, other: D) -> Result<Self::Value, D::Error> {
        let json = json_read::raw(other)?;
        match json.as_bytes().first() {
            Some(b'"') => serde_json::from_str(json).map(Content::Text).map_err(D::Error::custom),
            Some(b'[') => Ok(Content::Parts(List::of(json).unwrap_or_default())),
            Some(b'{') => Ok(Content::Parts(List::of_one(json))),
            Some(b'n') => Ok(Content::default()),
            _ => Err(json_read::mismatch(json, &self)),
        }
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Content::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        json_read::visit_elements(list).map(Content::Parts)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
            .map(|part| Content::Parts(vec![part].into()))
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de> + 'a> Deserialize<'de> for Content<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(LIST, ContentVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::json_read;

    fn read<'a, T: Deserialize<'a>>(json: &'a str) -> T {
        json_read::read(json.as_bytes()).unwrap()
    }

    #[test]
    fn a_text_with_escapes_is_kept_as_written_and_decoded_when_read() {
        let plain: Option<Str<'_>> = read(r#""abc""#);
        assert!(matches!(plain, Some(Str(Form::Plain(Cow::Borrowed("abc"))))));
        let mut escaped: Str<'_> = read(r#""a\nc\u00e9""#);
        assert_eq!(escaped.as_written(), Some(r"a\nc\u00e9"));
        assert_eq!(escaped, "a\ncé");
        assert_eq!(escaped.clone().into_text(), "a\ncé");
        escaped.push_str("!");
        assert_eq!((escaped.as_written(), &*escaped), (None, "a\ncé!"));
    }

    #[test]
    fn a_pair_is_a_text_and_half_of_one_is_none() {
        let pair: Str<'_> = read(r#""\ud83d\ude00\n""#);
        assert_eq!((pair.as_written(), &*pair), (Some(r"\ud83d\ude00\n"), "😀\n"));
        assert!(json_read::read::<Str<'_>>(br#""\ud83d\n""#).is_err());
    }

    #[test]
    fn blank_texts_have_white_space_only() {
        for (json, blank) in [
            (r#""""#, true),
            (r#"" \n\t \r""#, true),
            (r#""\n\u0020 ""#, true),
            (r#""\f\n\f""#, true),
            (r#""\b""#, false),
            (r#""\n \u0041""#, false),
            (r#""\n a""#, false),
            (r#""\\n""#, false),
            (r#"" a\n""#, false),
        ] {
            let text: Str<'_> = read(json);
            assert_eq!((text.is_blank(), text.trim().is_empty()), (blank, blank), "{json}");
        }
    }

    #[test]
    fn content_takes_every_form() {
        let read = read::<Content<'_, Str<'_>>>;
        assert_eq!(read("null"), Content::Parts(List::default()));
        assert_eq!(read(r#""x""#), Content::Text("x".into()));
        assert_eq!(read(r#""x\n""#), Content::Text("x\n".into()));
        assert_eq!(read(r#"["x"]"#), Content::Parts(vec!["x".into()].into()));
    }
}
