//! Opening balances: the amounts spent at the peer as stored rows, replaced where they differ.
//!
//! There is a row for each minute of the last day, one for each quarter of an hour of the last
//! weeks (no window begins at a finer time), and one for everything before. Another run therefore
//! compares like with like, and changes nothing if the peer has the same sums.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono_tz::Tz;
use serde_json::Value;

use super::document::{Ids, Named};
use super::model::Mapped;
use crate::admin::declarative::{FieldChange, PlannedChange};
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, UserId};
use crate::domain::money::NanoUsd;
use crate::policy::window::Window;
use crate::store::OpeningBalance;

const MINUTE_MS: i64 = 60_000;
const QUARTER_MS: i64 = 15 * MINUTE_MS;
/// More than a week, and more than the longest day.
const WEEK_MS: i64 = 8 * 24 * 60 * MINUTE_MS;
/// More than the longest day.
const RECENT_MS: i64 = 27 * 60 * MINUTE_MS;

/// The bounds between single minutes, quarters of an hour, and one row for all before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grain {
    /// Older rows are one. No present window begins before.
    pub oldest: Timestamp,
    /// The start of single minutes.
    recent: Timestamp,
}

impl Grain {
    /// As of `now`.
    pub(super) fn at(now: Timestamp, zone: Tz) -> Self {
        let oldest = Window::Monthly.start(now.plus_ms(-WEEK_MS), zone);
        Self { oldest, recent: floor(now.plus_ms(-RECENT_MS), QUARTER_MS) }
    }

    fn of(self, at: Option<Timestamp>) -> Timestamp {
        match at {
            Some(at) if at >= self.recent => floor(at, MINUTE_MS),
            Some(at) if at >= self.oldest => floor(at, QUARTER_MS),
            _ => self.oldest.plus_ms(-MINUTE_MS),
        }
    }
}

fn floor(at: Timestamp, step: i64) -> Timestamp {
    at.plus_ms(-at.0.rem_euclid(step))
}

/// Rows of the same holders and time as one, in order.
fn folded(rows: impl Iterator<Item = OpeningBalance>) -> Vec<OpeningBalance> {
    let mut sums: BTreeMap<OpeningBalance, NanoUsd> = BTreeMap::new();
    for row in rows {
        *sums.entry(OpeningBalance { cost: NanoUsd::ZERO, ..row }).or_default() += row.cost;
    }
    let summed = sums.into_iter().map(|(row, cost)| OpeningBalance { cost, ..row });
    summed.filter(|row| row.cost != NanoUsd::ZERO).collect()
}

/// What was spent, as rows.
pub(super) fn wanted(mapped: &Mapped, ids: &Ids, grain: Grain) -> Vec<OpeningBalance> {
    let row = |spent: &super::model::Spent| {
        let key =
            spent.user.zip(spent.key).and_then(|(user, key)| mapped.users.get(user)?.keys.get(key));
        OpeningBalance {
            user_id: spent.user.and_then(|at| *ids.users.get(at)?),
            key_id: key.and_then(|key| ids.keys.get(&key.hash)).copied(),
            provider_id: spent.provider.and_then(|at| *ids.providers.get(at)?),
            at: grain.of(spent.at),
            cost: spent.cost,
        }
    };
    folded(
        mapped
            .spent
            .iter()
            .map(row)
            .filter(|row| row.user_id.is_some() || row.provider_id.is_some()),
    )
}

/// The rows of one user, or of none, as they were and as they are to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Replaced {
    /// `None`: rows of providers alone.
    pub user: Option<UserId>,
    pub before: Vec<OpeningBalance>,
    pub after: Vec<OpeningBalance>,
}

/// Which users' rows differ from what is stored, of the users that this import is about.
pub(super) fn replaced(
    stored: &[OpeningBalance],
    wanted: &[OpeningBalance],
    ids: &Ids,
    grain: Grain,
) -> Vec<Replaced> {
    let stored =
        folded(stored.iter().map(|row| OpeningBalance { at: grain.of(Some(row.at)), ..*row }));
    let mut users: BTreeSet<Option<UserId>> = ids.users.iter().copied().collect();
    users.insert(None);
    let (mut before, mut after) = (by_user(stored), by_user(wanted.to_vec()));
    let changed = |user: Option<UserId>| {
        let rows = |of: &mut BTreeMap<_, _>| of.remove(&user).unwrap_or_default();
        let (before, after) = (rows(&mut before), rows(&mut after));
        (before != after).then_some(Replaced { user, before, after })
    };
    users.into_iter().filter_map(changed).collect()
}

fn by_user(rows: Vec<OpeningBalance>) -> BTreeMap<Option<UserId>, Vec<OpeningBalance>> {
    let mut found: BTreeMap<_, Vec<OpeningBalance>> = BTreeMap::new();
    for row in rows {
        found.entry(row.user_id).or_default().push(row);
    }
    found
}

/// The changes as the plan has them: the whole amount of each holder whose rows differ.
pub(super) fn planned(
    replaced: &[Replaced],
    mapped: &Mapped,
    ids: &Ids,
    names: &[Named],
) -> Vec<PlannedChange> {
    let places: HashMap<UserId, usize> =
        ids.users.iter().enumerate().filter_map(|(at, id)| Some(((*id)?, at))).collect();
    let label = |user: Option<UserId>, key: Option<KeyId>| {
        let at = user.and_then(|id| places.get(&id)).copied();
        let owner = at.and_then(|at| names.get(at)).map_or("providers", |(name, _)| name.as_str());
        let Some(key) = key else { return owner.to_owned() };
        let mut keys =
            at.and_then(|at| mapped.users.get(at)).into_iter().flat_map(|user| &user.keys);
        match keys.find(|of| ids.keys.get(&of.hash) == Some(&key)) {
            Some(of) => format!("{owner}/{}", of.name),
            None => format!("{owner}/key {key}"),
        }
    };
    let mut changes = Vec::new();
    for Replaced { user, before, after } in replaced {
        let mut holders: BTreeMap<_, [Vec<&OpeningBalance>; 2]> = BTreeMap::new();
        for (side, rows) in [before, after].into_iter().enumerate() {
            for row in rows {
                holders.entry(row.key_id).or_default()[side].push(row);
            }
        }
        for (key, [before, after]) in
            holders.into_iter().filter(|(_, [before, after])| before != after)
        {
            let usd = |rows: &[&OpeningBalance]| {
                rows.iter().map(|row| row.cost).sum::<NanoUsd>().to_string()
            };
            let (is_new, was) = (before.is_empty(), Value::from(usd(&before)));
            changes.push(PlannedChange {
                action: if is_new { "add" } else { "change" }.to_owned(),
                kind: "opening balance".to_owned(),
                name: label(*user, key),
                fields: vec![FieldChange {
                    field: "usd".to_owned(),
                    before: if is_new { Value::Null } else { was },
                    after: usd(&after).into(),
                }],
            });
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::from(text.parse::<chrono::DateTime<chrono::Utc>>().unwrap())
    }

    fn row(time: Timestamp, dollars: i64) -> OpeningBalance {
        let user_id = Some(UserId(1));
        OpeningBalance {
            user_id,
            key_id: None,
            provider_id: None,
            at: time,
            cost: NanoUsd::usd(dollars),
        }
    }

    #[test]
    fn no_window_begins_within_a_row() {
        for zone in [Tz::UTC, Tz::Asia__Kathmandu, Tz::America__St_Johns] {
            for now in ["2026-11-21T12:07:00Z", "2026-12-01T00:00:30Z", "2026-03-02T23:59:00Z"] {
                let (now, grain) = (at(now), Grain::at(at(now), zone));
                for window in Window::BY_DATE {
                    let start = window.start(now, zone);
                    assert!(
                        grain.of(Some(start)) >= start && grain.of(Some(start.plus_ms(-1))) < start,
                        "{zone}"
                    );
                }
                assert!(grain.of(None) < Window::Monthly.start(now, zone));
            }
        }
    }

    #[test]
    fn the_same_amounts_change_nothing_and_later_runs_compare_in_their_own_grain() {
        let ids =
            Ids { users: vec![Some(UserId(1))], keys: Default::default(), providers: Vec::new() };
        let first = Grain::at(at("2026-11-21T12:00:00Z"), Tz::UTC);
        let times =
            ["2026-08-01T00:00:00Z", "2026-11-10T10:07:00Z", "2026-11-21T11:58:00Z"].map(at);
        let rows = |grain: Grain| folded(times.iter().map(|time| row(grain.of(Some(*time)), 2)));
        let stored = rows(first);
        assert_eq!(stored.len(), 3);
        for now in ["2026-11-21T12:00:00Z", "2026-11-25T12:00:00Z", "2026-12-30T12:00:00Z"] {
            let grain = Grain::at(at(now), Tz::UTC);
            assert_eq!(replaced(&stored, &rows(grain), &ids, grain), [], "{now}");
        }
        let more = [rows(first), vec![row(times[2], 1)]].concat();
        let more = folded(more.into_iter());
        let changed = replaced(&stored, &more, &ids, first);
        assert_eq!(changed.len(), 1);
        assert_eq!(changed[0].after.iter().map(|row| row.cost).sum::<NanoUsd>(), NanoUsd::usd(7));
    }
}
