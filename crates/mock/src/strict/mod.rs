//! Requests that the real services refuse, with messages like theirs: credentials, methods, fields,
//! pairs of calls and results.

mod alt_cli;
mod chat;
mod models;
mod names;
mod native;
mod native_messages;
mod responses;
mod schema;
#[cfg(test)]
mod tests;

use axum::http::Method;
use http::request::Parts;
use serde_json::Value;

use super::ask::{self, MockAsk};
use super::aws;
use super::cloud;
use super::path::{MockCloud, MockOperation, Route};
use super::wire::WireFault;
use tollgate_formats::domain::format::WireFormat;

/// Credentials with this prefix are refused as invalid.
const BAD_KEY: &str = "invalid";
/// Models with this prefix do not exist.
const NO_MODEL: &str = "no-such";

/// A wrong method, and the websocket that the responses service may be asked for.
pub(super) fn method(route: &Route, parts: &Parts) -> Result<(), WireFault> {
    let reading = matches!(route.operation, MockOperation::ListModels | MockOperation::GetModel(_));
    let wanted = match &route.operation {
        MockOperation::Stored(_, rest) if rest == "cancel" => Method::POST,
        MockOperation::Stored(_, rest) if rest.is_empty() && parts.method == Method::DELETE => {
            Method::DELETE
        }
        MockOperation::Stored(..) => Method::GET,
        MockOperation::AwsKeys(service) => aws::method(*service),
        MockOperation::Held(_, _, rest) if rest == "cancel" => Method::POST,
        MockOperation::Held(_, _, rest) if rest.is_empty() && parts.method == Method::DELETE => {
            Method::DELETE
        }
        MockOperation::Held(..) => Method::GET,
        MockOperation::Endpoint(endpoint) if endpoint.is_held() && parts.method == Method::GET => {
            Method::GET
        }
        MockOperation::Token if cloud::is_of_machine(parts.uri.path()) => Method::GET,
        _ if reading => Method::GET,
        _ => Method::POST,
    };
    if parts.method == wanted {
        return Ok(());
    }
    if parts.headers.contains_key("upgrade") {
        return Err(WireFault::new(426, "Upgrade Required: this service has no websocket"));
    }
    Err(WireFault::new(405, format!("Method {} is not allowed here", parts.method)))
}

/// The credential in the place of `format`; in any place if not `strict`.
pub(super) fn credential(
    format: WireFormat,
    parts: &Parts,
    query_key: Option<&str>,
) -> Option<String> {
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let bearer = bearer.or_else(|| aws::key_id(parts));
    let azure = || header("api-key");
    let found = match format {
        WireFormat::Native => header("x-api-key").or_else(azure).or(bearer),
        WireFormat::Chat | WireFormat::Responses => bearer.or_else(azure),
        WireFormat::AltCli => header("x-goog-api-key").or(bearer).or(query_key),
    };
    found.filter(|key| !key.is_empty()).map(str::to_owned)
}

/// Refuses a missing or bad credential.
pub(super) fn authenticated(format: WireFormat, key: Option<&str>) -> Result<(), WireFault> {
    let (missing, bad) = match format {
        WireFormat::Native => ("x-api-key header is required", "invalid x-api-key"),
        WireFormat::Chat | WireFormat::Responses => (
            "You didn't provide an API key in the Authorization header (Authorization: Bearer \
             YOUR_KEY).",
            "Incorrect API key provided.",
        ),
        WireFormat::AltCli => (
            "Request is missing required authentication credential.",
            "API key not valid. Please pass a valid API key.",
        ),
    };
    match key {
        None => Err(WireFault::new(401, missing)),
        Some(key) if key.starts_with(BAD_KEY) => Err(WireFault::new(401, bad)),
        Some(_) => Ok(()),
    }
}

/// A body that is not JSON.
pub(super) fn bad_json(format: WireFormat, error: &serde_json::Error) -> WireFault {
    WireFault::bad(match format {
        WireFormat::Native => format!("The request body is not valid JSON: {error}"),
        WireFormat::Chat | WireFormat::Responses => {
            format!("We could not parse the JSON body of your request: {error}")
        }
        WireFormat::AltCli => format!("Invalid JSON payload received. {error}"),
    })
}

/// A model that does not exist.
pub(super) fn no_model(format: WireFormat, id: &str) -> WireFault {
    let fault = WireFault::new(
        404,
        match format {
            WireFormat::Native => format!("model: {id}"),
            WireFormat::Chat | WireFormat::Responses => {
                format!("The model `{id}` does not exist or you do not have access to it.")
            }
            WireFormat::AltCli => format!("models/{id} is not found for API version v1beta."),
        },
    );
    if matches!(format, WireFormat::Chat | WireFormat::Responses) {
        fault.param("model")
    } else {
        fault
    }
}

/// Refuses what cannot be answered at all, and if `strict` everything that the service refuses.
pub(super) fn request(
    route: &Route,
    parts: &Parts,
    body: &Value,
    asked: &MockAsk,
    strict: bool,
) -> Result<(), WireFault> {
    let format = route.format;
    if !body.is_object() {
        return Err(WireFault::bad("The request body must be a JSON object"));
    }
    if asked.model.is_empty() {
        return Err(missing(format, "model"));
    }
    if asked.model.starts_with(NO_MODEL) {
        return Err(no_model(format, &asked.model));
    }
    let inner = if format == WireFormat::AltCli { ask::inner(route, body) } else { body };
    let list = match format {
        WireFormat::Native | WireFormat::Chat => "messages",
        WireFormat::Responses => "input",
        WireFormat::AltCli => "contents",
    };
    let text_will_do = format == WireFormat::Responses && inner[list].is_string();
    if !text_will_do && inner[list].as_array().is_none_or(Vec::is_empty) {
        return Err(missing(format, list));
    }
    if !strict {
        return Ok(());
    }
    let counting = route.operation == MockOperation::CountTokens;
    models::check(format, &asked.model, inner)?;
    match format {
        WireFormat::Native
            if route.cloud == MockCloud::None
                && !parts.headers.contains_key("anthropic-version") =>
        {
            Err(WireFault::bad("anthropic-version: header is required"))
        }
        WireFormat::Native => native::check(body, counting, &parts.headers),
        WireFormat::Chat => chat::check(body),
        WireFormat::Responses => responses::check(body),
        WireFormat::AltCli if counting && inner["generateContentRequest"].is_object() => {
            alt_cli::check(&inner["generateContentRequest"])
        }
        WireFormat::AltCli => alt_cli::check(inner),
    }
}

/// A missing required field, in each service's terms.
fn missing(format: WireFormat, field: &str) -> WireFault {
    match format {
        WireFormat::Native => WireFault::bad(format!("{field}: Field required")),
        WireFormat::Chat | WireFormat::Responses => {
            let fault = WireFault::bad(format!("Missing required parameter: '{field}'."));
            fault.param(field).code("missing_required_parameter")
        }
        WireFormat::AltCli => WireFault::bad(format!("{field} is not specified")),
    }
}
