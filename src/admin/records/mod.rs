//! What the administration API shows: one struct for each kind of record, from which its schema is
//! made too.
//!
//! Times are ISO 8601 in UTC, amounts exact decimal numbers in USD, secrets masked.

pub mod audit;
pub mod cache_misses;
pub mod cost;
pub mod error_rule;
pub mod health;
pub mod key;
pub mod limits;
pub mod live;
pub mod log;
pub mod message;
pub mod my_usage;
pub mod notifications;
pub mod overview;
pub mod playground;
pub mod price;
pub mod problem;
pub mod provider;
pub mod reconciliation;
pub mod rejected;
pub mod selection;
pub mod series;
pub mod session;
pub mod settings;
pub mod statistics;
pub mod tightest;
pub mod usage;
pub mod user;
pub mod word;

use std::borrow::Cow;

use rust_decimal::Decimal;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::domain::clock::Timestamp;
use crate::domain::group::Groups;
use crate::domain::money::NanoUsd;

/// An exact decimal as a JSON number: written digit by digit, never as a binary fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exact(pub Decimal);

impl Exact {
    /// Converts an amount of nano-USD to the same amount in USD, without rounding.
    pub fn usd(amount: NanoUsd) -> Self {
        Self(amount.to_decimal())
    }
}

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.normalize().to_string();
        RawValue::from_string(text).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl JsonSchema for Exact {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Exact".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number" })
    }
}

/// A time as ISO 8601 with milliseconds, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iso(pub Timestamp);

impl Serialize for Iso {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_iso())
    }
}

impl JsonSchema for Iso {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Iso".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// The status of a usable user or key.
pub const ENABLED: &str = "enabled";

/// The status of a user or a key.
pub const fn status(is_enabled: bool, is_expired: bool) -> &'static str {
    match (is_enabled, is_expired) {
        (false, _) => "disabled",
        (true, true) => "expired",
        (true, false) => ENABLED,
    }
}

/// Group names as shown: the default spelled out.
pub fn groups_text(groups: &Groups) -> String {
    groups.effective().collect::<Vec<_>>().join(",")
}
