//! The tokens of a document, and the values that they make.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{Deserialize, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::access::{Items, Members};
use super::{ANY_AS_WRITTEN, AS_WRITTEN, MAX_DEPTH, Refused};
use crate::formats::scan;

type Read<R> = Result<R, Refused>;

/// A position in a document.
pub(super) struct Parser<'de> {
    text: &'de str,
    at: usize,
    depth: u8,
}

/// A string's content, as JSON has it.
#[derive(Clone, Copy)]
pub(super) struct Quoted<'de> {
    content: &'de str,
    escaped: bool,
}

impl<'de> Parser<'de> {
    pub(super) const fn new(text: &'de str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    /// The whole document as one value.
    pub(super) fn document<T: Deserialize<'de>>(mut self) -> Read<T> {
        let value = T::deserialize(&mut self)?;
        match self.peek() {
            Err(Refused) => Ok(value),
            Ok(_) => Err(Refused),
        }
    }

    /// The next byte that is no white space. Refused at the end.
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

    /// Takes a value of any type, and checks its grammar only.
    pub(super) fn skip(&mut self) -> Read<()> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'{' => {
                self.enter()?;
                let mut first = true;
                while self.next(&mut first, b'}')? {
                    self.string()?;
                    self.take(b':')?;
                    self.skip()?;
                }
                self.leave(b'}')
            }
            b'[' => {
                self.enter()?;
                let mut first = true;
                while self.next(&mut first, b']')? {
                    self.skip()?;
                }
                self.leave(b']')
            }
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.number_text().map(drop),
        }
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
                let value = visitor.visit_map(Members::new(self))?;
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
        if name == ANY_AS_WRITTEN {
            self.peek()?;
            let start = self.at;
            self.skip()?;
            let value = self.text.get(start..self.at).ok_or(Refused)?;
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
