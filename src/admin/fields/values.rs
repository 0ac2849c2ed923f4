//! The checked values of a body, read by field name.

use rust_decimal::Decimal;

use crate::domain::clock::Timestamp;
use crate::domain::money::NanoUsd;

/// A checked value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null` was sent for a field that accepts it.
    Null,
    Integer(i64),
    Decimal(Decimal),
    Text(String),
    Boolean(bool),
    Moment(Timestamp),
    List(Vec<Self>),
    Map(Vec<(String, String)>),
    /// A JSON object as it was sent.
    Document(serde_json::Value),
    Object(Values),
}

/// The effect of an edit on one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Patch<T> {
    /// Not sent: stays.
    Keep,
    /// `null`: cleared.
    Clear,
    Set(T),
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

    /// Sets the new value if there is one; for values that cannot be cleared.
    pub fn apply_set(self, to: &mut T) {
        if let Self::Set(value) = self {
            *to = value;
        }
    }

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

/// The fields that were sent (or have a default), by name. Reading a name that the table lacks is a
/// programming error that debug builds detect.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values {
    sent: Vec<(&'static str, Value)>,
    declared: Vec<&'static str>,
}

impl Values {
    pub(super) fn declare(names: Vec<&'static str>) -> Self {
        Self { sent: Vec::new(), declared: names }
    }

    pub(super) fn put(&mut self, name: &'static str, value: Value) {
        self.sent.push((name, value));
    }

    /// Whether the field was sent, even as `null`.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    fn get(&self, name: &str) -> Option<&Value> {
        debug_assert!(self.declared.contains(&name), "no field {name} in this body");
        self.sent.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }

    fn patch<T>(&self, name: &str, read: impl FnOnce(&Value) -> Option<T>) -> Patch<T> {
        match self.get(name) {
            None => Patch::Keep,
            Some(value) => read(value).map_or(Patch::Clear, Patch::Set),
        }
    }

    pub fn integer(&self, name: &str) -> Patch<i64> {
        self.patch(name, |v| if let Value::Integer(n) = v { Some(*n) } else { None })
    }

    /// A record id; 0, which no record has, if it was not sent (the check refuses that before).
    pub fn id(&self, name: &str) -> i64 {
        self.integer(name).set().unwrap_or_default()
    }

    /// A whole number that the field's bounds keep within `u32`.
    pub fn count(&self, name: &str) -> Patch<u32> {
        self.integer(name).map(|n| u32::try_from(n).unwrap_or(if n < 0 { 0 } else { u32::MAX }))
    }

    pub fn decimal(&self, name: &str) -> Patch<Decimal> {
        self.patch(name, |v| if let Value::Decimal(d) = v { Some(*d) } else { None })
    }

    pub fn usd(&self, name: &str) -> Patch<NanoUsd> {
        self.patch(name, |v| if let Value::Decimal(d) = v { NanoUsd::from_decimal(*d) } else { None })
    }

    pub fn text(&self, name: &str) -> Patch<String> {
        self.patch(name, |v| if let Value::Text(t) = v { Some(t.clone()) } else { None })
    }

    /// A text of a kind that `parse` can read.
    pub fn word<T>(&self, name: &str, parse: impl Fn(&str) -> Option<T>) -> Patch<T> {
        match self.text(name) {
            Patch::Set(text) => parse(&text).map_or(Patch::Keep, Patch::Set),
            Patch::Clear | Patch::Keep => Patch::Keep,
        }
    }

    pub fn boolean(&self, name: &str) -> Patch<bool> {
        self.patch(name, |v| if let Value::Boolean(b) = v { Some(*b) } else { None })
    }

    pub fn moment(&self, name: &str) -> Patch<Timestamp> {
        self.patch(name, |v| if let Value::Moment(t) = v { Some(*t) } else { None })
    }

    pub fn texts(&self, name: &str) -> Patch<Vec<String>> {
        self.patch(name, |v| match v {
            Value::List(items) => {
                Some(items.iter().filter_map(|i| if let Value::Text(t) = i { Some(t.clone()) } else { None }).collect())
            }
            _ => None,
        })
    }

    pub fn integers(&self, name: &str) -> Patch<Vec<i64>> {
        self.patch(name, |v| match v {
            Value::List(items) => {
                Some(items.iter().filter_map(|i| if let Value::Integer(n) = i { Some(*n) } else { None }).collect())
            }
            _ => None,
        })
    }

    pub fn pairs(&self, name: &str) -> Patch<Vec<(String, String)>> {
        self.patch(name, |v| if let Value::Map(pairs) = v { Some(pairs.clone()) } else { None })
    }

    pub fn document(&self, name: &str) -> Patch<serde_json::Value> {
        self.patch(name, |v| if let Value::Document(d) = v { Some(d.clone()) } else { None })
    }

    /// A nested table; empty when it was not sent.
    pub fn object(&self, name: &str) -> Self {
        self.patch(name, |v| if let Value::Object(o) = v { Some(o.clone()) } else { None }).set().unwrap_or_default()
    }
}
