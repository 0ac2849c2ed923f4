//! The counters at start: loads the spending from the ledger.
//!
//! The last day is read by the minute, for the rolling windows. The rest of the week and the month
//! is read by the hour, split where a window begins, so that a long month of a busy gateway takes
//! milliseconds. Of the last minutes the requests themselves are read, for live sessions and
//! requests per minute.

use std::pin::Pin;
use std::sync::Arc;

use chrono_tz::Tz;

use crate::domain::clock::Timestamp;
use crate::ledger::Ledger as Journal;
use crate::limits::{self, Counters, Ledger, LedgerSums};
use crate::policy::window::Window;
use crate::store::{RecentRequest, SpendLook, SpendRow, SpendSeen, SpendTotal, Store, StoreError};

/// What is read by the minute: the length of the longest possible day.
const BY_THE_MINUTE_MS: i64 = 26 * 3600 * 1000;
/// A record that waits for longer is missing after a rebuild from the ledger: nodes send again only
/// what they settled in the last two minutes.
const LATEST_MS: u64 = 60_000;

/// Loads the ledger's sums into the counters.
///
/// Returns the opening balances that they contain.
///
/// # Errors
/// When the store cannot be read.
pub(super) async fn counters(
    counters: &Counters,
    store: &Store,
    zone: Tz,
    now: Timestamp,
) -> anyhow::Result<Vec<SpendRow>> {
    let (LedgerSums { rows, totals, .. }, opening) =
        sums(seen(counters, store, zone, (now, None)).await?);
    counters.rebuild(rows, totals, now);
    let recent = store.recent_requests(counters.replay_from(now)).await?;
    counters.replay(recent.into_iter().map(request), now);
    Ok(opening)
}

/// The ledger as the source of shared counters.
pub(super) struct FromStore {
    pub counters: Counters,
    pub store: Store,
    /// The journal of this process. After a start without the database, the ledger lacks what
    /// earlier processes left in theirs until this one has delivered it.
    pub journal: Arc<Journal>,
}

impl Ledger for FromStore {
    fn read(
        &self,
        now: Timestamp,
        ended_since: Timestamp,
    ) -> Pin<Box<dyn Future<Output = Result<LedgerSums, String>> + Send + '_>> {
        Box::pin(async move {
            let seen =
                seen(&self.counters, &self.store, self.counters.zone(), (now, Some(ended_since)))
                    .await;
            seen.map(|seen| sums(seen).0).map_err(|e| e.to_string())
        })
    }

    fn is_complete(&self) -> bool {
        let journal = self.journal.stats();
        !self.store.is_held() && journal.left_bytes == 0 && journal.oldest_age_ms < LATEST_MS
    }
}

/// What the ledger has of the windows that `now` is in, and of all time.
///
/// # Errors
/// [`StoreError`] of the read.
pub(super) async fn seen(
    counters: &Counters,
    store: &Store,
    zone: Tz,
    (now, ended_since): (Timestamp, Option<Timestamp>),
) -> Result<SpendSeen, StoreError> {
    let recent = now.plus_ms(-BY_THE_MINUTE_MS);
    let stretches = stretches(counters.rebuild_from(now), recent, zone, now);
    store.spend_seen(&SpendLook { stretches, recent, ended_since }).await
}

/// As the counters take it; beside it the opening balances, which it contains.
pub(super) fn sums(seen: SpendSeen) -> (LedgerSums, Vec<SpendRow>) {
    let SpendSeen { rows, totals, ended, opening } = seen;
    let ever = opening.iter().map(|o| SpendTotal {
        key_id: o.key_id,
        user_id: o.user_id,
        provider_id: o.provider_id,
        cost: o.cost,
    });
    let totals = totals.into_iter().chain(ever).map(total).collect();
    let rows = rows.into_iter().chain(opening.iter().copied()).map(row).collect();
    (LedgerSums { rows, totals, ids: ended }, opening)
}

pub(super) fn total(from: SpendTotal) -> limits::SpendTotal {
    limits::SpendTotal {
        key: from.key_id,
        user: from.user_id,
        provider: from.provider_id,
        cost: from.cost,
    }
}

pub(super) fn request(from: RecentRequest) -> limits::RecentRequest {
    limits::RecentRequest {
        key: from.key_id,
        user: from.user_id,
        provider: from.provider_id,
        session: from.session,
        started: from.started_at,
        ended: from.ended_at,
        cost: from.cost,
    }
}

pub(super) fn row(from: SpendRow) -> limits::SpendRow {
    limits::SpendRow {
        minute: from.minute,
        key: from.key_id,
        user: from.user_id,
        provider: from.provider_id,
        cost: from.cost,
    }
}

/// The time from `oldest` to `recent`, split where the week and the month begin.
fn stretches(
    oldest: Timestamp,
    recent: Timestamp,
    zone: Tz,
    now: Timestamp,
) -> Vec<(Timestamp, Timestamp)> {
    let begins = [Window::Weekly, Window::Monthly].map(|window| window.start(now, zone));
    let mut cuts: Vec<Timestamp> =
        begins.into_iter().filter(|at| *at > oldest && *at < recent).collect();
    cuts.extend([oldest, recent]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| (pair[0], pair[1])).filter(|(from, until)| from < until).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stretches_are_cut_where_the_windows_begin() {
        let at =
            |text: &str| Timestamp::from(text.parse::<chrono::DateTime<chrono::Utc>>().unwrap());
        // A Saturday: the week began on Monday the 16th, the month on the 1st.
        let now = at("2026-11-21T12:00:00Z");
        let (oldest, recent) = (at("2026-11-01T00:00:00Z"), now.plus_ms(-BY_THE_MINUTE_MS));
        let monday = at("2026-11-16T00:00:00Z");
        assert_eq!(stretches(oldest, recent, Tz::UTC, now), [(oldest, monday), (monday, recent)]);
        assert_eq!(stretches(recent, recent, Tz::UTC, now), []);
    }
}
