//! Model listings in each format.

use serde_json::{Value, json};

use super::CREATED;
use tollgate_formats::domain::format::WireFormat;

/// The listing without a directive.
pub(crate) const DEFAULT: [&str; 4] = ["bench-json", "bench-stream", "mock-large", "mock-small"];

/// The listing of `ids`.
pub(crate) fn list(format: WireFormat, ids: &[String]) -> Value {
    let all: Vec<Value> = ids.iter().map(|id| one(format, id)).collect();
    match format {
        WireFormat::Native => {
            json!({"data": all, "has_more": false, "first_id": ids.first(), "last_id": ids.last()})
        }
        WireFormat::Chat | WireFormat::Responses => json!({"object": "list", "data": all}),
        WireFormat::AltCli => json!({"models": all}),
    }
}

/// One model's entry.
pub(crate) fn one(format: WireFormat, id: &str) -> Value {
    match format {
        WireFormat::Native => {
            json!({"type": "model", "id": id, "display_name": id, "created_at": "2023-11-14T22:13:20Z"})
        }
        WireFormat::Chat | WireFormat::Responses => {
            json!({"id": id, "object": "model", "created": CREATED, "owned_by": "mock"})
        }
        WireFormat::AltCli => json!({
            "name": format!("models/{id}"), "version": "001", "displayName": id, "description": "A mock model.",
            "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }),
    }
}
