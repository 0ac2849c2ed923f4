//! OTLP: spans, metrics and log lines at a strict collector, and the relay of clients' telemetry.

mod check;
pub mod collector;
mod content;
mod context;
mod loss;
mod metrics;
mod relay;
mod traces;

use serde_json::json;

use crate::proxy::fixture::Fixture;

/// A gateway with one native provider that sends its telemetry to `collector`, every request
/// sampled.
async fn traced(endpoint: &str, more: &[(&str, &str)]) -> Fixture {
    let mut env = vec![("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint), ("OTEL_TRACES_SAMPLER_ARG", "1")];
    env.retain(|(name, _)| !more.iter().any(|(other, _)| name == other));
    env.extend_from_slice(more);
    let fixture = Fixture::bare(&env).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({"name": "first"})).await;
    fixture
}
