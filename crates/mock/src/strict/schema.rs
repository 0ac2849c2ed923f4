//! JSON schemas that no service takes: members that are null in place of a schema, a list or a
//! count.

use serde_json::Value;

use crate::wire::WireFault;

/// Refuses a schema with such a member. `place`: its field in the request.
pub(super) fn check(schema: &Value, place: &str) -> Result<(), WireFault> {
    match null_in(schema, "") {
        None => Ok(()),
        Some(path) => Err(WireFault::bad(format!(
            "{place}: JSON schema is invalid: None is not valid under any of the given schemas, at \
             '{path}'"
        ))
        .param(place)
        .code("invalid_function_parameters")),
    }
}

/// The path of the first member that is null and may not be.
fn null_in(schema: &Value, path: &str) -> Option<String> {
    let fault = |key: &str, value: &Value| {
        let path = format!("{path}/{key}");
        if value.is_null() { Some(path) } else { null_in(value, &path) }
    };
    match schema {
        Value::Object(members) => members.iter().find_map(|(key, value)| match key.as_str() {
            "default" | "const" | "example" => None,
            "enum" | "examples" if value.is_array() => None,
            "properties" | "$defs" | "definitions" | "patternProperties" => {
                let schemas = value.as_object().into_iter().flatten();
                let inner =
                    |(name, schema): (&String, &Value)| fault(&format!("{key}/{name}"), schema);
                if value.is_null() {
                    Some(format!("{path}/{key}"))
                } else {
                    schemas.map(inner).find_map(|found| found)
                }
            }
            key => fault(key, value),
        }),
        Value::Array(list) => {
            list.iter().enumerate().find_map(|(index, value)| fault(&index.to_string(), value))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::check;

    #[test]
    fn nulls_are_refused_where_a_schema_is_expected() {
        for schema in [
            json!({"properties": null}),
            json!({"properties": {"a": null}}),
            json!({"properties": {"default": {"items": null}}}),
            json!({"required": ["a", null]}),
            json!({"type": ["string", null]}),
            json!({"anyOf": [{"enum": null}]}),
        ] {
            assert!(check(&schema, "x").is_err(), "{schema}");
        }
        for schema in [
            json!({"type": "object"}),
            json!({"properties": {"a": {"default": null, "const": null, "enum": [null, 1]}}}),
            json!(null),
        ] {
            assert!(check(&schema, "x").is_ok(), "{schema}");
        }
    }
}
