//! The JSON schema of a document, made of the types that its records are read into. Editors use it
//! to complete and check a file.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{VERSION, error_rules, form, invoices, keys, notifications, providers, users};
use crate::admin::actions::error_rules::RuleFields;
use crate::admin::actions::keys::fields::KeyFields;
use crate::admin::actions::providers::fields::ProviderFields;
use crate::admin::actions::sensitive_words::WordFields;
use crate::admin::actions::settings::SettingsFields;
use crate::admin::bodies::{Sent, Shape, Text, Whole};

/// A text with a reference may stand where a pattern is asked for.
const REFERENCE: &str = r"\$\{[A-Za-z_]";
/// What a document has beside the fields of the actions.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "describes fields that are read elsewhere")]
struct Beside {
    /// Of several records with one name, which is meant: 1 is the oldest. Left out: 1.
    #[serde(default)]
    nth: Sent<Whole<u32, 1, 1_000_000>>,
    /// Signs every message. Absent or masked: the stored one stays; `null`: messages are unsigned.
    webhook_secret: Option<Text<3, 4096>>,
    /// The upstream's credential. Write-only: records show it masked.
    key: Option<Text<1, 4096>>,
    /// The vendor's administration key. Write-only: records show it masked.
    admin_key: Option<Text<1, 4096>>,
    /// The name of the provider whose invoice it is.
    provider: Text<1, 200>,
}

/// The schema.
#[must_use]
pub fn schema() -> Value {
    let beside = Shape::of::<Beside>();
    let nth = beside.only("nth");
    let reported = notifications::shape().and(&beside.only(notifications::SIGNING));
    let provider = Shape::of::<ProviderFields>().and(&beside.only(providers::CREDENTIAL)).and(&nth);
    let source = beside.only("provider").and(&nth).and(&invoices::shape());
    let source = source.and(&beside.only(invoices::KEY));
    let user = users::shape().and(&nth);
    let key = Shape::of::<KeyFields>().and(Shape::of::<keys::MaterialFields>());
    let rule = Shape::of::<RuleFields>().optional().and(Shape::of::<error_rules::OwnFields>());
    let mut user = table(&user);
    user["properties"]["keys"] = json!({
        "type": ["array", "null"],
        "items": table(&key),
        "description": "The user's keys. Left out: stored keys stay, and a new user gets one named \
                        `default`.",
    });
    let list = |items: Value, text: &str| json!({ "type": ["array", "null"], "items": items, "description": text });
    let price = json!({ "type": "object", "description": "`input_cost_per_token`, \
        `output_cost_per_token` and the like, in USD." });
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
            "settings": section(table(&Shape::of::<SettingsFields>().optional()), "The system settings."),
            "notifications": section(table(&reported), "Which messages are sent where."),
            "providers": list(table(&provider), "The upstreams."),
            "invoice_sources": list(table(&source), "Where providers' invoices are read from."),
            "users": list(user, "People and their keys."),
            "prices": prices("Prices made by hand, by model."),
            "forced_prices": prices("Prices above 1 USD per token, which are taken here alone."),
            "words": list(table(Shape::of::<WordFields>()), "Sensitive words."),
            "error_rules": list(table(&rule), "Rules for upstream errors: an operator's, and what \
                was changed of the program's own."),
        },
    })
}

fn section(mut schema: Value, text: &str) -> Value {
    schema["type"] = json!(["object", "null"]);
    schema["description"] = text.into();
    schema
}

/// The schema of a record, with the names that a document has.
fn table(shape: &Shape) -> Value {
    let mut schema = shape.schema();
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
