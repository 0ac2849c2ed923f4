//! What a value of a JSON body does, and what follows from it for serde and schemars.

use super::Faults;

/// A field's value as a record has it.
pub trait Plain {
    /// The type of the record's field.
    type Out;

    /// The value without its bounds.
    fn plain(self) -> Self::Out;
}

impl Plain for bool {
    type Out = Self;

    fn plain(self) -> Self {
        self
    }
}

impl<T: Plain> Plain for Option<T> {
    type Out = Option<T::Out>;

    fn plain(self) -> Self::Out {
        self.map(Plain::plain)
    }
}

/// A type that reads any JSON value and tells what is wrong with it.
pub trait FromJson: Sized {
    /// The value.
    ///
    /// # Errors
    /// What is wrong with it; no fault at all where it counts as not sent.
    fn take(json: &serde_json::Value) -> Result<Self, Faults>;

    /// The schema of what is taken.
    fn describe(schemas: &mut schemars::SchemaGenerator) -> serde_json::Value;
}

/// Implements serde's and schemars' traits for a [`FromJson`], and `Plain` for one around `$out`.
macro_rules! from_json {
    ([$($generics:tt)*] $type:ty => $out:ty) => {
        impl<$($generics)*> $crate::bounded::Plain for $type {
            type Out = $out;

            fn plain(self) -> $out {
                self.0
            }
        }

        from_json!([$($generics)*] $type);
    };
    ([$($generics:tt)*] $type:ty) => {
        impl<'de, $($generics)*> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let json = serde_json::Value::deserialize(deserializer)?;
                <Self as $crate::bounded::FromJson>::take(&json).map_err(serde::de::Error::custom)
            }
        }

        impl<$($generics)*> schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(schemas: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let schema = <Self as $crate::bounded::FromJson>::describe(schemas);
                schema.try_into().unwrap_or_default()
            }
        }
    };
}
pub(crate) use from_json;
