//! A small JSON schema checker: the part of 2020-12 that the document uses; anything else is an
//! error.

use serde_json::Value;

/// Everything that is wrong with `value`, as paths with reasons.
pub fn faults(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(document, schema, value, "$", &mut faults);
    faults
}

const KNOWN: &[&str] = &[
    "$ref",
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "oneOf",
    "contentMediaType",
    "contentSchema",
    "const",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "pattern",
    "format",
    "description",
    "default",
    "examples",
    "title",
];

fn check(document: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    let Some(rules) = schema.as_object() else {
        if schema != &Value::Bool(true) {
            faults.push(format!("{at}: {schema} is not a schema"));
        }
        return;
    };
    faults.extend(
        rules
            .keys()
            .filter(|k| !KNOWN.contains(&k.as_str()))
            .map(|k| format!("{at}: unknown keyword {k}")),
    );
    if let Some(target) = rules.get("$ref").and_then(Value::as_str) {
        match document.pointer(target.trim_start_matches('#')) {
            Some(target) => check(document, target, value, at, faults),
            None => faults.push(format!("{at}: {target} leads nowhere")),
        }
    }
    if let Some(any) = rules.get("anyOf").and_then(Value::as_array) {
        let fits = |schema| self::faults(document, schema, value).is_empty();
        if !any.iter().any(fits) {
            faults.push(format!("{at}: fits none of {any:?}"));
        }
    }
    one_of_and_content(document, rules, value, at, faults);
    if !has_type(&rules.get("type").cloned().unwrap_or_default(), value) {
        return faults.push(format!("{at}: {value} is no {}", rules["type"]));
    }
    if rules.get("const").is_some_and(|c| c != value) {
        faults.push(format!("{at}: {value} is not {}", rules["const"]));
    }
    if rules.get("enum").and_then(Value::as_array).is_some_and(|words| !words.contains(value)) {
        faults.push(format!("{at}: {value} is not in {}", rules["enum"]));
    }
    let size = match value {
        Value::String(text) => ["minLength", "maxLength"].map(|k| (k, text.chars().count() as f64)),
        Value::Array(items) => ["minItems", "maxItems"].map(|k| (k, items.len() as f64)),
        Value::Object(map) => ["minProperties", "maxProperties"].map(|k| (k, map.len() as f64)),
        Value::Number(n) => ["minimum", "maximum"].map(|k| (k, n.as_f64().unwrap_or_default())),
        _ => [("", 0.0); 2],
    };
    for (index, (name, size)) in size.into_iter().enumerate() {
        if let Some(bound) = rules.get(name).and_then(Value::as_f64)
            && (if index == 0 { size < bound } else { size > bound })
        {
            faults.push(format!("{at}: {name} {bound} against {size}"));
        }
    }
    if let (Some(pattern), Some(text)) =
        (rules.get("pattern").and_then(Value::as_str), value.as_str())
        && !regex::Regex::new(pattern).unwrap().is_match(text)
    {
        faults.push(format!("{at}: {text:?} does not look like {pattern}"));
    }
    children(document, rules, value, at, faults);
}

fn one_of_and_content(
    document: &Value,
    rules: &serde_json::Map<String, Value>,
    value: &Value,
    at: &str,
    faults: &mut Vec<String>,
) {
    if let Some(one) = rules.get("oneOf").and_then(Value::as_array) {
        let fitting =
            one.iter().filter(|schema| self::faults(document, schema, value).is_empty()).count();
        if fitting != 1 {
            faults.push(format!("{at}: fits {fitting} of {one:?}"));
        }
    }
    if let Some(text) = value.as_str()
        && rules.get("contentMediaType").is_some_and(|kind| kind == "application/json")
    {
        match (serde_json::from_str(text), rules.get("contentSchema")) {
            (Ok(content), Some(schema)) => {
                check(document, schema, &content, &format!("{at}.content"), faults)
            }
            (Ok(_), None) => {}
            (Err(e), _) => faults.push(format!("{at}: holds no JSON: {e}")),
        }
    }
}

fn children(
    document: &Value,
    rules: &serde_json::Map<String, Value>,
    value: &Value,
    at: &str,
    faults: &mut Vec<String>,
) {
    if let (Some(items), Some(schema)) = (value.as_array(), rules.get("items")) {
        for (index, item) in items.iter().enumerate() {
            check(document, schema, item, &format!("{at}[{index}]"), faults);
        }
    }
    let Some(map) = value.as_object() else { return };
    for name in rules
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if !map.contains_key(name) {
            faults.push(format!("{at}: lacks {name}"));
        }
    }
    for (name, value) in map {
        let at = format!("{at}.{name}");
        match rules
            .get("properties")
            .and_then(|p| p.get(name))
            .or_else(|| rules.get("additionalProperties"))
        {
            Some(Value::Bool(false)) => faults.push(format!("{at}: is not declared")),
            Some(schema) => check(document, schema, value, &at, faults),
            None => {}
        }
    }
}

fn has_type(types: &Value, value: &Value) -> bool {
    let one = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    match types {
        Value::Null => true,
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(one),
        name => name.as_str().is_some_and(one),
    }
}

#[test]
fn the_checker_sees_faults() {
    let schema = serde_json::json!({
        "type": "object",
        "properties": { "n": { "type": ["integer", "null"], "maximum": 3 }, "s": { "type": "string", "maxLength": 2 } },
        "required": ["n"],
        "additionalProperties": false,
    });
    let count = |value| faults(&schema, &schema, &value).len();
    assert_eq!(count(serde_json::json!({ "n": 3, "s": "ab" })), 0);
    assert_eq!(count(serde_json::json!({ "n": null })), 0);
    assert_eq!(count(serde_json::json!({ "n": 4, "s": "abc", "x": 1 })), 3);
    assert_eq!(count(serde_json::json!({})), 1);
    assert_eq!(count(serde_json::json!([])), 1);
    let text = serde_json::json!({
        "oneOf": [
            { "type": "string", "contentMediaType": "application/json", "contentSchema": { "type": "integer" } },
            { "type": "boolean" },
        ],
    });
    let fits = |value| faults(&text, &text, &value).is_empty();
    assert!(fits(serde_json::json!("7")) && fits(serde_json::json!(true)));
    for wrong in [serde_json::json!(7), serde_json::json!("true"), serde_json::json!("no JSON")] {
        assert!(!fits(wrong.clone()), "{wrong}");
    }
}
