//! The table of operations.
//!
//! The router and the OpenAPI document are both built from it, so every route is documented, and
//! every documented route exists. The entries are next to their actions; the operation that answers
//! the document is here, as the document is about the whole table.

use std::sync::LazyLock;

use axum::body::Body;
use axum::http::Response;
use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::call::Call;
use super::envelope::ApiError;
use super::made::Made;
use super::operation::{Operation, Permission};
use super::{actions, openapi};

/// Every operation, in the order of the document.
pub fn operations() -> &'static [Operation] {
    static TABLE: LazyLock<Vec<Operation>> = LazyLock::new(|| {
        let rooms = [
            actions::login::operations(),
            actions::users::operations(),
            actions::keys::operations(),
            actions::providers::operations(),
            actions::prices::operations(),
            actions::sensitive_words::operations(),
            actions::error_rules::operations(),
            actions::usage::operations(),
            actions::statistics::operations(),
            actions::cache_misses::operations(),
            actions::overview::operations(),
            actions::logs::operations(),
            actions::sessions::operations(),
            actions::messages::operations(),
            actions::my_usage::operations(),
            actions::playground::operations(),
            actions::events::operations(),
            actions::settings::operations(),
            actions::notifications::operations(),
            actions::reconciliation::operations(),
            actions::configuration::operations(),
            actions::audit::operations(),
            actions::service::operations(),
            description_operations(),
            actions::reference::operations(),
        ];
        rooms.into_iter().flatten().collect()
    });
    &TABLE
}

/// Those that the document describes.
pub fn published() -> impl Iterator<Item = &'static Operation> + Clone {
    operations().iter().filter(|operation| operation.published)
}

/// The operation at a path below `/api/`.
pub fn find(path: &str) -> Option<&'static Operation> {
    operations().iter().find(|operation| operation.path == path)
}

/// The OpenAPI document of this build; `app_url` names the server that clients should call.
pub fn document(app_url: Option<&str>) -> Value {
    openapi::document(published(), app_url)
}

fn description_operations() -> Vec<Operation> {
    let (path, media) = ("actions/openapi.json", "application/json");
    vec![
        Operation::whole::<Description, _>(path, Permission::Open, media, description)
            .doc("This document."),
        Operation::whole::<Description, _>(
            "actions/openapi-proxy.json",
            Permission::Open,
            media,
            proxy_description,
        )
        .doc("The OpenAPI document of the proxy: the paths that clients call."),
    ]
}

/// An OpenAPI 3.1.0 document.
#[derive(JsonSchema)]
#[schemars(transparent)]
#[expect(dead_code, reason = "describes the document in itself")]
struct Description(Map<String, Value>);

async fn proxy_description(_: Call) -> Result<Response<Body>, ApiError> {
    Ok(Made::new(openapi::proxy::document().to_string(), "application/json")?.response())
}

async fn description(call: Call) -> Result<Response<Body>, ApiError> {
    if let Some(made) = call.description.get() {
        return Ok(made.response());
    }
    let text = document(call.ctx.app_url.as_deref()).to_string();
    let made = Made::new(text, "application/json")?;
    Ok(call.description.get_or_init(|| made).response())
}
