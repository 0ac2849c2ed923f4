//! Usage log entries as shown.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{Exact, Iso};
use crate::domain::cache_miss::CacheMiss;
use crate::domain::part::Part;
use crate::domain::record::{Decision, DecisionStep, Record, RequestOutcome};
use crate::store::{LogPage, LogSummary};

/// Who reads an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// An administrator.
    Administrator,
    /// The user whose request it was. Providers of other groups, and what a failed provider
    /// answered or where it is, stay the operator's.
    Owner,
}

impl Audience {
    /// The reader that a caller is.
    pub const fn of(is_admin: bool) -> Self {
        if is_admin { Self::Administrator } else { Self::Owner }
    }

    fn error_message(self, record: &Record) -> Option<String> {
        // Clients do not receive this text. All others are what they received.
        let is_internal = record.outcome == RequestOutcome::Internal;
        let is_shown = self == Self::Administrator || !is_internal;
        record.error_message.clone().filter(|_| is_shown)
    }

    fn decisions(self, record: &Record) -> Value {
        let shown = match self {
            Self::Administrator => serde_json::to_value(&record.decisions),
            Self::Owner => {
                let shown = record.decisions.iter().filter_map(for_owner);
                serde_json::to_value(shown.collect::<Vec<_>>())
            }
        };
        shown.unwrap_or_default()
    }
}

fn for_owner(decision: &Decision) -> Option<Decision> {
    use DecisionStep::{AttemptFailed, ClientError, OtherGroup, Retried};
    // The entry's message has what the client received for its own error.
    let has_failed = matches!(decision.step, AttemptFailed | ClientError | Retried);
    let detail = decision.detail.clone().filter(|_| !has_failed);
    let is_of_another_group = decision.step == OtherGroup;
    (!is_of_another_group).then(|| Decision { detail, ..decision.clone() })
}

/// One request, as billed and as logged.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    /// A UUID; the client received it in the header `x-tollgate-request-id`.
    pub request_id: String,
    /// The session that the request belongs to; `null` = the request was refused before its body
    /// was read, or the gateway made it itself.
    pub session_id: Option<String>,
    /// The user who owns the key; `null` for requests of the administrator token,
    /// and for those that the gateway makes itself (`#probe`, `#hedge`).
    pub user_id: Option<i64>,
    /// The user's name at the time of the request; `null` for requests of the administrator token,
    /// and for those that the gateway makes itself (`#probe`, `#hedge`).
    pub user_name: Option<String>,
    /// The key of the request; `null` for requests of the administrator token,
    /// and for those that the gateway makes itself (`#probe`, `#hedge`).
    pub key_id: Option<i64>,
    /// The key's name at the time of the request; `null` for requests of the administrator token,
    /// and for those that the gateway makes itself (`#probe`, `#hedge`).
    pub key_name: Option<String>,
    /// The provider that answered, or the last one that was tried; `null` = none was tried.
    pub provider_id: Option<i64>,
    /// That provider's name at the time of the request.
    pub provider_name: Option<String>,
    /// The model that the client asked for.
    pub model: String,
    /// The model that the provider was asked for, when it is another.
    pub upstream_model: Option<String>,
    /// `native`, `responses`, `chat-compatible` or `alt-cli`.
    pub client_format: &'static str,
    /// The provider's format, named as in `clientFormat`; `null` = no provider was tried.
    pub provider_format: Option<&'static str>,
    /// The path that the client requested, without its query, perhaps with the gateway's mark:
    /// `#tool-check`, `#websocket`; of what it asked for itself `#probe`, `#hedge`.
    pub endpoint: String,
    /// The client asked for a stream.
    pub streamed: bool,
    /// Text that was neither read from nor written to a cache.
    pub input_tokens: u64,
    /// All output, reasoning and audio included.
    pub output_tokens: u64,
    /// Input written to the five-minute prompt cache.
    #[serde(rename = "cacheCreation5mTokens")]
    pub cache_creation_5m_tokens: u64,
    /// Input written to the one-hour prompt cache.
    #[serde(rename = "cacheCreation1hTokens")]
    pub cache_creation_1h_tokens: u64,
    /// Input read from a prompt cache.
    pub cache_read_tokens: u64,
    /// The part of the output that was reasoning.
    pub reasoning_tokens: u64,
    /// The part of the input that was audio.
    pub audio_input_tokens: u64,
    /// The part of the output that was audio.
    pub audio_output_tokens: u64,
    /// Web searches that the provider ran and charges for.
    pub web_searches: u64,
    /// The provider's service tier: `standard`, `flex`, `priority`, `batch`, `fast`, `us`,
    /// `fast_us`, `ultrafast` or `off_peak`.
    pub service_tier: &'static str,
    /// `null` = there was no price for the model.
    pub cost_usd: Option<Exact>,
    /// What it would have cost by the price table, where the client's own account paid at the
    /// provider (`auth`: `client`) and `costUsd` is 0; `null` = it was charged, or has no price.
    pub notional_cost_usd: Option<Exact>,
    /// The price entry that the cost was made with; `null` where nothing was charged.
    pub price_model: Option<String>,
    /// The parts of the cost that have a price of their own; empty for most requests.
    pub parts: Vec<PartRecord>,
    /// What the provider could not read from its prompt cache, and why; `null` = nothing, or nothing
    /// is known.
    pub cache_miss: Option<CacheMissRecord>,
    /// The provider's multiplier that is part of `costUsd`; 1 where there was no usage.
    pub cost_multiplier: Exact,
    /// The usage, and so the cost, was estimated.
    pub estimated: bool,
    /// Milliseconds from the request's start to the end of its reply.
    pub duration_ms: u64,
    /// Milliseconds to the reply's first byte.
    pub ttfb_ms: Option<u64>,
    /// Microseconds spent in the gateway itself.
    pub overhead_us: u64,
    /// The HTTP status that the client got.
    pub status_code: u16,
    /// How it ended: `completed`, `refused`, `client_error`, `upstream_failed`, `broken_off`,
    /// `client_aborted`, `internal`.
    pub outcome: &'static str,
    /// Why the request did not succeed; `null` where it did, and for users where the gateway itself
    /// failed (`internal`).
    pub error_message: Option<String>,
    /// Requests that were sent to providers for it, the first and all retries; 0 = none.
    pub attempts: u32,
    /// Which providers were considered, skipped, chosen and tried, and why. Users do not see those
    /// of other groups, nor what a failed provider answered.
    pub decision_chain: Value,
    /// The client's `User-Agent` header; `null` = it sent none.
    pub user_agent: Option<String>,
    /// The client's IP address, see `trusted_proxies`; `null` where it is not known.
    pub client_address: Option<String>,
    /// When the request began. Its cost belongs to this time.
    pub created_at: Iso,
}

impl LogEntry {
    /// The entry as shown, with the names that the record holds: those at the time of the request.
    pub fn new(record: &Record, reader: Audience) -> Self {
        let usage = &record.usage;
        let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_owned);
        Self {
            request_id: record.request_id.to_string(),
            session_id: record.session_id.as_ref().map(|id| id.as_str().to_owned()),
            user_id: record.user_id.map(|id| id.0),
            user_name: text(&record.user_name),
            key_id: record.key_id.map(|id| id.0),
            key_name: text(&record.key_name),
            provider_id: record.provider_id.map(|id| id.0),
            provider_name: text(&record.provider_name),
            model: record.model.to_string(),
            upstream_model: text(&record.upstream_model),
            client_format: record.client_format.as_str(),
            provider_format: record.provider_format.map(|format| format.as_str()),
            endpoint: record.endpoint.to_string(),
            streamed: record.streamed,
            input_tokens: usage.input,
            output_tokens: usage.output,
            cache_creation_5m_tokens: usage.cache_write_5m,
            cache_creation_1h_tokens: usage.cache_write_1h,
            cache_read_tokens: usage.cache_read,
            reasoning_tokens: usage.reasoning,
            audio_input_tokens: usage.audio_input,
            audio_output_tokens: usage.audio_output,
            web_searches: usage.web_searches,
            service_tier: usage.tier.as_str(),
            cost_usd: record.cost.map(Exact::usd),
            notional_cost_usd: record.notional_cost.map(Exact::usd),
            price_model: record.priced_by().map(str::to_owned),
            parts: record.parts.iter().map(PartRecord::from).collect(),
            cache_miss: record.cache_miss.map(CacheMissRecord::from),
            cost_multiplier: Exact(record.cost_multiplier),
            estimated: record.estimated,
            duration_ms: record.duration_ms,
            ttfb_ms: record.first_byte_ms,
            overhead_us: record.overhead_us,
            status_code: record.status_code,
            outcome: record.outcome.as_str(),
            error_message: reader.error_message(record),
            attempts: record.attempts,
            decision_chain: reader.decisions(record),
            user_agent: text(&record.user_agent),
            client_address: text(&record.client_addr),
            created_at: Iso(record.started_at),
        }
    }
}

/// Input that was not read from the provider's prompt cache.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CacheMissRecord {
    /// Compared with the session's request before: `account` (another provider served that one),
    /// `model`, `tools`, `system` or `message` (it changed), `lifetime` (it was over) or
    /// `unexplained`. `first_use`: there was none; `unknown`: this node does not know it.
    pub cause: &'static str,
    /// The number of the first message that changed, from 1; `null` for other causes.
    pub message: Option<u32>,
    /// Tokens that were charged as new, or written to the cache again.
    pub tokens: u64,
    /// What reading them from the cache would have saved.
    pub cost_usd: Exact,
}

impl From<CacheMiss> for CacheMissRecord {
    fn from(miss: CacheMiss) -> Self {
        Self {
            cause: miss.cause.as_str(),
            message: Some(miss.message).filter(|number| *number > 0),
            tokens: miss.tokens,
            cost_usd: Exact::usd(miss.cost),
        }
    }
}

/// A part of a request's cost that has a price of its own.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PartRecord {
    /// A pass over a model: `message`, `fallback_message`, `advisor_message`, `compaction` or
    /// `other_pass`. A tool that the provider ran: `image_generation`, `code_interpreter`,
    /// `file_search`, `web_search` (without a fee in the price entry), `image_search`, `maps`,
    /// `code_execution`, `web_fetch` or `partner_search`. Of an endpoint: `image`, `second` (of
    /// sound), `character` or `query`.
    pub kind: &'static str,
    /// The model, as the provider named it; `null` = the one that was asked for. Of containers of
    /// another size than the usual one: the price entry that they need.
    pub model: Option<String>,
    /// Text that was neither read from nor written to a cache.
    pub input_tokens: u64,
    /// All output, reasoning and images included.
    pub output_tokens: u64,
    /// Input written to the five-minute prompt cache.
    #[serde(rename = "cacheCreation5mTokens")]
    pub cache_creation_5m_tokens: u64,
    /// Input written to the one-hour prompt cache.
    #[serde(rename = "cacheCreation1hTokens")]
    pub cache_creation_1h_tokens: u64,
    /// Input read from a prompt cache.
    pub cache_read_tokens: u64,
    /// The service tier, as in the entry.
    pub service_tier: &'static str,
    /// Calls or containers of a tool; 0 for a pass.
    pub quantity: u64,
    /// The provider does not charge for it: a model that declined before it wrote anything.
    pub free: bool,
    /// Its part of the request's cost; `null` = there was no price for it.
    pub cost_usd: Option<Exact>,
    /// The price entry of its cost, where it is not that of the requested model.
    pub price_model: Option<String>,
}

impl From<&Part> for PartRecord {
    fn from(part: &Part) -> Self {
        let usage = &part.usage;
        Self {
            kind: part.kind.as_str(),
            model: part.model.as_deref().map(str::to_owned),
            input_tokens: usage.input,
            output_tokens: usage.output,
            cache_creation_5m_tokens: usage.cache_write_5m,
            cache_creation_1h_tokens: usage.cache_write_1h,
            cache_read_tokens: usage.cache_read,
            service_tier: usage.tier.as_str(),
            quantity: part.quantity,
            free: part.free,
            cost_usd: part.cost.map(Exact::usd),
            price_model: part.price_model.as_deref().map(str::to_owned),
        }
    }
}

/// One page of the usage log, newest first.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogPageRecord {
    /// The entries of this page.
    pub logs: Vec<LogEntry>,
    /// Entries on all pages.
    pub total: u64,
    /// False: there are more, and `total` and `summary` are of the newest 20000. That may be so by
    /// session and by retries; and, over more than 32 days, by a user or key together with an
    /// endpoint, or with a provider and a model.
    pub total_is_exact: bool,
    /// The number of this page, from 1; with a cursor, the number that was asked for.
    pub page: u32,
    /// Entries on a page, as asked for.
    pub page_size: u32,
    /// Sums over all pages.
    pub summary: LogSums,
    /// Asks for the next page; `null` on the last.
    pub next_cursor: Option<String>,
}

/// Sums over all pages.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogSums {
    /// Requests on all pages.
    pub requests: u64,
    /// Requests that failed or were refused.
    pub errors: u64,
    /// Those of them that a limit of a key or a user refused: an error rate leaves them out, of the
    /// errors and of the requests.
    pub limit_refusals: u64,
    /// Requests whose model had no price.
    pub unpriced: u64,
    /// USD; requests without a price count as nothing.
    pub cost_usd: Exact,
    /// Text that was neither read from nor written to a cache.
    pub input_tokens: u64,
    /// All output, reasoning and audio included.
    pub output_tokens: u64,
    /// Input written to the five-minute prompt cache.
    #[serde(rename = "cacheCreation5mTokens")]
    pub cache_creation_5m_tokens: u64,
    /// Input written to the one-hour prompt cache.
    #[serde(rename = "cacheCreation1hTokens")]
    pub cache_creation_1h_tokens: u64,
    /// Input read from a prompt cache.
    pub cache_read_tokens: u64,
    /// The part of the output that was reasoning.
    pub reasoning_tokens: u64,
    /// Milliseconds, the durations of all requests added up.
    pub duration_ms: u64,
}

impl LogSums {
    /// The sums as shown.
    pub fn new(summary: &LogSummary) -> Self {
        Self {
            requests: summary.requests,
            errors: summary.errors,
            limit_refusals: summary.limit_refusals,
            unpriced: summary.unpriced,
            cost_usd: Exact::usd(summary.cost),
            input_tokens: summary.input_tokens,
            output_tokens: summary.output_tokens,
            cache_creation_5m_tokens: summary.cache_write_5m_tokens,
            cache_creation_1h_tokens: summary.cache_write_1h_tokens,
            cache_read_tokens: summary.cache_read_tokens,
            reasoning_tokens: summary.reasoning_tokens,
            duration_ms: summary.duration_ms,
        }
    }
}

impl LogPageRecord {
    /// `page` and `page_size` are given back as the caller asked for them.
    pub fn new(found: LogPage, reader: Audience, page: u32, page_size: u32) -> Self {
        Self {
            logs: found.rows.iter().map(|row| LogEntry::new(&row.record, reader)).collect(),
            total: found.total,
            total_is_exact: found.total_is_exact,
            page,
            page_size,
            summary: LogSums::new(&found.summary),
            next_cursor: found.next_cursor,
        }
    }
}
