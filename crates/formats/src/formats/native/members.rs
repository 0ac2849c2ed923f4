//! The members of a request's body, for clouds whose bodies differ in a few of them: the others stay
//! as they are written.

use std::fmt;

use bytes::Bytes;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// The members of an object in their order, the values as they are written.
pub(super) struct BodyMembers(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for BodyMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EachMember;
        impl<'de> Visitor<'de> for EachMember {
            type Value = BodyMembers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<BodyMembers, A::Error> {
                let mut members = Vec::with_capacity(map.size_hint().unwrap_or(8));
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(BodyMembers(members))
            }
        }
        deserializer.deserialize_map(EachMember)
    }
}

impl Serialize for BodyMembers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl BodyMembers {
    /// `None` if it is not a JSON object.
    pub(super) fn read(body: &[Bytes]) -> Option<Self> {
        match body {
            [one] => serde_json::from_slice(one).ok(),
            pieces => serde_json::from_slice(&pieces.concat()).ok(),
        }
    }

    pub(super) fn write(&self) -> Option<Vec<Bytes>> {
        Some(vec![serde_json::to_vec(self).ok()?.into()])
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(one, _)| one == name)
    }

    pub(super) fn remove(&mut self, names: &[&str]) {
        self.0.retain(|(name, _)| !names.contains(&name.as_str()));
    }

    pub(super) fn add(&mut self, name: &str, value: &Value) -> Option<()> {
        self.0.push((name.to_owned(), raw(value)?));
        Some(())
    }

    /// Puts it before the others, unless it is there.
    pub(super) fn set_first(&mut self, name: &str, value: &Value) -> Option<()> {
        if !self.has(name) {
            self.0.insert(0, (name.to_owned(), raw(value)?));
        }
        Some(())
    }

    /// Removes the `scope` of cache marks, which only the format's own service knows.
    pub(super) fn remove_scopes(&mut self) -> Option<()> {
        for (name, value) in &mut self.0 {
            let may_have_marks =
                matches!(name.as_str(), "cache_control" | "system" | "messages" | "tools");
            if may_have_marks && value.get().contains("\"scope\"") {
                // What this reader does not take, such as a number that is too large, stays as it is.
                let Ok(mut tree) = serde_json::from_str::<Value>(value.get()) else { continue };
                match name.as_str() {
                    "cache_control" => without_scope(&mut tree),
                    _ => each_mark(&mut tree),
                }
                *value = raw(&tree)?;
            }
        }
        Some(())
    }
}

fn raw(value: &Value) -> Option<Box<RawValue>> {
    RawValue::from_string(value.to_string()).ok()
}

/// The marks of blocks, where the format allows them: in lists, and in the content of messages and
/// of tool results.
fn each_mark(tree: &mut Value) {
    for block in tree.as_array_mut().into_iter().flatten() {
        if let Some(mark) = block.get_mut("cache_control") {
            without_scope(mark);
        }
        if let Some(content) = block.get_mut("content") {
            each_mark(content);
        }
    }
}

fn without_scope(mark: &mut Value) {
    if let Some(mark) = mark.as_object_mut() {
        mark.shift_remove("scope");
    }
}
