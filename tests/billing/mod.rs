//! No request is free: the bill covers the provider's work, whatever a client requests and whenever
//! it closes.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests' own tasks live on the test's own runtime"
)]

mod cut_short;
mod estimates;
mod model_paths;
mod one_reader;
mod requests;
mod suppressed;

use serde_json::{Value, json};

use crate::proxy::fixture::Fixture;

/// A gateway with one provider, whose circuit never opens.
async fn with(provider: &str) -> Fixture {
    let fixture = Fixture::bare(&[]).await;
    let never_opens = json!({"circuit_breaker_failure_threshold": 0});
    fixture.gateway.provider(provider, &fixture.upstream.url, never_opens).await;
    fixture
}

/// Server-sent events from lines of JSON; a line that is not JSON (`[DONE]`) is data all the same.
fn events(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("data: {line}\n\n")).collect()
}

/// The figures of a record: input, output, reasoning, cache writes of both kinds, cache reads.
fn figures(row: &Value) -> [u64; 6] {
    [
        "inputTokens",
        "outputTokens",
        "reasoningTokens",
        "cacheCreation5mTokens",
        "cacheCreation1hTokens",
        "cacheReadTokens",
    ]
    .map(|name| row[name].as_u64().unwrap())
}
