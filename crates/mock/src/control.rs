//! The mock's state, its routes and the operator's operations: defaults, scripts, records.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use axum::{Router, body::Bytes};
use serde_json::{Value, json};

use super::directive::{self, DirectiveError, Layer};
use super::exchange;
use super::instance::Mock;

/// Maximum directives in all scripts.
const MAX_SCRIPT: usize = 100_000;
/// Maximum and default time of a wait for counts, in milliseconds.
const MAX_WAIT_MS: u64 = 60_000;
const WAIT_MS: u64 = 5_000;

/// All routes of the mock.
pub(super) fn routes(mock: Arc<Mock>) -> Router {
    Router::new()
        .route("/mock/default", post(set_default).delete(forget_defaults))
        .route("/mock/script", post(append_script).delete(forget_scripts))
        .route("/mock/requests", get(requests).delete(forget_requests))
        .route("/mock/stats", get(stats))
        .route("/mock/go", post(go_on))
        .layer(DefaultBodyLimit::max(exchange::MAX_BODY))
        .fallback(exchange::handle)
        .with_state(mock)
}

type Asked = Query<HashMap<String, String>>;

fn refused(error: &DirectiveError) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({"error": error.to_string()}))).into_response()
}

fn number(query: &Asked, name: &str) -> Option<u64> {
    query.get(name).and_then(|value| value.parse().ok())
}

/// A validated layer: an invalid one is refused here rather than when it is used.
fn checked(value: Value) -> Result<Layer, DirectiveError> {
    let Value::Object(layer) = value else {
        return Err(DirectiveError::NotAnObject("the request body"));
    };
    directive::merge([layer.clone()])?;
    Ok(layer)
}

fn parsed(body: &Bytes) -> Result<Value, DirectiveError> {
    serde_json::from_slice(body)
        .map_err(|source| DirectiveError::Json { place: "the request body", source })
}

async fn set_default(State(mock): State<Arc<Mock>>, query: Asked, body: Bytes) -> Response {
    match parsed(&body).and_then(checked) {
        Ok(layer) => {
            mock.plans.lock().defaults.insert(query.get("key").cloned().unwrap_or_default(), layer);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => refused(&error),
    }
}

async fn forget_defaults(State(mock): State<Arc<Mock>>) -> StatusCode {
    mock.plans.lock().defaults.clear();
    StatusCode::NO_CONTENT
}

async fn append_script(State(mock): State<Arc<Mock>>, query: Asked, body: Bytes) -> Response {
    let entries = parsed(&body).and_then(|value| match value {
        Value::Array(list) => list.into_iter().map(checked).collect::<Result<Vec<_>, _>>(),
        one => checked(one).map(|layer| vec![layer]),
    });
    match entries {
        Ok(entries) => {
            let mut plans = mock.plans.lock();
            let waiting: usize = plans.scripts.values().map(VecDeque::len).sum();
            if waiting + entries.len() > MAX_SCRIPT {
                return refused(&DirectiveError::Bounds("script"));
            }
            plans
                .scripts
                .entry(query.get("key").cloned().unwrap_or_default())
                .or_default()
                .extend(entries);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => refused(&error),
    }
}

async fn forget_scripts(State(mock): State<Arc<Mock>>) -> StatusCode {
    mock.plans.lock().scripts.clear();
    StatusCode::NO_CONTENT
}

async fn requests(State(mock): State<Arc<Mock>>, query: Asked) -> Json<Value> {
    let last =
        number(&query, "last").and_then(|last| usize::try_from(last).ok()).unwrap_or(usize::MAX);
    Json(mock.records.last(last))
}

async fn forget_requests(State(mock): State<Arc<Mock>>) -> StatusCode {
    mock.records.clear();
    StatusCode::NO_CONTENT
}

/// Continues one held stream, or as many as `streams` says.
async fn go_on(State(mock): State<Arc<Mock>>, query: Asked) -> StatusCode {
    let streams =
        number(&query, "streams").and_then(|streams| usize::try_from(streams).ok()).unwrap_or(1);
    mock.records.go_on(streams);
    StatusCode::NO_CONTENT
}

/// The counts, after waiting for the requested ones. 408 with the counts if they are not reached in
/// time.
async fn stats(State(mock): State<Arc<Mock>>, query: Asked) -> Response {
    let least = ["started", "finished", "dropped", "connections"]
        .map(|name| number(&query, name).unwrap_or(0));
    let wait =
        Duration::from_millis(number(&query, "timeout_ms").unwrap_or(WAIT_MS).min(MAX_WAIT_MS));
    let reached = tokio::time::timeout(wait, mock.records.reach(least)).await.is_ok();
    let status = if reached { StatusCode::OK } else { StatusCode::REQUEST_TIMEOUT };
    (status, Json(mock.records.counts())).into_response()
}
