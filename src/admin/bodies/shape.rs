//! The fields of a body, as its type's JSON schema (2020-12) has them: their names, which of them
//! are required, and the schema that the OpenAPI document shows.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::LazyLock;

use parking_lot::Mutex;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The fields of a body, in the order of their declaration.
#[derive(Debug, Clone, Default)]
pub struct Shape {
    properties: Map<String, Value>,
    required: Vec<String>,
    /// How many fields must be sent at least: the target of an edit and one more.
    least: usize,
}

impl Shape {
    /// The shape of a type. It is made once.
    pub fn of<T: JsonSchema + 'static>() -> &'static Self {
        static SHAPES: LazyLock<Mutex<HashMap<TypeId, &'static Shape>>> =
            LazyLock::new(Mutex::default);
        let known = SHAPES.lock().get(&TypeId::of::<T>()).copied();
        known.unwrap_or_else(|| {
            let settings =
                SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
            let schema = T::json_schema(&mut settings.into_generator());
            let made: &'static Self = Box::leak(Box::new(Self::read(schema.into())));
            SHAPES.lock().insert(TypeId::of::<T>(), made);
            made
        })
    }

    fn read(mut schema: Value) -> Self {
        let mut properties = match schema["properties"].take() {
            Value::Object(properties) => properties,
            _ => Map::new(),
        };
        let names = schema["required"].as_array().into_iter().flatten();
        let mut required: Vec<String> =
            names.filter_map(|name| Some(name.as_str()?.to_owned())).collect();
        for (name, property) in &mut properties {
            // serde reads every field as optional, as one struct serves new records and edits; the
            // attribute `required` marks those that a new record needs.
            if property.as_object_mut().and_then(|property| property.shift_remove("required"))
                == Some(true.into())
            {
                required.push(name.clone());
            }
            // The description comes from a doc comment, whose line breaks have no meaning.
            if let Some(text) = property.get("description").and_then(Value::as_str) {
                property["description"] = text.replace('\n', " ").into();
            }
        }
        required.sort_by_key(|name| properties.keys().position(|known| known == name));
        let least =
            schema["minProperties"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        Self { properties, required, least }
    }

    /// The names of the fields.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.properties.keys().map(String::as_str)
    }

    /// Whether there is a field of this name.
    pub fn has(&self, name: &str) -> bool {
        self.properties.contains_key(name)
    }

    /// Whether the field must be sent.
    pub fn requires(&self, name: &str) -> bool {
        self.required.iter().any(|required| required == name)
    }

    /// Whether anything must be sent at all.
    pub const fn is_required(&self) -> bool {
        self.least > 0 || !self.required.is_empty()
    }

    /// How many fields must be sent at least; 0 where the required ones are enough.
    pub const fn least(&self) -> usize {
        self.least
    }

    /// Whether it, or a part of it, asks for at least one of several fields.
    pub fn may_be_empty_update(&self) -> bool {
        self.least > 0
            || self.properties.values().any(|property| property.get("minProperties").is_some())
    }

    /// The same without a field.
    pub fn without(&self, name: &str) -> Self {
        let mut shape = self.clone();
        shape.properties.shift_remove(name);
        shape.required.retain(|required| required != name);
        shape
    }

    /// This field alone.
    pub fn only(&self, name: &str) -> Self {
        self.names()
            .filter(|other| *other != name)
            .fold(self.clone(), |shape, other| shape.without(other))
    }

    /// The same fields, none of which must be there or has a default.
    pub fn optional(&self) -> Self {
        let mut shape = Self { required: Vec::new(), ..self.clone() };
        for property in shape.properties.values_mut().filter_map(Value::as_object_mut) {
            property.shift_remove("default");
        }
        shape
    }

    /// The fields of both; of one that both have, what `other` says.
    pub fn and(&self, other: &Self) -> Self {
        let mut shape = self.clone();
        shape.required.retain(|name| !other.has(name));
        shape.properties.extend(other.properties.clone());
        shape.required.extend(other.required.iter().cloned());
        shape
    }

    /// The same, of which `least` fields must be sent.
    pub fn at_least(self, least: usize) -> Self {
        Self { least, ..self }
    }

    /// The JSON schema.
    pub fn schema(&self) -> Value {
        let mut schema = json!({ "type": "object", "properties": self.properties, "additionalProperties": false });
        if !self.required.is_empty() {
            schema["required"] = json!(self.required);
        }
        if self.least > 0 {
            schema["minProperties"] = self.least.into();
        }
        schema
    }
}
