//! The counters at start: what the ledger says was spent.
//!
//! The last day is read by the minute, for the rolling windows; the rest of the week and the month by the hour, cut at the
//! windows' own beginnings, so that a long month of a busy gateway takes milliseconds. Of the last minutes the requests
//! themselves are read, for live sessions and requests per minute.

use chrono_tz::Tz;

use crate::counters::{self, Counters};
use crate::domain::clock::Timestamp;
use crate::policy::window::Window;
use crate::store::{RecentRequest, SpendRow, Store};

/// What is read by the minute: a day, and the longest that a day can be.
const BY_THE_MINUTE_MS: i64 = 26 * 3600 * 1000;

/// Brings the counters to what the ledger says.
///
/// # Errors
/// When the store cannot be read.
pub async fn counters(counters: &Counters, store: &Store, zone: Tz, now: Timestamp) -> anyhow::Result<()> {
    let recent = now.plus_ms(-BY_THE_MINUTE_MS);
    let mut rows = store.spend_since(recent).await?;
    for (from, until) in stretches(counters.rebuild_from(now), recent, zone, now) {
        rows.extend(store.spend_between(from, until).await?);
    }
    let totals = store.spend_totals().await?;
    let totals = totals.into_iter().map(|t| counters::SpendTotal {
        key: t.key_id,
        user: t.user_id,
        provider: t.provider_id,
        cost: t.cost,
    });
    counters.rebuild(rows.into_iter().map(row), totals, now);
    let recent = store.recent_requests(counters.replay_from(now)).await?;
    counters.replay(recent.into_iter().map(request), now);
    Ok(())
}

fn request(from: RecentRequest) -> counters::RecentRequest {
    counters::RecentRequest {
        key: from.key_id,
        user: from.user_id,
        provider: from.provider_id,
        session: from.session,
        started: from.started_at,
        ended: from.ended_at,
        cost: from.cost,
    }
}

fn row(from: SpendRow) -> counters::SpendRow {
    counters::SpendRow {
        minute: from.minute,
        key: from.key_id,
        user: from.user_id,
        provider: from.provider_id,
        cost: from.cost,
    }
}

/// The time from `oldest` to `recent`, cut where the week and the month begin.
fn stretches(oldest: Timestamp, recent: Timestamp, zone: Tz, now: Timestamp) -> Vec<(Timestamp, Timestamp)> {
    let begins = [Window::Weekly, Window::Monthly].map(|window| window.start(now, zone));
    let mut cuts: Vec<Timestamp> = begins.into_iter().filter(|at| *at > oldest && *at < recent).collect();
    cuts.extend([oldest, recent]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| (pair[0], pair[1])).filter(|(from, until)| from < until).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stretches_are_cut_where_the_windows_begin() {
        let at = |text: &str| Timestamp::from(text.parse::<chrono::DateTime<chrono::Utc>>().unwrap());
        // A Saturday: the week began on Monday the 16th, the month on the 1st.
        let now = at("2026-11-21T12:00:00Z");
        let (oldest, recent) = (at("2026-11-01T00:00:00Z"), now.plus_ms(-BY_THE_MINUTE_MS));
        let monday = at("2026-11-16T00:00:00Z");
        assert_eq!(stretches(oldest, recent, Tz::UTC, now), [(oldest, monday), (monday, recent)]);
        assert_eq!(stretches(recent, recent, Tz::UTC, now), []);
    }
}
