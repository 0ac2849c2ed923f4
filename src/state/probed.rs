//! The providers that this process probes. Of several nodes, the one that probes a provider knows
//! best how it is.

use parking_lot::RwLock;

use crate::domain::clock::Timestamp;
use crate::domain::fast_map::FastMap;
use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;

/// Until when each counts as probed by this process.
#[derive(Default)]
pub struct ProbedProviders(RwLock<FastMap<ProviderId, Timestamp>>);

impl ProbedProviders {
    /// This process probes the provider.
    pub fn note(&self, provider: ProviderId, until: Timestamp) {
        self.0.write().insert(provider, until);
    }

    /// Whether another node, or none, probes the provider, although one is to.
    pub fn is_elsewhere(&self, provider: &Provider, now: Timestamp) -> bool {
        let until = self.0.read().get(&provider.id).copied();
        provider.probes().is_some() && until.is_none_or(|until| until < now)
    }
}
