//! The text form of a credential's cooldown and windows, as nodes exchange it: one line.

use super::{CredentialPlace, CredentialStates};
use crate::domain::clock::Timestamp;
use crate::domain::ids::{CredentialId, ProviderId};
use crate::policy::quota::{self, QuotaWindow};

/// Begins each line: those of circuits begin with a number.
const MARK: &str = "credential";

/// A credential's cooldown and windows. The later ones win, each window by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialUpdate {
    /// Whose they are.
    pub place: CredentialPlace,
    cooled_at: Timestamp,
    cooldown_until: Option<Timestamp>,
    windows: Vec<QuotaWindow>,
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn number<T: std::str::FromStr>(text: &str) -> Option<Option<T>> {
    if text == "-" { Some(None) } else { text.parse().ok().map(Some) }
}

impl CredentialUpdate {
    /// `credential PROVIDER CREDENTIAL COOLED_AT COOLDOWN_UNTIL WINDOW…`, with times in ms, `-` for none,
    /// and each window as `NAME:USED:LIMIT:REMAINING:RESETS_AT:SEEN_AT`.
    pub fn to_text(&self) -> String {
        let (cooled, until) =
            (self.cooled_at.0, optional(self.cooldown_until.map(|until| until.0)));
        let mut text = format!("{MARK} {} {} {cooled} {until}", self.place.0, self.place.1);
        for window in &self.windows {
            let QuotaWindow { name, used, limit, remaining, resets_at, seen_at } = window;
            let (limit, remaining) = (optional(*limit), optional(*remaining));
            let (resets, seen) = (optional(resets_at.map(|at| at.0)), seen_at.0);
            text.push_str(&format!(" {name}:{used}:{limit}:{remaining}:{resets}:{seen}"));
        }
        text
    }

    /// Reads [`Self::to_text`]; `None` for anything else, such as a later version's form.
    pub fn read(text: &str) -> Option<Self> {
        let mut words = text.strip_prefix(MARK)?.split_ascii_whitespace();
        let provider = ProviderId(words.next()?.parse().ok()?);
        let place = (provider, CredentialId(words.next()?.parse().ok()?));
        let cooled_at = Timestamp(words.next()?.parse().ok()?);
        let cooldown_until = number(words.next()?)?.map(Timestamp);
        let window = |word: &str| {
            let mut parts = word.split(':');
            Some(QuotaWindow {
                name: parts.next()?.into(),
                used: parts.next()?.parse().ok()?,
                limit: number(parts.next()?)?,
                remaining: number(parts.next()?)?,
                resets_at: number(parts.next()?)?.map(Timestamp),
                seen_at: Timestamp(parts.next()?.parse().ok()?),
            })
        };
        let windows = words.map(window).collect::<Option<_>>()?;
        Some(Self { place, cooled_at, cooldown_until, windows })
    }

    /// The field of a hash that holds it.
    pub fn field(&self) -> String {
        format!("{}.{}", self.place.0, self.place.1)
    }
}

impl CredentialStates {
    /// Resolves when there are cooldowns that other nodes do not have. Changes of windows wait for
    /// the next beat of the connection.
    pub async fn marked(&self) {
        self.marked.notified().await;
    }

    /// Takes the changes that other nodes do not have yet. One that then cannot be sent is marked
    /// again ([`Self::mark_changed`]).
    pub fn take_updates(&self) -> Vec<CredentialUpdate> {
        let news = std::mem::take(&mut *self.news.lock());
        let update = |place| {
            let entry = self.entries.read().get(&place).cloned()?;
            let entry = entry.lock();
            let (cooled_at, cooldown_until) = (entry.cooled_at, entry.cooldown_until);
            Some(CredentialUpdate {
                place,
                cooled_at,
                cooldown_until,
                windows: entry.windows.clone(),
            })
        };
        news.into_iter().filter_map(update).collect()
    }

    /// Marks a change that could not be sent.
    pub fn mark_changed(&self, place: CredentialPlace) {
        self.news.lock().insert(place);
    }

    /// Applies another node's change.
    pub fn apply_update(&self, update: CredentialUpdate, now: Timestamp) {
        let entry = self.entry(update.place);
        let mut entry = entry.lock();
        if update.cooled_at > entry.cooled_at {
            (entry.cooled_at, entry.cooldown_until) = (update.cooled_at, update.cooldown_until);
        }
        quota::merge(&mut entry.windows, update.windows, now);
    }
}
