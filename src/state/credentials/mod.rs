//! The present state of providers' credentials: cooldowns of their own, the windows of their
//! accounts, and what this process has counted; and which of several credentials a request uses.
//!
//! Nothing here waits for other nodes: changes are marked, `super::peers` sends them ([`update`]).
//! What the provider refused is stored in the database ([`refusal`]).

pub mod refusal;
pub mod update;

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use super::health::attempts::AttemptError;
use crate::domain::clock::{JITTER_MS, Timestamp};
use crate::domain::fast_map::FastMap;
use crate::domain::ids::{CredentialId, KeyId, ProviderId, SessionId};
use crate::domain::provider::Provider;
use crate::policy::quota::{self, QuotaWindow};
use crate::policy::select::Availability;

/// A provider's credential.
pub type CredentialPlace = (ProviderId, CredentialId);

/// Maximum sessions. Beyond that all are forgotten, and use a credential by turns again.
const SESSIONS: usize = 16_384;
/// Shares of windows that differ by less count as equal, in thousandths: the turns decide.
const STEP: u32 = 50;
/// No cooldown lasts longer: one that does was set by a clock that is ahead.
const LONGEST_COOLDOWN_MS: i64 = 86_400_000 + JITTER_MS;

/// The state of all credentials.
#[derive(Default)]
pub struct CredentialStates {
    entries: RwLock<FastMap<CredentialPlace, Arc<Mutex<CredentialEntry>>>>,
    /// The credential that served a session last.
    sessions: Mutex<FastMap<(ProviderId, KeyId, SessionId), CredentialId>>,
    turns: AtomicU64,
    /// Changes that other nodes do not have yet.
    news: Mutex<HashSet<CredentialPlace>>,
    marked: Notify,
    /// Held while a credential is refused, so that one stays.
    refusing: Mutex<()>,
    /// A credential was refused.
    refused: Notify,
}

#[derive(Default)]
struct CredentialEntry {
    cooldown_until: Option<Timestamp>,
    /// When the cooldown was set, here or elsewhere.
    cooled_at: Timestamp,
    /// The provider refused it: not used here until it is disabled in the database, which tells it
    /// from then on.
    refused: Option<Arc<AttemptError>>,
    windows: Vec<QuotaWindow>,
    /// When it was chosen last, as a number of choices.
    turn: u64,
    figures: CredentialFigures,
}

/// What this process has counted of a credential.
#[derive(Debug, Clone, Default)]
pub struct CredentialFigures {
    /// Attempts with it.
    pub requests: u64,
    /// Those of them that failed.
    pub failures: u64,
    /// When an attempt with it began last.
    pub last_used: Option<Timestamp>,
    /// The last failed attempt.
    pub last_error: Option<Arc<AttemptError>>,
}

/// A credential's state as shown.
#[derive(Debug, Clone)]
pub struct CredentialSeen {
    /// The end of its own cooldown, if it has one.
    pub cooldown_until: Option<Timestamp>,
    /// It is enabled, and has no cooldown.
    pub is_usable: bool,
    /// The windows of its account that count now.
    pub windows: Vec<QuotaWindow>,
    /// The windows are used above the provider's `quota_guard`.
    pub is_nearly_used_up: bool,
    /// Only counted where the provider has several.
    pub figures: CredentialFigures,
}

/// What a credential is chosen for.
pub struct CredentialAsk<'a> {
    /// The request's session.
    pub session: Option<(KeyId, &'a SessionId)>,
    /// The credential of the account that stores what the request continues: no other one is used
    /// as long as the provider has it.
    pub holder: Option<CredentialId>,
    /// Those that have failed this request.
    pub tried: &'a [CredentialPlace],
    /// The present time.
    pub now: Timestamp,
}

/// What is known from before says nothing of the provider's credential.
fn since(provider: &Provider) -> Timestamp {
    let enabled = provider.credential.as_ref().map(|one| one.since).unwrap_or_default();
    provider.health_since.max(enabled)
}

impl CredentialEntry {
    fn cooldown_at(&self, provider: &Provider, now: Timestamp) -> Option<Timestamp> {
        let is_present = |until: &Timestamp| {
            (1..=LONGEST_COOLDOWN_MS).contains(&until.since(now))
                && self.cooled_at >= since(provider)
        };
        self.cooldown_until.filter(is_present)
    }

    /// `provider`: with this credential.
    fn is_usable(&self, provider: &Provider, now: Timestamp) -> bool {
        self.is_enabled(provider) && self.cooldown_at(provider, now).is_none()
    }

    fn is_enabled(&self, provider: &Provider) -> bool {
        !self.is_refused(provider) && provider.credential.as_ref().is_none_or(|one| one.is_enabled)
    }

    /// A refusal from before an administrator enabled the credential says nothing.
    fn is_refused(&self, provider: &Provider) -> bool {
        self.refused.as_ref().is_some_and(|error| error.at >= since(provider))
    }

    /// Those that were seen before the provider's address or `key` was changed say nothing.
    fn forget_old(&mut self, provider: &Provider) {
        self.windows.retain(|window| window.seen_at >= provider.health_since);
    }

    fn is_nearly_used_up(&mut self, provider: &Provider, now: Timestamp) -> bool {
        self.forget_old(provider);
        let over = |percent| quota::used_up_until(&self.windows, percent, now).is_some();
        provider.quota_guard.is_some_and(over)
    }
}

impl CredentialStates {
    /// The provider with the credential to use: the account that stores what the request continues,
    /// or no other one. Else those below the provider's `quota_guard`, then the session's, then the
    /// one whose windows are used least, then the one that waits longest. `None` if none can be used
    /// now.
    pub fn choose(&self, provider: &Provider, ask: &CredentialAsk<'_>) -> Option<Arc<Provider>> {
        let session = ask.session.map(|(key, session)| (provider.id, key, session.clone()));
        let bound = session.and_then(|session| self.sessions.lock().get(&session).copied());
        let is_there =
            |id: &CredentialId| provider.variants.iter().any(|v| v.credential_id() == *id);
        let holder = ask.holder.filter(is_there);
        let rank = |variant: &&Arc<Provider>| {
            let place = (provider.id, variant.credential_id());
            if holder.is_some_and(|holder| holder != place.1) {
                return None;
            }
            let entry = self.entry(place);
            let mut entry = entry.lock();
            if ask.tried.contains(&place) || !entry.is_usable(variant, ask.now) {
                return None;
            }
            let is_over = entry.is_nearly_used_up(variant, ask.now);
            let used = quota::most_used(&entry.windows, ask.now) / STEP;
            Some((is_over, Reverse(bound == Some(place.1)), used, entry.turn))
        };
        let usable = provider.variants.iter().filter_map(|one| Some((rank(&one)?, one)));
        let (_, chosen) = usable.min_by_key(|(rank, _)| *rank)?;
        let entry = self.entry((provider.id, chosen.credential_id()));
        let mut entry = entry.lock();
        entry.turn = self.turns.fetch_add(1, Ordering::Relaxed) + 1;
        entry.figures.requests += 1;
        entry.figures.last_used = Some(ask.now);
        Some(Arc::clone(chosen))
    }

    /// Whether one of the provider's several credentials can be used now.
    pub fn availability(&self, provider: &Provider, now: Timestamp) -> Availability {
        let mut until = None;
        for variant in &provider.variants {
            let entry = self.entry((provider.id, variant.credential_id()));
            let entry = entry.lock();
            if entry.is_usable(variant, now) {
                return Availability::Ready;
            }
            let rest = entry.cooldown_at(variant, now).filter(|_| entry.is_enabled(variant));
            until = [until, rest].into_iter().flatten().min();
        }
        match provider.variants.is_empty() {
            true => Availability::Ready,
            false => Availability::NoCredential { until },
        }
    }

    /// Whether the windows of each credential that can be used are used above the provider's
    /// `quota_guard`.
    pub fn is_nearly_used_up(&self, provider: &Provider, now: Timestamp) -> bool {
        if provider.quota_guard.is_none() {
            return false;
        }
        let is_over = |one: &Provider| {
            let entry = self.entry((one.id, one.credential_id()));
            let mut entry = entry.lock();
            !entry.is_usable(one, now) || entry.is_nearly_used_up(one, now)
        };
        match provider.variants.is_empty() {
            true => is_over(provider),
            false => provider.variants.iter().all(|one| is_over(one)),
        }
    }

    /// A credential answered a request of the session, which stays with it.
    pub fn served(&self, place: CredentialPlace, key: KeyId, session: &SessionId) {
        let mut sessions = self.sessions.lock();
        if sessions.len() >= SESSIONS {
            sessions.clear();
        }
        sessions.insert((place.0, key, session.clone()), place.1);
    }

    /// An attempt with a credential failed.
    pub fn failed(&self, place: CredentialPlace, error: Arc<AttemptError>) {
        let entry = self.entry(place);
        let mut entry = entry.lock();
        entry.figures.failures += 1;
        entry.figures.last_error = Some(error);
    }

    /// No request uses the credential before this time.
    pub fn set_cooldown(&self, place: CredentialPlace, until: Timestamp, now: Timestamp) {
        let entry = self.entry(place);
        let mut entry = entry.lock();
        entry.cooldown_until = entry.cooldown_until.filter(|known| *known > now).max(Some(until));
        entry.cooled_at = now.max(entry.cooled_at.plus_ms(1));
        self.news.lock().insert(place);
        self.marked.notify_one();
    }

    /// Ends the cooldowns of the provider's credentials.
    pub fn reset(&self, provider: &Provider, now: Timestamp) {
        for one in &provider.variants {
            let place = (provider.id, one.credential_id());
            let entry = self.entry(place);
            let mut entry = entry.lock();
            if entry.cooldown_until.take().is_some() {
                entry.cooled_at = now.max(entry.cooled_at.plus_ms(1));
                self.news.lock().insert(place);
                self.marked.notify_one();
            }
        }
    }

    /// The provider refused the credential. It is not used any more, unless no other one of
    /// `provider` is enabled. Returns whether it is not.
    pub fn refuse(&self, provider: &Provider, id: CredentialId, error: Arc<AttemptError>) -> bool {
        let _one_at_a_time = self.refusing.lock();
        let mut others = provider.variants.iter().filter(|one| one.credential_id() != id);
        if !others.any(|one| self.entry((one.id, one.credential_id())).lock().is_enabled(one)) {
            return false;
        }
        self.entry((provider.id, id)).lock().refused = Some(error);
        self.refused.notify_one();
        true
    }

    /// Drops the refusal: the database has it, or the credential is the last one that is enabled.
    fn forget_refusal(&self, place: CredentialPlace) {
        self.entry(place).lock().refused = None;
    }

    /// A reply had these windows of the credential's account.
    pub fn windows_seen(&self, place: CredentialPlace, windows: Vec<QuotaWindow>, now: Timestamp) {
        let differs = quota::merge(&mut self.entry(place).lock().windows, windows, now);
        if differs {
            self.news.lock().insert(place);
        }
    }

    /// Until when a window of the credential's account has nothing left.
    pub fn used_up_until(&self, place: CredentialPlace, now: Timestamp) -> Option<Timestamp> {
        quota::used_up_until(&self.entry(place).lock().windows, 100, now)
    }

    /// The state of a credential. `provider`: with this credential in `key`.
    pub fn seen(&self, provider: &Provider, now: Timestamp) -> CredentialSeen {
        let entry = self.entry((provider.id, provider.credential_id()));
        let mut entry = entry.lock();
        let is_nearly_used_up = entry.is_nearly_used_up(provider, now);
        entry.forget_old(provider);
        let live = entry.windows.iter().filter(|window| window.is_live(now));
        CredentialSeen {
            cooldown_until: entry.cooldown_at(provider, now),
            is_usable: entry.is_usable(provider, now),
            windows: live.cloned().collect(),
            is_nearly_used_up,
            figures: entry.figures.clone(),
        }
    }

    /// Drops credentials that no longer exist, and their sessions.
    pub fn keep_only(&self, exists: impl Fn(CredentialPlace) -> bool) {
        self.entries.write().retain(|place, _| exists(*place));
        self.sessions.lock().retain(|(provider, ..), id| exists((*provider, *id)));
    }

    fn entry(&self, place: CredentialPlace) -> Arc<Mutex<CredentialEntry>> {
        if let Some(entry) = self.entries.read().get(&place) {
            return Arc::clone(entry);
        }
        Arc::clone(self.entries.write().entry(place).or_default())
    }
}

#[cfg(test)]
mod tests;
