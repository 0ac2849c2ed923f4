//! Bodies made of two: the fields that name a record, and those that say what becomes of it.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::read::faults_of;
use super::{Fault, Faults, Shape};
use crate::admin::envelope::Code;
use crate::admin::reasons::Reason;
use crate::bounded::{FromJson, from_json};

/// A body without fields.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Nothing {}

/// A new record that belongs to `target`. Every field of `new` is optional to serde; those that it
/// names as required must be sent.
#[derive(Debug, Deserialize)]
pub struct With<T, D> {
    /// The record's own fields.
    #[serde(flatten)]
    pub new: D,
    /// What the record belongs to.
    #[serde(flatten)]
    pub target: T,
}

/// A partial update of the record that `target` names: every field of `change` may be left out (and
/// then stays unchanged), but not all of them.
#[derive(Debug, Deserialize)]
pub struct Edit<T, D> {
    /// What becomes of it. Before the target, as serde reports the faults of the first alone.
    #[serde(flatten)]
    pub change: D,
    /// Which record.
    #[serde(flatten)]
    pub target: T,
}

/// A nested part of a body, of whose fields at least one must be sent.
#[derive(Debug)]
pub struct Part<T>(pub T);

impl<T: JsonSchema + 'static, D: JsonSchema + 'static> JsonSchema for With<T, D> {
    fn schema_name() -> Cow<'static, str> {
        D::schema_name()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Shape::of::<T>().and(Shape::of::<D>()).schema().try_into().unwrap_or_default()
    }
}

impl<T: JsonSchema + 'static, D: JsonSchema + 'static> JsonSchema for Edit<T, D> {
    fn schema_name() -> Cow<'static, str> {
        D::schema_name()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let target = Shape::of::<T>();
        let shape = target.and(&Shape::of::<D>().optional()).at_least(target.names().count() + 1);
        shape.schema().try_into().unwrap_or_default()
    }
}

impl<T: DeserializeOwned + JsonSchema + 'static> FromJson for Part<T> {
    fn take(json: &Value) -> Result<Self, Faults> {
        let sent: &Map<String, Value> =
            json.as_object().ok_or_else(|| Fault::wrong_type(Reason::MustBeObject))?;
        let shape = Shape::of::<T>();
        if let Some(name) = sent.keys().find(|name| !shape.has(name)) {
            let name: String = name.chars().take(64).collect();
            return Err(
                Faults::from(Fault::format(Reason::UnknownField)).below(&format!(".{name}"))
            );
        }
        if sent.is_empty() {
            return Err(Fault::new(Code::EMPTY_UPDATE, Reason::NamesNoField).into());
        }
        let each = faults_of::<T>(shape, sent)
            .into_iter()
            .flat_map(|(name, faults)| faults.below(&format!(".{name}")).0);
        match each.collect::<Vec<_>>() {
            faults if faults.is_empty() => Ok(Self(T::deserialize(json)?)),
            faults => Err(Faults(faults)),
        }
    }

    fn describe(_: &mut SchemaGenerator) -> Value {
        Shape::of::<T>().clone().at_least(1).schema()
    }
}

from_json!([T: DeserializeOwned + JsonSchema + 'static] Part<T>);
