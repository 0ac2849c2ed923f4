//! The members of a JSON object, in order, with their values as JSON has them.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Members of an object. Requests have some thirty.
const MOST: usize = 1000;

/// The members of an object.
pub(super) struct Members<'j>(pub Vec<(String, &'j RawValue)>);

impl<'j> Deserialize<'j> for Members<'j> {
    fn deserialize<D: Deserializer<'j>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'j> Visitor<'j> for Object {
            type Value = Members<'j>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'j>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    if members.len() == MOST {
                        return Err(A::Error::custom("an object with too many members"));
                    }
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// Appends a member, after a comma unless it is the first.
pub(super) fn push(out: &mut String, name: &str, value: &str) {
    if !out.is_empty() {
        out.push(',');
    }
    out.push_str(&serde_json::Value::from(name).to_string());
    out.push(':');
    out.push_str(value);
}
