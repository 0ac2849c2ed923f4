//! The models that a caller can reach, and the listings of providers.
//!
//! One rule for every list of models: the names in a provider's list and redirects. For a provider
//! without a list, or with patterns in it: its own listing, else the priced models. The data plane
//! fetches listings; the results are kept here for all requests.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::snapshot::Snapshot;
use crate::domain::clock::Timestamp;
use crate::domain::group::Groups;
use crate::domain::ids::ProviderId;
use crate::domain::provider::{Provider, model_matches};

/// How long a listing is used before it is fetched again, and how long a failure is kept.
const FRESH: Duration = Duration::from_secs(600);
const RETRY: Duration = Duration::from_secs(30);

/// The latest listings of providers.
#[derive(Default)]
pub struct Listings {
    kept: Mutex<HashMap<ProviderId, Kept>>,
}

struct Kept {
    /// The version of the provider's record at the time of the fetch.
    version: Timestamp,
    asked: Instant,
    /// `None`: it did not answer.
    models: Option<Arc<[String]>>,
}

impl Listings {
    /// The provider's recent listing; `None` if it must be fetched, `Some(None)` if the provider
    /// has none.
    #[must_use]
    pub fn fresh(&self, provider: &Provider) -> Option<Option<Arc<[String]>>> {
        let kept = self.kept.lock();
        let entry = kept.get(&provider.id).filter(|k| k.version == provider.updated_at)?;
        let valid = if entry.models.is_some() { FRESH } else { RETRY };
        (entry.asked.elapsed() < valid).then(|| entry.models.clone())
    }

    /// The provider's last listing, however old.
    #[must_use]
    pub fn last(&self, provider: &Provider) -> Option<Arc<[String]>> {
        let kept = self.kept.lock();
        kept.get(&provider.id).filter(|k| k.version == provider.updated_at)?.models.clone()
    }

    /// Drops providers that no longer exist.
    pub fn keep_only(&self, keep: impl Fn(ProviderId) -> bool) {
        self.kept.lock().retain(|provider, _| keep(*provider));
    }

    /// Stores what a provider listed; `None` if it did not answer. The entry is for the present
    /// version of the provider's record.
    pub fn put(&self, provider: &Provider, models: Option<Arc<[String]>>) {
        let entry = Kept { version: provider.updated_at, asked: Instant::now(), models };
        self.kept.lock().insert(provider.id, entry);
    }
}

/// What a caller may reach.
#[derive(Debug, Clone, Copy)]
pub struct Reach<'a> {
    /// `None` = every provider.
    pub groups: Option<&'a Groups>,
    /// The user's list; empty = every model.
    pub allowed_models: &'a [String],
}

impl Reach<'_> {
    /// The enabled providers that are reachable.
    pub fn providers<'s>(&self, snapshot: &'s Snapshot) -> impl Iterator<Item = &'s Arc<Provider>> {
        let groups = self.groups.cloned();
        let reaches =
            move |p: &Provider| groups.as_ref().is_none_or(|groups| groups.reach(&p.group_tag));
        snapshot.providers.iter().filter(move |p| p.is_enabled && reaches(p))
    }

    /// Every reachable model, sorted. `listing` returns a provider's own listing, if it is needed
    /// ([`is_listing_needed`]) and known.
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
        names.retain(|model| {
            self.allowed_models.is_empty() || model_matches(self.allowed_models, model)
        });
        names
    }
}

/// Whether a provider's configured list does not contain all its models.
#[must_use]
pub fn is_listing_needed(provider: &Provider) -> bool {
    provider.allowed_models.is_empty() || provider.allowed_models.iter().any(|m| m.ends_with('*'))
}
