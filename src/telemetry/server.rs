//! The pages `/metrics`, `/livez` and `/readyz`.
//!
//! See docs/decisions/42-own-metrics-listener.md.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Map, Value, json};

use super::metrics::Metrics;
use super::openmetrics;

/// Whether one required part is available; if not, why.
pub type PartState = Result<(), String>;

/// Whether this process should receive requests, part by part.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    /// Whether all required parts are available: `/readyz` answers 200 if so, else 503.
    pub ready: bool,
    /// Every part by its name, required or optional, in the order of the answer.
    pub parts: Vec<(&'static str, PartState)>,
    /// Optional parts that are unavailable.
    pub degraded: Vec<&'static str>,
}

impl Readiness {
    /// Ready when every part is.
    pub fn of(parts: Vec<(&'static str, PartState)>) -> Self {
        Self { ready: parts.iter().all(|(_, state)| state.is_ok()), parts, degraded: Vec::new() }
    }

    /// Adds a part that is not required for serving, but reported.
    #[must_use]
    pub fn with_optional(mut self, name: &'static str, state: PartState) -> Self {
        if state.is_err() {
            self.degraded.push(name);
        }
        self.parts.push((name, state));
        self
    }

    /// `{"ready": …, "degraded": […], "parts": {"database": "ok", …}}`
    fn to_json(&self) -> Value {
        let text =
            |state: &PartState| Value::from(state.as_ref().err().map_or("ok", String::as_str));
        let parts: Map<String, Value> =
            self.parts.iter().map(|(name, state)| ((*name).to_owned(), text(state))).collect();
        json!({ "ready": self.ready, "degraded": self.degraded, "parts": parts })
    }
}

#[derive(Clone)]
struct ServerState {
    metrics: Arc<Metrics>,
    readiness: Arc<dyn Fn() -> Readiness + Send + Sync>,
}

/// The pages. `/livez` answers as long as the process does; `/readyz` gives 200 or 503 with its
/// parts as JSON.
pub fn router(
    metrics: Arc<Metrics>,
    readiness: Arc<dyn Fn() -> Readiness + Send + Sync>,
) -> Router {
    Router::new()
        .route("/metrics", get(scrape))
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .with_state(ServerState { metrics, readiness })
}

/// In the format that the scraper prefers, if there is anything that only OpenMetrics can carry.
async fn scrape(State(shared): State<ServerState>, headers: HeaderMap) -> Response {
    let accepted =
        headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let open = accepted
        .contains("application/openmetrics-text")
        .then(|| shared.metrics.render_open())
        .flatten();
    if let Some(text) = open {
        return ([(header::CONTENT_TYPE, openmetrics::CONTENT_TYPE)], text).into_response();
    }
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], shared.metrics.render()).into_response()
}

async fn ready(State(shared): State<ServerState>) -> Response {
    let readiness = (shared.readiness)();
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, axum::Json(readiness.to_json())).into_response()
}
