//! Fields that hold several values: lists, redirects of models, and JSON objects as they are.

use std::collections::HashSet;

use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::from_json::{FromJson, from_json};
use super::{Fault, Faults, Plain, Text};
use crate::reasons::{Code, Reason};

/// `MIN` … `MAX` values. `BATCH`: too many of them are refused as too large a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<T, const MIN: usize, const MAX: usize, const BATCH: bool = false>(pub Vec<T>);

/// At most `MAX` redirects, names of models by name, each of 1 … `LENGTH` characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairs<const MAX: usize, const LENGTH: usize>(pub Vec<(String, String)>);

/// Any JSON object, of at most `MAX` bytes as text.
#[derive(Debug, Clone, PartialEq)]
pub struct Document<const MAX: usize>(pub Map<String, Value>);

impl<T, const MIN: usize, const MAX: usize, const BATCH: bool> FromJson for List<T, MIN, MAX, BATCH>
where
    T: DeserializeOwned + JsonSchema,
{
    fn take(json: &Value) -> Result<Self, Faults> {
        let items = json.as_array().ok_or_else(|| Fault::wrong_type(Reason::MustBeList))?;
        if items.len() < MIN {
            return Err(Fault::new(Code::MIN_LENGTH, Reason::too_few(MIN)).with("min", MIN).into());
        }
        if items.len() > MAX {
            let code = if BATCH { Code::BATCH_SIZE_EXCEEDED } else { Code::MAX_LENGTH };
            return Err(Fault::new(code, Reason::AtMostEntries).with("max", MAX).into());
        }
        let each = items.iter().enumerate().map(|(index, item)| {
            T::deserialize(item).map_err(|error| Faults::from(error).below(&format!("[{index}]")))
        });
        each.collect::<Result<_, _>>().map(Self)
    }

    fn describe(schemas: &mut SchemaGenerator) -> Value {
        let mut schema =
            json!({ "type": "array", "items": T::json_schema(schemas), "maxItems": MAX });
        if MIN > 0 {
            schema["minItems"] = MIN.into();
        }
        schema
    }
}

impl<const MAX: usize, const LENGTH: usize> FromJson for Pairs<MAX, LENGTH> {
    fn take(json: &Value) -> Result<Self, Faults> {
        let sent = json.as_object().ok_or_else(|| Fault::wrong_type(Reason::MustBeTexts))?;
        if sent.len() > MAX {
            return Err(Fault::new(Code::MAX_LENGTH, Reason::AtMostEntries)
                .with("max", MAX)
                .into());
        }
        let text = |json: &Value| Text::<1, LENGTH>::take(json).map(Plain::plain);
        let each =
            sent.iter().map(|(name, json)| Ok((text(&Value::from(name.as_str()))?, text(json)?)));
        let pairs = each.collect::<Result<Vec<_>, Faults>>()?;
        // Names are trimmed, so two of the object may be one.
        let names: HashSet<&str> =
            pairs.iter().map(|(name, _): &(String, _)| name.as_str()).collect();
        if names.len() < pairs.len() {
            return Err(Fault::format(Reason::NamedTwice).into());
        }
        if pairs.iter().any(|(from, to)| from.contains('*') || to.contains('*')) {
            return Err(Fault::format(Reason::StarInRedirect).into());
        }
        Ok(Self(pairs))
    }

    fn describe(schemas: &mut SchemaGenerator) -> Value {
        let text = Text::<1, LENGTH>::describe(schemas);
        json!({ "type": "object", "additionalProperties": text, "maxProperties": MAX })
    }
}

impl<const MAX: usize> FromJson for Document<MAX> {
    fn take(json: &Value) -> Result<Self, Faults> {
        let object = json.as_object().ok_or_else(|| Fault::wrong_type(Reason::MustBeObject))?;
        if json.to_string().len() > MAX {
            return Err(Fault::new(Code::MAX_LENGTH, Reason::AtMostBytes).with("max", MAX).into());
        }
        Ok(Self(object.clone()))
    }

    fn describe(_: &mut SchemaGenerator) -> Value {
        json!({ "type": "object" })
    }
}

from_json!([T: DeserializeOwned + JsonSchema, const MIN: usize, const MAX: usize, const BATCH: bool] List<T, MIN, MAX, BATCH>);
from_json!([const MAX: usize, const LENGTH: usize] Pairs<MAX, LENGTH> => Vec<(String, String)>);
from_json!([const MAX: usize] Document<MAX>);

impl<T: Plain, const MIN: usize, const MAX: usize, const BATCH: bool> Plain
    for List<T, MIN, MAX, BATCH>
{
    type Out = Vec<T::Out>;

    fn plain(self) -> Self::Out {
        self.0.into_iter().map(Plain::plain).collect()
    }
}
