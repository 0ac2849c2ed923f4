//! What a peer's data is in this gateway's terms: records of a declarative document, amounts spent,
//! and notes of what could not be carried over. No I/O.

use std::collections::{BTreeMap, HashMap, HashSet};

use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::{Map, Value};

use crate::admin::bodies::spoils_names;
use crate::crypto::key_text;
use crate::domain::clock::Timestamp;
use crate::domain::ids::KeyId;
use crate::domain::key::KeyHash;
use crate::domain::limits::ByPeriod;
use crate::domain::money::NanoUsd;

/// A record of a declarative document.
pub(super) type Form = Map<String, Value>;

/// Characters of a name.
pub(super) const MAX_NAME: usize = 64;

/// A peer's whole data.
#[derive(Debug, Default)]
pub(super) struct Mapped {
    /// In the peer's order.
    pub users: Vec<MappedUser>,
    /// In the peer's order.
    pub providers: Vec<MappedProvider>,
    /// Price entries by model.
    pub prices: Form,
    /// Sensitive words.
    pub words: Vec<Value>,
    /// In any order; rows of the same holders and time add up.
    pub spent: Vec<Spent>,
    /// Keys that the peer has deleted.
    pub gone: Vec<KeyHash>,
    /// Those of the users' keys that were deleted here since an earlier import.
    pub deleted: HashMap<KeyHash, KeyId>,
    /// What was not carried over as it was.
    pub notes: Notes,
}

/// A user with their keys.
#[derive(Debug)]
pub(super) struct MappedUser {
    pub name: String,
    /// Without name and keys.
    pub form: Form,
    pub limits: MappedLimits,
    pub keys: Vec<MappedKey>,
}

/// A key of a user.
#[derive(Debug)]
pub(super) struct MappedKey {
    pub name: String,
    pub hash: KeyHash,
    /// Without name and hash.
    pub form: Form,
    pub limits: MappedLimits,
}

/// A provider with its credential.
pub(super) struct MappedProvider {
    pub name: String,
    /// Without the name; with the credential.
    pub form: Form,
    pub limits: MappedLimits,
}

/// Without the credential.
impl std::fmt::Debug for MappedProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MappedProvider").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Limits in USD; `None` = no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MappedLimits {
    pub money: ByPeriod<Option<Decimal>>,
    /// 0 = no limit.
    pub sessions: i64,
}

/// An amount that was spent at the peer. Positions are those in [`Mapped`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spent {
    pub user: Option<usize>,
    /// The position among the user's keys.
    pub key: Option<usize>,
    pub provider: Option<usize>,
    /// `None` = before every window.
    pub at: Option<Timestamp>,
    pub cost: NanoUsd,
}

/// What could not be carried over: subjects by reason.
#[derive(Debug, Default)]
pub(super) struct Notes(BTreeMap<String, Vec<String>>);

impl Notes {
    /// Notes that something of `subject` was not carried over.
    pub(super) fn add(&mut self, reason: &str, subject: String) {
        self.0.entry(reason.to_owned()).or_default().push(subject);
    }

    /// The reasons, each with its subjects.
    pub(super) fn into_lines(self) -> Vec<(String, Vec<String>)> {
        self.0.into_iter().collect()
    }
}

/// Names that differ and have the right length.
#[derive(Debug, Default)]
pub(super) struct UniqueNames(HashSet<String>);

impl UniqueNames {
    /// The wanted name, or one made of it and `id` if another record has it.
    pub(super) fn unique(&mut self, wanted: &str, id: &str) -> String {
        let wanted: String = wanted.chars().filter(|c| !spoils_names(*c)).collect();
        let short = |text: &str, room: usize| {
            text.trim().chars().take(room).collect::<String>().trim().to_owned()
        };
        let mut name = short(&wanted, MAX_NAME);
        let suffix = format!(" ({})", short(id, 24));
        if name.is_empty() {
            name = short(id, MAX_NAME);
        }
        if self.0.contains(&name) {
            name = format!("{}{suffix}", short(&wanted, MAX_NAME - suffix.chars().count()));
        }
        let mut number = 2;
        while !self.0.insert(name.clone()) {
            name = format!(
                "{}{suffix} {number}",
                short(&wanted, MAX_NAME - suffix.chars().count() - 6)
            );
            number += 1;
        }
        name
    }
}

impl MappedLimits {
    /// None above `other`'s: where both have one.
    pub(super) fn within(&self, other: &Self) -> Self {
        let tighter = |own: Option<Decimal>, other: Option<Decimal>| match (own, other) {
            (Some(own), Some(other)) => Some(own.min(other)),
            (own, _) => own,
        };
        Self {
            money: ByPeriod::of(|p| tighter(*self.money.get(p), *other.money.get(p))),
            sessions: if other.sessions > 0 {
                self.sessions.min(other.sessions)
            } else {
                self.sessions
            },
        }
    }

    /// Writes the limits into a record that accepts the `largest`, in USD. A limit is rounded down
    /// to cents, and one above the largest becomes the largest, which is noted.
    pub(super) fn write(
        &self,
        form: &mut Form,
        largest: ByPeriod<i64>,
        label: &str,
        notes: &mut Notes,
    ) {
        for (period, limit) in self.money.each() {
            let Some(limit) = limit else { continue };
            let (field, largest) = (period.field(), *largest.get(period));
            let cents =
                limit.max(Decimal::ZERO).round_dp_with_strategy(2, RoundingStrategy::ToZero);
            if cents > Decimal::from(largest) {
                notes.add(
                    "the limit is above the largest that tollgate accepts, which it gets",
                    format!("{label}: {field} {cents}"),
                );
            }
            form.insert(
                field.to_owned(),
                cents.min(Decimal::from(largest)).normalize().to_string().into(),
            );
        }
        if self.sessions > 0 {
            form.insert("limit_concurrent_sessions".to_owned(), self.sessions.min(1_000).into());
        }
    }
}

/// The hash of a key's text, with what is stored for display.
pub(super) fn key_of_text(text: &str) -> (KeyHash, Form) {
    let mut form = Form::new();
    if text.is_ascii() && text.len() >= 16 {
        form.insert("prefix".to_owned(), text[..7].into());
        form.insert("last_four".to_owned(), text[text.len() - 4..].into());
    }
    (key_text::hash(text), form)
}

/// A time as the document has it.
pub(super) fn moment(at: Timestamp) -> Value {
    at.to_utc().to_rfc3339_opts(chrono::SecondsFormat::Millis, true).into()
}

/// USD as nano-USD; 0 for an absurd amount.
pub(super) fn nanos(usd: Decimal) -> NanoUsd {
    NanoUsd::from_decimal(usd).unwrap_or_default()
}

/// A limit of a peer at which 0 means none.
pub(super) fn positive(limit: Option<Decimal>) -> Option<Decimal> {
    limit.filter(|limit| *limit > Decimal::ZERO)
}

/// The first `most` characters.
pub(super) fn shortened(text: &str, most: usize) -> String {
    text.trim().chars().take(most).collect::<String>().trim().to_owned()
}

/// Texts of a JSON list, the empty ones left out.
pub(super) fn texts(json: Option<Value>) -> Vec<String> {
    let Some(Value::Array(items)) = json else { return Vec::new() };
    items
        .iter()
        .filter_map(|item| item.as_str().map(str::trim))
        .filter(|t| !t.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Texts between commas, the empty ones left out.
pub(super) fn csv(text: Option<&str>) -> Vec<String> {
    let parts = text.unwrap_or_default().split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::limits::OF_KEY;

    #[test]
    fn names_differ_and_are_never_longer_than_they_may_be() {
        let mut names = UniqueNames::default();
        assert_eq!(names.unique(" ada ", "1"), "ada");
        assert_eq!(names.unique("ada", "2"), "ada (2)");
        assert_eq!(names.unique("ada", "2"), "ada (2) 2");
        assert_eq!(names.unique("", "7"), "7");
        let long = "x".repeat(100);
        for id in ["1", "2", &long] {
            assert!(names.unique(&long, id).chars().count() <= MAX_NAME);
        }
    }

    #[test]
    fn limits_are_rounded_down_and_bounded() {
        let money = ByPeriod {
            daily: Some("1.239".parse().unwrap()),
            total: Some("1e9".parse().unwrap_or_else(|_| Decimal::from(1_000_000_000))),
            monthly: Some(Decimal::from(-1)),
            ..ByPeriod::default()
        };
        let limits = MappedLimits { money, sessions: 5_000 };
        let (mut form, mut notes) = (Form::new(), Notes::default());
        limits.write(&mut form, OF_KEY, "key", &mut notes);
        assert_eq!(form["limit_daily_usd"], "1.23");
        assert_eq!(
            (&form["limit_total_usd"], &form["limit_monthly_usd"]),
            (&"10000000".into(), &"0".into())
        );
        assert_eq!(form["limit_concurrent_sessions"], 1_000);
        assert_eq!(notes.into_lines().len(), 1);
        let money = ByPeriod { daily: Some(Decimal::ONE), ..ByPeriod::default() };
        let user = MappedLimits { money, sessions: 0 };
        assert_eq!(limits.within(&user).money.daily, Some(Decimal::ONE));
    }
}
