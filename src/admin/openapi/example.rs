//! Builds an example of any schema of the document: of every body, and of every answer.
//!
//! Nothing is defined twice: the schema contains the required members and their types, `words` an
//! example for each name. A test checks every example against its schema, and every body's against
//! the gateway's own check.

use serde_json::{Map, Value, json};

use super::words;

/// Optional fields of a body that are shown.
const OPTIONAL: usize = 4;
/// Recursive schemas end at this depth.
const DEPTH: usize = 12;

/// A valid body of an operation of that module: the required fields, and some optional ones.
pub(super) fn of_body(schema: &Value, module: &str) -> Value {
    Maker { components: &Value::Null, optional: OPTIONAL }
        .of(schema, At { place: module, name: "", depth: 0 })
}

/// A complete answer of that module. `components` are the document's schemas.
pub(super) fn of_answer(schema: &Value, module: &str, components: &Value) -> Value {
    Maker { components, optional: usize::MAX }.of(schema, At { place: module, name: "", depth: 0 })
}

/// The current position: the schema or module, and the property.
#[derive(Clone, Copy)]
struct At<'a> {
    place: &'a str,
    name: &'a str,
    depth: usize,
}

struct Maker<'a> {
    components: &'a Value,
    /// How many optional properties are shown.
    optional: usize,
}

impl Maker<'_> {
    fn of(&self, schema: &Value, at: At<'_>) -> Value {
        if let Some(fixed) = schema.get("const") {
            return fixed.clone();
        }
        if let Some(word) = words::of(at.place, at.name).filter(|word| fits(schema, word)) {
            return word;
        }
        if let Some(target) = schema["$ref"].as_str().and_then(|target| target.rsplit('/').next()) {
            return match at.depth < DEPTH {
                true => self
                    .of(&self.components[target], At { place: target, depth: at.depth + 1, ..at }),
                false => Value::Null,
            };
        }
        let choice = ["oneOf", "anyOf"].into_iter().find_map(|key| schema[key].get(0));
        if let Some(first) = choice {
            return self.of(first, at);
        }
        if let Some(first) = schema["enum"].get(0) {
            return first.clone();
        }
        match main_type(schema) {
            "object" => self.object(schema, at),
            "array" => json!([self.of(&schema["items"], at)]),
            "integer" => json!(schema["minimum"].as_i64().unwrap_or(0).max(1)),
            "number" => json!(0.25),
            "boolean" => json!(true),
            "string" => text(schema),
            _ => Value::Null,
        }
    }

    fn object(&self, schema: &Value, at: At<'_>) -> Value {
        let Some(properties) = schema["properties"].as_object() else { return json!({}) };
        let required = |name: &str| {
            schema["required"]
                .as_array()
                .is_some_and(|names| names.iter().any(|each| each.as_str() == Some(name)))
        };
        let mut left = self.optional;
        // A partial update must show a change besides its target, so properties with an example
        // come first, in the table's order.
        let shown = properties.iter().filter(|(name, _)| {
            let optional = !required(name)
                && (self.optional == usize::MAX || words::of(at.place, name).is_some());
            let taken = optional && left > 0;
            left -= usize::from(taken);
            required(name) || taken
        });
        let made: Map<String, Value> = shown
            .map(|(name, schema)| {
                (name.clone(), self.of(schema, At { name, depth: at.depth + 1, ..at }))
            })
            .collect();
        made.into()
    }
}

/// The type of an example, if several are allowed: the first.
fn main_type(schema: &Value) -> &str {
    match &schema["type"] {
        Value::Array(types) => types.first().and_then(Value::as_str).unwrap_or_default(),
        single => single.as_str().unwrap_or_default(),
    }
}

/// Whether an example fits the schema: of the right type, and not excluded by its forms.
fn fits(schema: &Value, word: &Value) -> bool {
    if word.is_null() {
        return schema["type"].as_array().is_some_and(|types| types.contains(&json!("null")));
    }
    let typed = match main_type(schema) {
        "" => {
            schema.get("$ref").is_none()
                && schema.get("oneOf").is_none()
                && schema.get("anyOf").is_none()
        }
        "object" => word.is_object() && schema.get("properties").is_none(),
        "array" => word.is_array(),
        "integer" => word.is_i64(),
        "number" => word.is_number(),
        "boolean" => word.is_boolean(),
        "string" => word.is_string(),
        _ => false,
    };
    let listed = schema["enum"].as_array().is_none_or(|known| known.contains(word));
    typed && listed
}

fn text(schema: &Value) -> Value {
    let given = schema["examples"].get(0).cloned();
    given.unwrap_or_else(|| match schema["format"].as_str() {
        Some("date-time") => json!(words::MOMENT),
        Some("uri") => json!("https://example.com"),
        _ => json!("text"),
    })
}
