//! One JSON line per request: what the ledger knows of it, without its decision chain, bodies or credentials.
//!
//! The lines go straight to the log's buffer, past `tracing`: that halves their cost, and their shape is fixed.

use std::cell::RefCell;
use std::sync::OnceLock;

use rust_decimal::Decimal;
use serde::{Serialize, Serializer};

use super::line_buffer::LineBuffer;
use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::ids::{RequestId, SessionId};
use crate::domain::money::NanoUsd;
use crate::domain::record::Record;

/// Longest error text of a line, in characters: providers' texts may repeat what a client sent.
const ERROR_CHARS: usize = 300;

/// Where lines go; unset = nowhere.
static SINK: OnceLock<LineBuffer> = OnceLock::new();

thread_local! {
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Has lines written from now on. The first call counts.
pub(super) fn open(lines: LineBuffer) {
    // A second log is refused before it comes here.
    let _opened_before = SINK.set(lines);
}

/// Writes the line, if access lines are on.
pub fn access_log(record: &Record) {
    let Some(lines) = SINK.get() else { return };
    LINE.with_borrow_mut(|line| {
        line.clear();
        match write(record, line) {
            Ok(()) => lines.append(line),
            Err(error) => tracing::error!(%error, "an access line could not be written"),
        }
    });
}

/// Appends the line, its end included.
fn write(record: &Record, out: &mut Vec<u8>) -> serde_json::Result<()> {
    serde_json::to_writer(&mut *out, &line(record))?;
    out.push(b'\n');
    Ok(())
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(serialize_with = "iso")]
    timestamp: Timestamp,
    level: &'static str,
    target: &'static str,
    #[serde(serialize_with = "text")]
    request_id: RequestId,
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
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "text_if_any")]
    cost_usd: Option<NanoUsd>,
    #[serde(serialize_with = "text")]
    cost_multiplier: Decimal,
    estimated: bool,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_byte_ms: Option<u64>,
    overhead_us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_addr: Option<&'a str>,
}

fn line(record: &Record) -> Line<'_> {
    Line {
        timestamp: record.started_at,
        level: "INFO",
        target: "access",
        request_id: record.request_id,
        status: record.status_code,
        outcome: record.outcome.as_str(),
        endpoint: &record.endpoint,
        client_format: record.client_format.as_str(),
        provider_format: record.provider_format.map(WireFormat::as_str),
        model: &record.model,
        upstream_model: record.upstream_model.as_deref(),
        streamed: record.streamed,
        key_id: record.key_id.map(|id| id.0),
        key_name: record.key_name.as_deref(),
        user_id: record.user_id.map(|id| id.0),
        user_name: record.user_name.as_deref(),
        session_id: record.session_id.as_ref().map(SessionId::as_str),
        provider_id: record.provider_id.map(|id| id.0),
        provider_name: record.provider_name.as_deref(),
        attempts: record.attempts,
        input_tokens: record.usage.input,
        output_tokens: record.usage.output,
        cache_write_5m_tokens: record.usage.cache_write_5m,
        cache_write_1h_tokens: record.usage.cache_write_1h,
        cache_read_tokens: record.usage.cache_read,
        reasoning_tokens: record.usage.reasoning,
        cost_usd: record.cost,
        cost_multiplier: record.cost_multiplier.normalize(),
        estimated: record.estimated,
        duration_ms: record.duration_ms,
        first_byte_ms: record.first_byte_ms,
        overhead_us: record.overhead_us,
        error: record.error_message.as_deref().map(shortened),
        user_agent: record.user_agent.as_deref(),
        client_addr: record.client_addr.as_deref(),
    }
}

fn shortened(text: &str) -> &str {
    text.char_indices().nth(ERROR_CHARS).map_or(text, |(end, _)| &text[..end])
}

fn iso<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&at.to_iso())
}

fn text<S: Serializer>(value: &impl std::fmt::Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

fn text_if_any<S: Serializer>(value: &Option<impl std::fmt::Display>, to: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => to.collect_str(value),
        None => to.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::record::RequestOutcome;
    use crate::domain::usage::Usage;

    #[test]
    fn a_line_holds_what_is_known_and_no_more() {
        let record = Record {
            request_id: RequestId::default(),
            started_at: Timestamp(1_700_000_000_123),
            key_id: None,
            key_name: None,
            user_id: None,
            user_name: Some("Ann \"A\"\nB".into()),
            session_id: Some("s1".into()),
            provider_id: None,
            provider_name: None,
            client_format: WireFormat::Chat,
            provider_format: None,
            endpoint: "/v1/chat/completions".into(),
            model: "gpt-5".into(),
            upstream_model: None,
            streamed: false,
            status_code: 503,
            outcome: RequestOutcome::UpstreamFailed,
            error_message: Some("é".repeat(ERROR_CHARS + 50)),
            usage: Usage::default(),
            cost: Some(NanoUsd(1_230)),
            cost_multiplier: Decimal::new(1500, 3),
            estimated: false,
            duration_ms: 7,
            first_byte_ms: None,
            overhead_us: 41,
            attempts: 2,
            decisions: Vec::new(),
            user_agent: None,
            client_addr: None,
        };
        let mut out = Vec::new();
        write(&record, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["timestamp"], "2023-11-14T22:13:20.123Z");
        assert_eq!((&line["status"], &line["outcome"]), (&json!(503), &json!("upstream_failed")));
        assert_eq!((&line["cost_usd"], &line["cost_multiplier"]), (&json!("0.00000123"), &json!("1.5")));
        assert_eq!(line["user_name"], "Ann \"A\"\nB");
        assert_eq!(line["error"].as_str().unwrap().chars().count(), ERROR_CHARS);
        let absent = ["key_id", "key_name", "provider_name", "upstream_model", "first_byte_ms", "user_agent"];
        assert!(absent.iter().all(|name| line.get(name).is_none()), "{text}");
    }
}
