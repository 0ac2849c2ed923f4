//! The JSON schema (2020-12) of a body, from its table.

use serde_json::{Map, Value, json};

use super::{Body, Field, Form, Kind, Need, Preset};

/// The schema of a complete body.
pub fn of_body(body: &Body) -> Value {
    let fields: Vec<Field> = body.fields().collect();
    let mut schema = of_table(&fields);
    if body.partial {
        schema["minProperties"] = json!(body.target.len() + 1);
    }
    schema
}

/// The schema of a table that stands alone.
pub fn of_table(fields: &[Field]) -> Value {
    let properties: Map<String, Value> = fields.iter().map(|f| (f.name.to_owned(), of_field(f))).collect();
    let required: Vec<&str> = fields.iter().filter(|f| matches!(f.need, Need::Required)).map(|f| f.name).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn of_field(field: &Field) -> Value {
    let mut schema = of_kind(field.kind);
    if field.nullable {
        allow_null(&mut schema);
    }
    if !field.doc.is_empty() {
        schema["description"] = json!(field.doc);
    }
    if let Need::Preset(preset) = field.need {
        schema["default"] = match preset {
            Preset::Boolean(b) => json!(b),
            Preset::Integer(n) => json!(n),
            Preset::Text(t) => json!(t),
        };
    }
    schema
}

fn allow_null(schema: &mut Value) {
    let types = match schema["type"].take() {
        Value::Array(types) => types,
        single => vec![single],
    };
    schema["type"] = types.into_iter().chain([json!("null")]).collect();
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
}

fn of_kind(kind: Kind) -> Value {
    match kind {
        Kind::Integer { min, max: i64::MAX } => {
            json!({ "type": ["integer", "string"], "minimum": min, "pattern": "^[0-9]+$" })
        }
        Kind::Integer { min, max } => {
            json!({ "type": ["integer", "string"], "minimum": min, "maximum": max, "pattern": "^-?[0-9]+$" })
        }
        Kind::Decimal { max, places } => {
            let pattern = format!(r"^[0-9]+(\.[0-9]{{1,{places}}})?$");
            json!({ "type": ["number", "string"], "minimum": 0, "maximum": max, "pattern": pattern })
        }
        Kind::Text { min, max, form } => of_text(min, max, form),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Moment(_) => json!({ "type": "string", "examples": ["2027-01-31", "2027-01-31T18:00:00Z"] }),
        Kind::Choice(words) => json!({ "type": "string", "enum": words }),
        Kind::List { item, min, max, excess: _ } => {
            let mut schema = json!({ "type": "array", "items": of_kind(*item), "maxItems": max });
            if min > 0 {
                schema["minItems"] = json!(min);
            }
            schema
        }
        Kind::Map { max, text_max } => {
            let text = json!({ "type": "string", "minLength": 1, "maxLength": text_max });
            json!({ "type": "object", "additionalProperties": text, "maxProperties": max })
        }
        Kind::Document { max: _ } => json!({ "type": "object" }),
        Kind::Object(fields) => {
            let mut schema = of_table(fields);
            schema["minProperties"] = json!(1);
            schema
        }
    }
}

fn of_text(min: usize, max: usize, form: Form) -> Value {
    let mut schema = json!({ "type": "string", "maxLength": max });
    if min > 0 {
        schema["minLength"] = json!(min);
    }
    match form {
        Form::Any => {}
        Form::TimeOfDay => schema["pattern"] = json!("^([01]?[0-9]|2[0-3]):[0-5][0-9]$"),
        Form::BaseUrl | Form::ProxyUrl | Form::Webhook => schema["format"] = json!("uri"),
    }
    schema
}
