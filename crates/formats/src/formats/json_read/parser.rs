//! The tokens of a document, and the values that they make.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{Deserialize, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::access::{Items, ObjectMembers};
use super::{
    ANY_AS_WRITTEN, AS_WRITTEN, ELEMENT, LIST, MAX_DEPTH, READ_AT_ONCE, READ_WITH_ELEMENT, Refused,
};
use crate::formats::scan;

type Read<R> = Result<R, Refused>;

/// A position in a document.
pub(super) struct Parser<'de> {
    text: &'de str,
    at: usize,
    depth: u8,
    /// How many more elements of lists are read at once.
    elements: u16,
}

/// A string's content, as JSON has it.
#[derive(Clone, Copy)]
pub(super) struct Quoted<'de> {
    content: &'de str,
    escaped: bool,
}

impl<'de> Parser<'de> {
    pub(super) const fn new(text: &'de str) -> Self {
        Self { text, at: 0, depth: 0, elements: READ_AT_ONCE }
    }

    /// As [`Parser::new`], of one element of a long list.
    pub(super) const fn of_element(text: &'de str) -> Self {
        Self { elements: READ_WITH_ELEMENT, ..Self::new(text) }
    }

    /// Whether anything was taken.
    pub(super) const fn is_past_start(&self) -> bool {
        self.at > 0
    }

    /// The whole document as one value.
    pub(super) fn document<T: Deserialize<'de>>(mut self) -> Read<T> {
        let value = T::deserialize(&mut self)?;
        match self.peek() {
            Err(Refused) => Ok(value),
            Ok(_) => Err(Refused),
        }
    }

    /// The next byte that is not white space. Refused at the end.
    #[inline]
    pub(super) fn peek(&mut self) -> Read<u8> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Ok(byte),
            }
        }
        Err(Refused)
    }

    /// Takes this byte, after white space.
    #[inline]
    pub(super) fn take(&mut self, wanted: u8) -> Read<()> {
        if self.peek()? != wanted {
            return Err(Refused);
        }
        self.at += 1;
        Ok(())
    }

    /// Takes the comma before the next element of a container; `false` at the container's end.
    #[inline]
    pub(super) fn next(&mut self, first: &mut bool, end: u8) -> Read<bool> {
        let byte = self.peek()?;
        if byte == end {
            return Ok(false);
        }
        if !std::mem::take(first) {
            self.take(b',')?;
        }
        Ok(true)
    }

    /// Takes a string.
    #[inline]
    pub(super) fn string(&mut self) -> Read<Quoted<'de>> {
        self.take(b'"')?;
        let (end, escaped) = scan::text_end(self.text, self.at).ok_or(Refused)?;
        let content = self.text.get(self.at..end).ok_or(Refused)?;
        self.at = end + 1;
        Ok(Quoted { content, escaped })
    }

    fn word(&mut self, word: &'static str) -> Read<()> {
        let rest = self.text.as_bytes().get(self.at..).ok_or(Refused)?;
        if !rest.starts_with(word.as_bytes()) {
            return Err(Refused);
        }
        self.at += word.len();
        Ok(())
    }

    fn number_text(&mut self) -> Read<&'de str> {
        let end = scan::number_end(self.text.as_bytes(), self.at).ok_or(Refused)?;
        let number = self.text.get(self.at..end).ok_or(Refused)?;
        self.at = end;
        Ok(number)
    }

    fn number<V: Visitor<'de>>(&mut self, visitor: V) -> Read<V::Value> {
        let number = self.number_text()?;
        if let Ok(whole) = number.parse::<u64>() {
            return visitor.visit_u64(whole);
        }
        // The sign of a negative zero is kept.
        if let Ok(whole) = number.parse::<i64>()
            && whole != 0
        {
            return visitor.visit_i64(whole);
        }
        match number.parse::<f64>() {
            Ok(float) if float.is_finite() => visitor.visit_f64(float),
            _ => Err(Refused),
        }
    }

    #[inline]
    fn enter(&mut self) -> Read<()> {
        if self.depth == MAX_DEPTH {
            return Err(Refused);
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn leave(&mut self, end: u8) -> Read<()> {
        self.depth -= 1;
        self.take(end)
    }

    /// Takes a value of any type and depth, and checks its grammar only. Returns its text.
    pub(super) fn skipped(&mut self) -> Read<&'de str> {
        self.peek()?;
        let start = self.at;
        self.skip()?;
        self.text.get(start..self.at).ok_or(Refused)
    }

    /// Takes a value of any type and depth, and checks its grammar only.
    fn skip(&mut self) -> Read<()> {
        let mut open = OpenContainers::default();
        loop {
            // A value; after an opening bracket, maybe the container's end.
            match self.peek()? {
                b'"' => self.string().map(drop)?,
                bracket @ (b'{' | b'[') => {
                    self.at += 1;
                    let is_object = bracket == b'{';
                    open.push(is_object);
                    // The end of an empty one is taken below.
                    if self.peek()? != if is_object { b'}' } else { b']' } {
                        self.name_if(is_object)?;
                        continue;
                    }
                }
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                _ => self.number_text().map(drop)?,
            }
            // After a value: the ends of its containers, then a comma.
            loop {
                if open.depth == 0 {
                    return Ok(());
                }
                let is_object = open.is_object();
                match (self.peek()?, is_object) {
                    (b'}', true) | (b']', false) => {
                        self.at += 1;
                        open.pop();
                    }
                    (b',', _) => {
                        self.at += 1;
                        self.name_if(is_object)?;
                        break;
                    }
                    _ => return Err(Refused),
                }
            }
        }
    }

    /// Takes a member's name and colon.
    #[inline]
    fn name_if(&mut self, is_object: bool) -> Read<()> {
        if is_object {
            self.string()?;
            self.take(b':')?;
        }
        Ok(())
    }

    /// Takes the elements of the list up to its bracket, and returns their text.
    fn rest_of_list(&mut self) -> Read<&'de str> {
        self.peek()?;
        let start = self.at;
        loop {
            self.skip()?;
            if self.peek()? != b',' {
                return self.text.get(start..self.at).ok_or(Refused);
            }
            self.at += 1;
        }
    }
}

/// The open containers of a value that is skipped, one bit for each: whether it is an object.
#[derive(Default)]
struct OpenContainers {
    depth: usize,
    /// The bits of the innermost ones, and those of the others in full words.
    inner: u64,
    outer: Vec<u64>,
}

impl OpenContainers {
    #[inline]
    fn push(&mut self, object: bool) {
        let bit = self.depth % 64;
        if bit == 0 && self.depth > 0 {
            self.outer.push(std::mem::take(&mut self.inner));
        }
        self.inner = self.inner & !(1 << bit) | u64::from(object) << bit;
        self.depth += 1;
    }

    #[inline]
    fn pop(&mut self) {
        self.depth -= 1;
        if self.depth.is_multiple_of(64) && self.depth > 0 {
            self.inner = self.outer.pop().unwrap_or_default();
        }
    }

    /// Whether the innermost one is an object.
    #[inline]
    const fn is_object(&self) -> bool {
        self.inner >> (self.depth.wrapping_sub(1) % 64) & 1 == 1
    }
}

impl<'de> Quoted<'de> {
    /// Passes the decoded string.
    pub(super) fn visit<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        if !self.escaped {
            return visitor.visit_borrowed_str(self.content);
        }
        self.refuse_lone_halves()?;
        visitor.visit_string(scan::unescape(self.content.as_bytes()))
    }

    fn visit_as_written<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        if !self.escaped {
            return visitor.visit_borrowed_str(self.content);
        }
        self.refuse_lone_halves()?;
        visitor.visit_some(BorrowedStrDeserializer::new(self.content))
    }

    /// No Rust string has half a surrogate pair: `serde_json`'s error says so.
    fn refuse_lone_halves(self) -> Read<()> {
        if scan::has_lone_half(self.content.as_bytes()) { Err(Refused) } else { Ok(()) }
    }
}

impl<'de> Deserializer<'de> for &mut Parser<'de> {
    type Error = Refused;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match self.peek()? {
            b'"' => self.string()?.visit(visitor),
            b'{' => {
                self.enter()?;
                let value = visitor.visit_map(ObjectMembers::new(self))?;
                self.leave(b'}')?;
                Ok(value)
            }
            b'[' => {
                self.enter()?;
                let value = visitor.visit_seq(Items::new(self))?;
                self.leave(b']')?;
                Ok(value)
            }
            b't' => self.word("true").and_then(|()| visitor.visit_bool(true)),
            b'f' => self.word("false").and_then(|()| visitor.visit_bool(false)),
            b'n' => self.word("null").and_then(|()| visitor.visit_unit()),
            _ => self.number(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        if self.peek()? == b'n' {
            self.word("null")?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Read<V::Value> {
        if name == AS_WRITTEN {
            return match self.peek()? {
                b'"' => self.string()?.visit_as_written(visitor),
                _ => visitor.visit_newtype_struct(self),
            };
        }
        if name == ELEMENT {
            let Some(left) = self.elements.checked_sub(1) else {
                let rest = self.rest_of_list()?;
                return visitor.visit_some(BorrowedStrDeserializer::new(rest));
            };
            self.elements = left;
            return visitor.visit_newtype_struct(self);
        }
        if name == LIST {
            return match self.peek()? {
                b'"' => self.string()?.visit_as_written(visitor),
                _ => self.deserialize_any(visitor),
            };
        }
        if name == ANY_AS_WRITTEN {
            let value = self.skipped()?;
            return visitor.visit_some(BorrowedStrDeserializer::new(value));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        // A variant without content. Others are left to `serde_json`.
        let name = String::deserialize(self)?;
        visitor.visit_enum(name.into_deserializer())
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.skip()?;
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier
    }
}
