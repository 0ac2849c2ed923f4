//! Leaves members that are null out of schemas and other JSON that a service validates.
//!
//! Servers that are written in Go and Python send a field without a value as null; services take a
//! null schema, list or count for one of the wrong type. Values are kept that may be null:
//! `default`, `const`, the elements of `enum`.

use serde_json::Value;

/// Members that may be null.
const FREE: [&str; 2] = ["default", "const"];
/// Members whose content is data, not schemas.
const DATA: [&str; 5] = ["default", "const", "enum", "examples", "example"];
/// Members that name schemas: every name is allowed in them.
const NAMED: [&str; 7] = [
    "properties",
    "patternProperties",
    "$defs",
    "defs",
    "definitions",
    "dependentSchemas",
    "dependentRequired",
];

/// The JSON text without null members; `None` if it has none, or cannot be read.
pub fn left_out(json: &str) -> Option<String> {
    if !may_have_one(json.as_bytes()) {
        return None;
    }
    let mut value = serde_json::from_str(json).ok()?;
    clean(&mut value).then(|| value.to_string())
}

/// Whether a `null` follows a colon, a comma or a bracket, perhaps within a text.
fn may_have_one(json: &[u8]) -> bool {
    memchr::memmem::find_iter(json, b"null").any(|at| {
        let before = json[..at].iter().rfind(|byte| !byte.is_ascii_whitespace());
        before.is_some_and(|byte| b":,[".contains(byte))
    })
}

/// Returns whether a null was left out.
fn clean(schema: &mut Value) -> bool {
    let Value::Object(object) = schema else { return false };
    let before = object.len();
    object.retain(|key, value| !value.is_null() || FREE.contains(&key.as_str()));
    let mut changed = object.len() != before;
    for (key, value) in object {
        changed |= match value {
            _ if DATA.contains(&key.as_str()) => false,
            Value::Object(schemas) if NAMED.contains(&key.as_str()) => {
                let before = schemas.len();
                schemas.retain(|_, schema| !schema.is_null());
                let inner = schemas.values_mut().fold(false, |any, schema| clean(schema) | any);
                inner | (schemas.len() != before)
            }
            // YAML's `[string, null]`.
            Value::Array(kinds) if key == "type" => {
                let nulls = kinds.iter_mut().filter(|kind| kind.is_null());
                nulls.map(|kind| *kind = "null".into()).count() > 0
            }
            Value::Array(list) => {
                let before = list.len();
                list.retain(|element| !element.is_null());
                let inner = list.iter_mut().fold(false, |any, element| clean(element) | any);
                inner | (list.len() != before)
            }
            value => clean(value),
        };
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::left_out;

    #[test]
    fn nulls_are_left_out_where_a_schema_has_no_value() {
        let cases = [
            (r#"{"type":"object","properties":null,"required":null}"#, r#"{"type":"object"}"#),
            (
                r#"{"properties": {"a": {"items" :null, "enum": ["x", null]}, "b": null}}"#,
                r#"{"properties":{"a":{"enum":["x",null]}}}"#,
            ),
            (
                r#"{"anyOf":[null,{"title":null,"default":null,"const":null}]}"#,
                r#"{"anyOf":[{"default":null,"const":null}]}"#,
            ),
            (r#"{"type":["string",null]}"#, r#"{"type":["string","null"]}"#),
            (r#"{"enum":null,"examples":null,"required":["a",null]}"#, r#"{"required":["a"]}"#),
            // A property may have any name.
            (
                r#"{"properties":{"default":null,"enum":{"description":null}}}"#,
                r#"{"properties":{"enum":{}}}"#,
            ),
            (
                r#"{"$defs":{"x":{"additionalProperties":null}},"not":{"items":{"minimum":null}}}"#,
                r#"{"$defs":{"x":{}},"not":{"items":{}}}"#,
            ),
        ];
        for (given, expected) in cases {
            assert_eq!(left_out(given).as_deref(), Some(expected), "{given}");
        }
    }

    #[test]
    fn what_has_no_null_member_stays_as_it_is() {
        for given in [
            r#"{"type": ["string", "null"]}"#,
            r#"{"description": "a: null, [null]", "enum": [ null ], "default" : null}"#,
            r#"{"default":{"a":null},"example":{"b":null},"examples":[null,{"c":null}]}"#,
            "null",
            "[1, null",
        ] {
            assert_eq!(left_out(given), None, "{given}");
        }
    }
}
