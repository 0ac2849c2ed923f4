//! Fields that may be left out: what they do to a record.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};

use crate::bounded::Plain;

/// A field that may be left out, and cannot be cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent<T>(pub Option<T>);

impl<T> Default for Sent<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Plain + Clone> Sent<T> {
    /// Sets the new value if there is one.
    pub fn apply(&self, to: &mut T::Out) {
        if let Some(value) = self.plain() {
            *to = value;
        }
    }

    /// The value that was sent, if any.
    pub fn plain(&self) -> Option<T::Out> {
        self.0.clone().map(Plain::plain)
    }
}

/// A field that may be left out, and that `null` clears.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Patch<T> {
    /// Not sent: stays.
    #[default]
    Keep,
    /// `null`: cleared.
    Clear,
    /// The new value.
    Set(T),
}

impl<T> Patch<T> {
    /// Whether the field was sent, even as `null`.
    pub const fn is_sent(&self) -> bool {
        !matches!(self, Self::Keep)
    }

    /// The patch of a converted value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Patch<U> {
        match self {
            Self::Keep => Patch::Keep,
            Self::Clear => Patch::Clear,
            Self::Set(value) => Patch::Set(f(value)),
        }
    }

    /// The value that was sent, if any.
    pub fn set(self) -> Option<T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Clear => None,
        }
    }
}

impl<T: Plain + Clone> Patch<T> {
    /// The patch of the record's field.
    pub fn plain(&self) -> Patch<T::Out> {
        self.clone().map(Plain::plain)
    }
}

impl<T> Patch<T> {
    /// Sets the new value if there is one; clearing sets the type's default.
    pub fn apply(self, to: &mut T)
    where
        T: Default,
    {
        match self {
            Self::Keep => {}
            Self::Clear => *to = T::default(),
            Self::Set(value) => *to = value,
        }
    }

    /// As [`Patch::apply`] for an optional value.
    pub fn apply_option(self, to: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *to = None,
            Self::Set(value) => *to = Some(value),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Sent<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(|value| Self(Some(value)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(|value| value.map_or(Self::Clear, Self::Set))
    }
}

impl<T: JsonSchema> JsonSchema for Sent<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        T::json_schema(schemas)
    }
}

impl<T: JsonSchema> JsonSchema for Patch<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        Option::<T>::schema_name()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(schemas)
    }
}
