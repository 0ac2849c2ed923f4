//! One log line per request, as JSON or as text like the rest of the log: the ledger's record
//! without its decision chain, bodies or credentials.
//!
//! The lines go straight to the log's buffer, past `tracing`, and are written member by member:
//! with a serialiser they made up a third of the cost of a key, its limits and its records for a
//! request of 2 KB.

use std::cell::RefCell;
use std::sync::OnceLock;

use rust_decimal::Decimal;

use super::forward::{self, Forwarded};
use super::json_line::{JsonLine, Style, name};
use super::line_buffer::LineBuffer;
use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::ids::{KeyId, RequestId, SessionId};
use crate::domain::part::Part;
use crate::domain::record::Record;
use crate::domain::trace::SpanContext;

/// Longest error text of a line, in characters: providers' texts may repeat the client's.
const ERROR_CHARS: usize = 300;

/// The destination of lines; unset = none.
static SINK: OnceLock<(LineBuffer, Style)> = OnceLock::new();

thread_local! {
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes lines from now on. Only the first call has an effect.
pub(super) fn open(lines: LineBuffer, style: Style) {
    // A second log is refused before this point.
    let _opened_before = SINK.set((lines, style));
}

/// Writes the line, if access lines are on. `span`: the request's, if requests have traces.
#[cfg_attr(feature = "stages", inline(never))]
pub fn access_log(record: &Record, span: Option<SpanContext>) {
    let Some((lines, style)) = SINK.get() else { return };
    LINE.with_borrow_mut(|line| {
        line.clear();
        write(record, span, line, *style);
        lines.append(line);
        if let Some(receiver) = forward::receiver() {
            if *style != Style::Json {
                line.clear();
                write(record, span, line, Style::Json);
            }
            receiver(Forwarded::Access(line));
        }
    });
}

/// A request that failed authentication.
#[derive(Debug, Clone, Copy)]
pub struct RejectedLine<'a> {
    /// The request's id, which the client received too.
    pub request_id: RequestId,
    /// When the request was refused.
    pub at: Timestamp,
    /// The HTTP status of the refusal.
    pub status: u16,
    /// The client's error message.
    pub error: &'a str,
    /// The path, without its query, at most 200 characters.
    pub endpoint: &'a str,
    /// The wire format of the endpoint.
    pub format: WireFormat,
    /// A short name: `unknown_key`, …
    pub reason: &'static str,
    /// The key, if it exists but may not be used.
    pub key_id: Option<KeyId>,
    /// Eight hexadecimal digits for the presented key; `None` if there was no single one.
    pub key_fingerprint: Option<&'a str>,
    /// How many equal requests were noted.
    pub times: u64,
    /// The client's `User-Agent` header, at most 200 characters.
    pub user_agent: Option<&'a str>,
    /// The client's IP address; `None` if it is not known.
    pub client_addr: Option<&'a str>,
    /// The request's span, if requests have traces.
    pub span: Option<SpanContext>,
}

/// Writes the line of a request that has no record, if access lines are on. The caller bounds their
/// number.
pub fn access_rejected(rejected: &RejectedLine<'_>) {
    let Some((lines, style)) = SINK.get() else { return };
    let mut text = Vec::with_capacity(512);
    write_rejected(rejected, &mut text, *style);
    lines.append(&text);
    if let Some(receiver) = forward::receiver() {
        text.clear();
        write_rejected(rejected, &mut text, Style::Json);
        receiver(Forwarded::Access(&text));
    }
}

fn write_rejected(rejected: &RejectedLine<'_>, text: &mut Vec<u8>, style: Style) {
    let mut line = JsonLine::begin(text, style, &rejected.at.to_iso());
    line.plain(name!("request_id"), &rejected.request_id.to_string());
    if let Some(span) = rejected.span {
        line.plain(name!("trace_id"), &span.trace_id.to_string())
            .plain(name!("span_id"), &span.span_id.to_string());
    }
    line.number(name!("status"), rejected.status.into())
        .plain(name!("outcome"), "refused")
        .plain(name!("reason"), rejected.reason);
    line.text(name!("error"), rejected.error);
    line.text(name!("endpoint"), rejected.endpoint)
        .plain(name!("client_format"), rejected.format.as_str());
    line.id_if_any(name!("key_id"), rejected.key_id.map(|id| id.0));
    line.text_if_any(name!("key_fingerprint"), rejected.key_fingerprint)
        .number(name!("times"), rejected.times);
    line.text_if_any(name!("user_agent"), rejected.user_agent)
        .text_if_any(name!("client_addr"), rejected.client_addr);
    line.end();
}

/// Appends the line, including its end. Unknown values are left out.
fn write(record: &Record, span: Option<SpanContext>, out: &mut Vec<u8>, style: Style) {
    let mut line = JsonLine::begin(out, style, &record.started_at.to_iso());
    line.plain(
        name!("request_id"),
        record.request_id.0.as_hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()),
    );
    if let Some(span) = span {
        line.plain(name!("trace_id"), &span.trace_id.to_string())
            .plain(name!("span_id"), &span.span_id.to_string());
    }
    line.number(name!("status"), record.status_code.into());
    line.plain(name!("outcome"), record.outcome.as_str());
    line.text(name!("endpoint"), &record.endpoint);
    line.plain(name!("client_format"), record.client_format.as_str());
    if let Some(format) = record.provider_format.map(WireFormat::as_str) {
        line.plain(name!("provider_format"), format);
    }
    line.text(name!("model"), &record.model);
    line.text_if_any(name!("upstream_model"), record.upstream_model.as_deref());
    line.flag(name!("streamed"), record.streamed);
    line.id_if_any(name!("key_id"), record.key_id.map(|id| id.0));
    line.text_if_any(name!("key_name"), record.key_name.as_deref());
    line.id_if_any(name!("user_id"), record.user_id.map(|id| id.0));
    line.text_if_any(name!("user_name"), record.user_name.as_deref());
    line.text_if_any(name!("session_id"), record.session_id.as_ref().map(SessionId::as_str));
    line.id_if_any(name!("provider_id"), record.provider_id.map(|id| id.0));
    line.text_if_any(name!("provider_name"), record.provider_name.as_deref());
    line.number(name!("attempts"), record.attempts.into());
    usage(record, &mut line);
    line.number(name!("duration_ms"), record.duration_ms);
    if let Some(first_byte_ms) = record.first_byte_ms {
        line.number(name!("first_byte_ms"), first_byte_ms);
    }
    line.number(name!("overhead_us"), record.overhead_us);
    line.text_if_any(name!("error"), record.error_message.as_deref().map(shortened));
    line.text_if_any(name!("user_agent"), record.user_agent.as_deref());
    line.text_if_any(name!("client_addr"), record.client_addr.as_deref());
    line.end();
}

/// Tokens, and their cost.
fn usage(record: &Record, line: &mut JsonLine<'_>) {
    line.number(name!("input_tokens"), record.usage.input)
        .number(name!("output_tokens"), record.usage.output);
    line.number(name!("cache_write_5m_tokens"), record.usage.cache_write_5m);
    line.number(name!("cache_write_1h_tokens"), record.usage.cache_write_1h);
    line.number(name!("cache_read_tokens"), record.usage.cache_read);
    line.number(name!("reasoning_tokens"), record.usage.reasoning);
    // Exact, therefore text; absent if unpriced.
    if let Some(cost) = record.cost {
        line.plain(name!("cost_usd"), &cost.text());
    }
    if let Some(cost) = record.notional_cost {
        line.plain(name!("notional_cost_usd"), &cost.text());
    }
    if record.cost_multiplier == Decimal::ONE {
        line.plain(name!("cost_multiplier"), "1");
    } else {
        line.plain(name!("cost_multiplier"), &record.cost_multiplier.normalize().to_string());
    }
    line.flag(name!("estimated"), record.estimated);
    if !record.parts.is_empty() {
        let parts: Vec<String> = record.parts.iter().map(Part::summary).collect();
        line.text(name!("cost_parts"), &parts.join("; "));
    }
}

fn shortened(text: &str) -> &str {
    text.char_indices().nth(ERROR_CHARS).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::money::NanoUsd;
    use crate::domain::record::RequestOutcome;
    use crate::domain::usage::Usage;

    #[test]
    fn a_line_holds_what_is_known_and_no_more() {
        let record = Record {
            request_id: RequestId::default(),
            started_at: Timestamp(1_700_000_000_123),
            admitted_ms: 0,
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
            price_model: None,
            parts: Vec::new(),
            notional_cost: None,
            cache_miss: None,
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
        write(&record, None, &mut out, Style::Json);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["timestamp"], "2023-11-14T22:13:20.123Z");
        assert_eq!((&line["status"], &line["outcome"]), (&json!(503), &json!("upstream_failed")));
        assert_eq!(
            (&line["cost_usd"], &line["cost_multiplier"]),
            (&json!("0.00000123"), &json!("1.5"))
        );
        assert_eq!(line["user_name"], "Ann \"A\"\nB");
        assert_eq!(line["error"].as_str().unwrap().chars().count(), ERROR_CHARS);
        let absent = [
            "key_id",
            "key_name",
            "provider_name",
            "upstream_model",
            "first_byte_ms",
            "user_agent",
        ];
        assert!(absent.iter().all(|name| line.get(name).is_none()), "{text}");
    }
}
