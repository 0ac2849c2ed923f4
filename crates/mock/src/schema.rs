//! The smallest value that is valid for a JSON schema, for requests that require structured output.
//!
//! Supports the keywords that clients use (type, enum, const, properties, required, items, minimum,
//! minItems, anyOf); no references, no patterns.

use serde_json::{Map, Value, json};

/// Schemas nested deeper than this give null.
const MAX_DEPTH: usize = 24;

/// A value that is valid for `schema`; type names in upper case (alt-cli) are accepted.
pub(super) fn smallest(schema: &Value) -> Value {
    at_depth(schema, 0)
}

fn at_depth(schema: &Value, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    if !schema["const"].is_null() {
        return schema["const"].clone();
    }
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    for union in ["anyOf", "oneOf", "any_of"] {
        if let Some(first) = schema[union].get(0) {
            return at_depth(first, depth + 1);
        }
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str()).unwrap_or_default();
    match kind.to_ascii_lowercase().as_str() {
        "object" => object(schema, depth),
        "array" => {
            let least = schema["minItems"].as_u64().unwrap_or(0).min(16);
            Value::Array((0..least).map(|_| at_depth(&schema["items"], depth + 1)).collect())
        }
        "string" => json!("mock"),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(0)),
        "boolean" => json!(false),
        "" if schema["properties"].is_object() => object(schema, depth),
        _ => Value::Null,
    }
}

fn object(schema: &Value, depth: usize) -> Value {
    let mut map = Map::new();
    if let Some(properties) = schema["properties"].as_object() {
        for (name, property) in properties {
            map.insert(name.clone(), at_depth(property, depth + 1));
        }
    }
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_what_clients_ask_for() {
        let schema = json!({"type": "OBJECT", "properties": {
            "choice": {"type": "STRING", "enum": ["flash", "pro"]}, "why": {"type": "string"},
            "n": {"type": "integer", "minimum": 3}, "list": {"type": "array", "minItems": 2, "items": {"type": "boolean"}},
            "maybe": {"anyOf": [{"type": "null"}, {"type": "string"}]}}});
        assert_eq!(
            smallest(&schema),
            json!({"choice": "flash", "why": "mock", "n": 3, "list": [false, false], "maybe": null})
        );
    }
}
