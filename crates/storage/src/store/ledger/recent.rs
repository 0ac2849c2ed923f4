//! The requests of the last minutes, from which the counters start: which sessions are live, and
//! how often each user sent requests.

use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, SessionId, UserId};
use crate::domain::money::NanoUsd;
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;

/// Longer requests are not found: they began before the time that is read.
const LONGEST_MS: i64 = 3_600_000;
/// Requests read at most, the newest.
const MOST: i64 = 200_000;

/// A request that was admitted, and has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentRequest {
    /// The key that was used.
    pub key_id: KeyId,
    /// The owner of the key.
    pub user_id: UserId,
    /// The provider that was tried last.
    pub provider_id: Option<ProviderId>,
    /// The session that the request belongs to.
    pub session: SessionId,
    /// The request's admission.
    pub started_at: Timestamp,
    /// The end of its reply: the start and the request's duration.
    pub ended_at: Timestamp,
    /// Nano-USD; 0 for an unpriced request.
    pub cost: NanoUsd,
}

impl Store {
    /// The requests that ended at `since` or later, by their admission. Left out: refused requests,
    /// token counts, the admin token's; and above the maximum, the oldest.
    pub async fn recent_requests(
        &self,
        since: Timestamp,
    ) -> Result<Vec<RecentRequest>, StoreError> {
        let mut values = Values::default();
        values.time(since.plus_ms(-LONGEST_MS)).time(since).int(MOST);
        let sql = "SELECT key_id, user_id, provider_id, session_id, started_at, duration_ms, \
                   admitted_ms, cost FROM request_log WHERE started_at >= $1 \
                   AND started_at - COALESCE(admitted_ms, 0) + duration_ms >= $2 \
                   AND outcome <> 'refused' AND key_id IS NOT NULL AND user_id IS NOT NULL \
                   AND session_id IS NOT NULL AND endpoint NOT LIKE '%/count_tokens' \
                   AND endpoint NOT LIKE '%:countTokens' ORDER BY started_at DESC LIMIT $3";
        let rows = sqlx::query_with(sql, values.into_arguments())
            .fetch_all(&mut *self.reader().await?)
            .await?;
        let read = |row| {
            let fields = Fields { row, table: "request_log" };
            let started_at = fields.time("started_at")?;
            Ok(RecentRequest {
                key_id: KeyId(fields.int("key_id")?),
                user_id: UserId(fields.int("user_id")?),
                provider_id: fields.opt_int("provider_id")?.map(ProviderId),
                session: SessionId(fields.text("session_id")?.into()),
                started_at,
                ended_at: started_at.plus_ms(
                    fields.int("duration_ms")? - fields.opt_int("admitted_ms")?.unwrap_or(0),
                ),
                cost: NanoUsd(fields.opt_int("cost")?.unwrap_or(0)),
            })
        };
        rows.iter().rev().map(read).collect()
    }
}
