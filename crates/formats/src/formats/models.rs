//! The model listing in each format's shape.

use serde_json::{Value, json};

use crate::domain::format::WireFormat;

/// The time of creation, for formats that require one: the gateway has none.
const CREATED: &str = "1970-01-01T00:00:00Z";

/// A complete listing; the native one as a single page.
pub fn list<'a>(format: WireFormat, names: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let models: Vec<Value> = names.map(|name| model(format, name)).collect();
    let body = match format {
        WireFormat::Native => {
            let id = |m: Option<&Value>| m.map_or(Value::Null, |m| m["id"].clone());
            json!({"first_id": id(models.first()), "last_id": id(models.last()), "data": models, "has_more": false})
        }
        WireFormat::Chat | WireFormat::Responses => json!({"object": "list", "data": models}),
        WireFormat::AltCli => json!({"models": models}),
    };
    body.to_string().into_bytes()
}

/// The record of one model, as a JSON body.
pub fn one(format: WireFormat, name: &str) -> Vec<u8> {
    model(format, name).to_string().into_bytes()
}

fn model(format: WireFormat, name: &str) -> Value {
    match format {
        WireFormat::Native => {
            json!({"type": "model", "id": name, "display_name": name, "created_at": CREATED})
        }
        WireFormat::Chat | WireFormat::Responses => {
            json!({"id": name, "object": "model", "created": 0, "owned_by": "tollgate"})
        }
        WireFormat::AltCli => json!({
            "name": format!("models/{name}"),
            "displayName": name,
            "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_lists_in_its_own_shape() {
        let read = |format| {
            serde_json::from_slice::<Value>(&list(format, ["a", "b"].into_iter())).unwrap()
        };
        let native = read(WireFormat::Native);
        assert_eq!(
            (&native["first_id"], &native["last_id"], &native["has_more"]),
            (&json!("a"), &json!("b"), &json!(false))
        );
        assert_eq!(read(WireFormat::Chat)["data"][1]["id"], "b");
        assert_eq!(read(WireFormat::AltCli)["models"][0]["name"], "models/a");
        let empty: Value =
            serde_json::from_slice(&list(WireFormat::Native, std::iter::empty())).unwrap();
        assert_eq!(empty["first_id"], Value::Null);
    }
}
