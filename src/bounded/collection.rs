//! Fields that hold several values: lists, redirects of models, and JSON objects as they are.

use std::collections::HashSet;

use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::from_json::{FromJson, from_json};
use super::{Fault, Faults, FromText, InYaml, Plain, Text, Wrong};
use crate::domain::network::{Network, Networks};
use crate::reasons::{Code, Reason};

/// `MIN` … `MAX` values. `BATCH`: too many of them are refused as too large a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<T, const MIN: usize, const MAX: usize, const BATCH: bool = false>(pub Vec<T>);

/// The members of an object, at most `most`: names of 1 … `NAME` and texts of 1 … `TEXT` characters.
///
/// # Errors
/// What is wrong with the object or its first wrong member.
pub fn texts<const NAME: usize, const TEXT: usize>(
    json: &Value,
    most: usize,
) -> Result<Vec<(String, String)>, Faults> {
    let sent = json.as_object().ok_or_else(|| Fault::wrong_type(Reason::MustBeTexts))?;
    if sent.len() > most {
        return Err(Fault::new(Code::MAX_LENGTH, Reason::AtMostEntries).with("max", most).into());
    }
    let name = |name: &str| Text::<1, NAME>::take(&Value::from(name)).map(Plain::plain);
    let text = |json: &Value| Text::<1, TEXT>::take(json).map(Plain::plain);
    sent.iter().map(|(key, json)| Ok((name(key)?, text(json)?))).collect()
}

/// Checks that no two have one name. Names are trimmed, so two of the object may be one.
///
/// # Errors
/// Two have one.
pub fn differ(pairs: &[(String, String)]) -> Result<(), Faults> {
    let names: HashSet<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
    match names.len() < pairs.len() {
        true => Err(Fault::format(Reason::NamedTwice).into()),
        false => Ok(()),
    }
}

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
        let pairs = texts::<LENGTH, LENGTH>(json, MAX)?;
        differ(&pairs)?;
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

/// A type of the entries of lists that are written as text.
pub trait Listed: FromText {
    /// The list.
    type List: FromIterator<Self::Out> + AsRef<[Self::Out]>;

    /// Several of them, with an example.
    const SEVERAL: &'static str;
}

/// As text, the entries have commas between them.
impl<T: Listed, const MIN: usize, const MAX: usize> FromText for List<T, MIN, MAX> {
    type Out = T::List;

    const YAML: InYaml = InYaml::List;

    fn read(text: &str) -> Result<Self::Out, Wrong> {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        Self::read_all(&items.collect::<Vec<_>>())
    }

    fn read_all(items: &[&str]) -> Result<Self::Out, Wrong> {
        if !(MIN..=MAX).contains(&items.len()) {
            return Err(format!("has not {MIN} to {MAX} entries").into());
        }
        let each = items.iter().map(|item| T::read(item));
        each.collect::<Result<_, _>>()
            .map_err(|wrong| format!("contains a value that {}", wrong.wrong).into())
    }

    fn text(list: &Self::Out) -> String {
        list.as_ref().iter().map(T::text).collect::<Vec<_>>().join(", ")
    }

    fn shape() -> String {
        format!("write a list of {}", T::SEVERAL)
    }
}

impl FromText for Network {
    type Out = Self;

    fn read(text: &str) -> Result<Self, Wrong> {
        Self::parse(text).ok_or_else(|| "is not a network".into())
    }

    fn text(network: &Self) -> String {
        network.to_string()
    }

    fn shape() -> String {
        "write a network, such as 10.0.0.0/8".to_owned()
    }
}

impl Listed for Network {
    type List = Networks;

    const SEVERAL: &'static str = "networks, such as [10.0.0.0/8, 192.0.2.7]";
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
