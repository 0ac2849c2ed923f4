//! A list whose elements are read one at a time, if it is long.
//!
//! The types of a message's parts are hundreds of bytes wide, and `{}` is three bytes of a body. So
//! a document has at most a thousand elements as values at a time; later ones stay text until they
//! are needed, and each is converted before the next one is read.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::parser::Parser;
use super::{ELEMENT, LIST};

/// The length of the shortest element that has a content, with its comma: `{"text":""},`.
const SMALLEST: usize = 12;

/// The elements of a JSON array.
#[derive(Clone, PartialEq)]
pub struct List<'a, T> {
    read: Vec<T>,
    /// The elements after them, as JSON has them, with the commas between them.
    rest: &'a str,
    rest_len: usize,
}

/// An element that is not of the list's type.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Unread<'a> {
    /// The element, as JSON has it.
    pub json: &'a str,
    /// What is wrong with it.
    pub error: serde_json::Error,
}

impl<T> Default for List<'_, T> {
    fn default() -> Self {
        Self { read: Vec::new(), rest: "", rest_len: 0 }
    }
}

impl<T> From<Vec<T>> for List<'_, T> {
    fn from(read: Vec<T>) -> Self {
        Self { read, rest: "", rest_len: 0 }
    }
}

impl<T: fmt::Debug> fmt::Debug for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.read).finish()?;
        write!(f, " and {} more", self.rest_len)
    }
}

impl<'a, T> List<'a, T> {
    /// The elements of an array that was checked, of which none is read yet. `None` for another
    /// value.
    pub fn of(array: &'a str) -> Option<Self> {
        let rest = array.trim_ascii().strip_prefix('[')?.strip_suffix(']')?;
        Some(Self::unread(rest))
    }

    /// A list of one element, which is not read yet.
    pub fn of_one(element: &'a str) -> Self {
        Self { read: Vec::new(), rest: element, rest_len: 1 }
    }

    fn unread(rest: &'a str) -> Self {
        Self { read: Vec::new(), rest, rest_len: Elements(Parser::new(rest)).count() }
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.read.len() + self.rest_len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The capacity of a vector with what is made of the elements. It has none to spare if all are
    /// kept. Of a long list it has a place for each [`SMALLEST`] bytes: shorter elements say
    /// nothing, and are refused or left out.
    pub fn room(&self) -> usize {
        self.read.len() + self.rest_len.min(self.rest.len() / SMALLEST)
    }
}

impl<'a, T: Deserialize<'a>> List<'a, T> {
    /// The first element.
    ///
    /// # Errors
    /// It is not of the type.
    pub fn first(self) -> Result<Option<T>, Unread<'a>> {
        self.into_iter().next().transpose()
    }

    /// What `keep` makes of each element.
    ///
    /// # Errors
    /// The first element that is not of the type.
    pub fn collect<R>(self, mut keep: impl FnMut(T) -> Option<R>) -> Result<Vec<R>, Unread<'a>> {
        let mut all = Vec::with_capacity(self.room());
        for element in self {
            all.extend(keep(element?));
        }
        Ok(all)
    }
}

impl<'a, T: Deserialize<'a>> IntoIterator for List<'a, T> {
    type Item = Result<T, Unread<'a>>;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        Iter { read: self.read.into_iter(), rest: Elements(Parser::new(self.rest)) }
    }
}

/// The elements in order.
pub struct Iter<'a, T> {
    read: std::vec::IntoIter<T>,
    rest: Elements<'a>,
}

impl<'a, T: Deserialize<'a>> Iterator for Iter<'a, T> {
    type Item = Result<T, Unread<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.read.next() {
            Some(element) => Some(Ok(element)),
            None => self.rest.next().map(read_element),
        }
    }
}

#[cold]
fn read_element<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, Unread<'a>> {
    let read = Parser::of_element(json).document();
    read.or_else(|super::Refused| serde_json::from_str(json))
        .map_err(|error| Unread { json, error })
}

/// The text of each element of a list without its brackets.
struct Elements<'a>(Parser<'a>);

impl<'a> Iterator for Elements<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.0.is_past_start() {
            self.0.take(b',').ok()?;
        }
        self.0.skipped().ok()
    }
}

/// Makes a list of an array's elements.
///
/// # Errors
/// That of an element.
pub fn visit_elements<'de: 'a, 'a, T, A>(mut elements: A) -> Result<List<'a, T>, A::Error>
where
    T: Deserialize<'de>,
    A: SeqAccess<'de>,
{
    let mut list = List::from(Vec::with_capacity(elements.size_hint().unwrap_or(0).min(64)));
    while let Some(next) = elements.next_element_seed(NextElement(PhantomData))? {
        match next {
            Element::Read(element) => list.read.push(element),
            Element::Rest(rest) => {
                list.rest = rest;
                list.rest_len = Elements(Parser::new(rest)).count();
            }
        }
    }
    Ok(list)
}

/// Reads a value whose JSON is at hand as text only: `serde_json`'s way to a list.
///
/// # Errors
/// The value is not JSON.
pub fn raw<'de, D: Deserializer<'de>>(value: D) -> Result<&'de str, D::Error> {
    <&RawValue>::deserialize(value).map(RawValue::get)
}

/// One element, or the text of this one and all after it.
enum Element<'a, T> {
    Read(T),
    Rest(&'a str),
}

struct NextElement<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for NextElement<T> {
    type Value = Element<'de, T>;

    fn deserialize<D: Deserializer<'de>>(self, element: D) -> Result<Self::Value, D::Error> {
        element.deserialize_newtype_struct(ELEMENT, self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for NextElement<T> {
    type Value = Element<'de, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an element")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, one: D) -> Result<Self::Value, D::Error> {
        T::deserialize(one).map(Element::Read)
    }

    fn visit_some<D: Deserializer<'de>>(self, rest: D) -> Result<Self::Value, D::Error> {
        <&str>::deserialize(rest).map(Element::Rest)
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = List<'de, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<Self::Value, A::Error> {
        visit_elements(elements)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, other: D) -> Result<Self::Value, D::Error> {
        let json = raw(other)?;
        List::of(json).ok_or_else(|| mismatch(json, &self))
    }
}

/// The error about a value of another kind than a type expects.
pub fn mismatch<'de, E: serde::de::Error>(json: &str, expected: &impl Visitor<'de>) -> E {
    use serde::de::Unexpected;
    let kind = match json.trim_ascii_start().bytes().next() {
        Some(b'{') => Unexpected::Map,
        Some(b'[') => Unexpected::Seq,
        Some(b'"') => Unexpected::Other("string"),
        Some(b'n') => Unexpected::Unit,
        Some(b't' | b'f') => Unexpected::Other("boolean"),
        _ => Unexpected::Other("number"),
    };
    E::invalid_type(kind, expected)
}

impl<'de: 'a, 'a, T: Deserialize<'de> + 'a> Deserialize<'de> for List<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(LIST, ListVisitor::<T>(PhantomData))
    }
}
