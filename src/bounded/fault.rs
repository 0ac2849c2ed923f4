//! What is wrong with a value of a body, on its way through serde.
//!
//! serde's errors are texts. A fault travels in one as JSON, and [`Faults::from`] reads it again.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::reasons::{Code, Reason};

/// One fault of one field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// The kind of fault.
    pub code: Code,
    /// What exactly is wrong.
    pub reason: Reason,
    /// The values that the reason speaks of: `min`, `max`, `allowed`, …
    pub params: Map<String, Value>,
    /// Where below the field: `[3]`, `.isEnabled`; empty for the field itself.
    pub path: String,
}

/// The faults of one value; none of them if the value counts as not sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Faults(pub Vec<Fault>);

impl Fault {
    /// A fault of the field itself.
    pub fn new(code: Code, reason: Reason) -> Self {
        Self { code, reason, params: Map::new(), path: String::new() }
    }

    /// A value of the wrong type.
    pub fn wrong_type(reason: Reason) -> Self {
        Self::new(Code::INVALID_TYPE, reason)
    }

    /// A value of the right type that is none of the allowed ones.
    pub fn format(reason: Reason) -> Self {
        Self::new(Code::INVALID_FORMAT, reason)
    }

    /// With a parameter.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.params.insert(name.to_owned(), value.into());
        self
    }
}

impl Faults {
    /// That the value counts as not sent.
    pub const NOT_SENT: Self = Self(Vec::new());

    /// The faults of something at `place` of this value.
    pub fn below(mut self, place: &str) -> Self {
        for fault in &mut self.0 {
            fault.path.insert_str(0, place);
        }
        self
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Self(vec![fault])
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(&self.0).unwrap_or_default())
    }
}

impl From<serde_json::Error> for Faults {
    /// The faults that travelled in an error. One of serde's own is about a type without
    /// `FromJson`, which is `bool` alone.
    fn from(error: serde_json::Error) -> Self {
        let faults = serde_json::from_str(&error.to_string());
        Self(faults.unwrap_or_else(|_| vec![Fault::wrong_type(Reason::MustBeBoolean)]))
    }
}
