//! Which users and providers one of several Redis servers counts.
//!
//! The number of a user or a provider decides, so that all nodes agree without asking: user `u` is
//! counted on the server at place `u mod n` of the list (from 0), provider `p` at `p + 1 mod n`. So
//! the first user and the first provider, as a rule the busiest of a small gateway, are on two
//! servers. A user's keys are counted with the user.

use std::borrow::Cow;

use crate::domain::ids::{ProviderId, UserId};
use crate::store::{SpendRow, SpendSeen, SpendTotal};

/// The place of one server in the list of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// From 0.
    pub(super) place: usize,
    /// How many servers there are; at least one.
    pub(super) of: usize,
}

impl Part {
    /// A server that counts everything.
    pub(super) const WHOLE: Self = Self { place: 0, of: 1 };

    /// The server's number for operators: its place in the list, from 1.
    pub(super) const fn number(self) -> usize {
        self.place + 1
    }

    /// The place of the server that counts a user, of so many.
    pub(super) fn place_of_user(user: UserId, of: usize) -> usize {
        place(user.0, of)
    }

    /// The place of the server that counts a provider, of so many.
    pub(super) fn place_of_provider(provider: ProviderId, of: usize) -> usize {
        place(provider.0.wrapping_add(1), of)
    }

    /// Whether this server counts a user, and the user's keys.
    pub(super) fn has_user(self, user: UserId) -> bool {
        self.of == 1 || Self::place_of_user(user, self.of) == self.place
    }

    /// Whether this server counts a provider.
    pub(super) fn has_provider(self, provider: ProviderId) -> bool {
        self.of == 1 || Self::place_of_provider(provider, self.of) == self.place
    }

    /// What the ledger has of this server's users and providers. Requests that are known by their
    /// ids are those of all.
    pub(super) fn of_past(self, past: &SpendSeen) -> Cow<'_, SpendSeen> {
        if self.of == 1 {
            return Cow::Borrowed(past);
        }
        let of_total = |total: &SpendTotal| {
            let mut own = *total;
            self.keep(&mut own.user_id, &mut own.provider_id).then_some(own)
        };
        Cow::Owned(SpendSeen {
            rows: self.of_rows(&past.rows),
            totals: past.totals.iter().filter_map(of_total).collect(),
            opening: self.of_rows(&past.opening),
            ended: past.ended.clone(),
            late: past.late,
        })
    }

    /// The amounts of this server's users and providers.
    pub(super) fn of_rows(self, rows: &[SpendRow]) -> Vec<SpendRow> {
        let own = |row: &SpendRow| {
            let mut own = *row;
            let is_kept = self.keep(&mut own.user_id, &mut own.provider_id);
            is_kept
                .then(|| SpendRow { key_id: own.key_id.filter(|_| own.user_id.is_some()), ..own })
        };
        rows.iter().filter_map(own).collect()
    }

    /// Removes holders of other servers. Returns whether one is left.
    fn keep(self, user: &mut Option<UserId>, provider: &mut Option<ProviderId>) -> bool {
        *user = user.filter(|user| self.has_user(*user));
        *provider = provider.filter(|provider| self.has_provider(*provider));
        user.is_some() || provider.is_some()
    }
}

fn place(number: i64, of: usize) -> usize {
    let of = i64::try_from(of.max(1)).unwrap_or(1);
    usize::try_from(number.rem_euclid(of)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::clock::Timestamp;
    use crate::domain::ids::KeyId;
    use crate::domain::money::NanoUsd;

    #[test]
    fn every_holder_is_on_one_server_and_every_amount_of_the_ledger_is_kept_there_once() {
        for of in 1..=5 {
            let parts: Vec<Part> = (0..of).map(|place| Part { place, of }).collect();
            for id in -3..40 {
                let users = parts.iter().filter(|part| part.has_user(UserId(id))).count();
                let at = parts.iter().filter(|part| part.has_provider(ProviderId(id))).count();
                assert_eq!((users, at), (1, 1), "{id} of {of}");
            }
            let row = |user: i64, provider: i64| SpendRow {
                minute: Timestamp(0),
                key_id: Some(KeyId(9)),
                user_id: Some(UserId(user)),
                provider_id: Some(ProviderId(provider)),
                cost: NanoUsd(1),
            };
            let rows: Vec<_> = (0..7).flat_map(|u| (0..5).map(move |p| row(u, p))).collect();
            let kept = parts.iter().map(|part| {
                let past = SpendSeen { rows: rows.clone(), ..SpendSeen::default() };
                part.of_past(&past).rows.clone()
            });
            let kept: Vec<_> = kept.flatten().collect();
            let users = kept.iter().filter(|row| row.user_id.is_some()).count();
            let at = kept.iter().filter(|row| row.provider_id.is_some()).count();
            assert_eq!((users, at), (35, 35));
        }
        let of = Part { place: 1, of: 2 };
        assert!(of.has_user(UserId(1)) && !of.has_provider(ProviderId(1)));
    }
}
