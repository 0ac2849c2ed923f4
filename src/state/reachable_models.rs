//! The models that a caller can reach.
//!
//! One rule for every list of models: the names in a provider's list and redirects. For a provider
//! without a list, or with patterns in it: its own listing ([`super::Listings`]), else the priced
//! models.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::snapshot::Snapshot;
use crate::domain::group::Groups;
use crate::domain::provider::{Provider, model_matches};

/// What a caller may reach.
#[derive(Debug, Clone, Copy)]
pub struct Reach<'a> {
    /// `None` = every provider.
    pub groups: Option<&'a Groups>,
    /// The lists of the key and of its user; an empty one has every model.
    pub allowed_models: [&'a [String]; 2],
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
            let allows = |list: &[String]| list.is_empty() || model_matches(list, model);
            self.allowed_models.into_iter().all(allows) && !model.is_empty()
        });
        names
    }
}

/// Whether a provider's configured list does not contain all its models. The gateway cannot ask one
/// that takes the client's own credential.
pub fn is_listing_needed(provider: &Provider) -> bool {
    let models = &provider.allowed_models;
    !provider.auth.is_clients() && (models.is_empty() || models.iter().any(|m| m.ends_with('*')))
}
