//! A request record as rows: wide in the request log, narrow in the ledger.
//!
//! The database must never refuse a record, or it would block the journal behind it. So long texts
//! are clipped, counts and costs are held within bounds that no genuine request reaches, and NUL is
//! replaced (see `column`).

use std::sync::{Arc, LazyLock};

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use sqlx::any::AnyRow;

use super::decisions;
use crate::domain::cache_miss::CacheMiss;
use crate::domain::format::WireFormat;
use crate::domain::ids::{KeyId, ProviderId, RequestId, SessionId, UserId};
use crate::domain::money::NanoUsd;
use crate::domain::part::Part;
use crate::domain::record::{Record, RequestOutcome};
use crate::domain::usage::{ServiceTier, Usage};
use crate::store::engine::column::{Collect, Fields, Values, clipped};
use crate::store::engine::error::StoreError;

/// One line of the request log: every field of the record, as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct LogRow {
    /// Row number, which orders rows of the same millisecond.
    pub id: i64,
    /// The record as stored: long texts are clipped, and counts and costs bounded.
    pub record: Record,
}

/// What a stored request used.
#[derive(Debug, Clone)]
pub struct Used {
    /// Its tokens.
    pub usage: Usage,
    /// Those of its parts that have their own price; they are stored with their new costs.
    pub parts: Vec<Part>,
    /// What was not read from the provider's cache.
    pub cache_miss: Option<CacheMiss>,
    /// What the client's own account paid, by the price table.
    pub notional_cost: Option<NanoUsd>,
    /// The name that the provider was asked for, if it is not that of the model.
    pub upstream_model: Option<String>,
}

impl std::ops::Deref for Used {
    type Target = Usage;

    fn deref(&self) -> &Usage {
        &self.usage
    }
}

/// Bytes of a text that is part of an index: PostgreSQL accepts about 2 700 for a complete entry.
const INDEXED_TEXT: usize = 512;
/// Bytes of other texts.
const PLAIN_TEXT: usize = 16 * 1024;
/// Tokens of one kind in one request: absurd figures from an upstream must not overflow the sums of
/// its hour.
const MAX_TOKENS: u64 = 1_000_000_000_000;
/// Cost of one request.
const MAX_COST: i64 = NanoUsd::MAX_OF_REQUEST.0;
/// Duration of one request: some 30 years.
const MAX_MS: u64 = 1_000_000_000_000;

/// Columns of `request_log`, after its `id`. `started_at` is the time to which the cost belongs
/// ([`Record::counts_at`]), as in the ledger; the head came `admitted_ms` before.
pub(in crate::store) const LOG_COLUMNS: &[&str] = &[
    "request_id",
    "started_at",
    "key_id",
    "key_name",
    "user_id",
    "user_name",
    "session_id",
    "provider_id",
    "provider_name",
    "client_format",
    "provider_format",
    "endpoint",
    "model",
    "upstream_model",
    "streamed",
    "status_code",
    "outcome",
    "error_message",
    "input_tokens",
    "output_tokens",
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
    "cache_read_tokens",
    "reasoning_tokens",
    "image_input_tokens",
    "image_output_tokens",
    "usage_extra",
    "price_model",
    "cost",
    "cost_multiplier",
    "estimated",
    "duration_ms",
    "first_byte_ms",
    "overhead_us",
    "attempts",
    "decisions",
    "user_agent",
    "client_addr",
    "admitted_ms",
];

/// Columns of `ledger`.
pub(in crate::store) const LEDGER_COLUMNS: &[&str] = &[
    "request_id",
    "started_at",
    "key_id",
    "user_id",
    "provider_id",
    "model",
    "upstream_model",
    "endpoint",
    "status_code",
    "outcome",
    "input_tokens",
    "output_tokens",
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
    "cache_read_tokens",
    "reasoning_tokens",
    "image_input_tokens",
    "image_output_tokens",
    "usage_extra",
    "price_model",
    "cost",
    "cost_multiplier",
    "estimated",
    "duration_ms",
];

/// The model as stored, the same in all three tables.
pub(in crate::store) fn model(record: &Record) -> &str {
    clipped(&record.model, INDEXED_TEXT)
}

/// The path as stored, the same in all three tables.
pub(in crate::store) fn endpoint(record: &Record) -> &str {
    clipped(&record.endpoint, INDEXED_TEXT)
}

/// The cost as stored.
pub(in crate::store) fn cost(record: &Record) -> Option<i64> {
    record.cost.map(bounded)
}

/// Any one request's cost as stored.
pub(in crate::store) fn bounded(cost: NanoUsd) -> i64 {
    cost.0.clamp(-MAX_COST, MAX_COST)
}

/// The token counts as stored: input, output, cache write 5 m and 1 h, cache read, reasoning, image
/// input and output.
pub(in crate::store) fn tokens(usage: &Usage) -> [i64; 8] {
    let all = [
        usage.input,
        usage.output,
        usage.cache_write_5m,
        usage.cache_write_1h,
        usage.cache_read,
        usage.reasoning,
        usage.image_input,
        usage.image_output,
    ];
    all.map(|count| i64::try_from(count.min(MAX_TOKENS)).unwrap_or(i64::MAX))
}

/// The rarely present parts of usage, in one column, which is null if they are absent.
#[derive(Serialize, Deserialize, Default, PartialEq)]
#[serde(default, rename_all = "camelCase")]
struct Extra {
    /// A part has no price: the marker by which an index finds the row. It is the first member: for
    /// SQLite the index compares the beginning of the text.
    #[serde(skip_serializing_if = "is_default")]
    unpriced: bool,
    #[serde(skip_serializing_if = "is_default")]
    audio_input: u64,
    #[serde(skip_serializing_if = "is_default")]
    audio_output: u64,
    #[serde(skip_serializing_if = "is_default")]
    image_cache_read: u64,
    #[serde(skip_serializing_if = "is_default")]
    audio_cache_read: u64,
    #[serde(skip_serializing_if = "is_default")]
    web_searches: u64,
    #[serde(skip_serializing_if = "is_default")]
    tier: ServiceTier,
    /// A tier that the first release does not know; `tier` is then the nearest one that it does.
    #[serde(skip_serializing_if = "is_default")]
    exact_tier: ServiceTier,
    #[serde(skip_serializing_if = "is_default")]
    parts: Vec<Part>,
    #[serde(skip_serializing_if = "is_default")]
    cache_miss: Option<CacheMiss>,
    /// Nano-dollars.
    #[serde(skip_serializing_if = "is_default")]
    notional_cost: Option<NanoUsd>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Extra {
    fn of(
        usage: &Usage,
        parts: &[Part],
        miss: Option<CacheMiss>,
        notional: Option<NanoUsd>,
    ) -> Option<String> {
        let [audio_input, audio_output, image_cache_read, audio_cache_read, web_searches] = [
            usage.audio_input,
            usage.audio_output,
            usage.image_cache_read,
            usage.audio_cache_read,
            usage.web_searches,
        ]
        .map(|count| count.min(MAX_TOKENS));
        let unpriced = parts.iter().any(|part| part.cost.is_none() && !part.free);
        let parts = parts.iter().map(stored_part).collect();
        let (tier, exact_tier) = match usage.tier {
            ServiceTier::Ultrafast => (ServiceTier::Priority, usage.tier),
            ServiceTier::OffPeak => (ServiceTier::Standard, usage.tier),
            known => (known, ServiceTier::Standard),
        };
        let extra = Self {
            unpriced,
            audio_input,
            audio_output,
            image_cache_read,
            audio_cache_read,
            web_searches,
            tier,
            exact_tier,
            parts,
            cache_miss: miss.map(stored_miss),
            notional_cost: notional.map(|cost| NanoUsd(bounded(cost))),
        };
        if is_default(&extra) { None } else { serde_json::to_string(&extra).ok() }
    }
}

/// The column `usage_extra`.
pub(in crate::store) fn extra(used: &Used) -> Option<String> {
    Extra::of(&used.usage, &used.parts, used.cache_miss, used.notional_cost)
}

/// A cache miss as stored.
pub(in crate::store) fn stored_miss(miss: CacheMiss) -> CacheMiss {
    let CacheMiss { cause, message, tokens, cost } = miss;
    CacheMiss { cause, message, tokens: tokens.min(MAX_TOKENS), cost: NanoUsd(bounded(cost)) }
}

/// A part as stored.
fn stored_part(part: &Part) -> Part {
    let name = |name: &Arc<str>| Arc::from(clipped(name, INDEXED_TEXT));
    Part {
        model: part.model.as_ref().map(name),
        price_model: part.price_model.as_ref().map(name),
        cost: part.cost.map(|cost| NanoUsd(bounded(cost))),
        ..part.clone()
    }
}

/// The duration as stored.
pub(in crate::store) fn duration(record: &Record) -> i64 {
    i64::try_from(record.duration_ms.min(MAX_MS)).unwrap_or(i64::MAX)
}

fn bind_usage_and_cost<A: Collect>(values: &mut Values<A>, record: &Record) {
    for count in tokens(&record.usage) {
        values.int(count);
    }
    let Record { usage, parts, cache_miss, notional_cost, .. } = record;
    values.opt_text(Extra::of(usage, parts, *cache_miss, *notional_cost).as_deref());
    values.opt_shared(record.price_model.as_ref(), INDEXED_TEXT);
    values.opt_int(cost(record)).opt_shared(Some(&multiplier(record.cost_multiplier)), PLAIN_TEXT);
    values.flag(record.estimated).int(duration(record));
}

/// The multiplier as text; nearly always the same one.
fn multiplier(value: Decimal) -> Arc<str> {
    static ONE: LazyLock<Arc<str>> = LazyLock::new(|| "1".into());
    if value == Decimal::ONE && value.scale() == 0 {
        Arc::clone(&ONE)
    } else {
        value.to_string().into()
    }
}

pub(in crate::store) fn bind_ledger<A: Collect>(values: &mut Values<A>, record: &Record) {
    values.bytes(record.request_id.0.as_bytes()).time(record.counts_at());
    values.opt_int(record.key_id.map(|id| id.0)).opt_int(record.user_id.map(|id| id.0));
    values.opt_int(record.provider_id.map(|id| id.0));
    values
        .opt_shared(Some(&record.model), INDEXED_TEXT)
        .opt_shared(record.upstream_model.as_ref(), INDEXED_TEXT);
    values.opt_shared(Some(&record.endpoint), INDEXED_TEXT).int(i64::from(record.status_code));
    values.text(record.outcome.as_str());
    bind_usage_and_cost(values, record);
}

pub(in crate::store) fn bind_log<A: Collect>(values: &mut Values<A>, record: &Record) {
    values.bytes(record.request_id.0.as_bytes()).time(record.counts_at());
    values.opt_int(record.key_id.map(|id| id.0)).opt_shared(record.key_name.as_ref(), PLAIN_TEXT);
    values.opt_int(record.user_id.map(|id| id.0)).opt_shared(record.user_name.as_ref(), PLAIN_TEXT);
    values.opt_shared(record.session_id.as_ref().map(|id| &id.0), INDEXED_TEXT);
    values
        .opt_int(record.provider_id.map(|id| id.0))
        .opt_shared(record.provider_name.as_ref(), PLAIN_TEXT);
    values
        .text(record.client_format.as_str())
        .opt_text(record.provider_format.map(WireFormat::as_str));
    values.opt_shared(Some(&record.endpoint), INDEXED_TEXT);
    values
        .opt_shared(Some(&record.model), INDEXED_TEXT)
        .opt_shared(record.upstream_model.as_ref(), INDEXED_TEXT);
    values.flag(record.streamed).int(i64::from(record.status_code)).text(record.outcome.as_str());
    values.opt_text(record.error_message.as_deref().map(|text| clipped(text, PLAIN_TEXT)));
    bind_usage_and_cost(values, record);
    values
        .opt_count_of(record.first_byte_ms)
        .count_of(record.overhead_us)
        .int(i64::from(record.attempts));
    values
        .text(&decisions::text(record))
        .opt_shared(record.user_agent.as_ref(), PLAIN_TEXT)
        .opt_shared(record.client_addr.as_ref(), PLAIN_TEXT)
        .opt_int(Some(record.admitted_ms).filter(|ms| *ms != 0));
}

/// Reads one row of `request_log`.
pub(in crate::store) fn read(row: &AnyRow) -> Result<LogRow, StoreError> {
    let fields = Fields { row, table: "request_log" };
    let shared = |column| Ok::<_, StoreError>(fields.opt_text(column)?.map(Arc::from));
    let provider_format = match fields.opt_text("provider_format")? {
        None => None,
        Some(_) => Some(fields.named("provider_format", WireFormat::parse)?),
    };
    let provider_id = fields.opt_int("provider_id")?.map(ProviderId);
    let provider_name = shared("provider_name")?;
    let decisions =
        decisions::parse(&fields.text("decisions")?, provider_id, provider_name.as_ref())
            .map_err(|error| fields.corrupt("decisions", &error.to_string()))?;
    let admitted_ms = fields.opt_int("admitted_ms")?.unwrap_or(0);
    let Used { usage, parts, cache_miss, notional_cost, upstream_model } = read_usage(fields)?;
    let record = Record {
        request_id: RequestId(uuid::Uuid::from_bytes(fields.bytes("request_id")?)),
        started_at: fields.time("started_at")?.plus_ms(admitted_ms.saturating_neg()),
        admitted_ms,
        key_id: fields.opt_int("key_id")?.map(KeyId),
        key_name: shared("key_name")?,
        user_id: fields.opt_int("user_id")?.map(UserId),
        user_name: shared("user_name")?,
        session_id: fields.opt_text("session_id")?.map(|text| SessionId(text.into())),
        provider_id,
        provider_name,
        client_format: fields.named("client_format", WireFormat::parse)?,
        provider_format,
        endpoint: fields.text("endpoint")?.into(),
        model: fields.text("model")?.into(),
        upstream_model: upstream_model.map(Arc::from),
        streamed: fields.flag("streamed")?,
        status_code: fields.number("status_code")?,
        outcome: fields.named("outcome", outcome)?,
        error_message: fields.opt_text("error_message")?,
        usage,
        parts,
        cache_miss,
        notional_cost,
        cost: fields.opt_money("cost")?,
        price_model: shared("price_model")?,
        cost_multiplier: fields.parsed("cost_multiplier")?,
        estimated: fields.flag("estimated")?,
        duration_ms: fields.number("duration_ms")?,
        first_byte_ms: fields.opt_number("first_byte_ms")?,
        overhead_us: fields.number("overhead_us")?,
        attempts: fields.number("attempts")?,
        decisions,
        user_agent: shared("user_agent")?,
        client_addr: shared("client_addr")?,
    };
    Ok(LogRow { id: fields.int("id")?, record })
}

/// Reads what a request used from a row of the ledger or the log.
pub(in crate::store) fn read_usage(fields: Fields<'_>) -> Result<Used, StoreError> {
    let extra = match fields.opt_text("usage_extra")? {
        None => Extra::default(),
        Some(_) => fields.json("usage_extra")?,
    };
    let usage = Usage {
        input: fields.number("input_tokens")?,
        output: fields.number("output_tokens")?,
        cache_write_5m: fields.number("cache_write_5m_tokens")?,
        cache_write_1h: fields.number("cache_write_1h_tokens")?,
        cache_read: fields.number("cache_read_tokens")?,
        reasoning: fields.number("reasoning_tokens")?,
        image_input: fields.number("image_input_tokens")?,
        image_output: fields.number("image_output_tokens")?,
        audio_input: extra.audio_input,
        audio_output: extra.audio_output,
        image_cache_read: extra.image_cache_read,
        audio_cache_read: extra.audio_cache_read,
        web_searches: extra.web_searches,
        tier: match extra.exact_tier {
            ServiceTier::Standard => extra.tier,
            exact => exact,
        },
    };
    let Extra { parts, cache_miss, notional_cost, .. } = extra;
    let upstream_model = fields.opt_text("upstream_model")?;
    Ok(Used { usage, parts, cache_miss, notional_cost, upstream_model })
}

fn outcome(text: &str) -> Option<RequestOutcome> {
    RequestOutcome::ALL.iter().copied().find(|outcome| outcome.as_str() == text)
}
