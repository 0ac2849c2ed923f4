//! Tokens, cost and duration of sessions, summed from the request log. One statement reads up to
//! `CHUNK` sessions and uses the log's index of sessions.

use sqlx::AssertSqlSafe;

use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::ids::{KeyId, SessionId};
use crate::domain::money::NanoUsd;
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;

/// A session whose figures are requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionQuery {
    /// The key that the session's requests use. Session ids are unique per key only.
    pub key: KeyId,
    /// The session's id.
    pub session: SessionId,
    /// The start of its first request. Earlier requests with the same session id do not count.
    pub since: Timestamp,
}

/// The sums over the ended requests of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFigures {
    /// The key that was asked for.
    pub key: KeyId,
    /// The session that was asked for.
    pub session: SessionId,
    /// The number of ended requests, whatever their outcome.
    pub requests: u64,
    /// Input that was neither read from nor written to a cache.
    pub input_tokens: u64,
    /// All output, including reasoning.
    pub output_tokens: u64,
    /// Input written to prompt caches of any lifetime.
    pub cache_write_tokens: u64,
    /// Input read from a prompt cache.
    pub cache_read_tokens: u64,
    /// Nano-USD; unpriced requests count as zero.
    pub cost: NanoUsd,
    /// The sum of the durations of all requests.
    pub duration_ms: u64,
    /// The model of the latest request.
    pub model: String,
    /// The client's format in the latest request.
    pub format: WireFormat,
}

/// Sessions per statement.
const CHUNK: usize = 100;

/// `CROSS JOIN` keeps SQLite from reversing the join order, which would scan the complete log.
const FIGURES: &str = "SELECT asked.key_id AS key_id, asked.session_id AS session_id, COUNT(*) AS \
                       requests, CAST(SUM(input_tokens) AS BIGINT) AS input_tokens, \
                       CAST(SUM(output_tokens) AS BIGINT) AS output_tokens, \
                       CAST(SUM(cache_write_5m_tokens + cache_write_1h_tokens) AS BIGINT) AS \
                       cache_write_tokens, CAST(SUM(cache_read_tokens) AS BIGINT) AS \
                       cache_read_tokens, COALESCE(CAST(SUM(cost) AS BIGINT), 0) AS cost, \
                       CAST(SUM(duration_ms) AS BIGINT) AS duration_ms, (SELECT model \
                       FROM request_log WHERE session_id = asked.session_id \
                       AND key_id = asked.key_id ORDER BY started_at DESC, id DESC \
                       LIMIT 1) AS model, (SELECT client_format FROM request_log \
                       WHERE session_id = asked.session_id AND key_id = asked.key_id \
                       ORDER BY started_at DESC, id DESC LIMIT 1) AS format FROM asked CROSS \
                       JOIN request_log AS log \
                       WHERE log.session_id = asked.session_id AND log.key_id = asked.key_id \
                       AND log.started_at >= asked.since GROUP BY asked.key_id, asked.session_id";

impl Store {
    /// The figures of the sessions that have an ended request, unordered.
    pub async fn session_figures(
        &self,
        asked: &[SessionQuery],
    ) -> Result<Vec<SessionFigures>, StoreError> {
        let mut found = Vec::with_capacity(asked.len());
        let mut connection = self.report().await?;
        for chunk in asked.chunks(CHUNK) {
            let mut values = Values::default();
            let mut list = String::new();
            for ask in chunk {
                values.int(ask.key.0).text(ask.session.as_str()).time(ask.since);
                let last = values.count();
                list.push_str(if list.is_empty() { "" } else { ", " });
                list.push_str(&format!(
                    "(CAST(${} AS BIGINT), CAST(${} AS TEXT), CAST(${last} AS BIGINT))",
                    last - 2,
                    last - 1
                ));
            }
            let sql = AssertSqlSafe(format!(
                "WITH asked (key_id, session_id, since) AS (VALUES {list}) {FIGURES}"
            ));
            let rows =
                sqlx::query_with(sql, values.into_arguments()).fetch_all(&mut *connection).await?;
            for row in &rows {
                found.push(read(Fields { row, table: "request_log" })?);
            }
        }
        Ok(found)
    }
}

fn read(fields: Fields<'_>) -> Result<SessionFigures, StoreError> {
    Ok(SessionFigures {
        key: KeyId(fields.int("key_id")?),
        session: SessionId(fields.text("session_id")?.into()),
        requests: fields.number("requests")?,
        input_tokens: fields.number("input_tokens")?,
        output_tokens: fields.number("output_tokens")?,
        cache_write_tokens: fields.number("cache_write_tokens")?,
        cache_read_tokens: fields.number("cache_read_tokens")?,
        cost: NanoUsd(fields.int("cost")?),
        duration_ms: fields.number("duration_ms")?,
        model: fields.text("model")?,
        format: fields.named("format", WireFormat::parse)?,
    })
}
