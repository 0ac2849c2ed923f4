//! What a start without the database knows of past spending: the ledger's sums of the last
//! snapshot, and the records that wait in the journals of other processes: of ended ones, and in an
//! upgrade of the one that is still running. And the difference to the ledger, once that can be
//! read.
//!
//! The difference is exact. While the store is held, this process delivers nothing: the ledger then
//! has neither the records that wait nor those of this process, which the counters contain. Two
//! kinds of records can be in both, and are looked up by their ids: a batch that was delivered just
//! before its process ended, and those of a running process.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, RequestId, UserId};
use crate::domain::money::NanoUsd;
use crate::domain::record::{Record, RequestOutcome};
use crate::ledger::each_left;
use crate::limits::Counters;
use crate::store::{RecentRequest, SpendRow, SpendSeen, SpendTotal, Store, StoreError};

/// Requests of the last minutes that are replayed at most, the newest.
const MOST_RECENT: usize = 200_000;
const MINUTE_MS: i64 = 60_000;

type Holder = (Option<KeyId>, Option<UserId>, Option<ProviderId>);

/// Past spending as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The ledger as of the snapshot.
    seen: SpendSeen,
    /// Costs of the records that wait in the journals, by minute.
    left: HashMap<(Timestamp, Holder), i64>,
    recent: Vec<RecentRequest>,
    /// Waiting records that the ledger may have already, with their cost.
    doubtful: HashMap<RequestId, SpendRow>,
}

impl Known {
    /// Adds the journals' records to the ledger's sums. Blocks.
    pub(super) fn read(
        seen: SpendSeen,
        journals: &Path,
        recent_from: Timestamp,
    ) -> std::io::Result<Self> {
        let mut known = Self { seen, ..Self::default() };
        each_left(journals, &mut |record, doubtful| known.add(record, doubtful, recent_from))?;
        known.recent.sort_by_key(|request| request.started_at);
        let extra = known.recent.len().saturating_sub(MOST_RECENT);
        known.recent.drain(..extra);
        Ok(known)
    }

    fn add(&mut self, record: &Record, doubtful: bool, recent_from: Timestamp) {
        let holder = (record.key_id, record.user_id, record.provider_id);
        if let Some(cost) = record.cost.filter(|cost| *cost != NanoUsd::ZERO) {
            let minute = Timestamp(record.counts_at().0.div_euclid(MINUTE_MS) * MINUTE_MS);
            let sum = self.left.entry((minute, holder)).or_default();
            *sum = sum.saturating_add(cost.0);
            if doubtful {
                self.doubtful.insert(record.request_id, row(minute, holder, cost.0));
            }
        }
        let ended_at = record.started_at.plus_ms(i64::try_from(record.duration_ms).unwrap_or(0));
        let counted = record.outcome != RequestOutcome::Refused
            && !record.endpoint.ends_with("/count_tokens")
            && !record.endpoint.ends_with(":countTokens");
        if let (true, Some(key_id), Some(user_id), Some(session)) =
            (counted && ended_at >= recent_from, record.key_id, record.user_id, &record.session_id)
        {
            self.recent.push(RecentRequest {
                key_id,
                user_id,
                provider_id: record.provider_id,
                session: session.clone(),
                started_at: record.counts_at(),
                ended_at,
                cost: record.cost.unwrap_or_default(),
            });
        }
    }

    /// The opening balances in it.
    pub(super) fn opening(&self) -> &[SpendRow] {
        &self.seen.opening
    }

    /// Puts all of it into empty counters.
    pub(super) fn load(&mut self, counters: &Counters, now: Timestamp) {
        let mut past = self.seen.clone();
        for ((minute, (key_id, user_id, provider_id)), cost) in std::mem::take(&mut self.left) {
            let cost = NanoUsd(cost);
            past.rows.push(SpendRow { minute, key_id, user_id, provider_id, cost });
            past.totals.push(SpendTotal { key_id, user_id, provider_id, cost });
        }
        counters.rebuild(&past, now);
        counters.replay(std::mem::take(&mut self.recent), now);
    }

    /// What the counters lack of the ledger, and what they have too much (negative). Opening
    /// balances are not in it. Call it while this process delivers nothing.
    pub(super) async fn difference(
        &self,
        store: &Store,
        counters: &Counters,
        now: Timestamp,
    ) -> Result<Vec<SpendRow>, StoreError> {
        let ids: Vec<RequestId> = self.doubtful.keys().copied().collect();
        // Before the sums: a record that comes between the two would be another node's, not ours.
        let known: HashSet<RequestId> = store.known_requests(&ids).await?.into_iter().collect();
        let seen = counters.past(store, now).await?;
        let twice = self.doubtful.iter().filter(|(id, _)| known.contains(id)).map(|(_, row)| *row);
        Ok(difference(&seen, &self.seen, twice, counters.rebuild_from(now)))
    }
}

fn row(minute: Timestamp, (key_id, user_id, provider_id): Holder, cost: i64) -> SpendRow {
    SpendRow { minute, key_id, user_id, provider_id, cost: NanoUsd(cost) }
}

fn add(to: &mut i64, cost: NanoUsd, sign: i64) {
    *to = to.saturating_add(cost.0.saturating_mul(sign));
}

/// `seen` less `before` and `twice`. Rows from before `oldest` are in no window.
fn difference(
    seen: &SpendSeen,
    before: &SpendSeen,
    twice: impl Iterator<Item = SpendRow>,
    oldest: Timestamp,
) -> Vec<SpendRow> {
    let twice: Vec<SpendRow> = twice.collect();
    let mut rows: HashMap<(Timestamp, Holder), i64> = HashMap::new();
    for (some, sign) in [(&seen.rows, 1), (&before.rows, -1), (&twice, -1)] {
        for one in some.iter().filter(|one| one.minute >= oldest) {
            let holder = (one.key_id, one.user_id, one.provider_id);
            add(rows.entry((one.minute, holder)).or_default(), one.cost, sign);
        }
    }
    let mut totals: HashMap<Holder, i64> = HashMap::new();
    for (some, sign) in [(&seen.totals, 1), (&before.totals, -1)] {
        for one in some {
            let holder = (one.key_id, one.user_id, one.provider_id);
            add(totals.entry(holder).or_default(), one.cost, sign);
        }
    }
    for one in &twice {
        let holder = (one.key_id, one.user_id, one.provider_id);
        add(totals.entry(holder).or_default(), one.cost, -1);
    }
    // A row counts in its windows and in the lifetime's sum; one from 1970 counts in that alone.
    for ((_, holder), cost) in &rows {
        add(totals.entry(*holder).or_default(), NanoUsd(*cost), -1);
    }
    let lifetime = totals.into_iter().map(|(holder, cost)| ((Timestamp(0), holder), cost));
    let all = rows.into_iter().chain(lifetime).filter(|(_, cost)| *cost != 0);
    all.map(|((minute, holder), cost)| row(minute, holder, cost)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::SpendTotal;

    const KEY: Holder = (Some(KeyId(1)), Some(UserId(2)), Some(ProviderId(3)));

    fn seen(rows: &[(i64, i64)], total: i64) -> SpendSeen {
        let (key_id, user_id, provider_id) = KEY;
        SpendSeen {
            rows: rows.iter().map(|(at, cost)| row(Timestamp(*at), KEY, *cost)).collect(),
            totals: vec![SpendTotal { key_id, user_id, provider_id, cost: NanoUsd(total) }],
            ..SpendSeen::default()
        }
    }

    fn found(rows: Vec<SpendRow>) -> Vec<(i64, i64)> {
        let mut found: Vec<(i64, i64)> =
            rows.into_iter().map(|row| (row.minute.0, row.cost.0)).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn the_difference_moves_windows_and_the_lifetime_to_what_the_ledger_has() {
        // The row at 100 is in no window now; the lifetime lacks 2 beyond what the rows add.
        let before = seen(&[(100, 5), (600, 7), (700, 2)], 114);
        let now = seen(&[(600, 9), (800, 40)], 156);
        let differs = difference(&now, &before, std::iter::empty(), Timestamp(500));
        assert_eq!(found(differs), [(0, 2), (600, 2), (700, -2), (800, 40)]);
        // A record that the ledger has and the journal too, is taken away once.
        let twice = [row(Timestamp(800), KEY, 40)].into_iter();
        let differs = difference(&now, &before, twice, Timestamp(500));
        assert_eq!(found(differs), [(0, 2), (600, 2), (700, -2)]);
    }

    #[test]
    fn nothing_differs_from_itself() {
        let same = seen(&[(600, 7), (700, 2)], 100);
        assert_eq!(difference(&same, &same, std::iter::empty(), Timestamp(0)), []);
    }
}
