//! Reads a body into its type: the one adapter from faults of serde and of the fields to refusals.
//!
//! The answer is the first fault, in the order of the fields; if there are several, its parameters
//! list all of them, so that a form can show each at its field. serde stops at the first, so each
//! field is first read alone. Unknown fields are faults too: a misspelt limit must not be ignored
//! silently.

use std::iter::once;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::de::value::MapDeserializer;
use serde_json::{Map, Value};

use super::{Fault, Faults, Shape};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::reasons::Reason;

/// The body of an operation.
pub trait Input: DeserializeOwned + JsonSchema + Send + 'static {}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> Input for T {}

/// Reads the complete body of an operation.
///
/// # Errors
/// 400 with the code of the first fault and the field's name in the parameters.
pub fn read<T: Input>(sent: &Map<String, Value>) -> Result<T, ApiError> {
    let shape = Shape::of::<T>();
    if let Some(name) = sent.keys().find(|name| !shape.has(name)) {
        let name: String = name.chars().take(64).collect();
        return Err(refusal(Fault::format(Reason::UnknownField), &name));
    }
    fields(shape, sent).map_err(|faults| {
        ApiError::of_faults(faults)
            .unwrap_or_else(|| ApiError::internal("a body could not be read without a fault"))
    })
}

/// Reads the fields of `shape`; others are not looked at.
///
/// # Errors
/// Every fault, as an entry each.
pub fn fields<T: DeserializeOwned>(
    shape: &Shape,
    sent: &Map<String, Value>,
) -> Result<T, Vec<ApiError>> {
    let faults = faults_of::<T>(shape, sent);
    if !faults.is_empty() {
        let each = faults
            .into_iter()
            .flat_map(|(name, faults)| faults.0.into_iter().map(move |fault| refusal(fault, name)));
        return Err(each.collect());
    }
    let known: Vec<_> =
        sent.iter().filter(|(name, value)| shape.has(name) && is_sent::<T>(name, value)).collect();
    if known.len() < shape.least() {
        return Err(vec![ApiError::because(Code::EMPTY_UPDATE, Reason::NothingToChange)]);
    }
    let whole = MapDeserializer::new(known.into_iter().map(|(name, value)| (name.as_str(), value)));
    T::deserialize(whole).map_err(|error: serde_json::Error| vec![ApiError::internal(error)])
}

/// The fault as the refusal of the field `name`.
fn refusal(fault: Fault, name: &str) -> ApiError {
    ApiError::because(fault.code, fault.reason)
        .field(&format!("{name}{}", fault.path))
        .with_all(fault.params)
}

/// What is wrong with each field, in their order.
pub(super) fn faults_of<'s, T: DeserializeOwned>(
    shape: &'s Shape,
    sent: &Map<String, Value>,
) -> Vec<(&'s str, Faults)> {
    let of = |name: &str| {
        let found = sent.get(name).map_or(Err(Faults::NOT_SENT), |value| alone::<T>(name, value));
        match found {
            Err(faults) if faults != Faults::NOT_SENT => Some(faults),
            Err(_) if shape.requires(name) => {
                Some(Fault::new(Code::REQUIRED_FIELD, Reason::IsRequired).into())
            }
            _ => None,
        }
    };
    shape.names().filter_map(|name| of(name).map(|faults| (name, faults))).collect()
}

fn is_sent<T: DeserializeOwned>(name: &str, value: &Value) -> bool {
    alone::<T>(name, value).is_ok()
}

/// Reads one field. That others are missing is not a fault of it.
fn alone<T: DeserializeOwned>(name: &str, value: &Value) -> Result<(), Faults> {
    let one = MapDeserializer::<_, serde_json::Error>::new(once((name, value)));
    match T::deserialize(one) {
        Err(error) if !error.to_string().starts_with("missing field `") => Err(error.into()),
        _ => Ok(()),
    }
}
