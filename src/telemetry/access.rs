//! One JSON line per request: what the ledger knows of it, without its decision chain, bodies or credentials.

use serde::Serialize;

use crate::domain::record::Record;

/// Target of access lines; their message is a whole JSON object, which the log writes as it is.
pub(super) const TARGET: &str = "access";

/// Longest error text of a line, in characters: providers' texts may repeat what a client sent.
const ERROR_CHARS: usize = 300;

#[derive(Serialize)]
struct Line<'a> {
    timestamp: String,
    level: &'static str,
    target: &'static str,
    request_id: String,
    status: u16,
    outcome: &'static str,
    endpoint: &'a str,
    client_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_format: Option<&'static str>,
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_model: Option<&'a str>,
    streamed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_name: Option<&'a str>,
    attempts: u32,
    input_tokens: u64,
    output_tokens: u64,
    cache_write_5m_tokens: u64,
    cache_write_1h_tokens: u64,
    cache_read_tokens: u64,
    reasoning_tokens: u64,
    /// Exact, hence text; absent when unpriced.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<String>,
    cost_multiplier: String,
    estimated: bool,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_byte_ms: Option<u64>,
    overhead_us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_addr: Option<&'a str>,
}

/// Writes the line, if access lines are on.
pub fn access_log(record: &Record) {
    if !tracing::enabled!(target: TARGET, tracing::Level::INFO) {
        return;
    }
    match serde_json::to_string(&line(record)) {
        Ok(line) => tracing::info!(target: TARGET, "{line}"),
        Err(error) => tracing::error!(%error, "an access line could not be written"),
    }
}

fn line(record: &Record) -> Line<'_> {
    Line {
        timestamp: record.started_at.to_iso(),
        level: "INFO",
        target: TARGET,
        request_id: record.request_id.to_string(),
        status: record.status_code,
        outcome: record.outcome.as_str(),
        endpoint: &record.endpoint,
        client_format: record.client_format.as_str(),
        provider_format: record.provider_format.map(crate::domain::format::WireFormat::as_str),
        model: &record.model,
        upstream_model: record.upstream_model.as_deref(),
        streamed: record.streamed,
        key_id: record.key_id.map(|id| id.0),
        key_name: record.key_name.as_deref(),
        user_id: record.user_id.map(|id| id.0),
        user_name: record.user_name.as_deref(),
        session_id: record.session_id.as_ref().map(crate::domain::ids::SessionId::as_str),
        provider_id: record.provider_id.map(|id| id.0),
        provider_name: record.provider_name.as_deref(),
        attempts: record.attempts,
        input_tokens: record.usage.input,
        output_tokens: record.usage.output,
        cache_write_5m_tokens: record.usage.cache_write_5m,
        cache_write_1h_tokens: record.usage.cache_write_1h,
        cache_read_tokens: record.usage.cache_read,
        reasoning_tokens: record.usage.reasoning,
        cost_usd: record.cost.map(|cost| cost.to_string()),
        cost_multiplier: record.cost_multiplier.normalize().to_string(),
        estimated: record.estimated,
        duration_ms: record.duration_ms,
        first_byte_ms: record.first_byte_ms,
        overhead_us: record.overhead_us,
        error: record.error_message.as_ref().map(|text| text.chars().take(ERROR_CHARS).collect()),
        user_agent: record.user_agent.as_deref(),
        client_addr: record.client_addr.as_deref(),
    }
}
