//! Past spending, from which the counters start: what is read of the ledger, and when.
//!
//! The last day is read by the minute, for the rolling windows. The rest of the week and the month
//! is read by the hour, split where a window begins, so that a long month of a busy gateway takes
//! milliseconds. Of the last minutes the requests themselves are read, for live sessions and
//! requests per minute.

use std::pin::Pin;

use chrono_tz::Tz;

use super::memory::Memory;
use super::{CounterSource, Counters};
use crate::domain::clock::Timestamp;
use crate::policy::window::Window;
use crate::store::{SpendLook, SpendRow, SpendSeen, Store, StoreError};

/// What is read by the minute: the length of the longest possible day.
const BY_THE_MINUTE_MS: i64 = 26 * 3600 * 1000;

impl Counters {
    /// Loads the ledger's sums and the requests of the last minutes, before the first request.
    /// Returns the opening balances in the sums.
    pub async fn load(&self, store: &Store, now: Timestamp) -> Result<Vec<SpendRow>, StoreError> {
        let past = self.past(store, now).await?;
        self.rebuild(&past, now);
        self.replay(store.recent_requests(self.replay_from(now)).await?, now);
        Ok(past.opening)
    }

    /// What the ledger has of the windows that `now` is in, and of all time.
    pub async fn past(&self, store: &Store, now: Timestamp) -> Result<SpendSeen, StoreError> {
        store.spend_seen(&look(self.zone(), now, None)).await
    }
}

/// What is read for the windows of a time zone.
fn look(zone: Tz, now: Timestamp, ended_since: Option<Timestamp>) -> SpendLook {
    let recent = now.plus_ms(-BY_THE_MINUTE_MS);
    let stretches = stretches(Memory::rebuild_from(now, zone), recent, zone, now);
    SpendLook { stretches, recent, ended_since }
}

/// The ledger as the source of shared counters.
pub struct FromStore {
    /// Where the ledger is.
    pub store: Store,
    /// Whether the ledger has what this process and earlier ones left in their journals. After a
    /// start without the database, it lacks that until this process has delivered it.
    pub is_delivered: Box<dyn Fn() -> bool + Send + Sync>,
}

impl CounterSource for FromStore {
    fn read(
        &self,
        zone: Tz,
        now: Timestamp,
        ended_since: Timestamp,
    ) -> Pin<Box<dyn Future<Output = Result<SpendSeen, String>> + Send + '_>> {
        Box::pin(async move {
            // Without it a cost may count twice that a restored database lost, and prices again.
            if let Err(error) = self.store.mark_late_costs().await {
                tracing::debug!(%error, "late costs could not be marked");
            }
            let look = look(zone, now, Some(ended_since));
            self.store.spend_seen(&look).await.map_err(|e| e.to_string())
        })
    }

    fn is_complete(&self) -> bool {
        !self.store.is_held() && (self.is_delivered)()
    }
}

/// The time from `oldest` to `recent`, split where the week and the month begin.
fn stretches(
    oldest: Timestamp,
    recent: Timestamp,
    zone: Tz,
    now: Timestamp,
) -> Vec<(Timestamp, Timestamp)> {
    let begins = Window::BY_DATE.map(|window| window.start(now, zone));
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
