//! Which models somebody can reach, and what providers say that they serve.
//!
//! One rule for all who list models: the names in a provider's list and redirects; for a provider
//! without a list, or with patterns in it, what it names itself, else the priced models. Asking a
//! provider is the data plane's; what it answered is kept here for everybody.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::snapshot::Snapshot;
use crate::domain::clock::Timestamp;
use crate::domain::group::Groups;
use crate::domain::ids::ProviderId;
use crate::domain::provider::{Provider, model_matches};

/// How long a listing is used before the provider is asked again, and how long a failure is
/// remembered.
const FRESH: Duration = Duration::from_secs(600);
const RETRY: Duration = Duration::from_secs(30);

/// What providers said, the last time that they were asked.
#[derive(Default)]
pub struct Listings {
    kept: Mutex<HashMap<ProviderId, Kept>>,
}

struct Kept {
    /// The provider's record as it was when it was asked.
    version: Timestamp,
    asked: Instant,
    /// `None`: it did not answer.
    models: Option<Arc<[String]>>,
}

impl Listings {
    /// What the provider said lately; `None` when it is to be asked, `Some(None)` when it does not
    /// say.
    #[must_use]
    pub fn fresh(&self, provider: &Provider) -> Option<Option<Arc<[String]>>> {
        let kept = self.kept.lock();
        let entry = kept.get(&provider.id).filter(|k| k.version == provider.updated_at)?;
        let valid = if entry.models.is_some() { FRESH } else { RETRY };
        (entry.asked.elapsed() < valid).then(|| entry.models.clone())
    }

    /// What the provider said last, however long ago.
    #[must_use]
    pub fn last(&self, provider: &Provider) -> Option<Arc<[String]>> {
        let kept = self.kept.lock();
        kept.get(&provider.id).filter(|k| k.version == provider.updated_at)?.models.clone()
    }

    /// Forgets providers that are gone.
    pub fn keep_only(&self, keep: impl Fn(ProviderId) -> bool) {
        self.kept.lock().retain(|provider, _| keep(*provider));
    }

    pub fn put(&self, provider: &Provider, models: Option<Arc<[String]>>) {
        let entry = Kept { version: provider.updated_at, asked: Instant::now(), models };
        self.kept.lock().insert(provider.id, entry);
    }
}

/// What somebody may reach.
#[derive(Debug, Clone, Copy)]
pub struct Reach<'a> {
    /// `None` = every provider.
    pub groups: Option<&'a Groups>,
    /// The user's list; empty = every model.
    pub allowed_models: &'a [String],
}

impl Reach<'_> {
    /// The enabled providers within reach.
    pub fn providers<'s>(&self, snapshot: &'s Snapshot) -> impl Iterator<Item = &'s Arc<Provider>> {
        let groups = self.groups.cloned();
        let reaches = move |p: &Provider| groups.as_ref().is_none_or(|groups| groups.reach(&p.group_tag));
        snapshot.providers.iter().filter(move |p| p.is_enabled && reaches(p))
    }

    /// Every model within reach, sorted; `listing` gives what a provider names itself, where it is
    /// asked for ([`is_listing_needed`]) and known.
    #[must_use]
    pub fn models(
        &self,
        snapshot: &Snapshot,
        listing: impl Fn(&Provider) -> Option<Arc<[String]>>,
    ) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for provider in self.providers(snapshot) {
            names.extend(provider.model_redirects.iter().map(|(from, _)| from.clone()));
            names.extend(provider.allowed_models.iter().filter(|m| !m.ends_with('*')).cloned());
            if is_listing_needed(provider) {
                let fits = |name: &&String| provider.supports_model(name);
                match listing(provider) {
                    Some(own) => names.extend(own.iter().filter(fits).cloned()),
                    None => names.extend(snapshot.prices.keys().filter(fits).cloned()),
                }
            }
        }
        names.retain(|model| self.allowed_models.is_empty() || model_matches(self.allowed_models, model));
        names
    }
}

/// Whether a provider's own list does not tell all its models.
#[must_use]
pub fn is_listing_needed(provider: &Provider) -> bool {
    provider.allowed_models.is_empty() || provider.allowed_models.iter().any(|m| m.ends_with('*'))
}
