//! The service's own operations: health and its description.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::admin::call::Call;
use crate::admin::envelope::ApiError;
use crate::admin::openapi::openapi;
use crate::admin::records::Iso;
use crate::admin::table::Operation;

pub fn operations() -> Vec<Operation> {
    vec![
        Operation::document("actions/health", health)
            .doc("Whether the administration surface answers, and its version."),
        Operation::document("actions/openapi.json", description).doc("This document."),
    ]
}

/// The service answers; whether it is ready to proxy is told by `/readyz` on the metrics listener.
#[derive(Debug, Serialize, JsonSchema)]
struct Health {
    /// Always `ok`.
    status: &'static str,
    timestamp: Iso,
    version: &'static str,
}

async fn health(call: Call) -> Result<Health, ApiError> {
    Ok(Health { status: "ok", timestamp: Iso(call.now), version: call.ctx.version })
}

/// An OpenAPI 3.1.0 document.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
struct Description(Map<String, Value>);

async fn description(call: Call) -> Result<Description, ApiError> {
    match openapi(call.ctx.app_url.as_deref()) {
        Value::Object(document) => Ok(Description(document)),
        _ => Err(ApiError::internal("the document is no object")),
    }
}
