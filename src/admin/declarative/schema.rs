//! The JSON schema of a document, made of the tables that it is checked by. Editors complete and
//! check a file by it.

use serde_json::{Map, Value, json};

use super::{VERSION, error_rules, form, keys, notifications, providers, users};
use crate::admin::actions;
use crate::admin::fields::schema::of_table;
use crate::admin::fields::{Field, Kind};

/// A text with a reference may stand where a pattern is asked for.
const REFERENCE: &str = r"\$\{[A-Za-z_]";
/// Which of several records of one name is meant.
const NTH: Field = Field::new(
    "nth",
    Kind::Integer { min: 1, max: 1_000_000 },
    "Of several records with one name, which is meant: 1 is the oldest. Left out: 1.",
);

/// The schema.
#[must_use]
pub fn schema() -> Value {
    let sealed = Field::new(
        notifications::SIGNING,
        Kind::text(3, 4096),
        "Signs every message. Left out or masked: the stored one stays; `null`: messages are unsigned.",
    );
    let told: Vec<Field> = notifications::fields().into_iter().chain([sealed.nullable()]).collect();
    let provider: Vec<Field> = providers::table().into_iter().chain([NTH]).collect();
    let user: Vec<Field> = users::table().into_iter().chain([NTH]).collect();
    let key: Vec<Field> = actions::keys::fields::KEY.iter().chain(keys::MATERIAL).copied().collect();
    let rule: Vec<Field> =
        form::optional(actions::error_rules::FIELDS).into_iter().chain(error_rules::OWN.iter().copied()).collect();
    let mut user = table(&user);
    user["properties"]["keys"] = json!({
        "type": ["array", "null"],
        "items": table(&key),
        "description": "The user's keys. Left out: stored keys stay, and a new user gets one named `default`.",
    });
    let list = |items: Value, text: &str| json!({ "type": ["array", "null"], "items": items, "description": text });
    let price = json!({ "type": "object", "description": "`input_cost_per_token`, `output_cost_per_token` and the like, in USD." });
    let prices = |text: &str| json!({ "type": ["object", "null"], "additionalProperties": price, "description": text });
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "tollgate configuration",
        "description": "What `tollgate export` writes and `tollgate apply` reads.",
        "type": "object",
        "additionalProperties": false,
        "required": ["version"],
        "properties": {
            "version": { "const": VERSION, "description": "The version of this form." },
            "settings": section(table(&form::optional(actions::settings::SETTINGS)), "The system settings."),
            "notifications": section(table(&told), "Which messages are sent where."),
            "providers": list(table(&provider), "The upstreams."),
            "users": list(user, "People and their keys."),
            "prices": prices("Prices made by hand, by model."),
            "forced_prices": prices("Prices above 1 USD per token, which are taken here alone."),
            "words": list(table(actions::sensitive_words::FIELDS), "Sensitive words."),
            "error_rules": list(table(&rule), "Rules for upstream errors: an operator's, and what was changed of the program's own."),
        },
    })
}

fn section(mut schema: Value, text: &str) -> Value {
    schema["type"] = json!(["object", "null"]);
    schema["description"] = text.into();
    schema
}

/// The schema of a record, with the names that a document has.
fn table(fields: &[Field]) -> Value {
    let mut schema = of_table(fields);
    let properties = schema["properties"].take();
    let renamed: Map<String, Value> = properties
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, property)| (form::snake(name), loosened(property.clone())))
        .collect();
    schema["properties"] = renamed.into();
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        for name in required {
            *name = form::snake(name.as_str().unwrap_or_default()).into();
        }
    }
    schema
}

/// Texts may be references, and secrets may be masked, sealed or in files.
fn loosened(mut property: Value) -> Value {
    if let Some(pattern) = property.get("pattern").and_then(Value::as_str) {
        property["pattern"] = format!("{pattern}|{REFERENCE}").into();
    }
    if let Some(schema) = property.as_object_mut() {
        schema.shift_remove("format");
        for bound in ["minLength", "maxLength"] {
            schema.shift_remove(bound);
        }
    }
    property
}
