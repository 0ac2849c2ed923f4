//! JSON schemas of tools and outputs in the formats' dialects.

use super::*;
use serde_json::json;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn tool_schemas_are_objects_without_their_dialects_name() {
    let cases = [
        (
            json!({"$schema": "x", "type": "object", "properties": {"$schema": {}}}),
            json!({"type": "object", "properties": {"$schema": {}}}),
        ),
        (json!({}), json!({"type": "object", "properties": {}})),
        (json!({"type": "object"}), json!({"type": "object", "properties": {}})),
    ];
    for (given, expected) in cases {
        assert_eq!(parsed(&of_tool(Json::new(&given.to_string())).unwrap()), expected);
    }
    let fine = Json::new(r#"{"type": "object", "properties": {}}"#);
    assert!(matches!(of_tool(fine).unwrap(), Text::Borrowed(_)));
    assert!(of_tool(Json::new("[1]")).is_none());
}

#[test]
fn the_alt_cli_dialect_becomes_json_schema() {
    let given = json!({
        "type": "OBJECT", "propertyOrdering": ["type"], "required": ["type"],
        "properties": {
            "type": {"type": "STRING", "nullable": true, "min_length": "2"},
            "list": {"type": "ARRAY", "items": {"type": "NUMBER"}, "minItems": "1"},
            "either": {"any_of": [{"type": "STRING"}, {"type": "INTEGER"}], "nullable": true},
        },
    });
    let expected = json!({
        "type": "object", "required": ["type"],
        "properties": {
            "type": {"type": ["string", "null"], "minLength": 2},
            "list": {"type": "array", "items": {"type": "number"}, "minItems": 1},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        },
    });
    assert_eq!(parsed(&from_alt_cli(Json::new(&given.to_string())).unwrap()), expected);
    assert_eq!(
        parsed(&from_alt_cli(Json::new(&expected.to_string())).unwrap()),
        expected,
        "and stays so"
    );
}

#[test]
fn open_objects_are_found_and_closed() {
    let map = json!({"type": "object", "properties": {
        "env": {"type": "object", "additionalProperties": {"type": "string"}}}});
    assert!(for_native_tool(&map.to_string()).is_none());
    let (text, changed) = for_native_output(&map.to_string());
    assert!(changed && for_native_tool(&text).is_some());
    let silent = json!({"type": "object", "properties": {"additionalProperties": {}}});
    assert!(for_native_tool(&silent.to_string()).is_some());
}

#[test]
fn native_output_schemas_are_closed_and_plain() {
    let given = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}, "minimum": {"type": "string"}}});
    let (text, changed) = for_native_output(&given.to_string());
    assert!(changed);
    let expected = json!({"type": "object", "properties": {"n": {"type": "integer"}, "minimum": {"type": "string"}}, "additionalProperties": false});
    assert_eq!(parsed(&text), expected);
    assert!(!for_native_output(&expected.to_string()).1);
}

#[test]
fn strictness_is_seen() {
    let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    assert!(is_strict(&closed.to_string()));
    for (key, value) in [
        ("required", json!([])),
        ("additionalProperties", json!(true)),
        ("properties", json!({"a": {"type": "object"}})),
    ] {
        let mut open = closed.clone();
        open[key] = value;
        assert!(!is_strict(&open.to_string()), "{key}");
    }
}

#[test]
fn arguments_become_objects() {
    for (given, expected, wrapped) in [
        ("", "{}", false),
        ("null", "{}", false),
        (" {\"a\":1} ", "{\"a\":1}", false),
        ("[1]", "{\"value\":[1]}", true),
        ("{\"a", "{\"value\":\"{\\\"a\"}", true),
        (r#"{"a":"\ud83d","b":"\ud83d\ude00"}"#, r#"{"a":"\ufffd","b":"\ud83d\ude00"}"#, false),
    ] {
        let (text, changed) = as_object(given);
        assert_eq!((&*text, changed), (expected, wrapped), "{given}");
    }
}

#[test]
fn the_input_of_a_free_text_tool_is_read_from_its_arguments() {
    for (given, expected) in [
        (r#"{"input":"a\nb"}"#, "a\nb"),
        (r#"{"input":"a\uDC00"}"#, "a\u{fffd}"),
        ("no json", "no json"),
    ] {
        assert_eq!(free_text_input(given), expected, "{given}");
    }
}
