//! Live sessions, as shown.

use schemars::JsonSchema;
use serde::Serialize;

use super::Exact;
use super::log::{Audience, LogEntry, LogSums};
use crate::domain::format::WireFormat;
use crate::limits::LiveSession;
use crate::state::Snapshot;
use crate::store::{LogPage, SessionFigures};

/// A session with a request running, or one that ended a short while ago.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActiveSession {
    /// The session's id, as the client sent it or as the gateway derived it from the request.
    pub session_id: String,
    /// The user who owns the key.
    pub user_id: i64,
    /// The user's present name; `null` = the user no longer exists.
    pub user_name: Option<String>,
    /// The key that the session's requests use.
    pub key_id: i64,
    /// The key's present name; `null` = the key no longer exists.
    pub key_name: Option<String>,
    /// The provider that serves it, once one was asked.
    pub provider_id: Option<i64>,
    /// That provider's present name; `null` = none was asked, or it no longer exists.
    pub provider_name: Option<String>,
    /// The model of the latest request, whether it runs or has ended.
    pub model: Option<String>,
    /// The client's format in that request.
    pub api_type: Option<&'static str>,
    /// `active` = a request is running; `idle` = none is.
    pub status: &'static str,
    /// Requests running now.
    pub concurrent_count: u32,
    /// The first request's start, milliseconds since the epoch.
    pub start_time: i64,
    /// Requests so far, running ones too.
    pub request_count: u64,
    /// Of the requests that ended, as all figures below.
    pub input_tokens: u64,
    /// All output, reasoning included.
    pub output_tokens: u64,
    /// Input written to prompt caches of any lifetime.
    pub cache_creation_tokens: u64,
    /// Input read from a prompt cache.
    pub cache_read_tokens: u64,
    /// The four together.
    pub total_tokens: u64,
    /// USD; requests without a price count as nothing.
    pub cost_usd: Exact,
    /// Of all requests together, milliseconds.
    pub duration_ms: u64,
}

impl ActiveSession {
    /// `figures`: of the requests that ended, if there are any.
    pub fn new(live: &LiveSession, figures: Option<&SessionFigures>, snapshot: &Snapshot) -> Self {
        let sum = |of: fn(&SessionFigures) -> u64| figures.map_or(0, of);
        Self {
            session_id: live.session.as_str().to_owned(),
            user_id: live.user.0,
            user_name: snapshot.user(live.user).map(|user| user.name.clone()),
            key_id: live.key.0,
            key_name: snapshot.key(live.key).map(|caller| caller.key.name.clone()),
            provider_id: live.provider.map(|id| id.0),
            provider_name: live
                .provider
                .and_then(|id| snapshot.provider(id))
                .map(|provider| provider.name.clone()),
            model: live
                .asks
                .as_ref()
                .map(|asks| asks.model.to_string())
                .or_else(|| figures.map(|f| f.model.clone())),
            api_type: live
                .asks
                .as_ref()
                .map(|asks| asks.format)
                .or(figures.map(|f| f.format))
                .map(WireFormat::as_str),
            status: if live.running > 0 { "active" } else { "idle" },
            concurrent_count: live.running,
            start_time: live.started_at.0,
            request_count: live.requests,
            input_tokens: sum(|f| f.input_tokens),
            output_tokens: sum(|f| f.output_tokens),
            cache_creation_tokens: sum(|f| f.cache_write_tokens),
            cache_read_tokens: sum(|f| f.cache_read_tokens),
            total_tokens: sum(|f| {
                f.input_tokens + f.output_tokens + f.cache_write_tokens + f.cache_read_tokens
            }),
            cost_usd: Exact::usd(figures.map(|f| f.cost).unwrap_or_default()),
            duration_ms: sum(|f| f.duration_ms),
        }
    }
}

/// A session's requests.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionDetails {
    /// The session, as asked for.
    pub session_id: String,
    /// The user who owns the key; `null` = no request of the session is known.
    pub user_id: Option<i64>,
    /// The user's name at the latest request that ended; `null` = none has ended yet.
    pub user_name: Option<String>,
    /// The key of the session's requests; `null` = no request of the session is known.
    pub key_id: Option<i64>,
    /// The key's name at the latest request that ended; `null` = none has ended yet.
    pub key_name: Option<String>,
    /// `active` = a request is running; `idle` = none is; `ended` = the session is over.
    pub status: &'static str,
    /// Requests running now.
    pub concurrent_count: u32,
    /// Requests that ended, in the order in which they began.
    pub requests: Vec<LogEntry>,
    /// How many there are, on all pages.
    pub total: u64,
    /// Sums over all of them.
    pub summary: LogSums,
    /// Asks for the requests before these; `null` = there are none.
    pub next_cursor: Option<String>,
}

impl SessionDetails {
    /// `found`: newest first.
    pub fn new(
        session: String,
        found: LogPage,
        reader: Audience,
        live: Option<&LiveSession>,
    ) -> Self {
        let newest = found.rows.first().map(|row| &row.record);
        let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_owned);
        Self {
            session_id: session,
            user_id: newest.and_then(|r| r.user_id).or(live.map(|l| l.user)).map(|id| id.0),
            user_name: newest.and_then(|r| text(&r.user_name)),
            key_id: newest.and_then(|r| r.key_id).or(live.map(|l| l.key)).map(|id| id.0),
            key_name: newest.and_then(|r| text(&r.key_name)),
            status: live.map_or("ended", |live| if live.running > 0 { "active" } else { "idle" }),
            concurrent_count: live.map_or(0, |live| live.running),
            requests: found
                .rows
                .iter()
                .rev()
                .map(|row| LogEntry::new(&row.record, reader))
                .collect(),
            total: found.total,
            summary: LogSums::new(&found.summary),
            next_cursor: found.next_cursor,
        }
    }
}
