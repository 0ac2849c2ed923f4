//! JSON Schema: the form that every vendor accepts, and each vendor's own dialect.

use std::collections::HashSet;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::text::{Str, Text};
use super::{Rule, Rules, json, nulls, surrogates};
use crate::formats::json_read::{self, Json, MOST_IN_TREE};

/// The schema of a tool without arguments.
pub const NO_ARGUMENTS: &str = r#"{"type":"object","properties":{}}"#;

/// The schema of a tool that takes free text, in formats that have only functions.
pub const FREE_TEXT: &str = r#"{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}"#;

/// The description of such a tool, with its grammar, if any, as text.
pub fn free_text_description(description: Option<&str>, format: Option<Json<'_>>) -> String {
    #[derive(serde::Deserialize)]
    struct SchemaFormat<'a> {
        #[serde(borrow)]
        syntax: Option<Str<'a>>,
        #[serde(borrow)]
        definition: Option<Str<'a>>,
        #[serde(borrow)]
        grammar: Option<Json<'a>>,
    }
    let read = |raw: Json<'_>| -> Option<String> {
        let text = without_halves(raw);
        let mut format: SchemaFormat<'_> = json_read::from_str(&text).ok()?;
        if let Some(inner) = format.grammar {
            format = json_read::from_str(inner.get()).ok()?;
        }
        let syntax = format.syntax.as_deref().unwrap_or("given").to_owned();
        Some(format!("\n\nThe input must follow this {syntax} grammar:\n{}", &*format.definition?))
    };
    let grammar = format.and_then(read).unwrap_or_default();
    format!(
        "{}\n\nGive the whole free-form text as the argument `input`.{grammar}",
        description.unwrap_or_default()
    )
    .trim_start()
    .to_owned()
}

/// A part of the body that was not parsed with it, where half a surrogate pair is still in.
pub fn without_halves(raw: Json<'_>) -> Text<'_> {
    surrogates::replaced_text(raw.get()).map_or(Text::Borrowed(raw.get()), Text::Owned)
}

/// The input of a free-text tool, from the function's arguments. U+FFFD replaces half a surrogate
/// pair, as in [`as_object`].
pub fn free_text_input(arguments: &str) -> Text<'_> {
    match surrogates::replaced_text(arguments) {
        None => input_of(arguments),
        Some(arguments) => Text::Owned(input_of(&arguments).into_owned()),
    }
}

fn input_of(arguments: &str) -> Text<'_> {
    #[derive(serde::Deserialize)]
    struct SchemaInput<'a> {
        #[serde(borrow)]
        input: Str<'a>,
    }
    json_read::from_str(arguments)
        .map_or(Text::Borrowed(arguments), |given: SchemaInput<'_>| given.input.into_text())
}

/// Whether a schema is passed on as it is, not adapted.
fn is_large(schema: &str) -> bool {
    json_read::is_too_large_for_a_tree(schema.as_bytes())
}

/// The members of an object, in order, their values not parsed; at most 20 000.
pub struct Members<'a>(pub Vec<(Str<'a>, Json<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SchemaReader;
        impl<'de> Visitor<'de> for SchemaReader {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    if members.len() == MOST_IN_TREE {
                        return Err(serde::de::Error::custom("too many members"));
                    }
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(SchemaReader)
    }
}

/// A part of the body that a service validates, without halves and without members that are null
/// ([`nulls`]).
pub fn validated(raw: Json<'_>) -> Text<'_> {
    let text = without_halves(raw);
    nulls::left_out(&text).map_or(text, Text::Owned)
}

/// A tool's schema in the form that every vendor accepts: an object schema with `properties`,
/// without `$schema` and null members.
///
/// `None` if it is not an object at all.
pub fn of_tool(schema: Json<'_>) -> Option<Text<'_>> {
    match validated(schema) {
        Text::Borrowed(schema) => complete(schema),
        Text::Owned(schema) => complete(&schema).map(|whole| Text::Owned(whole.into_owned())),
    }
}

fn complete(schema: &str) -> Option<Text<'_>> {
    if is_large(schema) {
        return schema.starts_with('{').then(|| schema.into());
    }
    let Members(members) = json_read::from_str(schema).ok()?;
    let has = |key: &str| members.iter().any(|(name, _)| &**name == key);
    let complete = has("type") && (has("properties") || has("$ref"));
    if complete && !has("$schema") {
        return Some(schema.into());
    }
    let bytes = json::document(|o| {
        if !has("type") {
            o.word("type", "object");
        }
        for (name, value) in members.iter().filter(|(name, _)| &**name != "$schema") {
            o.named(name).extend_from_slice(value.get().as_bytes());
        }
        if !has("properties") && !has("$ref") {
            o.raw("properties", "{}");
        }
    });
    String::from_utf8(bytes).ok().map(Text::Owned)
}

/// As [`of_tool`], noting the rule if the schema was changed.
pub fn read_tool<'a>(schema: Option<Json<'a>>, rules: &mut Rules) -> Option<Text<'a>> {
    let text = of_tool(schema?)?;
    rules.note_if(matches!(text, Text::Owned(_)), Rule::SchemaDialect);
    Some(text)
}

/// From the alt-cli format's own dialect, or from JSON Schema with that dialect's type names.
pub fn from_alt_cli(schema: Json<'_>) -> Option<Text<'static>> {
    let schema = validated(schema);
    if is_large(&schema) {
        return schema.starts_with('{').then(|| Text::Owned(schema.into_owned()));
    }
    let value: Value = serde_json::from_str(&schema).ok()?;
    let mut plain = plain_schema(value);
    let object = plain.as_object_mut()?;
    object.remove("$schema");
    Some(Text::Owned(plain.to_string()))
}

/// Adds what a tool's schema requires and one from the alt-cli format may lack.
pub fn with_properties(schema: Text<'static>) -> Text<'static> {
    of_tool(Json::new(&schema))
        .map_or(Text::Borrowed(NO_ARGUMENTS), |complete| Text::Owned(complete.into_owned()))
}

/// Keys that the dialect may write in snake case, or as text although they are numbers.
const RENAMED: [(&str, &str); 10] = [
    ("any_of", "anyOf"),
    ("min_items", "minItems"),
    ("max_items", "maxItems"),
    ("min_length", "minLength"),
    ("max_length", "maxLength"),
    ("min_properties", "minProperties"),
    ("max_properties", "maxProperties"),
    ("additional_properties", "additionalProperties"),
    ("defs", "$defs"),
    ("ref", "$ref"),
];
const COUNTS: [&str; 6] =
    ["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"];
/// Keys that only this dialect's service reads.
const OWN: [&str; 4] = ["propertyOrdering", "property_ordering", "nullable", "example"];

fn plain_schema(value: Value) -> Value {
    let Value::Object(given) = value else { return value };
    let nullable = given.get("nullable").and_then(Value::as_bool).unwrap_or(false);
    let mut plain = Map::with_capacity(given.len());
    for (key, value) in given {
        if OWN.contains(&key.as_str()) {
            continue;
        }
        let key =
            RENAMED.iter().find(|(from, _)| *from == key).map_or(key, |(_, to)| (*to).to_owned());
        let value = plain_member(&key, value);
        plain.insert(key, value);
    }
    if nullable {
        match plain.get_mut("type") {
            Some(kind @ Value::String(_)) => *kind = Value::Array(vec![kind.take(), "null".into()]),
            _ => {
                if let Some(Value::Array(choices)) = plain.get_mut("anyOf") {
                    choices.push(serde_json::json!({"type": "null"}));
                }
            }
        }
    }
    Value::Object(plain)
}

fn plain_member(key: &str, value: Value) -> Value {
    match (key, value) {
        ("type", Value::String(kind)) => Value::String(plain_type(kind)),
        ("type", Value::Array(kinds)) => kinds
            .into_iter()
            .map(|kind| match kind {
                Value::String(kind) => Value::String(plain_type(kind)),
                other => other,
            })
            .collect(),
        ("properties" | "$defs" | "definitions" | "patternProperties", Value::Object(schemas)) => {
            schemas
                .into_iter()
                .map(|(name, schema)| (name, plain_schema(schema)))
                .collect::<Map<_, _>>()
                .into()
        }
        ("items" | "additionalProperties" | "not", schema @ Value::Object(_)) => {
            plain_schema(schema)
        }
        ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(schemas)) => {
            schemas.into_iter().map(plain_schema).collect()
        }
        (key, Value::String(count)) if COUNTS.contains(&key) => {
            count.parse::<u64>().map_or(Value::String(count), Value::from)
        }
        (_, value) => value,
    }
}

fn plain_type(kind: String) -> String {
    const KINDS: [&str; 7] = ["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"];
    if KINDS.contains(&kind.as_str()) { kind.to_ascii_lowercase() } else { kind }
}

/// Keywords that the native service's structured output refuses.
const NOT_NATIVE: [&str; 14] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "$schema",
    "default",
];

/// A schema for the native format's structured output. Returns whether it was changed.
pub fn for_native_output(schema: &str) -> (String, bool) {
    if is_large(schema) {
        return (schema.to_owned(), false);
    }
    match serde_json::from_str(schema) {
        Ok(value) => closed(schema, value),
        Err(_) => (schema.to_owned(), false),
    }
}

/// As [`for_native_output`], for a strict tool. `None` if an object of the schema is meant to have
/// members that it does not name: closed, it would lose them. The native service takes no such
/// schema for a strict tool.
pub fn for_native_tool(schema: &str) -> Option<(String, bool)> {
    if is_large(schema) {
        return None;
    }
    let Ok(mut value) = serde_json::from_str(schema) else {
        return Some((schema.to_owned(), false));
    };
    let mut open = false;
    find_open(&mut value, &mut open);
    (!open).then(|| closed(schema, value))
}

/// `value`: what `schema` contains.
fn closed(schema: &str, mut value: Value) -> (String, bool) {
    let mut changed = false;
    close_objects(&mut value, &mut changed);
    if changed { (value.to_string(), true) } else { (schema.to_owned(), false) }
}

/// Whether the schema lets a value be an object.
fn is_of_objects(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        kind => kind.is_some_and(|kind| kind == "object"),
    }
}

fn find_open(schema: &mut Value, open: &mut bool) {
    let Value::Object(object) = schema else { return };
    *open |= object.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false))
        || object.contains_key("patternProperties")
        || (is_of_objects(object)
            && !object.contains_key("properties")
            && !object.contains_key("additionalProperties"));
    for_each_subschema(object, &mut |schema| find_open(schema, open));
}

fn close_objects(schema: &mut Value, changed: &mut bool) {
    let Value::Object(object) = schema else { return };
    let before = object.len();
    object.retain(|key, value| {
        let few = key == "minItems" && value.as_u64().is_some_and(|count| count > 1);
        !few && !NOT_NATIVE.contains(&key.as_str())
    });
    *changed |= object.len() != before;
    let is_object = is_of_objects(object) || object.contains_key("properties");
    let closed = Value::Bool(false);
    if is_object && object.get("additionalProperties") != Some(&closed) {
        object.insert("additionalProperties".to_owned(), closed);
        *changed = true;
    }
    for_each_subschema(object, &mut |schema| close_objects(schema, changed));
}

fn for_each_subschema(object: &mut Map<String, Value>, each: &mut dyn FnMut(&mut Value)) {
    for (key, value) in object {
        match (key.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                schemas.values_mut().for_each(&mut *each)
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(&mut *each)
            }
            ("items" | "additionalProperties" | "not", schema @ Value::Object(_)) => each(schema),
            _ => {}
        }
    }
}

/// Whether the responses and chat-compatible formats accept the schema as strict: every object is
/// closed, and requires all its properties.
pub fn is_strict(schema: &str) -> bool {
    !is_large(schema)
        && serde_json::from_str::<Value>(schema).is_ok_and(|mut value| {
            let mut strict = value.get("type").is_some_and(|kind| kind == "object");
            check_strict(&mut value, &mut strict);
            strict
        })
}

fn check_strict(schema: &mut Value, strict: &mut bool) {
    let Value::Object(object) = schema else { return };
    if let Some(Value::Object(properties)) = object.get("properties") {
        let closed = object.get("additionalProperties") == Some(&Value::Bool(false));
        let required = object.get("required").and_then(Value::as_array);
        let required: HashSet<&str> =
            required.into_iter().flatten().filter_map(Value::as_str).collect();
        let all = properties.keys().all(|name| required.contains(name.as_str()));
        *strict &= closed && all;
    } else if object.get("type").is_some_and(|kind| kind == "object") {
        *strict = false;
    }
    for_each_subschema(object, &mut |schema| check_strict(schema, strict));
}

/// Arguments or inputs as the text of a JSON object. Returns whether they had to be wrapped. U+FFFD
/// replaces half a surrogate pair: this JSON is a text in the body's JSON, where no reader of the
/// body has seen it.
pub fn as_object(text: &str) -> (Text<'_>, bool) {
    match surrogates::replaced_text(text) {
        None => object_of(text),
        Some(text) => {
            let (object, wrapped) = object_of(&text);
            (Text::Owned(object.into_owned()), wrapped)
        }
    }
}

/// Arguments as a text that contains JSON. No reader of the body has seen that JSON, so half a
/// surrogate pair is still in it: U+FFFD replaces it.
pub fn as_text(arguments: &str) -> Text<'_> {
    match surrogates::replaced_text(arguments) {
        Some(replaced) => Text::Owned(replaced),
        None if arguments.is_empty() => "{}".into(),
        None => arguments.into(),
    }
}

fn object_of(text: &str) -> (Text<'_>, bool) {
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed == "null" {
        return ("{}".into(), false);
    }
    match json_read::from_str::<Json<'_>>(trimmed) {
        Ok(value) if value.get().starts_with('{') => (trimmed.into(), false),
        Ok(value) => (Text::Owned(format!("{{\"value\":{}}}", value.get())), true),
        Err(_) => {
            let bytes = json::document(|o| o.str("value", text));
            (Text::Owned(String::from_utf8(bytes).unwrap_or_default()), true)
        }
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
