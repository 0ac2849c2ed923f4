//! The elements of a container, one by one.

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::Refused;
use super::parser::{Parser, Quoted};

/// The items of an array whose bracket was taken.
pub(super) struct Items<'p, 'de> {
    parser: &'p mut Parser<'de>,
    first: bool,
}

impl<'p, 'de> Items<'p, 'de> {
    pub(super) const fn new(parser: &'p mut Parser<'de>) -> Self {
        Self { parser, first: true }
    }
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = Refused;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Refused> {
        if !self.parser.next(&mut self.first, b']')? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.parser).map(Some)
    }
}

/// The members of an object whose brace was taken.
pub(super) struct ObjectMembers<'p, 'de> {
    parser: &'p mut Parser<'de>,
    first: bool,
}

impl<'p, 'de> ObjectMembers<'p, 'de> {
    pub(super) const fn new(parser: &'p mut Parser<'de>) -> Self {
        Self { parser, first: true }
    }
}

impl<'de> MapAccess<'de> for ObjectMembers<'_, 'de> {
    type Error = Refused;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Refused> {
        if !self.parser.next(&mut self.first, b'}')? {
            return Ok(None);
        }
        let name = self.parser.string()?;
        seed.deserialize(MemberName(name)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Refused> {
        self.parser.take(b':')?;
        seed.deserialize(&mut *self.parser)
    }
}

/// A member's name.
struct MemberName<'de>(Quoted<'de>);

impl<'de> Deserializer<'de> for MemberName<'de> {
    type Error = Refused;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.0.visit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_newtype_struct(self)
    }

    // Names of other types, such as numbers, are left to `serde_json`.
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
